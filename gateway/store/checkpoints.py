"""What was committed is carried into the file while others commit, by a thread that gives way to all others.

Theory of operation. In a busy hour the log holds ten thousand pages and more when it is carried over: some 60
milliseconds, in which nobody could commit. So a thread of its own carries most of it in two passes, the second for what
was committed during the first. What is left then is little: the writer carries it under its lock, so that nothing is
added meanwhile and the log begins anew.

SQLite before 3.51.3 can lose what was committed if the log begins anew just when a checkpoint begins (the WAL-reset
bug, sqlite.org/wal.html). It begins anew only if nothing of it is left to be carried over. So there is one checkpoint
at a time over all processes (a lock file), and a pass begins after a commit that has written to the log since the lock
was taken or the pass before had ended: until a checkpoint has carried over that one, and only this one can, the log
goes on.

A pass that was overtaken by a commit is counted by SQLite as done without a sync, which comes with the last part. Here
each is synced at once, since that takes longest. When the disk refuses, its pages may be lost though they count as
carried: they are written once more, from the log, before that may begin anew.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from gateway.errors import GatewayError
from gateway.log import Log
from gateway.store import wal
from gateway.store.driver import Connection, Error, connect, run
from gateway.store.filelock import LockedFile
from gateway.store.place import Place, address

_PASSES = 2
_NICE = 10  # a tenth of a processor that another thread would use as a whole
_COMMIT_SECONDS = 0.25
_RETRY_SECONDS = 1.0


class Checkpoints:
    """Checkpoints of one database file. Every method but `end` and `hurry` is for whoever holds the writer's lock.

    path: of the log. when_ready: called, in a thread, when `carry` has something to finish.
    """

    def __init__(self, place: Place, log: Log) -> None:
        self.path = place.wal_path
        self._place = place
        self._log = log
        self._lock = LockedFile(place.path + ".checkpoint", is_watched=True)
        self.when_ready: Callable[[], None] = lambda: None
        self._thread: threading.Thread | None = None  # of a round that was begun
        self._connection: Connection | None = None
        self._has_ended = False  # the thread, but for telling of what is lost
        self.is_awaiting = False  # a commit, after which a pass can begin
        self.is_carried = False  # all of the log, as long as nobody has committed
        self._go = threading.Event()
        self._is_hurried = self._is_ending = False
        self._lost: tuple[bytes, int] | None = None  # the salt of the log, and how many of its frames
        self._retry_seconds = 0.0  # when the disk may take it

    @property
    def is_under_way(self) -> bool:
        """Whether the thread is at it. For anybody."""
        return self._thread is not None and not self.is_ready

    @property
    def is_ready(self) -> bool:
        """Whether the thread has done its part and `carry` can do the rest. For anybody."""
        return self._has_ended and time.monotonic() >= self._retry_seconds

    def begin(self) -> None:
        """Have the thread begin after the next commit, unless another process carries over the log now.

        Raises:
            OSError: the lock file cannot be made.
        """
        if self._thread is not None or not self._lock.acquire(blocking=False):
            return
        thread = threading.Thread(target=self._run, name="store-checkpoint", daemon=True)
        self._go.clear()
        self._thread, self.is_awaiting = thread, True
        try:
            thread.start()
        except RuntimeError as error:  # there are too many: the writer does all of it when the log gets long
            self._log.error("store_checkpoint_failed", error=error)
            self._forget()

    def go(self) -> None:
        """Tell of a commit that has written to the log while `is_awaiting`."""
        self.is_awaiting = False
        self._go.set()

    def hurry(self) -> None:
        """Have the thread end soon, whatever is left for `carry`. For anybody."""
        self._is_hurried = True
        self._go.set()
        if self._connection is not None:
            with suppress(Error):  # it is just closed
                self._connection.interrupt()

    def carry(self, checkpoint: Callable[[], None]) -> bool:
        """Carry over the log with `checkpoint`, what the thread has left of it or all of it, and tell so.

        Does nothing while another process is at it. Not for while `is_under_way`.

        Raises:
            StoreUnavailable, OSError: it could not be done.
        """
        if self._thread is None and not self._lock.acquire(blocking=False):
            return False
        self._mend()
        try:
            if self._connection is not None:
                self._connection.close()
            checkpoint()
        finally:
            self._forget()
        return True

    def end(self, timeout_seconds: float) -> bool:
        """Have the thread end, and tell whether it has. For who no longer commits."""
        self._is_ending = True
        if self._thread is None:
            return True
        self.hurry()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Close all files, after `end`. What is left of the log is carried over by the last connection that is closed.

        Raises:
            OSError: the disk has lost something, and does not take it.
        """
        self._mend()
        if self._connection is not None:
            self._connection.close()
        self._lock.close()

    def _mend(self) -> None:
        if self._lost is not None:
            self._retry_seconds = time.monotonic() + _RETRY_SECONDS / 2
            wal.write_again(self.path, self._place.descriptor, *self._lost)
            self._lost, self._retry_seconds = None, 0.0

    def _forget(self) -> None:
        self._connection = self._thread = None
        self._has_ended = self.is_awaiting = self._is_hurried = False
        self._lock.release()

    # In the thread.

    def _run(self) -> None:
        try:
            _give_way()
            for _ in range(_PASSES):
                if self._is_hurried or not self._go.wait(_COMMIT_SECONDS) or self._is_hurried:
                    break
                self._pass()
                self._go.clear()
                self.is_awaiting = True
        except (GatewayError, Error, OSError) as error:  # the rest is done by the writer, or fails there too
            if not self._is_hurried:
                self._log.error("store_checkpoint_failed", error=error)
        finally:
            self.is_awaiting, self._has_ended = False, True
            self.when_ready()
        self._go.clear()
        while self._lost is not None and not self._is_ending:
            self._go.wait(_RETRY_SECONDS)
            self._go.clear()
            self.when_ready()

    def _pass(self) -> None:
        if self._connection is None:
            self._place.check()
            self._connection = connect(address(self._place.path, "rw"))
        salt = wal.salt(self.path)  # the log does not begin anew before the pass has ended
        _, frames, carried = run(self._connection, "PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self.is_carried = frames == carried
        try:
            getattr(os, "fdatasync", os.fsync)(self._place.descriptor)  # macOS has the second alone
        except OSError:
            self._lost = salt, carried
            raise


def _give_way() -> None:
    """Give this thread a lower priority, where a thread can have one of its own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICE)
