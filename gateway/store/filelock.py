"""One writer at a time over all processes of a host: a flock, in turn. Knows no database.

Two files. Who wants the lock first takes the turn, waits for the lock, and gives the turn away. So a busy process that
has just let go of the lock cannot take it again before one that was waiting, which flock alone would let it do.
"""

import fcntl
import os
import threading
from collections.abc import Callable
from types import TracebackType


class FileLock:
    """An exclusive lock on `path`, for one thread of one process at a time. The files stay where they are.

    check: is called before a file is made, and raises where none may be.
    """

    def __init__(self, path: str, *, check: Callable[[], None] = lambda: None) -> None:
        self._threads = threading.Lock()
        self._turn = LockedFile(path + ".turn", is_watched=False, check=check)  # two turns would only be less fair
        self._lock = LockedFile(path, is_watched=True, check=check)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock and tell so; not `blocking`, nothing is waited for.

        Raises:
            OSError: a file cannot be made. What `check` raises.
        """
        if not self._threads.acquire(blocking):
            return False
        has_lock = False
        try:
            if self._turn.acquire(blocking):
                try:
                    has_lock = self._lock.acquire(blocking)
                finally:
                    self._turn.release()
        finally:
            if not has_lock:
                self._threads.release()
        return has_lock

    def release(self) -> None:
        """Let go of the lock."""
        self._lock.release()
        self._threads.release()

    def __enter__(self) -> "FileLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def close(self) -> None:
        """Close the files."""
        self._turn.close()
        self._lock.close()


class LockedFile:
    """A file that is locked as a whole. is_watched: one of its name that takes its place is locked instead.

    check: as for `FileLock`.
    descriptor: the open file, -1 when there is none.
    """

    def __init__(self, path: str, *, is_watched: bool, check: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._check = check
        self._is_watched = is_watched
        self.descriptor = -1
        self._identity = (0, 0)

    def acquire(self, blocking: bool) -> bool:
        """Lock the file and tell so; not `blocking`, only if nobody else has it.

        Raises:
            OSError: the file cannot be made. What `check` raises.
        """
        while True:
            if self.descriptor < 0:
                self._check()
                self.descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._identity = _identity(os.fstat(self.descriptor))
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX if blocking else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if not self._is_watched:
                return True
            # Somebody may have removed the file, and others would then lock another one of its name.
            if self.is_there():
                return True
            self.close()

    def is_there(self) -> bool:
        """Tell whether the open file is still the one of its name.

        Raises:
            OSError: nobody knows.
        """
        try:
            return _identity(os.stat(self._path)) == self._identity
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let go of the lock. Raises nothing: what was done under the lock is done."""
        if self.descriptor >= 0:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            except OSError:
                self.close()

    def close(self) -> None:
        """Close the file, which lets go of the lock."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
