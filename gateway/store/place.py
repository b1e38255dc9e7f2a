"""Where a database file lies: made for its owner alone, refused when it is something else, and still the same file."""

import os

from gateway.errors import SetupError
from gateway.store.database import StoreUnavailable

_RETRY_SECONDS = 5


class Place:
    """The path of a database file. magic: what the file begins with, if it is not empty."""

    def __init__(self, path: str, *, magic: bytes) -> None:
        self.path = path
        self._magic = magic
        self._identity: tuple[int, int] | None = None

    def prepare(self) -> None:
        """Make the folder (0700) and an empty file (0600) where there is none; look at the file where there is one.

        Raises:
            OSError: one cannot be made or read. SetupError: the file is no database, and was left as it is.
        """
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), mode=0o700, exist_ok=True)
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.pread(descriptor, len(self._magic), 0) not in (b"", self._magic):
                raise SetupError(f"The file {self.path} is not a database: choose another path.")
            found = os.fstat(descriptor)
            if found.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
            self._identity = (found.st_dev, found.st_ino)
        finally:
            os.close(descriptor)

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
