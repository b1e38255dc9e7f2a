"""Store trust audits, and the two scores over time."""

from gateway.domain.paging import Page
from gateway.domain.posture import Check, PosturePoint, TrustAudit
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import Table, json_records

MAX_RUNS = 100
PRUNE_RUNS = """
    DELETE FROM trust_audits WHERE id IN (SELECT id FROM trust_audits ORDER BY id DESC LIMIT :many OFFSET :kept)
"""
POINTS = Table("posture_points", PosturePoint, key="occurred_at")
NOTE = f"{POINTS.insert_sql} ON CONFLICT (occurred_at) DO NOTHING"
PRUNE_POINTS = "DELETE FROM posture_points WHERE occurred_at < :before"


class TrustAuditRepository(Table[TrustAudit]):
    """The tables of trust audits and of points."""

    def __init__(self) -> None:
        super().__init__("trust_audits", TrustAudit, codecs={"checks": json_records(Check)}, id_prefix="run")

    def insert(self, tx: Transaction, record: TrustAudit, **extra: object) -> None:
        """Insert a run, and delete the oldest beyond ten pages."""
        super().insert(tx, record, **extra)
        tx.execute(PRUNE_RUNS, {"many": MAX_RUNS, "kept": 10 * MAX_RUNS})

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[TrustAudit]:
        """List runs, newest first.

        Raises:
            InvalidRequest: the limit, or the cursor belongs to another list.
        """
        return self.read_page(tx, Where(), ("trust_audits",), limit=limit, highest=MAX_RUNS, cursor=cursor)

    def latest(self, tx: Transaction) -> TrustAudit | None:
        """Return the newest run, or None before the first."""
        return self.one(tx, "ORDER BY id DESC LIMIT 1")

    def note(self, tx: Transaction, point: PosturePoint) -> bool:
        """Keep a point and return whether no process had kept it before."""
        return tx.execute(NOTE, POINTS.params(point)) == 1

    def points(self, tx: Transaction, *, since: int) -> tuple[PosturePoint, ...]:
        """Return the points since a time, oldest first."""
        return POINTS.many(tx, "WHERE occurred_at >= :since ORDER BY occurred_at", since=since)

    def prune_points(self, tx: Transaction, *, before: int) -> int:
        """Delete points from before a time."""
        return tx.execute(PRUNE_POINTS, {"before": before})
