"""Store alerts, and which requests were counted on each. `domain.alerts` decides what a new sighting changes."""

from gateway.domain.alerts import ACTIVE, MAX_ALERT_LIMIT, TERMINAL, Alert, AlertFilter, AlertSource, AlertStatus
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import PositionedTable

_STATES = {"active": ACTIVE, "terminal": TERMINAL}
_IS_ACTIVE = "status IN (" + ", ".join(f"'{status.value}'" for status in ACTIVE) + ")"
PRUNE = f"""
    DELETE FROM alerts
     WHERE position IN (
           SELECT position FROM alerts
            WHERE last_seen_at < :before AND NOT {_IS_ACTIVE} ORDER BY last_seen_at LIMIT :limit)
"""  # noqa: S608
# An alert keeps its newest requests: each has the slot of its number.
MAX_SIGHTINGS = 10_000
ADD_SIGHTING = """
    INSERT INTO alert_sightings (alert_id, slot, request_id) VALUES (:alert_id, :slot, :request_id)
        ON CONFLICT (alert_id, slot) DO UPDATE SET request_id = excluded.request_id
"""
OF_REQUEST = "id IN (SELECT alert_id FROM alert_sightings WHERE request_id = :request_id)"


class AlertRepository(PositionedTable[Alert]):
    """The alerts. Active alerts are those that a person has to act on."""

    def __init__(self) -> None:
        super().__init__("alerts", Alert, raises_version=False, order=("position",), page_limit=MAX_ALERT_LIMIT)

    def insert(self, tx: Transaction, record: Alert, **extra: object) -> None:
        """Insert a new alert, on which its own request is counted."""
        super().insert(tx, record, **extra)
        self.add_sighting(tx, record, record.request_id)

    def add_sighting(self, tx: Transaction, alert: Alert, request_id: str | None) -> None:
        if request_id is not None:
            slot = alert.count % MAX_SIGHTINGS
            tx.execute(ADD_SIGHTING, {"alert_id": alert.id, "slot": slot, "request_id": request_id})

    def latest(self, tx: Transaction, fingerprint: str) -> Alert | None:
        return self.one(tx, "WHERE fingerprint = :fingerprint ORDER BY position DESC LIMIT 1", fingerprint=fingerprint)

    def active_of(self, tx: Transaction, fingerprint: str) -> tuple[Alert, ...]:
        return self.many(
            tx, f"WHERE fingerprint = :fingerprint AND {_IS_ACTIVE} ORDER BY position", fingerprint=fingerprint
        )

    def count_active(self, tx: Transaction, source: AlertSource | None = None) -> int:
        if source is None:
            return self.count(tx, f"WHERE {_IS_ACTIVE}")
        return self.count(tx, f"WHERE {_IS_ACTIVE} AND source = :source", source=source.value)

    def prune(self, tx: Transaction, *, before: int, limit: int) -> int:
        """Delete some alerts that are not active and were last seen before a time, and return how many."""
        pruned = tx.execute(PRUNE, {"before": before, "limit": limit})
        if pruned:
            tx.execute("DELETE FROM alert_sightings WHERE alert_id NOT IN (SELECT id FROM alerts)")
        return pruned

    def _where(self, wanted: AlertFilter) -> Where:
        where = Where()
        where.equal(wanted, "status", "severity", "source", "rule", "agent", "assigned_to")
        where.add(OF_REQUEST, request_id=wanted.request_id)
        if wanted.scope in _STATES:
            where.exclude("status", [status for status in AlertStatus if status not in _STATES[wanted.scope]])
        where.add("last_seen_at >= :since", since=wanted.since)
        where.add("first_seen_at <= :until", until=wanted.until)
        return where
