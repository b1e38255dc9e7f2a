"""What was committed is brought to the disk a moment later, in a thread of its own. Knows no SQL and no works.

A disk that takes a megabyte in half a millisecond may take a third of a second for the next one. Whoever commits does
not wait for it: the log can be written to meanwhile. When the disk has hung for a second whoever commits waits, so that
a power cut takes no more than that.
"""

import threading
from collections.abc import Callable
from typing import Any

SYNC_SECONDS = 0.02
SLOW_SECONDS = 0.05
HUNG_SECONDS = 1.0


class Syncs:
    """One thread that syncs when it was asked to, one time after the other. sync: does it, and raises nothing.

    Every method but `join` and `wait_if_hung` is for the event loop that ran `start`.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._loop: Any = None
        self._timer: Any = None
        self._begun_seconds = 0.0  # since when one is under way, 0 when none is
        self._is_asked, self._is_over = threading.Event(), threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="store-sync", daemon=True)

    def start(self, loop: Any) -> None:
        """Start the thread. loop: of asyncio."""
        self._loop = loop
        self._thread.start()

    def ask(self) -> None:
        """Have all that is committed by now on the disk soon."""
        if self._timer is None and not self._is_stopping:
            self._timer = self._loop.call_later(SYNC_SECONDS, self._begin)

    def are_slow(self) -> bool:
        """Tell whether the disk has not taken what it was given for a while."""
        return self._take_longer_than(SLOW_SECONDS)

    def wait_if_hung(self) -> None:
        """Wait for a disk that has not taken what it was given for long. For whoever commits in a thread."""
        if self._take_longer_than(HUNG_SECONDS):
            self._is_over.wait()

    def end(self) -> None:
        """Have the thread end: whoever closes the database brings the rest to the disk."""
        self._is_stopping = True
        self._is_asked.set()

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the thread after `end`, at most so long, and tell whether it has ended. For any thread."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _take_longer_than(self, seconds: float) -> bool:
        begun_seconds = self._begun_seconds
        return begun_seconds > 0 and self._loop.time() - begun_seconds > seconds

    def _begin(self) -> None:
        self._timer = None
        self._is_asked.set()

    def _run(self) -> None:
        while self._is_asked.wait() and not self._is_stopping:
            self._is_asked.clear()  # first: who asks meanwhile may have committed too late for this one
            self._is_over.clear()
            self._begun_seconds = self._loop.time()
            self._sync()
            self._begun_seconds = 0.0
            self._is_over.set()
