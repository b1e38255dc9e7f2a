"""What is done for a database when nobody waits for it: rows are moved, and its log is brought into the file.

Theory of operation. Fresh rows go, some hundred at a time, to where they are indexed (`fresh`). What was committed is
in the write-ahead log. In a pause it is carried into the file here; in a busy hour once in some hundred groups, most of
it by a thread of its own (`checkpoints`), and here what is left, or all of it where the log gets too long. One thing at
a time, since the next group may be waiting. Nothing is lost when one of these fails.
"""

import os
from operator import itemgetter

from gateway.store.checkpoints import Checkpoints
from gateway.store.driver import Writable
from gateway.store.fresh import settle, settle_table
from gateway.store.group import GroupTransaction
from gateway.store.place import APPLICATION_ID
from gateway.store.wal import holds

_FRESH_ROWS = 256
_CHECKPOINT_CHANGES = 6_000
_CHECKPOINT_GROUPS = 250
_LOOK_GROUPS = 16
_PAUSE_BYTES = 4 * 1024 * 1024
_WAL_BYTES = 128 * 1024 * 1024
_TRUNCATE_BYTES = 160 * 1024 * 1024


class Upkeep:
    """What is to be done for one connection that writes. log: its log, None for a database in memory."""

    def __init__(self, writable: Writable, log: Checkpoints | None) -> None:
        self._writable = writable
        self._log = log
        self._fresh_rows: dict[str, int] = {}
        self._changed = self._changes = self._looked = self._groups = 0
        self._is_marked = False  # the group that is being committed

    @property
    def is_carried(self) -> bool:
        """Whether a pass has carried over all of the log, so that the next commit begins it anew."""
        return self._log is not None and self._log.is_carried

    def mark(self) -> None:
        """Have a group that is about to be committed write to the log for sure, if the next pass waits for that.

        What it has changed does not tell: a row may be as it was before, and may have been changed by a group that was
        given up. To set a number in the head of the file writes its first page, also when it was the same.

        Raises:
            StoreUnavailable: it cannot be written.
        """
        self._is_marked = self._log is not None and self._log.is_awaiting
        if self._is_marked:
            self._writable.run(f"PRAGMA application_id = {APPLICATION_ID}")

    def note(self, tx: GroupTransaction) -> None:
        """Take note of a group that was committed."""
        for table, rows in tx.fresh_rows.items():
            self._fresh_rows[table] = self._fresh_rows.get(table, 0) + rows
        self._changed = self._writable.changes
        self._groups += 1
        if self._log is not None:
            self._log.is_carried = False
            if self._is_marked:
                self._log.go()

    def is_due(self, *, is_pause: bool = False) -> bool:
        """Tell whether there may be something to do. Needs no lock."""
        if self._most_rows()[1] >= _FRESH_ROWS:
            return True
        if self._log is None:
            return False
        if self._log.is_ready or self._may_be_long(is_pause):
            return True
        return self._is_behind(is_pause) and not self._log.is_under_way

    def run(self, *, is_pause: bool) -> bool:
        """Do one of the things that are due, and tell whether the log was carried over. For whoever holds the lock.

        Raises:
            StoreUnavailable, OSError: it could not be done.
        """
        if self._log is not None and self._look_after(self._log, is_pause):
            return True
        table, rows = self._most_rows()
        if rows >= _FRESH_ROWS:
            del self._fresh_rows[table]
            with self._writable.transaction(is_durable=False) as tx:
                settle_table(tx, table)
            self._changed = self._writable.changes
        return False

    def end(self) -> None:
        """Move all rows and empty the log, before the connection is closed for good.

        Raises:
            StoreUnavailable, OSError: it could not be done.
        """
        with self._writable.transaction(is_durable=True) as tx:
            settle(tx)
        if self._log is not None:
            self._log.carry(lambda: self._checkpoint("TRUNCATE", is_patient=True))

    def _most_rows(self) -> tuple[str, int]:
        return max(self._fresh_rows.items(), key=itemgetter(1), default=("", 0))

    def _is_behind(self, is_pause: bool) -> bool:
        is_much = self._changed - self._changes >= _CHECKPOINT_CHANGES
        return is_much and (is_pause or self._groups >= _CHECKPOINT_GROUPS)

    def _may_be_long(self, is_pause: bool) -> bool:
        return self._changed != self._looked and (is_pause or self._groups % _LOOK_GROUPS == 0)

    def _look_after(self, log: Checkpoints, is_pause: bool) -> bool:
        """Carry over the log, or have that begun, where it is due, and tell whether it was carried over."""
        is_long = False
        if self._may_be_long(is_pause):
            self._looked = self._changed
            is_long = holds(log.path, _PAUSE_BYTES if is_pause else _WAL_BYTES)
        if not (is_long or log.is_ready or self._is_behind(is_pause)):
            return False
        if log.is_under_way:
            if is_long and not is_pause:
                log.hurry()
            return False
        self._changes, self._groups = self._changed, 0
        if not (is_long or log.is_ready or is_pause):
            log.begin()
            return False
        # A log that a long look has made large is cut once that has ended: it is not waited for.
        mode = "TRUNCATE" if os.stat(log.path).st_size > _TRUNCATE_BYTES else "PASSIVE"
        return log.carry(lambda: self._checkpoint(mode, is_patient=mode == "PASSIVE"))

    def _checkpoint(self, mode: str, *, is_patient: bool) -> None:
        """Carry over what no reader holds back."""
        self._writable.be_patient(is_patient)
        self._writable.run(f"PRAGMA wal_checkpoint({mode})")
