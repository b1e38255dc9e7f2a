"""What is done for a database when nobody waits for it: rows are moved, and its log is brought into the file.

Theory of operation. Fresh rows go, some hundred at a time, to where they are indexed (`fresh`). What was committed is
in the write-ahead log and is carried into the file in a pause; in a busy hour one group in some hundred waits for it,
or more often when the log gets long. One thing at a time, since the next group may be waiting. Nothing is lost when one
of these fails.
"""

import os
from operator import itemgetter

from gateway.store.driver import Writable
from gateway.store.fresh import settle, settle_table
from gateway.store.group import GroupTransaction
from gateway.store.wal import holds

_FRESH_ROWS = 256
_CHECKPOINT_CHANGES = 6_000
_CHECKPOINT_GROUPS = 250
_LOOK_GROUPS = 16
_PAUSE_BYTES = 4 * 1024 * 1024
_WAL_BYTES = 128 * 1024 * 1024
_TRUNCATE_BYTES = 160 * 1024 * 1024


class Upkeep:
    """What is to be done for one connection that writes. wal_path: its log, None for a database in memory."""

    def __init__(self, writable: Writable, wal_path: str | None) -> None:
        self._writable = writable
        self._wal_path = wal_path
        self._fresh_rows: dict[str, int] = {}
        self._changed = self._changes = self._looked = self._groups = 0

    def note(self, tx: GroupTransaction) -> None:
        """Take note of a group that was committed."""
        for table, rows in tx.fresh_rows.items():
            self._fresh_rows[table] = self._fresh_rows.get(table, 0) + rows
        self._changed = self._writable.changes
        self._groups += 1

    def is_due(self, *, is_pause: bool = False) -> bool:
        """Tell whether there may be something to do. Needs no lock."""
        return self._most_rows()[1] >= _FRESH_ROWS or self._is_behind(is_pause) or self._may_be_long(is_pause)

    def run(self, *, is_pause: bool) -> bool:
        """Do one of the things that are due, and tell whether the log was carried over. For whoever holds the lock.

        Raises:
            StoreUnavailable, OSError: it could not be done.
        """
        table, rows = self._most_rows()
        is_due = self._is_behind(is_pause)
        if self._wal_path is not None and self._may_be_long(is_pause):
            self._looked = self._changed
            is_due = is_due or holds(self._wal_path, _PAUSE_BYTES if is_pause else _WAL_BYTES)
        if is_due:
            self._changes, self._groups = self._changed, 0
            self._checkpoint()
        elif rows >= _FRESH_ROWS:
            del self._fresh_rows[table]
            with self._writable.transaction(is_durable=False) as tx:
                settle_table(tx, table)
            self._changed = self._writable.changes
        return is_due

    def end(self) -> None:
        """Move all rows and empty the log, before the connection is closed for good.

        Raises:
            StoreUnavailable: it could not be done.
        """
        with self._writable.transaction(is_durable=True) as tx:
            settle(tx)
        self._writable.run("PRAGMA wal_checkpoint(TRUNCATE)")

    def _most_rows(self) -> tuple[str, int]:
        return max(self._fresh_rows.items(), key=itemgetter(1), default=("", 0))

    def _is_behind(self, is_pause: bool) -> bool:
        return (
            self._wal_path is not None
            and self._changed - self._changes >= _CHECKPOINT_CHANGES
            and (is_pause or self._groups >= _CHECKPOINT_GROUPS)
        )

    def _may_be_long(self, is_pause: bool) -> bool:
        return (
            self._wal_path is not None
            and self._changed != self._looked
            and (is_pause or self._groups % _LOOK_GROUPS == 0)
        )

    def _checkpoint(self) -> None:
        """Carry over what no reader holds back. A log that a long look has made large is cut once that has ended."""
        assert self._wal_path is not None  # what is in memory has no log
        is_long = os.stat(self._wal_path).st_size > _TRUNCATE_BYTES
        self._writable.be_patient(not is_long)  # whoever writes would wait for whoever reads
        self._writable.run(f"PRAGMA wal_checkpoint({'TRUNCATE' if is_long else 'PASSIVE'})")
