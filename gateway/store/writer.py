"""The writer thread: many works, one commit. Knows no SQL and no driver; what commits a group is given to it.

Theory of operation. Works wait in a bounded queue. The thread takes all that are there, has them committed as one group
and wakes their callers with one call into the event loop; what arrives meanwhile is the next group. So the cost of the
disk is shared by whoever waits for it. Works that nobody waits for are gathered for some 30 milliseconds first, and a
group of only such works need not wait for the disk.

When the disk refuses, callers are told so. Works that nobody waits for are kept and tried again; until that succeeds
no more of them are taken, so that memory cannot grow.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import current_token

from gateway.log import Log
from gateway.store.database import StoreUnavailable, Transaction

T = TypeVar("T")

QUEUE_WORKS = 10_000
GROUP_WORKS = 512
GATHER_SECONDS = 0.03
RETRY_SECONDS = 0.5
WAIT_SECONDS = 30.0
STOP_SECONDS = 10.0


class Work:
    """One work in the queue and what became of it."""

    __slots__ = ("call", "error", "is_abandoned", "is_done", "loop", "result", "wake")

    def __init__(self, call: Callable[[Transaction], Any], *, is_awaited: bool) -> None:
        self.call = call
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.is_abandoned = False
        # The native token is the event loop itself; `call_soon_threadsafe` is all that is asked of it. anyio's own way
        # from a thread into the loop would make the writer wait for the loop's turn.
        self.loop: Any = current_token().native_token if is_awaited else None
        self.wake = anyio.Event() if is_awaited else None


class Writer:
    """One thread and its queue.

    commit: has a group of works done and committed, sets their `result` or `error`, and raises StoreUnavailable when
    none of it stands. The flag says whether the disk must have it. has_failed: the last group could not be written.
    """

    def __init__(self, commit: Callable[[Sequence[Work], bool], None], log: Log) -> None:
        self._commit = commit
        self._log = log
        self._queue: deque[Work] = deque()
        self._changed = threading.Condition()
        self._awaited = 0
        self.has_failed = False
        self._is_failing = False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> bool:
        """Have the queue written and end the thread; tell whether it has ended. Blocks, at most some seconds."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join(STOP_SECONDS)
        return not self._thread.is_alive()

    async def write(self, call: Callable[[Transaction], T]) -> T:
        """Queue `call` and wait until it is committed.

        Raises:
            StoreUnavailable: see `Database.write`.
        """
        work = Work(call, is_awaited=True)
        assert work.wake is not None
        self._put(work)
        with anyio.move_on_after(WAIT_SECONDS):
            await work.wake.wait()
        if not work.is_done:
            work.is_abandoned = True
            raise StoreUnavailable("The database did not answer in time.", retry_after_seconds=5)
        if work.error is not None:
            raise work.error
        result: T = work.result
        return result

    def write_behind(self, call: Callable[[Transaction], object]) -> None:
        """Queue `call`.

        Raises:
            StoreUnavailable: see `Database.write_behind`.
        """
        if self._is_failing:
            raise StoreUnavailable("The database cannot be written now.", retry_after_seconds=1)
        self._put(Work(call, is_awaited=False))

    def _put(self, work: Work) -> None:
        with self._changed:
            if self._is_stopping or len(self._queue) >= QUEUE_WORKS:
                raise StoreUnavailable("Too much is waiting to be written.", retry_after_seconds=1)
            self._queue.append(work)
            if work.wake is not None:
                self._awaited += 1
            # A work that nobody waits for wakes the thread only when it is the first: it is gathering otherwise.
            if work.wake is not None or len(self._queue) == 1:
                self._changed.notify()

    def _take(self) -> list[Work]:
        with self._changed:
            while not self._queue and not self._is_stopping:
                self._changed.wait()
            if not self._awaited and not self._is_stopping:
                seconds = RETRY_SECONDS if self._is_failing else GATHER_SECONDS
                self._changed.wait_for(lambda: self._awaited or self._is_stopping, timeout=seconds)
            count = min(len(self._queue), GROUP_WORKS)
            works = [self._queue.popleft() for _ in range(count)]
            self._awaited -= sum(1 for work in works if work.wake is not None)
        return works

    def _run(self) -> None:
        while works := self._take():
            awaited = [work for work in works if work.wake is not None]
            try:
                self._commit(works, bool(awaited))
            except BaseException as error:  # handed to whoever waits; the thread must not end
                self._fail(works, error)
            else:
                self._is_failing = self.has_failed = False
                self._report(works)
            self._deliver(awaited)

    def _fail(self, works: Sequence[Work], error: BaseException) -> None:
        is_unavailable = isinstance(error, StoreUnavailable)
        self._log.error("store_write_failed", error=error, works=len(works))
        behind = [work for work in works if work.wake is None]
        for work in works:
            work.result = None
            if isinstance(error, StoreUnavailable):
                work.error = StoreUnavailable(error.message, retry_after_seconds=error.retry_after_seconds)
            else:
                work.error = error
        self.has_failed = is_unavailable
        if behind and is_unavailable and not self._is_stopping:
            with self._changed:
                self._queue.extendleft(reversed(behind))
                self._is_failing = True

    def _report(self, works: Sequence[Work]) -> None:
        for work in works:
            if work.wake is None and work.error is not None:
                self._log.error("store_work_failed", error=work.error)

    @staticmethod
    def _deliver(works: Sequence[Work]) -> None:
        loops = {id(work.loop): work.loop for work in works}
        for name, loop in loops.items():
            theirs = [work for work in works if id(work.loop) == name]
            try:
                loop.call_soon_threadsafe(_wake, theirs)
            except RuntimeError:
                continue  # the loop is closed: nobody waits any more


def _wake(works: Sequence[Work]) -> None:
    for work in works:
        work.is_done = True
        assert work.wake is not None
        work.wake.set()
