"""A work for the writer, and what commits groups of them. Knows no SQL, no thread and no driver."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Protocol

from gateway.http.wakeups import Waiter
from gateway.store.database import StoreUnavailable, Transaction

BRIEF_WORKS = 128
_IS_BRIEF = attrgetter("is_brief")


class Work:
    """One work in the queue and what became of it.

    waiter: what its caller awaits, or None. is_durable: the disk must have it before that. is_brief: it is done in
    microseconds, without the disk, and may be done in the event loop. is_job: it is no caller's of many, so no group
    waits for more of its kind.
    """

    __slots__ = (
        "call", "error", "is_abandoned", "is_brief", "is_durable", "is_job", "result", "waiter",
    )  # fmt: skip

    def __init__(
        self,
        call: Callable[[Transaction], Any],
        *,
        is_durable: bool = False,
        is_brief: bool = False,
        is_job: bool = False,
    ) -> None:
        self.call = call
        self.is_durable = is_durable
        self.is_brief = is_brief and not is_durable
        self.is_job = is_job
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_abandoned = False
        self.waiter: Waiter | None = None


class Base(Protocol):
    """What the works of a writer are committed to. Only `commit_here` and `is_due` are called in the event loop."""

    def commit(self, works: Sequence[Work], is_durable: bool) -> None:
        """Do a group of works, commit it, and set the `result` or `error` of each. is_durable: the disk must have it.

        Raises:
            StoreUnavailable: none of it stands.
        """
        ...

    def commit_here(self, works: Sequence[Work]) -> bool:
        """Do what `commit` does and tell so, or do nothing where something would have to be waited for.

        Raises:
            StoreUnavailable: none of it stands.
        """
        ...

    def at_due(self, call: Callable[[], None]) -> None:
        """Call `call`, from any thread, whenever `tidy` has something to do that no group has brought."""
        ...

    def is_due(self) -> bool:
        """Tell whether `tidy` has something to do."""
        ...

    def tidy(self, is_pause: bool) -> None:
        """Do one thing that nobody waits for. is_pause: no group has come for a while. Raises nothing."""
        ...

    def sync(self) -> None:
        """Bring to the disk what was committed. Raises nothing."""
        ...


def is_brief(group: Sequence[Work]) -> bool:
    """Tell whether the event loop may do a group itself."""
    return len(group) <= BRIEF_WORKS and all(map(_IS_BRIEF, group))


def refuse(works: Sequence[Work], error: BaseException) -> None:
    """Note of each work that it was not done; each caller gets an exception of their own if they may try again."""
    for work in works:
        work.result, work.error = None, error
        if isinstance(error, StoreUnavailable):
            work.error = StoreUnavailable(error.message, retry_after_seconds=error.retry_after_seconds)
