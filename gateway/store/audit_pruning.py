"""The one SQL that deletes audit events: the oldest of a chain. The hash before what is left stays as its beginning."""

from gateway.domain.audit import ChainHead
from gateway.store.audit import AuditRepository
from gateway.store.database import Transaction

OLDEST = """
    SELECT seq, occurred_at, hash FROM audit_events
     WHERE instance_id = :instance_id AND seq > :seq ORDER BY seq LIMIT :limit
"""
PRUNE = "DELETE FROM audit_events WHERE instance_id = :instance_id AND seq <= :seq"
BEGIN_AFTER = """
    UPDATE audit_heads SET first_seq = :seq + 1, first_prev_hash = :hash WHERE instance_id = :instance_id
"""


def prune_chain(audit: AuditRepository, tx: Transaction, instance_id: str, *, before: int, limit: int) -> int:
    """Delete from the beginning of a chain what is older than a time, at most `limit` events; return how many went.

    Ends before the first event that is young enough, and before the last of all.
    """
    last_seq = audit.head(tx, instance_id).seq
    count, place = 0, audit.beginning(tx, instance_id)
    for row in tx.query(OLDEST, {"instance_id": instance_id, "seq": place.seq, "limit": limit}):
        if row["occurred_at"] >= before or row["seq"] >= last_seq or row["seq"] != place.seq + 1:
            break
        count, place = count + 1, ChainHead(row["seq"], row["hash"])
    if count:
        tx.execute(PRUNE, {"instance_id": instance_id, "seq": place.seq})
        tx.execute(BEGIN_AFTER, {"instance_id": instance_id, "seq": place.seq, "hash": place.hash})
    return count
