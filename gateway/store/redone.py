"""What redo logs hold is brought into the database: that of processes that have ended here, of others by themselves.

Knows no SQL.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from gateway.errors import GatewayError
from gateway.log import Log
from gateway.store.database import Redo, StoreUnavailable, Transaction
from gateway.store.driver import Error
from gateway.store.redo import Left, Note, RedoLog, put_aside
from gateway.store.works import Base, Work

OTHERS_SECONDS = 0.25
LEFT_SECONDS = 1.0
_LOOK_SECONDS = 0.002


class Redone:
    """Follows the redo logs beside one database."""

    def __init__(self, own: RedoLog, log: Log) -> None:
        self._own = own
        self._log = log
        self._redo: Callable[[], Redo] | None = None
        self._base: Base
        self._looked_seconds = 0.0
        self._in_vain: frozenset[str] = frozenset()  # what was waited for, and did not come

    def do(self, redo: Callable[[], Redo], base: Base) -> None:
        """Commit what processes that have ended had noted, if the database does not have it, and remove their logs.

        A log with something that nobody can read is kept under another name, one that cannot be committed now is left
        for another time. Blocks. Raises nothing.
        """
        self._redo, self._base = redo, base
        self._looked_seconds = time.monotonic()
        for left in self._own.left():
            try:
                self._do(left, redo, base)
            except (GatewayError, Error, OSError) as error:
                self._log.error("redo_log_failed", file=left.path, error=error)

    def wait_for_others(self, tx: Transaction) -> None:
        """Wait, for a moment at most, until the database has what other processes have noted so far. Blocks.

        What a process has left that has ended since is committed here.
        """
        if self._redo is None:
            return
        newest = frozenset(self._own.last_of_others())
        if not newest:
            return
        is_done = self._redo().is_done
        names = frozenset(name for name in newest if not is_done(tx, name))
        if not names:
            return
        now_seconds = time.monotonic()
        if now_seconds - self._looked_seconds >= LEFT_SECONDS:
            self.do(self._redo, self._base)
        in_vain = self._in_vain & newest
        names -= in_vain
        while names := frozenset(name for name in names if not is_done(tx, name)):
            if time.monotonic() >= now_seconds + OTHERS_SECONDS:
                break
            time.sleep(_LOOK_SECONDS)
        self._in_vain = in_vain | names

    def _do(self, left: Left, redo: Callable[[], Redo], base: Base) -> None:
        works = _commit(left.notes, redo(), base) if left.notes else []
        unread = sum(1 for work in works if work.error is not None)
        if left.is_whole and not unread:
            left.remove()
        else:
            self._log.error("redo_log_damaged", file=put_aside(left.path), records=len(works), unread=unread)
        if works:
            redone = sum(1 for work in works if work.result)
            self._log.info("redo_log_done", records=len(works), redone=redone)


def _commit(notes: Sequence[Note], redo: Redo, base: Base) -> list[Work]:
    once = {note.name: note for note in reversed(notes)}  # of those of one name the first
    works = [Work(partial(_again, redo, note)) for note in reversed(once.values())]
    try:
        base.commit(works, True)
    except StoreUnavailable:
        raise
    except GatewayError:  # a value that no row can have: whose it is shows when each goes alone
        for work in works:
            _commit_one(work, base)
    return works


def _commit_one(work: Work, base: Base) -> None:
    try:
        base.commit((work,), True)
    except StoreUnavailable:
        raise
    except GatewayError as error:
        work.error = error


def _again(redo: Redo, note: Note, tx: Transaction) -> bool:
    """Do a work again, and tell whether it had to be done."""
    if redo.is_done(tx, note.name):
        return False
    redo.do(tx, note.name, note.record)
    return True
