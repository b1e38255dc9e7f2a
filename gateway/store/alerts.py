"""Store alerts, and which requests were counted on each. `domain.alerts` decides what a new sighting changes."""

from gateway.domain.alerts import ACTIVE, MAX_ALERT_LIMIT, TERMINAL, Alert, AlertFilter, AlertSource, AlertStatus
from gateway.domain.paging import MAX_INTEGER, Page
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import Table

ALERTS = Table("alerts", Alert, raises_version=False, order=("position",))
_STATES = {"active": ACTIVE, "terminal": TERMINAL}
_IS_ACTIVE = "status IN (" + ", ".join(f"'{status.value}'" for status in ACTIVE) + ")"
_EQUAL = ("status", "severity", "source", "rule", "agent", "assigned_to")
LATEST = "WHERE fingerprint = :fingerprint ORDER BY position DESC LIMIT 1"
ACTIVE_OF = f"WHERE fingerprint = :fingerprint AND {_IS_ACTIVE} ORDER BY position"
AFTER = f"""
    SELECT position, {ALERTS.names} FROM alerts WHERE position > :position ORDER BY position LIMIT :limit
"""  # noqa: S608  # our own column names
NEWEST_POSITION = "SELECT COALESCE(MAX(position), 0) AS position FROM alerts"
PRUNE = f"""
    DELETE FROM alerts
     WHERE position IN (
           SELECT position FROM alerts
            WHERE last_seen_at < :before AND NOT {_IS_ACTIVE} ORDER BY last_seen_at LIMIT :limit)
"""  # noqa: S608
# An alert keeps its newest requests: each has the slot of its number.
MAX_SIGHTINGS = 10_000
SAW = """
    INSERT INTO alert_sightings (alert_id, slot, request_id) VALUES (:alert_id, :slot, :request_id)
        ON CONFLICT (alert_id, slot) DO UPDATE SET request_id = excluded.request_id
"""
OF_REQUEST = "id IN (SELECT alert_id FROM alert_sightings WHERE request_id = :request_id)"
PRUNE_SIGHTINGS = "DELETE FROM alert_sightings WHERE alert_id NOT IN (SELECT id FROM alerts)"


class AlertRepository:
    """The table of alerts. Active alerts are those that a person has to act on."""

    def insert(self, tx: Transaction, alert: Alert) -> None:
        """Insert a new alert.

        Raises:
            Conflict: its id exists.
        """
        ALERTS.insert(tx, alert)
        self.saw(tx, alert, alert.request_id)

    def saw(self, tx: Transaction, alert: Alert, request_id: str | None) -> None:
        """Record that a request was counted on an alert, whose count is the number of the request."""
        if request_id is not None:
            slot = alert.count % MAX_SIGHTINGS
            tx.execute(SAW, {"alert_id": alert.id, "slot": slot, "request_id": request_id})

    def update(self, tx: Transaction, alert: Alert) -> bool:
        """Write all of an alert and return whether it exists."""
        return ALERTS.change(tx, alert)

    def latest(self, tx: Transaction, fingerprint: str) -> Alert | None:
        """Return the newest alert of a fingerprint."""
        return ALERTS.one(tx, LATEST, fingerprint=fingerprint)

    def active_of(self, tx: Transaction, fingerprint: str) -> tuple[Alert, ...]:
        """Return the active alerts of a fingerprint, oldest first."""
        return ALERTS.many(tx, ACTIVE_OF, fingerprint=fingerprint)

    def by_id(self, tx: Transaction, alert_id: str) -> Alert | None:
        """Return the alert of this id."""
        return ALERTS.by_id(tx, alert_id)

    def count_active(self, tx: Transaction, source: AlertSource | None = None) -> int:
        """Count the active alerts, of one source or of all."""
        if source is None:
            return ALERTS.count(tx, f"WHERE {_IS_ACTIVE}")
        return ALERTS.count(tx, f"WHERE {_IS_ACTIVE} AND source = :source", source=source.value)

    def prune(self, tx: Transaction, *, before: int, limit: int) -> int:
        """Delete some alerts that are not active and were last seen before a time, and return how many."""
        pruned = tx.execute(PRUNE, {"before": before, "limit": limit})
        if pruned:
            tx.execute(PRUNE_SIGHTINGS)
        return pruned

    def count(self, tx: Transaction, wanted: AlertFilter | None = None, *, most: int = MAX_INTEGER) -> int:
        """Count all alerts, or those that a filter matches, up to `most`. Ignores its limit and cursor."""
        return ALERTS.count_up_to(tx, _where(wanted or AlertFilter()), most)

    def after(self, tx: Transaction, *, position: int, limit: int) -> tuple[tuple[int, Alert], ...]:
        """Return the alerts after a position, in the order in which they were first raised, with their positions."""
        rows = tx.query(AFTER, {"position": position, "limit": limit})
        return tuple((int(row["position"]), ALERTS.record(row)) for row in rows)

    def newest_position(self, tx: Transaction) -> int:
        """Return the position of the newest alert, 0 when there is none."""
        return int(tx.query(NEWEST_POSITION)[0]["position"])

    def page(self, tx: Transaction, wanted: AlertFilter) -> Page[Alert]:
        """List alerts, newest first.

        Raises:
            InvalidRequest: `limit` is out of bounds, or the cursor belongs to another list.
        """
        # An age such as 24h is another time on each page, so the times themselves are no part of the query.
        named = tuple(getattr(wanted, name) for name in (*_EQUAL, "request_id", "scope"))
        query = ("alerts", *named, wanted.since is None, wanted.until is None)
        where = _where(wanted)
        return ALERTS.read_page(tx, where, query, limit=wanted.limit, highest=MAX_ALERT_LIMIT, cursor=wanted.cursor)


def _where(wanted: AlertFilter) -> Where:
    where = Where()
    where.equal(wanted, *_EQUAL)
    where.add(OF_REQUEST, request_id=wanted.request_id)
    if wanted.scope in _STATES:
        where.exclude("status", [status for status in AlertStatus if status not in _STATES[wanted.scope]])
    where.add("last_seen_at >= :since", since=wanted.since)
    where.add("first_seen_at <= :until", until=wanted.until)
    return where
