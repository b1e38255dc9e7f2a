"""Every SQL statement about texts that are kept."""

from gateway.domain.captures import Capture, CapturedText, KeptText
from gateway.domain.traffic import TrafficRow
from gateway.shield.detections import Direction
from gateway.store.database import Transaction

_COLUMNS = ("traffic_id", "direction", "mode", "text", "is_cut", "captured_at", "expires_at")
INSERT = f"INSERT INTO captures ({', '.join(_COLUMNS)}) VALUES ({', '.join(':' + name for name in _COLUMNS)})"  # noqa: S608
OF_REQUEST = """
    SELECT direction, mode, text, is_cut, expires_at FROM captures
     WHERE traffic_id = :traffic_id AND expires_at > :now_at
     ORDER BY direction
"""
PRUNE = """
    DELETE FROM captures
     WHERE (traffic_id, direction) IN (
           SELECT traffic_id, direction FROM captures
            WHERE expires_at <= :now_at OR captured_at < :before
            LIMIT :limit)
"""


class CaptureRepository:
    """The table of texts that are kept for a while, because a policy says so."""

    def insert(self, tx: Transaction, row: TrafficRow, captured: CapturedText) -> None:
        """Insert what is kept of a request, in the transaction of its row."""
        at = row.occurred_at
        kept = (captured.direction.value, captured.mode.value, captured.text, int(captured.is_cut))
        values = (row.id, *kept, at, captured.expires_at(at))
        tx.execute(INSERT, dict(zip(_COLUMNS, values, strict=True)))

    def of_request(self, tx: Transaction, traffic_id: str, *, now_at: int) -> tuple[KeptText, ...]:
        """Return what is kept of a request and has not expired, inbound first."""
        return tuple(
            KeptText(
                Direction(row["direction"]),
                Capture(row["mode"]),
                row["text"],
                bool(row["is_cut"]),
                row["expires_at"],
            )
            for row in tx.query(OF_REQUEST, {"traffic_id": traffic_id, "now_at": now_at})
        )

    def prune(self, tx: Transaction, *, now_at: int, before: int, limit: int) -> int:
        """Delete some of what has expired, or is older than any row of traffic is kept; return how many."""
        return tx.execute(PRUNE, {"now_at": now_at, "before": before, "limit": limit})
