"""Tasks that wait for bytes are woken together: one callback of the loop for all of a turn. Opens no socket.

Theory of operation. A future makes a callback, a handle and a turn of the event loop for each task that it wakes. Here
a task awaits one and the same object again and again; who has bytes for it is put on a list, and the next turn of the
loop runs through that list. The order is as with futures: all sockets that are ready are read before the first task
goes on, so that the time of arrival says how long a request has waited. asyncio takes any object with
`_asyncio_future_blocking` for a future (see `asyncio.isfuture`): it asks for `_loop`, leaves a callback, and asks for
the `result` when that is called.
"""

from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

import anyio


class Wakeups:
    """The tasks of one event loop that go on in its next turn, until they wait again.

    loop: as `asyncio.get_running_loop` returns it.
    """

    __slots__ = ("_ready", "loop")

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self._ready: list[Waiter] = []

    def add(self, waiter: "Waiter") -> None:
        """Have the task that awaits `waiter` go on; not one that was added already."""
        if not self._ready:
            self.loop.call_soon(self._wake)
        self._ready.append(waiter)

    def _wake(self) -> None:
        ready, self._ready = self._ready, []
        for waiter in ready:
            wakeup, waiter._wakeup = waiter._wakeup, None
            assert wakeup is not None  # nobody else takes it
            waiter._context.run(wakeup, waiter)


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
