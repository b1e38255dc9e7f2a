"""Works that were answered when they were noted, and whether more may be. Knows no queue and no SQL.

A work may be noted as long as the last of its like was committed a moment ago: then so will be the next one. What the
database does for itself meanwhile, such as carrying its log over, is no part of that moment.
"""

from gateway.log import Log
from gateway.store.redo import RedoLog
from gateway.store.works import Work

RECENT_SECONDS = 0.05
STILL_SECONDS = 0.25


class Notes:
    """The works in a redo log. The event loop notes, whoever has committed a group says so."""

    def __init__(self, redo: RedoLog, log: Log) -> None:
        self._redo = redo
        self._log = log
        self._good_seconds = 0.0  # when the last brief work was committed for which somebody waited, or had been noted
        self._still_seconds = 0.0  # since when the time stands still, 0 when it does not

    @property
    def pending(self) -> int:
        """How many are noted and not committed."""
        return self._redo.noted - self._redo.committed

    def are_welcome(self, now_seconds: float) -> bool:
        """Tell whether one may be noted now."""
        still_seconds = self._still_seconds
        if 0 < now_seconds - still_seconds <= STILL_SECONDS:
            now_seconds = still_seconds
        return now_seconds - self._good_seconds <= RECENT_SECONDS

    def stand_still(self, now_seconds: float) -> None:
        """Do not count the time until `go_on`, as long as that is not for too long."""
        self._still_seconds = now_seconds

    def go_on(self, now_seconds: float) -> None:
        """Count the time again. What is committed meanwhile is counted as if it were a little later."""
        self._good_seconds += min(now_seconds - self._still_seconds, STILL_SECONDS)
        self._still_seconds = 0.0

    def take(self, name: str, record: str) -> bool:
        """Note a work and tell so; if it cannot be, none is welcome until one was committed."""
        is_noted = self._redo.append(name, record)
        if not is_noted:
            self._good_seconds = 0.0
        return is_noted

    def settle(self, work: Work, now_seconds: float) -> None:
        """Say that the group of a work was committed."""
        if work.error is not None:
            self.lose(work)
        elif work.is_noted or (work.is_brief and work.waiter is not None):
            self._redo.committed += work.is_noted
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
