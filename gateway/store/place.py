"""Where a database file lies: made for its owner alone, refused when it is something else, and still the same file."""

import os
from contextlib import suppress
from urllib.parse import quote

from gateway.errors import SetupError
from gateway.store.database import StoreUnavailable

APPLICATION_ID = 0x67777931  # "gwy1", in the header of the file
_RETRY_SECONDS = 5


Identity = tuple[int, int]
"""Which file it is, whatever its name: device and inode."""


class Place:
    """The path of a database file. magic: what the file begins with, if it is not empty.

    identity: of the one file that it may be, None for any. That one is opened, and never made.

    wal_path: its log. descriptor: the open file, from `prepare` to `close`, -1 before and after. It must not be closed
    while SQLite has the file open, in this process: that would take away all of SQLite's locks.
    """

    def __init__(self, path: str, *, magic: bytes, identity: Identity | None = None) -> None:
        self.path = path
        self.wal_path = os.path.realpath(path) + "-wal"  # beside the file itself, if the path is a link
        self.descriptor = -1
        self._magic = magic
        self._identity = identity

    def prepare(self) -> None:
        """Make the folder (0700) and an empty file (0600) where there is none; look at the file where there is one.

        Raises:
            OSError: one cannot be made or read. SetupError: the file is no database, and was left as it is.
            StoreUnavailable: it is another file than it has to be.
        """
        if self._identity is None:
            os.makedirs(os.path.dirname(os.path.abspath(self.path)), mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        else:
            self.check()
        if self.descriptor < 0:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        if os.pread(self.descriptor, len(self._magic), 0) not in (b"", self._magic):
            raise SetupError(f"The file {self.path} is not a database: choose another path.")
        found = os.fstat(self.descriptor)
        if found.st_mode & 0o077:
            os.fchmod(self.descriptor, 0o600)
        self._identity = self._identity or (found.st_dev, found.st_ino)

    def check(self) -> None:
        """See to it that the file is still there: a database goes on writing into one that was removed.

        Raises:
            StoreUnavailable: it was removed or replaced.
        """
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise StoreUnavailable("The database file is gone.", retry_after_seconds=_RETRY_SECONDS) from error
        if (found.st_dev, found.st_ino) != self._identity:
            raise StoreUnavailable(
                "The database file was replaced: restart to use the new one.", retry_after_seconds=_RETRY_SECONDS
            )

    def close(self) -> None:
        """Close the file, after every connection to it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def address(path: str, mode: str) -> str:
    """Return the URI of a database file. mode: ``ro`` or ``rw``."""
    return f"file:{quote(os.path.abspath(path))}?mode={mode}"


def identify(path: str) -> Identity:
    """Return which file has this path.

    Raises:
        SetupError: there is none.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise SetupError(f"The database {path} is gone ({error.strerror}).") from error
    return found.st_dev, found.st_ino
