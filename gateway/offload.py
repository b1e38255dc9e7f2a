"""Run long pure work in threads of its own, so that the event loop keeps answering. Knows nothing of the work."""

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import to_thread

from gateway.errors import GatewayError, Shed

A = TypeVar("A")
B = TypeVar("B")


class ThreadOffload:
    """A few threads for one kind of work.

    wait_seconds: the longest wait for a thread; None for no limit. most_waiting: how many callers may wait at
    once; None for any number.
    """

    def __init__(self, threads: int = 1, *, wait_seconds: float | None = None, most_waiting: int | None = None) -> None:
        self._turns = anyio.CapacityLimiter(threads)
        self._threads = anyio.CapacityLimiter(threads)  # each turn has one
        self._wait_seconds = wait_seconds
        self._most_waiting = most_waiting

    async def run(self, work: Callable[[A], B], argument: A, *, is_patient: bool = False) -> B:
        """Return ``work(argument)``, run in a thread. is_patient: wait for one without limit.

        Raises what `work` raises. A GatewayError comes without the traceback of the thread: that traceback is a cycle
        of frames, which would keep megabytes of a refused body until the next garbage collection.

        Raises:
            Shed: no thread was free in time, or too many callers wait for one already.
        """
        turn = object()
        if not is_patient and self._most_waiting is not None:
            if self._turns.statistics().tasks_waiting >= self._most_waiting:
                raise Shed
        with anyio.move_on_after(None if is_patient else self._wait_seconds) as waiting:
            await self._turns.acquire_on_behalf_of(turn)
        if waiting.cancelled_caught:
            raise Shed
        try:
            return await to_thread.run_sync(work, argument, limiter=self._threads)
        except GatewayError as error:
            link: BaseException | None = error
            while link is not None:
                link.__traceback__ = None
                link = link.__cause__ or link.__context__
            raise
        finally:
            self._turns.release_on_behalf_of(turn)
