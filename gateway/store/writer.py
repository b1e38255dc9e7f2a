"""The writer: many works, one commit. Knows no SQL and no driver; what commits a group is given to it.

Theory of operation. The event loop gathers works. A group of brief ones it commits itself; every other, and whatever
would have to wait for something, it hands to the thread, and gathers the next one meanwhile. So the cost of the disk,
and of handing the interpreter over, is shared by whoever waits.
Works that come in one turn of the loop always go together. Beyond that, a group waits at most `AWAITED_SECONDS` for as
many callers as were waiting when the last one was delivered: those who come back in a busy hour go together, and one
caller alone never waits for another. Works that nobody waits for are gathered for some 40 milliseconds, and a group of
only such works need not wait for the disk.

When the disk refuses, callers are told so. Works that nobody waits for are kept and tried again; until that succeeds
no more of them are taken, so that memory cannot grow.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gateway.http.wakeups import Waiter, Wakeups, wakeups_here
from gateway.log import Log
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.syncs import Syncs
from gateway.store.works import Base, Work, is_brief, refuse

QUEUE_WORKS = 10_000
CROWD_WORKS = 5_000
GROUP_WORKS = 256
GATHER_SECONDS = 0.04
AWAITED_SECONDS = 0.004
RETRY_SECONDS = 0.5
WAIT_SECONDS = 30.0
STOP_SECONDS = 10.0
PAUSE_SECONDS = 0.05


class Writer:
    """A thread that commits and its queue. Every method but `join` is for the event loop that ran `start`.

    has_failed: the last group could not be written.
    """

    def __init__(self, base: Base, log: Log) -> None:
        self._base = base
        self._log = log
        self._wakeups: Wakeups  # set by `start`, before anybody writes
        self._waiters: list[Waiter] = []  # that nobody awaits now
        # The event loop itself. Its timers and `call_soon_threadsafe` are all that is asked of it; anyio's own way from
        # a thread into the loop would make the writer wait for the loop's turn.
        self._loop: Any = None
        self._queue: list[Work] = []
        self._fresh = 0  # how many in the queue somebody waits for
        self._waiting: dict[Work, float] = {}  # those that wait for the thread, and since when
        self._expected = 1
        self._is_busy = False
        self._timer: Any = None
        self._timer_seconds = 0.0
        self._watch: Any = None
        self._group_seconds = 0.0  # when the last one was committed
        self.has_failed = False
        self._is_failing = False
        self._is_stopping = False
        self._groups: deque[list[Work]] = deque()  # for the thread
        # Locked while the thread waits. A semaphore of the library takes ten times as long to wake one thread.
        self._bell = threading.Lock()
        self._bell.acquire()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._syncs = Syncs(base.sync)

    def start(self) -> None:
        """Start the thread."""
        self._wakeups = wakeups_here()
        self._loop = self._wakeups.loop
        self._base.at_due(self._ring)
        self._thread.start()
        self._syncs.start(self._loop)

    def end(self) -> None:
        """Take nothing more, and have the thread write what is queued and end."""
        self._is_stopping = True
        self._ring()
        self._syncs.end()

    def join(self) -> bool:
        """Wait for the threads after `end`, at most some seconds, and tell whether they have ended. For any thread."""
        until_seconds = self._loop.time() + STOP_SECONDS
        self._thread.join(STOP_SECONDS)
        return self._syncs.join(max(0.0, until_seconds - self._loop.time())) and not self._thread.is_alive()

    async def write(self, work: Work) -> Any:
        """Queue a work and wait until it is committed, and on the disk if it has to be. See `Database.write`.

        Raises:
            StoreUnavailable: see `Database.write`.
        """
        waiter = work.waiter = self._waiters.pop() if self._waiters else Waiter(self._wakeups)
        if not self._is_done_at_once(work):
            self._put(work)
            self._fresh += 1
            if self._is_busy:
                self._watch_over((work,))
            if self._fresh == 1 or self._fresh >= self._expected:
                self._wakeups.call_last(self._look)  # not at once: this one must be awaited before it is delivered
            await waiter
        if not work.is_abandoned:  # then, or when its caller was cancelled, it will be called for this work once more
            self._waiters.append(waiter)
        if work.error is not None:
            raise work.error
        return work.result

    def _is_done_at_once(self, work: Work) -> bool:
        """Commit a brief work, unless others are waiting or expected or may come in this turn, and tell so."""
        if self._expected > 1 or not work.is_brief or not self._wakeups.is_alone():
            return False
        if self._is_busy or self._is_stopping or self._queue or not self._commit_here((work,)):
            return False
        self._delivered((work,))
        return True

    def write_behind(self, call: Callable[[Transaction], object], *, is_brief: bool = False) -> bool:
        """Queue `call` and tell whether there is a crowd. See `Database.write_behind`.

        Raises:
            StoreUnavailable: see `Database.write_behind`.
        """
        if self._is_failing:
            raise StoreUnavailable("The database cannot be written now.", retry_after_seconds=1)
        self._put(Work(call, is_brief=is_brief))
        if not self._is_busy:
            if len(self._queue) >= GROUP_WORKS:
                self._hand_over()
            elif self._timer is None:
                self._set_timer(GATHER_SECONDS)
        return len(self._queue) >= CROWD_WORKS

    def _put(self, work: Work) -> None:
        if self._is_stopping or len(self._queue) >= QUEUE_WORKS:
            raise StoreUnavailable("Too much is waiting to be written.", retry_after_seconds=1)
        self._queue.append(work)

    # In the loop: when a group goes.

    def _look(self) -> None:
        """Hand over what is there, or wait a little for those who are expected as well."""
        if self._is_busy or not self._queue:
            return
        if self._fresh >= self._expected:
            self._hand_over()
        elif self._fresh:
            self._set_timer(AWAITED_SECONDS)
        elif len(self._queue) >= GROUP_WORKS and not self._is_failing:
            self._hand_over()  # though nobody waits for it
        else:
            self._set_timer(RETRY_SECONDS if self._is_failing else GATHER_SECONDS)

    def _set_timer(self, wait_seconds: float) -> None:
        """Hand over after `wait_seconds`, unless that is due earlier."""
        at_seconds = self._loop.time() + wait_seconds
        if self._timer is not None:
            if self._timer_seconds <= at_seconds:
                return
            self._timer.cancel()
        self._timer_seconds = at_seconds
        self._timer = self._loop.call_at(at_seconds, self._hand_over)

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_busy or self._is_stopping or not self._queue:
            return
        group = self._take()
        self._count_fresh()
        if is_brief(group) and self._commit_here(group):
            self._delivered(group)
            return
        self._is_busy = True
        self._watch_over([*group, *self._queue])
        self._groups.append(group)
        self._ring()

    def _count_fresh(self) -> None:
        self._fresh = sum(1 for work in [*self._queue] if work.waiter is not None and not work.is_abandoned)

    def _watch_over(self, works: Iterable[Work]) -> None:
        """See to it that nobody waits for the thread for too long."""
        now_seconds = self._loop.time()
        for work in works:
            if work.waiter is not None and not work.is_abandoned:
                self._waiting.setdefault(work, now_seconds)
        if self._watch is None and self._waiting:
            self._watch = self._loop.call_later(WAIT_SECONDS, self._give_up)

    def _ring(self) -> None:
        """Have the thread look what there is for it."""
        try:
            self._bell.release()
        except RuntimeError:  # it was rung already, and the thread has not heard it yet
            pass

    def _take(self) -> list[Work]:
        group = self._queue[:GROUP_WORKS]
        del self._queue[: len(group)]
        return group

    def _commit_here(self, group: Sequence[Work]) -> bool:
        """Commit a group in the event loop and tell so: not when there is something to wait for."""
        try:
            if self._syncs.are_slow() or not self._base.commit_here(group):
                return False
        except BaseException as error:  # handed to whoever waits
            if len(group) > 1 and not isinstance(error, StoreUnavailable):
                return False  # the thread finds out whose it is
            self._fail(group, error)
        else:
            self._note_success(group)
            if self._base.is_due():
                self._ring()
        return True

    def _deliver(self, group: Sequence[Work], is_durable: bool) -> None:
        """Wake the callers of a group that the thread has done."""
        self._is_busy = False
        self._delivered(group, is_durable)
        self._wakeups.wake()

    def _delivered(self, group: Sequence[Work], is_durable: bool = False) -> None:
        """Wake the callers of a group that was committed or refused. is_durable: the disk has all of it."""
        waiters = [work.waiter for work in group if work.waiter is not None]
        for waiter in waiters:
            waiter.call()
        if self._waiting:
            for work in group:
                self._waiting.pop(work, None)
        if not self._waiting and self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if not is_durable:
            self._syncs.ask()
        callers = sum(not work.is_job for work in group if work.waiter is not None)
        self._expected = callers + self._fresh or 1
        self._look()

    def _give_up(self) -> None:
        """Refuse what has waited too long, and look again when the oldest of the others may have."""
        self._watch = None
        late_seconds = self._loop.time() - WAIT_SECONDS
        for work, since_seconds in tuple(self._waiting.items()):
            if since_seconds > late_seconds:
                self._watch = self._loop.call_later(since_seconds - late_seconds, self._give_up)
                break
            del self._waiting[work]
            work.is_abandoned = True
            work.error = StoreUnavailable("The database did not answer in time.", retry_after_seconds=5)
            if work.waiter is not None:
                work.waiter.call()
        self._count_fresh()

    # In the thread.

    def _run(self) -> None:
        is_resting = True
        while True:
            is_rung = self._bell.acquire(timeout=-1 if is_resting else PAUSE_SECONDS)
            is_resting = not is_rung and self._loop.time() - self._group_seconds >= PAUSE_SECONDS
            if is_rung and self._groups:
                self._do(self._groups.popleft())
            if is_rung and self._is_stopping:
                self._do_rest()
                return
            if is_rung or is_resting:
                self._base.tidy(is_resting)

    def _do_rest(self) -> None:
        """Do what is left when the loop gives nothing any more."""
        while self._groups:
            self._do(self._groups.popleft())
        while self._queue:
            self._do(self._take())

    def _do(self, group: Sequence[Work]) -> None:
        self._syncs.wait_if_hung()
        is_durable = any(work.is_durable for work in group)
        try:
            self._base.commit(group, is_durable)
        except StoreUnavailable as error:
            self._fail(group, error)
        except BaseException as error:  # handed to whoever waits; the thread must not end
            if len(group) > 1:  # only one of them may be to blame
                self._do_each(group)
            else:
                self._fail(group, error)
        else:
            self._note_success(group)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._deliver, group, is_durable)

    def _do_each(self, group: Sequence[Work]) -> None:
        for number, work in enumerate(group):
            try:
                self._base.commit((work,), work.is_durable)
            except StoreUnavailable as error:
                self._fail(group[number:], error)
                return
            except BaseException as error:  # as above
                self._fail((work,), error)
            else:
                self._note_success((work,))

    def _note_success(self, group: Sequence[Work]) -> None:
        self._group_seconds = self._loop.time()
        self._is_failing = self.has_failed = False
        for work in group:
            if work.error is not None and work.waiter is None:
                self._log.error("store_work_failed", error=work.error)

    def _fail(self, works: Sequence[Work], error: BaseException) -> None:
        is_unavailable = isinstance(error, StoreUnavailable)
        self._log.error("store_write_failed", error=error, works=len(works))
        refuse(works, error)
        self.has_failed = is_unavailable
        if is_unavailable and (behind := [work for work in works if work.waiter is None]) and not self._is_stopping:
            self._queue[:0] = behind
            self._is_failing = True
