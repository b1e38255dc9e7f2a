"""Tasks that wait for bytes, or for a commit, are woken together, and what they send leaves together. Opens no socket.

Theory of operation. A future makes a callback, a handle and a turn of the event loop for each task that it wakes. Here
a task awaits one and the same object again and again; who has something for it puts it on a list, and the loop runs
through that list when it has read all sockets that are ready, so that the time of arrival says how long a request has
waited. What several tasks write meanwhile is sent after the last of them: to do each kind of work in a row, be it
reading, thinking or sending, takes a tenth less time than to take turns. At the very end comes what all of them have
queued for somebody else. asyncio takes any object with `_asyncio_future_blocking` for a future (see
`asyncio.isfuture`): it asks for `_loop`, leaves a callback, and asks for the `result` when that is called.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextvars import Context
from typing import Any

import anyio
from anyio.lowlevel import RunVar, current_token

LATER_BYTES = 16_384
"""What is longer is sent at once: it may fill the socket, and who sends it wants to know."""


class Wakeups:
    """The tasks of one event loop that go on together, until they wait again, and what they send.

    loop: as `asyncio.get_running_loop` returns it. unsent: what is written while `gathers`, and with what; `flush`
    before anything else is written or ended. flushes: how often something was.
    """

    __slots__ = (
        "_handles", "_is_alone", "_is_due", "_is_waking", "_last", "_ready", "flushes", "gathers", "loop", "unsent",
    )  # fmt: skip

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        # What the loop has still to call in this turn. Where it does not tell, tasks go on in the next one.
        self._handles: Sequence[object] = getattr(loop, "_ready", (None,))
        self._ready: list[Waiter] = []
        self.unsent: list[tuple[Callable[[bytes], object], bytes]] = []
        self._last: list[Callable[[], object]] = []
        self._is_due = False
        self._is_waking = False
        self._is_alone = False
        self.gathers = False
        self.flushes = 0

    def add(self, waiter: "Waiter") -> None:
        """Have the task that awaits `waiter` go on in the next turn; not one that was added already."""
        if not self._is_due:
            self._is_due = True
            self.loop.call_soon(self._turn)
        self._ready.append(waiter)

    def add_read(self, waiter: "Waiter") -> None:
        """Have the task go on as soon as all sockets are read. Only for what the loop calls, not for a task."""
        self._ready.append(waiter)
        if self._is_due:
            return
        if self._handles:
            self._is_due = True
            self.loop.call_soon(self._turn)
        else:
            self.wake()

    def wake(self) -> None:
        """Have all tasks that were added go on, then send what they wrote. Not for a task."""
        self._is_alone = len(self._ready) == 1
        try:
            self._run()
        finally:
            if self._last:
                self._call_last()

    def _call_last(self) -> None:
        """Call what waits for the end of the turn; who is woken by that goes on in the same turn."""
        last, self._last = deque(self._last), []
        was_due, self._is_due = self._is_due, True  # whom these calls add goes on here, not in the next turn
        try:
            while last:
                last.popleft()()
        finally:
            self._is_due = was_due
            try:
                if self._ready and not was_due:
                    self._run()
            finally:
                last.extend(self._last)
                self._last = []
                for call in last:
                    self.loop.call_soon(call)

    def _run(self) -> None:
        """Have all tasks that were added go on, then send what they wrote."""
        ready, self._ready = self._ready, []
        self._is_waking = True
        self.gathers = len(ready) > 1
        try:
            for waiter in ready:
                wakeup, waiter._wakeup = waiter._wakeup, None
                assert wakeup is not None  # nobody else takes it
                waiter._context.run(wakeup, waiter)
        finally:
            self._is_waking = self._is_alone = self.gathers = False
            self.flush()

    def flush(self) -> None:
        """Send what was kept back."""
        if self.unsent:
            self.flushes += 1
            unsent, self.unsent = self.unsent, []
            for write, data in unsent:
                write(data)

    def is_alone(self) -> bool:
        """Tell whether the task that runs is the only one that goes on now. Told once, so that it gives way then."""
        is_alone, self._is_alone = self._is_alone and not self._ready, False
        return is_alone

    def call_last(self, call: Callable[[], object]) -> None:
        """Call `call` when all tasks that go on now wait again and what they wrote is sent, else in the next turn."""
        if self._is_waking:
            self._last.append(call)
        else:
            self.loop.call_soon(call)

    def _turn(self) -> None:
        self._is_due = False
        self.wake()


class Waiter:
    """What one task at a time awaits, as often as it likes. is_awaited: a task waits, and nobody has called it yet."""

    __slots__ = ("_asyncio_future_blocking", "_cancelled", "_context", "_loop", "_wakeup", "_wakeups", "is_awaited")

    def __init__(self, wakeups: Wakeups) -> None:
        self.is_awaited = False
        self._wakeups = wakeups
        self._loop = wakeups.loop
        self._asyncio_future_blocking = False
        self._wakeup: Callable[[Waiter], object] | None = None  # there is one while a task waits
        self._context: Context
        self._cancelled: str | None = None

    def __await__(self) -> Generator["Waiter", None, None]:
        self._asyncio_future_blocking = True
        yield self

    def call(self) -> None:
        """Have the task go on in the next turn of the loop, if one `is_awaited`."""
        if self.is_awaited:
            self.is_awaited = False
            self._wakeups.add(self)

    def call_read(self) -> None:
        """Do what `call` does, see `Wakeups.add_read`."""
        if self.is_awaited:
            self.is_awaited = False
            self._wakeups.add_read(self)

    def is_called(self) -> bool:
        """Tell whether the task was called and has not gone on yet."""
        return self._wakeup is not None and not self.is_awaited

    # What the task, and whoever looks at it from outside, asks of a future.

    def done(self) -> bool:
        """Tell whether the task need not wait any more."""
        return not self.is_awaited

    def add_done_callback(self, wakeup: "Callable[[Waiter], object]", *, context: Context) -> None:
        """Take what wakes the task."""
        self._wakeup = wakeup
        self._context = context
        self.is_awaited = True

    def cancel(self, msg: str | None = None) -> bool:
        """Have the task go on with a cancellation. What it waited for is left where it is."""
        if self._wakeup is None:
            return False
        self._cancelled = msg or ""
        self.call()
        return True

    def result(self) -> None:
        """Raise the cancellation, if there was one."""
        if self._cancelled is not None:
            message, self._cancelled = self._cancelled, None
            raise anyio.get_cancelled_exc_class()(message)


def cancel_waiting(task: Any) -> bool:
    """Have a task of asyncio go on with a cancellation, if it awaits a `Waiter`. Say whether it does."""
    waiter = task._fut_waiter
    return isinstance(waiter, Waiter) and waiter.cancel()


_OF_LOOP: RunVar[Wakeups] = RunVar("wakeups")


def wakeups_here() -> Wakeups:
    """Return the wakeups of the event loop that runs: one for all servers, clients and writers."""
    found = _OF_LOOP.get(None)
    if found is None:
        found = Wakeups(current_token().native_token)
        _OF_LOOP.set(found)
    return found
