"""Store alerts, and which requests were counted on each. `domain.alerts` decides what a new sighting changes."""

from gateway.domain.alerts import ACTIVE, MAX_ALERT_LIMIT, TERMINAL, Alert, AlertFilter, AlertSource, AlertStatus
from gateway.domain.incidents import IncidentFilter
from gateway.domain.paging import Page
from gateway.shield.detections import Severity
from gateway.store.database import Transaction, insert_into
from gateway.store.filters import Where, rank_of
from gateway.store.table import PositionedTable

SORTS = {
    "first_seen": "first_seen_at",
    "last_seen": "last_seen_at",
    "severity": rank_of("severity", reversed(Severity)),
    "status": rank_of("status", AlertStatus),
    "count": "count",
}
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
ADD_SIGHTING = insert_into("alert_sightings", ("alert_id", "slot", "request_id"), key=("alert_id", "slot"))
# The newest active alert of somebody, if it was seen lately.
OF_WHO = f"WHERE {{}} AND {_IS_ACTIVE} AND last_seen_at >= :since ORDER BY position DESC LIMIT 1"
NAMED_OF_KEY = """
    WHERE last_seen_at > :since AND first_seen_at > :since AND key_prefix = :key_prefix
      AND agent IS NOT NULL AND source = 'shield'
"""
# An incident stands in lists as its newest alert.
_IS_NEWEST = "position = (SELECT MAX(position) FROM alerts AS other WHERE other.incident = alerts.incident)"
_OF_ALL = "(SELECT {}({}) FROM alerts AS other WHERE other.incident = alerts.incident)"
INCIDENT_SORTS = {
    "first_seen": _OF_ALL.format("MIN", "first_seen_at"),
    "last_seen": _OF_ALL.format("MAX", "last_seen_at"),
    # The worst alert is that of the active ones, where there are any.
    "severity": _OF_ALL.format("MAX", f"{SORTS['severity']} + CASE WHEN {_IS_ACTIVE} THEN 10 ELSE 0 END") + " % 10",
    "requests": f"CAST({_OF_ALL.format('SUM', 'count')} AS BIGINT)",
}
_HAS = "incident IN (SELECT incident FROM alerts WHERE {})"
OF_KEY = "WHERE last_seen_at > :since AND rule = :rule AND key_prefix = :key_prefix"
OF_REQUEST = "id IN (SELECT alert_id FROM alert_sightings WHERE request_id = :request_id)"
_OF_INCIDENT = {name: _HAS.format(f"{name} = :{name}") for name in ("severity", "rule", "agent", "assigned_to")} | {
    "key": _HAS.format("key_prefix = :key"),
    "request_id": _HAS.format(OF_REQUEST),
    "until": _HAS.format("first_seen_at <= :until"),
}
REQUESTS = """
    SELECT DISTINCT request_id FROM alert_sightings
     WHERE alert_id IN (SELECT id FROM alerts WHERE incident = :incident) ORDER BY request_id DESC LIMIT :limit
"""


class AlertRepository(PositionedTable[Alert]):
    """The alerts. Active alerts are those that a person has to act on."""

    def __init__(self) -> None:
        order = ("position",)
        super().__init__("alerts", Alert, raises_version=False, order=order, sorts=SORTS, page_limit=MAX_ALERT_LIMIT)

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

    def latest_of_who(self, tx: Transaction, alert: Alert, *, since_at: int) -> Alert | None:
        """Return the newest active alert of the same agent and key that was seen at or after `since_at`."""
        who = {"key_prefix": alert.key_prefix, "agent": alert.agent}
        is_same = " AND ".join(f"{name} IS NULL" if who[name] is None else f"{name} = :{name}" for name in who)
        return self.one(tx, OF_WHO.format(is_same), since=since_at, **who)

    def count_named(self, tx: Transaction, key_prefix: str, *, since: int, most: int) -> int:
        """Count the alerts of scans that name an agent of a key and were raised after `since`, up to `most`."""
        return self.count(tx, NAMED_OF_KEY, most=most, key_prefix=key_prefix, since=since)

    def incidents(self, tx: Transaction, wanted: IncidentFilter) -> Page[Alert]:
        """Return a page of incidents, each as its newest alert. A filter matches if any of its alerts does."""
        where = Where().match(wanted, since="last_seen_at >= :since", **_OF_INCIDENT)
        where.add(_IS_NEWEST)
        if wanted.scope != "all":
            where.add(("" if wanted.scope == "active" else "NOT ") + _HAS.format(_IS_ACTIVE))
        return self.page(tx, wanted, where, INCIDENT_SORTS)

    def of_incident(self, tx: Transaction, incident: str) -> tuple[Alert, ...]:
        """Return the alerts of an incident, the oldest first."""
        return self.many(tx, "WHERE incident = :incident ORDER BY position", incident=incident)

    def requests_of_incident(self, tx: Transaction, incident: str, *, limit: int) -> tuple[str, ...]:
        """Return the ids of requests that its alerts counted, the newest first."""
        rows = tx.query(REQUESTS, {"incident": incident, "limit": limit})
        return tuple(str(row["request_id"]) for row in rows)

    def active_of(self, tx: Transaction, fingerprint: str) -> tuple[Alert, ...]:
        return self.many(
            tx, f"WHERE fingerprint = :fingerprint AND {_IS_ACTIVE} ORDER BY position", fingerprint=fingerprint
        )

    def count_active(self, tx: Transaction, source: AlertSource | None = None) -> int:
        if source is None:
            return self.count(tx, f"WHERE {_IS_ACTIVE}")
        return self.count(tx, f"WHERE {_IS_ACTIVE} AND source = :source", source=source.value)

    def count_of_key(self, tx: Transaction, rule: str, key_prefix: str, *, since: int, most: int) -> int:
        """Count the alerts of a rule and key that were seen after `since`, up to `most`."""
        return self.count(tx, OF_KEY, most=most, rule=rule, key_prefix=key_prefix, since=since)

    def prune(self, tx: Transaction, *, before: int, limit: int) -> int:
        """Delete some alerts that are not active and were last seen before a time, and return how many."""
        pruned = tx.execute(PRUNE, {"before": before, "limit": limit})
        if pruned:
            tx.execute("DELETE FROM alert_sightings WHERE alert_id NOT IN (SELECT id FROM alerts)")
        return pruned

    def _where(self, wanted: AlertFilter) -> Where:
        seen = {"since": "last_seen_at >= :since", "until": "first_seen_at <= :until", "request_id": OF_REQUEST}
        where = Where().match(wanted, "status", "severity", "source", "rule", "agent", "assigned_to", **seen)
        if wanted.scope in _STATES:
            where.exclude("status", [status for status in AlertStatus if status not in _STATES[wanted.scope]])
        return where
