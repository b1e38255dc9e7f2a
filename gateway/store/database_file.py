"""The file of a database: made for its owner alone, and checked to be the same file before each write."""

import os
from contextlib import suppress

from gateway.errors import SetupError
from gateway.store.database import StoreUnavailable

_RETRY_SECONDS = 5

Identity = tuple[int, int]
"""Which file it is, whatever its name: device and inode."""


class DatabaseFile:
    """A path, and the one file that it may name from `prepare` on.

    identity: of the file that a process of this group has made before. That one is opened, and none is ever made.
    """

    def __init__(self, path: str, *, identity: Identity | None = None) -> None:
        self.path = path
        self._identity = identity

    def prepare(self) -> None:
        """Make the folder (0700) and an empty file (0600) if there is none, and close the file to other users.

        Raises:
            OSError: it cannot be made or changed. StoreUnavailable: it is not the file it has to be.
        """
        if self._identity is None:
            os.makedirs(os.path.dirname(os.path.abspath(self.path)), mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._identity = _identity(self.path)
        self.check()
        if os.stat(self.path).st_mode & 0o077:
            os.chmod(self.path, 0o600)

    def check(self) -> None:
        """Check that the path still names the file: a database goes on writing into a file that was removed.

        Raises:
            StoreUnavailable: it was removed or replaced.
        """
        try:
            found = _identity(self.path)
        except OSError as error:
            raise StoreUnavailable("The database file is gone.", retry_after_seconds=_RETRY_SECONDS) from error
        if found != self._identity:
            raise StoreUnavailable(
                "The database file was replaced: restart to use the new one.", retry_after_seconds=_RETRY_SECONDS
            )


def identify(path: str) -> Identity:
    """Return which file has this path.

    Raises:
        SetupError: there is none.
    """
    try:
        return _identity(path)
    except OSError as error:
        raise SetupError(f"The database {path} is gone ({error.strerror}).") from error


def _identity(path: str) -> Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino
