"""How much the write-ahead log of SQLite holds. Its file tells nothing by its size: it begins anew at its beginning.

Read as its format says (sqlite.org/fileformat2.html#walformat): a header, then frames of one page each. Those that were
written since the log began anew carry the salt of the header.
"""

import os

_HEADER_BYTES, _FRAME_HEADER_BYTES, _SALT_BYTES = 32, 24, 8
_PAGE_SIZE_AT, _SALT_AT, _FRAME_SALT_AT = 8, 16, 8


def holds(path: str, size_bytes: int) -> bool:
    """Tell whether the log at `path` holds as many bytes. Nobody may write meanwhile.

    Raises:
        OSError: there is no log, or it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        header = os.pread(descriptor, _HEADER_BYTES, 0)
        frame_bytes = _FRAME_HEADER_BYTES + int.from_bytes(header[_PAGE_SIZE_AT : _PAGE_SIZE_AT + 4], "big")
        last_at = _HEADER_BYTES + (size_bytes // frame_bytes - 1) * frame_bytes
        salt = os.pread(descriptor, _SALT_BYTES, last_at + _FRAME_SALT_AT)
    finally:
        os.close(descriptor)
    return len(salt) == _SALT_BYTES and salt == header[_SALT_AT : _SALT_AT + _SALT_BYTES]
