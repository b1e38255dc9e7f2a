"""The writer: one thread that commits what callers queue, many writes to a commit. Knows no SQL and no driver.

The thread takes all writes that are queued, at most `GROUP_WRITES`, and commits them as one group, so that they share
the cost of the commit and of the disk. After a group with several callers it waits up to `CALLERS_SECONDS` for as many
to write again. A single caller never waits for another. Writes without a caller gather for `BEHIND_SECONDS`.

A group is synced to disk by its commit if one of its writes asks for that. Other groups are synced by the next commit
after `SYNC_SECONDS`, or by an empty one.

If the disk refuses a group, its callers get an error. Writes without a caller stay in the queue and are retried. Until
a retry succeeds, the writer accepts no more of them, so that memory stays bounded. If the disk hangs, only the thread
waits for it: callers get an error after `wait_seconds`, by default `WAIT_SECONDS`.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.log import Log
from gateway.store.database import StoreUnavailable, Transaction, fenced

QUEUE_WRITES = 10_000
BUSY_WRITES = 5_000
GROUP_WRITES = 256
BEHIND_SECONDS = 0.04
CALLERS_SECONDS = 0.004
SYNC_SECONDS = 0.03
RETRY_SECONDS = 0.5
WAIT_SECONDS = 30.0
STOP_SECONDS = 10.0


@dataclass(slots=True, eq=False)
class PendingWrite:
    """One write in the queue, and its result.

    future: what its caller awaits, None without a caller. is_durable: the disk must have it before the caller goes on.
    is_abandoned: the caller got an error, so the write must not run any more.
    """

    work: Callable[[Transaction], Any]
    is_durable: bool = False
    future: "asyncio.Future[Any] | None" = None
    result: Any = None
    error: BaseException | None = None
    is_abandoned: bool = False

    def give_up(self) -> None:
        """Refuse a write that the disk has kept waiting for too long."""
        self.is_abandoned = True
        if self.future is not None and not self.future.done():
            error = StoreUnavailable("The database did not answer in time.", retry_after_seconds=5)
            self.future.set_exception(error)


class Writer:
    """The thread and its queue. `write` and `write_behind` are for the event loop that ran `start`.

    commit: commits a group, synced to disk or not, and sets `result` or `error` of each write; it raises if none of
    them stands. has_failed: the last group could not be written.
    """

    def __init__(
        self, commit: Callable[[Sequence[PendingWrite], bool], None], log: Log, *, wait_seconds: float | None = None
    ) -> None:
        self._commit = commit
        self._log = log
        self._wait_seconds = wait_seconds
        self._loop: asyncio.AbstractEventLoop
        self._changed = threading.Condition()  # guards the five below
        self._queue: list[PendingWrite] = []
        self._callers = 0  # how many writes in the queue have a caller
        self._expected = 1  # how many callers the next group waits for
        self._is_retrying = False  # writes without a caller failed and are in the queue again
        self._is_stopping = False
        self._sync_at_seconds = math.inf
        self.has_failed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def end(self) -> bool:
        """Take no more writes. Return whether the thread has ended within `STOP_SECONDS`. Blocks; for any thread."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join(STOP_SECONDS)
        return not self._thread.is_alive()

    async def write(self, work: Callable[[Transaction], Any], *, is_durable: bool) -> Any:
        write = PendingWrite(fenced(work), is_durable=is_durable, future=self._loop.create_future())
        self._put(write)
        timer = self._loop.call_later(self._wait_seconds or WAIT_SECONDS, write.give_up)
        try:
            assert write.future is not None
            return await write.future
        finally:
            timer.cancel()

    def write_behind(self, work: Callable[[Transaction], object]) -> bool:
        if self._is_retrying:
            raise StoreUnavailable("The database cannot be written now.", retry_after_seconds=1)
        self._put(PendingWrite(fenced(work)))
        return len(self._queue) >= BUSY_WRITES

    def _put(self, write: PendingWrite) -> None:
        with self._changed:
            if self._is_stopping or len(self._queue) >= QUEUE_WRITES:
                raise StoreUnavailable("Too much is waiting to be written.", retry_after_seconds=1)
            self._queue.append(write)
            self._callers += write.future is not None
            # Wake the thread only if it may have something to do, and after all callbacks that are ready now, so that
            # their writes share a group.
            if len(self._queue) in (1, GROUP_WRITES) or self._callers in (1, self._expected):
                self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    # In the thread.

    def _run(self) -> None:
        while (group := self._take()) is not None:
            self._do(group)
        if self._sync_at_seconds < math.inf:
            self._do(())

    def _take(self) -> Sequence[PendingWrite] | None:
        """Wait for a group and return it: empty if it is time for a sync, None at the end."""
        with self._changed:
            until_sync_seconds = max(0.0, self._sync_at_seconds - time.monotonic())
            limit_seconds = None if until_sync_seconds == math.inf else until_sync_seconds
            if not self._changed.wait_for(lambda: self._queue or self._is_stopping, limit_seconds):
                return ()
            self._changed.wait_for(self._is_urgent, RETRY_SECONDS if self._is_retrying else BEHIND_SECONDS)
            if self._expected > 1:
                self._changed.wait_for(self._is_complete, CALLERS_SECONDS)
            group = self._queue[:GROUP_WRITES]
            if not group:
                return None
            del self._queue[:GROUP_WRITES]
            callers = sum(write.future is not None for write in group)
            self._callers -= callers
            self._expected = max(1, callers + self._callers)
            return group

    def _is_urgent(self) -> bool:
        return self._callers > 0 or self._is_stopping or (len(self._queue) >= GROUP_WRITES and not self._is_retrying)

    def _is_complete(self) -> bool:
        return self._callers >= self._expected or self._is_stopping or len(self._queue) >= GROUP_WRITES

    def _do(self, group: Sequence[PendingWrite]) -> None:
        is_sync_due = self.has_failed or time.monotonic() >= self._sync_at_seconds or not group
        is_durable = is_sync_due or any(write.is_durable for write in group)
        try:
            self._commit(group, is_durable)
        except BaseException as error:  # handed to the callers; the thread must not end
            self._fail(group, error)
        else:
            self.has_failed = self._is_retrying = False
            sync_at_seconds = min(self._sync_at_seconds, time.monotonic() + SYNC_SECONDS)
            self._sync_at_seconds = math.inf if is_durable else sync_at_seconds
            for write in group:
                if write.error is not None and write.future is None:
                    self._log.error("store_work_failed", error=write.error)
        if any(write.future is not None for write in group):
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(_deliver, group)

    def _fail(self, group: Sequence[PendingWrite], error: BaseException) -> None:
        self._log.error("store_write_failed", error=error, works=len(group))
        self.has_failed = isinstance(error, StoreUnavailable)
        if self._sync_at_seconds < math.inf:
            self._sync_at_seconds = time.monotonic() + RETRY_SECONDS
        for write in group:
            write.result, write.error = None, error
            if isinstance(error, StoreUnavailable):  # one each: a raised exception collects the traceback of its caller
                write.error = StoreUnavailable(error.message, retry_after_seconds=error.retry_after_seconds)
        behind = [write for write in group if write.future is None]
        if self.has_failed and behind:
            with self._changed:
                if not self._is_stopping:
                    self._queue[:0] = behind
                    self._is_retrying = True


def _deliver(group: Sequence[PendingWrite]) -> None:
    """Give the outcomes to the callers, in their event loop."""
    for write in group:
        if write.future is None or write.future.done():  # the caller is gone
            continue
        if write.error is not None:
            write.future.set_exception(write.error)
        else:
            write.future.set_result(write.result)
