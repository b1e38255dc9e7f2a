"""Store trust audits, and the two scores over time."""

from gateway.domain.posture import KEPT_RUNS, MAX_RUNS, Check, PosturePoint, TrustAudit
from gateway.store.database import Transaction
from gateway.store.table import Table, json_records

POINTS = Table("posture_points", PosturePoint, key="occurred_at")


class TrustAuditRepository(Table[TrustAudit]):
    """The tables of trust audits and of points."""

    def __init__(self) -> None:
        codecs = {"checks": json_records(Check)}
        super().__init__("trust_audits", TrustAudit, codecs=codecs, page_limit=MAX_RUNS, kept=KEPT_RUNS)

    def latest(self, tx: Transaction) -> TrustAudit | None:
        """Return the newest run, or None before the first."""
        return self.one(tx, "ORDER BY id DESC LIMIT 1")

    def insert_point(self, tx: Transaction, point: PosturePoint) -> bool:
        """Store a point and return whether it is the first of its time."""
        return tx.execute(f"{POINTS.insert_sql} ON CONFLICT (occurred_at) DO NOTHING", POINTS.params(point)) == 1

    def points(self, tx: Transaction, *, since: int) -> tuple[PosturePoint, ...]:
        """Return the points since a time, oldest first."""
        return POINTS.many(tx, "WHERE occurred_at >= :since ORDER BY occurred_at", since=since)

    def prune_points(self, tx: Transaction, *, before: int) -> int:
        """Delete points from before a time."""
        return tx.execute("DELETE FROM posture_points WHERE occurred_at < :before", {"before": before})
