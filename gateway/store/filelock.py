"""One writer at a time over all processes of a host: a blocking flock, in turn. Knows no database.

Two files. Who wants the lock first takes the turn, waits for the lock, and gives the turn away. So a busy process that
has just let go of the lock cannot take it again before one that was waiting, which flock alone would let it do.
"""

import fcntl
import os
from types import TracebackType


class FileLock:
    """An exclusive lock on `path`, for one thread at a time. The files stay where they are."""

    def __init__(self, path: str) -> None:
        self._turn = _LockedFile(path + ".turn")
        self._lock = _LockedFile(path)

    def __enter__(self) -> "FileLock":
        self._turn.acquire()
        try:
            self._lock.acquire()
        finally:
            self._turn.release()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def close(self) -> None:
        """Close the files."""
        self._turn.close()
        self._lock.close()


class _LockedFile:
    """A file that is locked as a whole."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._identity = (0, 0)

    def acquire(self) -> None:
        """Wait for the lock.

        Raises:
            OSError: the file cannot be made.
        """
        while True:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._identity = _identity(os.fstat(self._descriptor))
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            # Somebody may have removed the file, and others would then lock another one of its name.
            try:
                if _identity(os.stat(self._path)) == self._identity:
                    return
            except FileNotFoundError:
                pass
            self.close()

    def release(self) -> None:
        """Let go of the lock."""
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, which lets go of the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
