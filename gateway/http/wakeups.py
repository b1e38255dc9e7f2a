"""Tasks that wait for bytes, or for a commit, are woken together, and what they send leaves together. Opens no socket.

Theory of operation. A future makes a callback, a handle and a turn of the event loop for each task that it wakes. Here
a task awaits one and the same object again and again; who has something for it puts it on a list, and that list is run
through when all sockets that are ready were read, so that the time of arrival says how long a request has waited. What
several tasks write meanwhile is sent after the last of them: to do each kind of work in a row, be it reading, thinking
or sending, takes a tenth less time than to take turns. At the very end comes what all of them have queued for somebody
else. asyncio takes any object with `_asyncio_future_blocking` for a future (see `asyncio.isfuture`): it asks for
`_loop`, leaves a callback, and asks for the `result` when that is called.

For each socket that is ready an event loop looks up whose it is, makes a list of what it found, queues a callback and
runs that in a context, which takes as long as to read what has come. So it is given one descriptor that stands for all
sockets (an epoll within its own), and has one callback read those that are ready.
"""

import select
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

import anyio
from anyio.lowlevel import RunVar, current_token

LATER_BYTES = 16_384
"""What is longer is sent at once: it may fill the socket, and who sends it wants to know."""
_epoll: Any = getattr(select, "epoll", None)  # on Linux


class Wakeups:
    """The sockets of one event loop that are read together, and the tasks that go on together, until they wait again.

    loop: as `asyncio.get_running_loop` returns it. unsent: what is written while `gathers`, and with what; `flush`
    before anything else is written or ended.
    """

    __slots__ = (
        "_is_alone", "_is_due", "_is_waking", "_last", "_poll", "_reads", "_ready", "gathers", "loop", "unsent",
    )  # fmt: skip

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self._poll: Any = None
        self._reads: dict[int, Callable[[], object]] = {}
        self._ready: list[Waiter] = []
        self.unsent: list[tuple[Callable[[bytes], object], bytes]] = []
        self._last: list[Callable[[], object]] = []
        self._is_due = False  # `_ready` will be looked at
        self._is_waking = False
        self._is_alone = False
        self.gathers = False

    def watch(self, descriptor: int, read: Callable[[], object]) -> None:
        """Call `read` whenever the socket has something. Where no epoll can be had, the loop itself watches it."""
        if not self._reads and not self._open():
            self.loop.add_reader(descriptor, read)
            return
        if descriptor not in self._reads:
            self._poll.register(descriptor, select.EPOLLIN)
        self._reads[descriptor] = read

    def unwatch(self, descriptor: int) -> None:
        """Watch a socket no more, if it is watched. Before it is closed."""
        if self._reads.pop(descriptor, None) is None:
            self.loop.remove_reader(descriptor)
            return
        self._poll.unregister(descriptor)
        if not self._reads:
            self.loop.remove_reader(self._poll)
            self._poll.close()

    def _open(self) -> bool:
        """Make the epoll for a first socket; say whether there is one."""
        if _epoll is None:
            return False
        try:
            self._poll = _epoll()
        except OSError:  # no descriptor is left, and a socket that is open already is read all the same
            return False
        self.loop.add_reader(self._poll, self._read)
        return True

    def _read(self) -> None:
        """Read all sockets that are ready, then have the tasks go on that got something."""
        was_due, self._is_due = self._is_due, True  # whom these reads call goes on here, not in the next turn
        try:
            for descriptor, _ in self._poll.poll(0):
                read = self._reads.get(descriptor)
                if read is not None:  # else one that was read before has ended it
                    read()
        finally:
            self._is_due = was_due
            if self._ready and not was_due:
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
        return iter((self,))  # type: ignore[return-value]  # as good as a generator, without running one

    def call(self) -> bool:
        """Have the task go on, if one `is_awaited`, and say whether one was. Nothing runs before this returns."""
        if not self.is_awaited:
            return False
        self.is_awaited = False
        wakeups = self._wakeups
        wakeups._ready.append(self)
        if not wakeups._is_due:
            wakeups._is_due = True
            wakeups.loop.call_soon(wakeups._turn)
        return True

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
