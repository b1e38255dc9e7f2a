"""Store the audit log: its events, the ends of its chains, and the checkpoints of its check.

No statement changes an event. One deletes some: `prune`, from the beginning of a chain. The hash before the
oldest event that is left stays as the beginning, so that the rest can still be checked.
"""

import json
from collections.abc import Callable, Mapping

from gateway.domain.audit import (
    GENESIS_HASH,
    MAX_AUDIT_LIMIT,
    AuditEvent,
    AuditFilter,
    ChainHead,
    Checkpoint,
    canonical_text,
    link,
)
from gateway.store.database import Row, Transaction
from gateway.store.filters import OCCURRED, Where, found_in, like
from gateway.store.headfile import HeadFile
from gateway.store.table import Codec, PositionedTable, Table, TableReader, optional
from gateway.strict_json import json_text

_UNREADABLE = {"unreadable": True}
"""Stands for JSON that somebody has changed in the file. The check of the chain reports its event."""


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _read_strictly(text: str) -> object:
    """Return the value of JSON that is written exactly as the gateway writes it."""
    value = _read(text)
    try:
        return value if json_text(value) == text else _UNREADABLE
    except (ValueError, RecursionError):
        return _UNREADABLE


def _codecs(read: Callable[[str], object]) -> Mapping[str, Codec]:
    changed = optional(Codec(json_text, read))
    return {"before": changed, "after": changed, "details": Codec(canonical_text, read)}


CHECKED_EVENTS = TableReader("audit_events", AuditEvent, codecs=_codecs(_read_strictly))
CHAIN = "WHERE instance_id = :instance_id AND seq > :seq ORDER BY seq LIMIT :limit"
OF_ALERT = "WHERE resource_type = 'alert' AND resource_id = :alert_id ORDER BY seq LIMIT :limit"
HEAD = "SELECT seq, hash FROM audit_heads WHERE instance_id = :instance_id"
SET_HEAD = """
    INSERT INTO audit_heads (instance_id, seq, hash, first_seq, first_prev_hash)
    VALUES (:instance_id, :seq, :hash, 1, :genesis)
        ON CONFLICT (instance_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash
"""
BEGINNING = "SELECT first_seq - 1 AS seq, first_prev_hash AS hash FROM audit_heads WHERE instance_id = :instance_id"
INSTANCES = "SELECT instance_id FROM audit_heads UNION SELECT DISTINCT instance_id FROM audit_events ORDER BY 1"
HASH_AT = "SELECT hash FROM audit_events WHERE instance_id = :instance_id AND seq = :seq"
# The value that most events have in a column, which its index leaves out. A search for another value also says that
# the column differs from this one, so that the database can use the index.
USUAL = {"action": "chat_completed", "source": "chat", "resource_type": "model"}
SORTS = {
    "time": "occurred_at",
    "number": "seq",
    "actor": "lower(actor)",
    "action": "action",
    "outcome": "outcome",
    "source": "source",
}
SEARCHED = found_in(
    (
        "action", "actor", "actor_id", "key_prefix", "agent", "ip", "request_id", "resource_type", "resource_id",
        "details",
    )
)  # fmt: skip
OLDEST = """
    SELECT seq, occurred_at, hash FROM audit_events
     WHERE instance_id = :instance_id AND seq > :seq ORDER BY seq LIMIT :limit
"""
PRUNE = "DELETE FROM audit_events WHERE instance_id = :instance_id AND seq <= :seq"
BEGIN_AFTER = "UPDATE audit_heads SET first_seq = :seq + 1, first_prev_hash = :hash WHERE instance_id = :instance_id"
# Parts, because each can use an index of its own and an OR could use none.
OF_REQUEST = """
    position IN (SELECT position FROM audit_events WHERE request_id = :request_id
                  UNION ALL
                 SELECT position FROM audit_events
                  WHERE reason = 'repeated' AND details LIKE '%"' || :request_id || '"%'
                  UNION ALL
                 SELECT position FROM audit_events
                  WHERE action <> 'chat_completed' AND action IN ('alert_false_positive', 'request_harmless')
                    AND details LIKE '%"marked_request":"' || :request_id || '"%')
"""


class AuditRepository(PositionedTable[AuditEvent]):
    """The chain of events. headfile: keeps the end of this gateway's own chain a second time."""

    def __init__(self, headfile: HeadFile) -> None:
        order = ("occurred_at", "position")
        super().__init__(
            "audit_events", AuditEvent, order=order, sorts=SORTS, page_limit=MAX_AUDIT_LIMIT, codecs=_codecs(_read)
        )
        self._headfile = headfile

    def append(self, tx: Transaction, event: AuditEvent) -> AuditEvent:
        """Link `event` to the end of its instance's chain and return the linked event. Raises like `canonical`."""
        instance_id = event.instance_id
        memo_key = (HEAD, instance_id)
        linked = link(tx.memo.get(memo_key) or self.head(tx, instance_id), event)
        head = tx.memo[memo_key] = ChainHead(linked.seq, linked.hash)
        self.insert(tx, linked)
        row = {"instance_id": instance_id, "seq": head.seq, "hash": head.hash, "genesis": GENESIS_HASH}
        tx.defer(SET_HEAD, row, instance_id)
        tx.after_commit(lambda: self._headfile.hold(instance_id, head))
        return linked

    def head(self, tx: Transaction, instance_id: str) -> ChainHead:
        return _head(tx.query(HEAD, {"instance_id": instance_id}))

    def beginning(self, tx: Transaction, instance_id: str) -> ChainHead:
        """Return the link before the first event that is kept."""
        return _head(tx.query(BEGINNING, {"instance_id": instance_id}))

    def instances(self, tx: Transaction) -> tuple[str, ...]:
        return tuple(str(row["instance_id"]) for row in tx.query(INSTANCES))

    def times_at(self, tx: Transaction, action: str, *, since: int, limit: int) -> list[int]:
        """Return the times of the events of an action, newest first. Reads the index alone."""
        where = Where()
        _add_equal(where, "action", action)
        where.add("occurred_at >= :since", since=since)
        sql = f"SELECT occurred_at FROM audit_events{where.sql()} ORDER BY occurred_at DESC LIMIT :limit"  # noqa: S608
        rows = tx.query(sql, where.params | {"limit": limit})
        return [int(row["occurred_at"]) for row in rows]

    def first_at(self, tx: Transaction) -> int | None:
        """Return the time of the oldest event that is kept."""
        rows = tx.query("SELECT occurred_at FROM audit_events ORDER BY position LIMIT 1")
        return int(rows[0]["occurred_at"]) if rows else None

    def hash_at(self, tx: Transaction, instance_id: str, seq: int) -> str | None:
        if seq == 0:
            return GENESIS_HASH
        rows = tx.query(HASH_AT, {"instance_id": instance_id, "seq": seq})
        return str(rows[0]["hash"]) if rows else None

    def chain(self, tx: Transaction, instance_id: str, *, after_seq: int, limit: int) -> tuple[AuditEvent, ...]:
        return CHECKED_EVENTS.many(tx, CHAIN, instance_id=instance_id, seq=after_seq, limit=limit)

    def of_alert(self, tx: Transaction, alert_id: str, *, limit: int) -> tuple[AuditEvent, ...]:
        return self.many(tx, OF_ALERT, alert_id=alert_id, limit=limit)

    def of_request(self, tx: Transaction, request_id: str) -> tuple[AuditEvent, ...]:
        """Return the events of one request."""
        return self.many(tx, "WHERE request_id = :request_id ORDER BY position", request_id=request_id)

    def _where(self, wanted: AuditFilter) -> Where:
        where = Where().match(wanted, "actor", request_id=OF_REQUEST, **OCCURRED)
        for column in USUAL:
            _add_equal(where, column, getattr(wanted, column))
        where.exclude("action", wanted.exclude_actions)
        where.add(SEARCHED, search=like(wanted.search))
        return where

    def prune(self, tx: Transaction, instance_id: str, *, before: int, limit: int) -> int:
        """Delete events from before a time at the beginning of a chain, at most `limit`, and return how many.

        Stops at the first event that is young enough, and always keeps the last event of the chain.
        """
        last_seq = self.head(tx, instance_id).seq
        count, link = 0, self.beginning(tx, instance_id)
        for row in tx.query(OLDEST, {"instance_id": instance_id, "seq": link.seq, "limit": limit}):
            if row["occurred_at"] >= before or row["seq"] >= last_seq or row["seq"] != link.seq + 1:
                break
            count, link = count + 1, ChainHead(row["seq"], row["hash"])
        if count:
            tx.execute(PRUNE, {"instance_id": instance_id, "seq": link.seq})
            tx.execute(BEGIN_AFTER, {"instance_id": instance_id, "seq": link.seq, "hash": link.hash})
        return count


def _add_equal(where: Where, column: str, value: str | None) -> None:
    where.add(f"{column} = :{column}", **{column: value})
    if value is not None and value != USUAL[column]:
        where.add(f"{column} <> '{USUAL[column]}'")


def _head(rows: list[Row]) -> ChainHead:
    return ChainHead(rows[0]["seq"], rows[0]["hash"]) if rows else ChainHead(0, GENESIS_HASH)


class CheckpointRepository(Table[Checkpoint]):
    """The table of checkpoints: links of a chain up to which it was found whole."""

    def __init__(self) -> None:
        super().__init__("audit_checkpoints", Checkpoint, key="instance_id")

    def newest(self, tx: Transaction, instance_id: str, *, limit: int) -> tuple[Checkpoint, ...]:
        return self.many(
            tx, "WHERE instance_id = :instance_id ORDER BY seq DESC LIMIT :limit", instance_id=instance_id, limit=limit
        )
