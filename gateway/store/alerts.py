"""Every SQL statement about alerts.

The evidence of an alert is JSON with a line for each piece, so that one more is put to the others without reading them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from operator import attrgetter

from gateway.domain.alerts import (
    ACTIVE,
    MAX_ALERT_LIMIT,
    TERMINAL,
    Alert,
    AlertFilter,
    AlertSource,
    AlertStatus,
)
from gateway.domain.paging import MAX_INTEGER, Page, read_cursor, write_cursor
from gateway.shield.detections import Severity
from gateway.store.database import Row, Transaction
from gateway.store.filters import Where, check_limit
from gateway.strict_json import json_text

_COLUMNS = tuple(field.name for field in fields(Alert))
_NAMES = ", ".join(_COLUMNS)
_VALUES = attrgetter(*_COLUMNS)
_BEGIN, _BETWEEN, _END = "[\n", ",\n", "\n]"
_STATES = {"active": ACTIVE, "terminal": TERMINAL}
INSERT = f"""
    INSERT INTO alerts ({_NAMES})
    VALUES ({", ".join(":" + name for name in _COLUMNS)})
"""  # noqa: S608  # our own column names
UPDATE = f"""
    UPDATE alerts SET {", ".join(f"{name} = :{name}" for name in _COLUMNS if name != "id")}
     WHERE id = :id
"""  # noqa: S608
LATEST = f"SELECT {_NAMES} FROM alerts WHERE fingerprint = :fingerprint ORDER BY position DESC LIMIT 1"  # noqa: S608
_IS_ACTIVE = "status IN (" + ", ".join(f"'{status.value}'" for status in ACTIVE) + ")"
ACTIVE_OF = f"""
    SELECT {_NAMES} FROM alerts WHERE fingerprint = :fingerprint AND {_IS_ACTIVE} ORDER BY position
"""  # noqa: S608
BY_ID = f"SELECT {_NAMES} FROM alerts WHERE id = :id"  # noqa: S608
COUNT_ACTIVE = f"SELECT COUNT(*) AS count FROM alerts WHERE {_IS_ACTIVE}"  # noqa: S608
PRUNE = f"""
    DELETE FROM alerts
     WHERE position IN (
           SELECT position FROM alerts
            WHERE last_seen_at < :before AND NOT {_IS_ACTIVE} ORDER BY last_seen_at LIMIT :limit)
"""  # noqa: S608
# An alert keeps the newest of its requests, each in the slot of its number.
MAX_SIGHTINGS = 10_000
SAW = """
    INSERT INTO alert_sightings (alert_id, slot, request_id) VALUES (:alert_id, :slot, :request_id)
        ON CONFLICT (alert_id, slot) DO UPDATE SET request_id = excluded.request_id
"""
OF_REQUEST = "id IN (SELECT alert_id FROM alert_sightings WHERE request_id = :request_id)"
PRUNE_SIGHTINGS = "DELETE FROM alert_sightings WHERE alert_id NOT IN (SELECT id FROM alerts)"
COUNT = "SELECT COUNT(*) AS count FROM (SELECT 1 FROM alerts"
AT_MOST = " LIMIT :most) AS found"
LIST = f"SELECT position, {_NAMES} FROM alerts"  # noqa: S608
AFTER = " WHERE position > :position ORDER BY position LIMIT :limit"
NEWEST_POSITION = "SELECT COALESCE(MAX(position), 0) AS position FROM alerts"
NEWEST_FIRST = " ORDER BY position DESC LIMIT :limit"


class Piece(Mapping[str, object]):
    """A piece of evidence as it is kept, read when somebody looks into it."""

    __slots__ = ("_values", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._values: dict[str, object] | None = None

    def _read(self) -> dict[str, object]:
        if self._values is None:
            self._values = json.loads(self.text)
        return self._values

    def __getitem__(self, name: str) -> object:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


class AlertRepository:
    """The table of alerts. What a sighting makes of them is decided in `domain.alerts`."""

    def insert(self, tx: Transaction, alert: Alert) -> None:
        """Insert a new alert.

        Raises:
            Conflict: its id exists.
        """
        tx.execute(INSERT, _params(alert))
        self.saw(tx, alert, alert.request_id)

    def saw(self, tx: Transaction, alert: Alert, request_id: str | None) -> None:
        """Note that a request was counted on an alert, whose count is the request's number."""
        if request_id is not None:
            slot = alert.count % MAX_SIGHTINGS
            tx.execute(SAW, {"alert_id": alert.id, "slot": slot, "request_id": request_id})

    def update(self, tx: Transaction, alert: Alert) -> bool:
        """Write the alert as it stands now, and return whether it exists."""
        return tx.execute(UPDATE, _params(alert)) == 1

    def latest(self, tx: Transaction, fingerprint: str) -> Alert | None:
        """Return the newest alert of a fingerprint."""
        rows = tx.query(LATEST, {"fingerprint": fingerprint})
        return _alert(rows[0], _pieces) if rows else None

    def active_of(self, tx: Transaction, fingerprint: str) -> tuple[Alert, ...]:
        """Return the alerts of a fingerprint that somebody has to act on, oldest first."""
        return tuple(_alert(row) for row in tx.query(ACTIVE_OF, {"fingerprint": fingerprint}))

    def by_id(self, tx: Transaction, alert_id: str) -> Alert | None:
        """Return the alert of this id."""
        rows = tx.query(BY_ID, {"id": alert_id})
        return _alert(rows[0]) if rows else None

    def count_active(self, tx: Transaction, source: AlertSource | None = None) -> int:
        """Return how many alerts somebody has to act on, of one source or of all."""
        if source is None:
            return int(tx.query(COUNT_ACTIVE)[0]["count"])
        return int(tx.query(COUNT_ACTIVE + " AND source = :source", {"source": source})[0]["count"])

    def prune(self, tx: Transaction, *, before: int, limit: int) -> int:
        """Delete some of the alerts that nobody has to act on and that were not seen since a time; return how many."""
        pruned = tx.execute(PRUNE, {"before": before, "limit": limit})
        if pruned:
            tx.execute(PRUNE_SIGHTINGS)
        return pruned

    def count(self, tx: Transaction, wanted: AlertFilter | None = None, *, most: int = MAX_INTEGER) -> int:
        """Count all alerts, or what a filter matches whatever its limit and cursor are, as far as `most`."""
        where = _where(wanted or AlertFilter())
        return int(tx.query(COUNT + where.sql() + AT_MOST, where.params | {"most": most})[0]["count"])

    def after(self, tx: Transaction, *, position: int, limit: int) -> tuple[tuple[int, Alert], ...]:
        """Return alerts in the order they were first raised, each with its place, which `position` goes on from."""
        rows = tx.query(LIST + AFTER, {"position": position, "limit": limit})
        return tuple((int(row["position"]), _alert(row)) for row in rows)

    def newest_position(self, tx: Transaction) -> int:
        """Return the place of the newest alert, 0 when there is none."""
        return int(tx.query(NEWEST_POSITION)[0]["position"])

    def page(self, tx: Transaction, wanted: AlertFilter) -> Page[Alert]:
        """List alerts, newest first.

        Raises:
            InvalidRequest: `limit` is out of bounds, or the cursor is of another query.
        """
        limit = check_limit(wanted.limit, MAX_ALERT_LIMIT)
        query = _query(wanted)
        where = _where(wanted)
        if wanted.cursor is not None:
            (position,) = read_cursor(wanted.cursor, query, count=1)
            where.add("position < :after_position", after_position=position)
        rows = tx.query(LIST + where.sql() + NEWEST_FIRST, where.params | {"limit": limit + 1})
        following = write_cursor(query, (rows[limit - 1]["position"],)) if len(rows) > limit else None
        return Page(tuple(_alert(row) for row in rows[:limit]), limit, following)


def _where(wanted: AlertFilter) -> Where:
    where = Where()
    where.add("status = :status", status=wanted.status)
    where.add("severity = :severity", severity=wanted.severity)
    where.add("source = :source", source=wanted.source)
    where.add("rule = :rule", rule=wanted.rule)
    where.add("agent = :agent", agent=wanted.agent)
    where.add("assigned_to = :assigned_to", assigned_to=wanted.assigned_to)
    where.add(OF_REQUEST, request_id=wanted.request_id)
    if wanted.scope in _STATES:
        others = [status for status in AlertStatus if status not in _STATES[wanted.scope]]
        where.exclude("status", others)
    where.add("last_seen_at >= :since", since=wanted.since)
    where.add("first_seen_at <= :until", until=wanted.until)
    return where


def _query(wanted: AlertFilter) -> tuple[object, ...]:
    # An age such as 24h is another time on each page, so the times themselves do not make another query.
    return (
        "alerts",
        str(wanted.status),
        str(wanted.severity),
        str(wanted.source),
        wanted.rule,
        wanted.agent,
        wanted.assigned_to,
        wanted.request_id,
        wanted.scope,
        wanted.since is None,
        wanted.until is None,
    )


def _whole(evidence: str) -> tuple[Mapping[str, object], ...]:
    """Return the evidence of an alert."""
    return tuple(json.loads(evidence))


def _pieces(evidence: str) -> tuple[Mapping[str, object], ...]:
    """Return the same without reading it, where it has a line for each piece: within one no line can end."""
    if not evidence.startswith(_BEGIN):
        return _whole(evidence)
    return tuple(map(Piece, evidence[len(_BEGIN) : -len(_END)].split(_BETWEEN)))


def _params(alert: Alert) -> dict[str, object]:
    params: dict[str, object] = dict(zip(_COLUMNS, _VALUES(alert), strict=True))
    texts = [one.text if isinstance(one, Piece) else json_text(one) for one in alert.evidence]
    params["evidence"] = _BEGIN + _BETWEEN.join(texts) + _END if texts else "[]"
    return params


def _alert(row: Row, read: Callable[[str], tuple[Mapping[str, object], ...]] = _whole) -> Alert:
    values = {name: row[name] for name in _COLUMNS}
    values["status"] = AlertStatus(values["status"])
    values["severity"] = Severity(values["severity"])
    values["source"] = AlertSource(values["source"])
    values["evidence"] = read(values["evidence"])
    return Alert(**values)
