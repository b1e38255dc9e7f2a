"""Every SQL statement about audit events. There is none that updates or deletes one."""

import json
from operator import attrgetter

from gateway.domain.audit import (
    GENESIS_HASH,
    MAX_AUDIT_LIMIT,
    AuditEvent,
    AuditFilter,
    ChainHead,
    canonical_text,
    chain,
)
from gateway.domain.paging import Page, read_cursor, write_cursor
from gateway.store.database import Row, Transaction
from gateway.store.filters import Where, check_limit, found_in, like
from gateway.store.headfile import HeadFile
from gateway.strict_json import json_text

# The fields of an event that stand in the row as they are, and those that are made of it.
_FIELDS = (
    "id",
    "occurred_at",
    "source",
    "action",
    "outcome",
    "reason",
    "actor",
    "actor_type",
    "actor_id",
    "key_prefix",
    "agent",
    "direction",
    "ip",
    "user_agent",
    "resource_type",
    "resource_id",
    "request_id",
    "instance_id",
)
_OBJECTS = ("before", "after", "details")
COLUMNS = (*_FIELDS, *_OBJECTS, "seq", "prev_hash", "hash")
_VALUES = attrgetter(*_FIELDS)
_NAMES = ", ".join(COLUMNS)
INSERT = f"INSERT INTO audit_events ({_NAMES}) VALUES ({', '.join(':' + name for name in COLUMNS)})"  # noqa: S608
LIST = f"SELECT position, {_NAMES} FROM audit_events"  # noqa: S608  # our own column names
COUNT = "SELECT COUNT(*) AS count FROM (SELECT 1 FROM audit_events"
AT_MOST = " LIMIT :most) AS found"
NEWEST_FIRST = " ORDER BY occurred_at DESC, position DESC LIMIT :limit"
CHAIN = f"""
    SELECT {_NAMES} FROM audit_events
     WHERE instance_id = :instance_id AND seq > :seq
     ORDER BY seq LIMIT :limit
"""  # noqa: S608
HEAD = "SELECT seq, hash FROM audit_heads WHERE instance_id = :instance_id"
SET_HEAD = """
    INSERT INTO audit_heads (instance_id, seq, hash, first_seq, first_prev_hash)
    VALUES (:instance_id, :seq, :hash, 1, :genesis)
        ON CONFLICT (instance_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash
"""
OF_ALERT = f"""
    SELECT {_NAMES} FROM audit_events
     WHERE resource_type = 'alert' AND resource_id = :alert_id
     ORDER BY seq LIMIT :limit
"""  # noqa: S608
BEGINNING = "SELECT first_seq - 1 AS seq, first_prev_hash AS hash FROM audit_heads WHERE instance_id = :instance_id"
INSTANCES = """
    SELECT instance_id FROM audit_heads UNION SELECT DISTINCT instance_id FROM audit_events ORDER BY 1
"""
TIMES_AT = "SELECT occurred_at FROM audit_events"
LATEST_FIRST = " ORDER BY occurred_at DESC LIMIT :limit"
# Of each column the value that most events have, and its index leaves out. What else is looked for is said to be unlike
# it, too, so that the database sees that the index will do.
USUAL = {"action": "chat_completed", "source": "chat", "resource_type": "model"}
UNLIKE_USUAL = {column: f"{column} <> '{value}'" for column, value in USUAL.items()}
FIRST_AT = "SELECT occurred_at, position FROM audit_events ORDER BY position LIMIT 1"
HASH_AT = "SELECT hash FROM audit_events WHERE instance_id = :instance_id AND seq = :seq"
_SEARCHED = (
    "action",
    "actor",
    "actor_id",
    "key_prefix",
    "agent",
    "ip",
    "request_id",
    "resource_type",
    "resource_id",
    "details",
)
SEARCHED = found_in(_SEARCHED)
# Each half by an index of its own, which an OR would not be.
OF_REQUEST = """
    position IN (SELECT position FROM audit_events WHERE request_id = :request_id
                  UNION ALL
                 SELECT position FROM audit_events
                  WHERE reason = 'repeated' AND details LIKE '%"' || :request_id || '"%')
"""
AFTER = " ORDER BY position LIMIT :limit"
NEWEST_POSITION = "SELECT position FROM audit_events ORDER BY position DESC LIMIT 1"


class AuditRepository:
    """The chain of events. headfile: where the end of this gateway's own chain is kept as well."""

    def __init__(self, headfile: HeadFile) -> None:
        self._headfile = headfile

    def append(self, tx: Transaction, event: AuditEvent) -> tuple[ChainHead, ChainHead]:
        """Link `event` to the end of its instance's chain and return the end before and after it.

        Raises:
            ValueError, TypeError: `details`, `before` or `after` holds something that is no JSON value.
        """
        instance_id = event.instance_id
        before = self.head(tx, instance_id)
        after = ChainHead(before.seq + 1, chain(before.hash, event, seq=before.seq + 1))
        values = (*_values(event), after.seq, before.hash, after.hash)
        tx.execute(INSERT, dict(zip(COLUMNS, values, strict=True)))
        head = {"instance_id": instance_id, "seq": after.seq, "hash": after.hash, "genesis": GENESIS_HASH}
        tx.execute(SET_HEAD, head)
        tx.after_commit(lambda: self._headfile.hold(instance_id, after))
        return before, after

    def head(self, tx: Transaction, instance_id: str) -> ChainHead:
        """Return the end of a chain."""
        return _place(tx.query(HEAD, {"instance_id": instance_id}))

    def beginning(self, tx: Transaction, instance_id: str) -> ChainHead:
        """Return the place before the first event that is kept."""
        return _place(tx.query(BEGINNING, {"instance_id": instance_id}))

    def instances(self, tx: Transaction) -> tuple[str, ...]:
        """Return the ids of all chains."""
        return tuple(str(row["instance_id"]) for row in tx.query(INSTANCES))

    def times_at(self, tx: Transaction, action: str, *, since: int, limit: int) -> list[int]:
        """Return when events of an action happened, newest first. Reads the index alone."""
        where = Where()
        _add_equal(where, "action", action)
        where.add("occurred_at >= :since", since=since)
        rows = tx.query(TIMES_AT + where.sql() + LATEST_FIRST, where.params | {"limit": limit})
        return [int(row["occurred_at"]) for row in rows]

    def first_at(self, tx: Transaction) -> int | None:
        """Return the time of the oldest event that is kept."""
        rows = tx.query(FIRST_AT)
        return int(rows[0]["occurred_at"]) if rows else None

    def hash_at(self, tx: Transaction, instance_id: str, seq: int) -> str | None:
        """Return the hash of one event, or None when there is no such event."""
        if seq == 0:
            return GENESIS_HASH
        rows = tx.query(HASH_AT, {"instance_id": instance_id, "seq": seq})
        return str(rows[0]["hash"]) if rows else None

    def chain(self, tx: Transaction, instance_id: str, *, after_seq: int, limit: int) -> tuple[AuditEvent, ...]:
        """Return a piece of a chain in its order."""
        rows = tx.query(CHAIN, {"instance_id": instance_id, "seq": after_seq, "limit": limit})
        return tuple(_event(row, is_strict=True) for row in rows)

    def after(
        self, tx: Transaction, wanted: AuditFilter, *, position: int, limit: int
    ) -> tuple[tuple[int, AuditEvent], ...]:
        """Return events in the order of their commits, each with its place, which `position` goes on from.

        Raises:
            InvalidRequest: a text is out of bounds.
        """
        where = _where(wanted)
        where.add("position > :position", position=position)
        rows = tx.query(LIST + where.sql() + AFTER, where.params | {"limit": limit})
        return tuple((int(row["position"]), _event(row)) for row in rows)

    def newest_position(self, tx: Transaction) -> int:
        """Return the place of the newest event, 0 when there is none."""
        rows = tx.query(NEWEST_POSITION)
        return int(rows[0]["position"]) if rows else 0

    def of_alert(self, tx: Transaction, alert_id: str, *, limit: int) -> tuple[AuditEvent, ...]:
        """Return what was done about one alert, oldest first."""
        return tuple(_event(row) for row in tx.query(OF_ALERT, {"alert_id": alert_id, "limit": limit}))

    def page(self, tx: Transaction, wanted: AuditFilter) -> Page[AuditEvent]:
        """List events, newest first.

        Raises:
            InvalidRequest: `limit` or a text is out of bounds, or the cursor is of another query.
        """
        limit = check_limit(wanted.limit, MAX_AUDIT_LIMIT)
        query = _query(wanted)
        where = _where(wanted)
        if wanted.cursor is not None:
            at, position = read_cursor(wanted.cursor, query, count=2)
            where.add("(occurred_at, position) < (:after_at, :after_position)", after_at=at, after_position=position)
        rows = tx.query(LIST + where.sql() + NEWEST_FIRST, where.params | {"limit": limit + 1})
        events = tuple(_event(row) for row in rows[:limit])
        last = rows[limit - 1] if len(rows) > limit else None
        following = None if last is None else write_cursor(query, (last["occurred_at"], last["position"]))
        return Page(events, limit, following)


def count_events(tx: Transaction, wanted: AuditFilter, *, most: int) -> int:
    """Count what a filter matches, whatever its limit and cursor are, as far as `most`."""
    where = _where(wanted)
    return int(tx.query(COUNT + where.sql() + AT_MOST, where.params | {"most": most})[0]["count"])


def _where(wanted: AuditFilter) -> Where:
    where = Where()
    for column in USUAL:
        _add_equal(where, column, getattr(wanted, column))
    where.add("actor = :actor", actor=wanted.actor)
    where.add("occurred_at >= :since", since=wanted.since)
    where.add("occurred_at <= :until", until=wanted.until)
    where.exclude("action", wanted.exclude_actions)
    where.add(SEARCHED, search=like(wanted.search))
    where.add(OF_REQUEST, request_id=wanted.request_id)
    return where


def _add_equal(where: Where, column: str, value: str | None) -> None:
    """Add that one of the columns of `USUAL` has a value; any when it is None."""
    where.add(f"{column} = :{column}", **{column: value})
    if value is not None and value != USUAL[column]:
        where.add(UNLIKE_USUAL[column])


def _query(wanted: AuditFilter) -> tuple[object, ...]:
    # An age such as 24h is another time on each page, so the times themselves do not make another query.
    return (
        "audit",
        wanted.source,
        wanted.action,
        wanted.actor,
        wanted.resource_type,
        wanted.since is None,
        wanted.until is None,
        wanted.exclude_actions,
        wanted.search,
        wanted.request_id,
    )


def _place(rows: list[Row]) -> ChainHead:
    return ChainHead(rows[0]["seq"], rows[0]["hash"]) if rows else ChainHead(0, GENESIS_HASH)


def _values(event: AuditEvent) -> tuple[object, ...]:
    """Return what is to be known of an event that is not in its chain yet: texts, integers and None."""
    before, after = (None if one is None else json_text(one) for one in (event.before, event.after))
    return (*_VALUES(event), before, after, canonical_text(event.details))


def _event(row: Row, *, is_strict: bool = False) -> AuditEvent:
    """Return the event of a row. is_strict: JSON that we would have written otherwise is not ours, and unreadable."""
    values = {name: row[name] for name in COLUMNS}
    for name in ("before", "after", "details"):
        values[name] = None if values[name] is None else _read_json(values[name], is_strict=is_strict)
    return AuditEvent(**values)


def _read_json(text: str, *, is_strict: bool) -> object:
    try:
        value = json.loads(text)
        if is_strict and json_text(value) != text:
            raise ValueError
        return value
    except (ValueError, RecursionError):
        return {"unreadable": True}  # somebody changed the row: the check of the chain says so
