"""Lock files over all processes of a host, and sync files to the disk. Knows no database.

There are two files. A process that wants the lock first takes the turn, waits for the lock, and gives the turn away.
So a busy process that has just released the lock cannot take it again before one that waits, which flock alone allows.
"""

import fcntl
import os
import threading


class FileLock:
    """An exclusive lock on `path`, for one thread of one process at a time. The files stay where they are."""

    def __init__(self, path: str) -> None:
        self._threads = threading.Lock()
        self._turn = LockedFile(path + ".turn")
        self._lock = LockedFile(path)

    def acquire(self) -> None:
        """Wait for the lock and take it.

        Raises:
            OSError: a file cannot be made.
        """
        self._threads.acquire()
        try:
            self._turn.acquire()
            try:
                self._lock.acquire()
            finally:
                self._turn.release()
        except BaseException:
            self._threads.release()
            raise

    def release(self) -> None:
        self._lock.release()
        self._threads.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def close(self) -> None:
        self._turn.close()
        self._lock.close()


class LockedFile:
    """A file that is locked as a whole. descriptor: the open file, -1 when there is none."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.descriptor = -1

    def acquire(self, *, blocking: bool = True, shared: bool = False) -> bool:
        """Lock the file, made if there is none, and return whether it is locked. It always is if `blocking`.

        shared: other processes may hold it shared at the same time.

        Raises:
            OSError: the file cannot be made.
        """
        operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if blocking else fcntl.LOCK_NB)
        while True:
            if self.descriptor < 0:
                self.descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self.descriptor, operation)
            except BlockingIOError:
                return False
            # If somebody has removed the file, other processes lock another one of its name.
            if self._is_there():
                return True
            self.close()

    def release(self) -> None:
        """Release the lock. Raises nothing."""
        if self.descriptor >= 0:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            except OSError:
                self.close()  # which releases it as well

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self.descriptor))
        except FileNotFoundError:
            return False


def private(path: str, flags: int) -> int:
    """Open a file for its owner alone: an opener of the function `open`."""
    return os.open(path, flags, 0o600)


def sync(path: str) -> None:
    """Wait until the disk has a file or folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
