"""Works that were answered when they were noted, and whether more may be. Knows no queue and no SQL.

A work may be noted while the last of its like was committed a moment ago: then so will be the next one. A moment is
longer than a disk mostly takes when it is slow for once, or than the log takes to be carried over.
"""

from collections.abc import Sequence
from operator import attrgetter

from gateway.log import Log
from gateway.store.redo import RedoLog
from gateway.store.works import Work

RECENT_SECONDS = 0.3
_IS_NOTED = attrgetter("is_noted")


class Notes:
    """The works in a redo log. The event loop notes, whoever has committed a group says so."""

    def __init__(self, redo: RedoLog, log: Log) -> None:
        self._redo = redo
        self._log = log
        self._good_seconds = (
            0.0  # when the last brief work of a caller who waited, or one that was noted, was committed
        )

    @property
    def pending(self) -> int:
        """How many are noted and not committed."""
        return self._redo.noted - self._redo.committed

    def are_welcome(self, now_seconds: float) -> bool:
        """Tell whether one may be noted now."""
        return now_seconds - self._good_seconds <= RECENT_SECONDS

    def take(self, name: str, record: str) -> bool:
        """Note a work and tell so; if it cannot be, none is welcome until one was committed."""
        is_noted = self._redo.append(name, record)
        if not is_noted:
            self._good_seconds = 0.0
        return is_noted

    def settle(self, group: Sequence[Work], now_seconds: float) -> None:
        """Say that works were committed."""
        self._redo.committed += sum(map(_IS_NOTED, group))
        if any(work.is_noted or (work.is_brief and work.waiter and not work.is_job) for work in group):
            self._good_seconds = now_seconds

    def lose(self, work: Work) -> None:
        """Say that a work cannot be done: nothing like it is noted now, and what was noted of it is kept."""
        self._good_seconds = 0.0
        if work.is_noted:
            self._redo.lose()

    def clear(self) -> None:
        """Forget those that are committed, if all are."""
        if (kept := self._redo.clear()) is not None:
            self._log.error("redo_log_kept", file=kept)
