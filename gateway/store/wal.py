"""What the write-ahead log of SQLite holds. Its file tells nothing by its size: it begins anew at its beginning.

Read as its format says (sqlite.org/fileformat2.html#walformat): a header, then frames of one page each. Those that were
written since the log began anew carry the salt of the header.
"""

import errno
import os
from io import FileIO

_HEADER_BYTES, _FRAME_HEADER_BYTES, _SALT_BYTES = 32, 24, 8
_PAGE_SIZE_AT, _SALT_AT, _FRAME_PAGE_BYTES, _FRAME_SALT_AT = 8, 16, 4, 8


def holds(path: str, size_bytes: int) -> bool:
    """Tell whether the log at `path` holds as many bytes. Nobody may write meanwhile.

    Raises:
        OSError: there is no log, or it cannot be read.
    """
    with open(path, "rb", buffering=0) as log:
        header = _Header(log)
        last_at = _HEADER_BYTES + (size_bytes // header.frame_bytes - 1) * header.frame_bytes
        found = os.pread(log.fileno(), _SALT_BYTES, last_at + _FRAME_SALT_AT)
    return len(found) == _SALT_BYTES and found == header.salt


def salt(path: str) -> bytes:
    """Return what the log at `path` has since it began anew, and no log before.

    Raises:
        OSError: there is no log, or it cannot be read.
    """
    with open(path, "rb", buffering=0) as log:
        return _Header(log).salt


def write_again(path: str, descriptor: int, salt: bytes, frames: int) -> None:
    """Write the pages of the first frames of the log at `path` to the database file, and wait for the disk.

    To be done if the log has not begun anew since its salt was this: else the file has them. descriptor: the open
    database file. frames: as many as a checkpoint has told that it had carried over. Nobody may write meanwhile.

    Raises:
        OSError: the log cannot be read, or the disk does not take the pages.
    """
    with open(path, "rb", buffering=0) as log:
        header = _Header(log)
        places: dict[
            int, int
        ] = {}  # of each page in the log: its last frame counts, and others read the file meanwhile
        for at in range(_HEADER_BYTES, _HEADER_BYTES + frames * header.frame_bytes, header.frame_bytes):
            head = os.pread(log.fileno(), _FRAME_HEADER_BYTES, at)
            if head[_FRAME_SALT_AT : _FRAME_SALT_AT + _SALT_BYTES] != salt:
                break
            places[int.from_bytes(head[:_FRAME_PAGE_BYTES], "big")] = at + _FRAME_HEADER_BYTES
        for page, at in places.items():
            content = os.pread(log.fileno(), header.page_bytes, at)
            if os.pwrite(descriptor, content, (page - 1) * header.page_bytes) < header.page_bytes:
                raise OSError(errno.ENOSPC, "The disk takes a part of a page.")
    os.fsync(descriptor)


class _Header:
    def __init__(self, log: FileIO) -> None:
        header = os.pread(log.fileno(), _HEADER_BYTES, 0)
        self.salt = header[_SALT_AT : _SALT_AT + _SALT_BYTES]
        self.page_bytes = int.from_bytes(header[_PAGE_SIZE_AT : _PAGE_SIZE_AT + 4], "big")
        self.frame_bytes = _FRAME_HEADER_BYTES + self.page_bytes
