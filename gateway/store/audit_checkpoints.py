"""Every SQL statement about checkpoints of the audit chain."""

from gateway.domain.audit import Checkpoint
from gateway.store.database import Row, Transaction

INSERT = """
    INSERT INTO audit_checkpoints (instance_id, seq, hash, occurred_at)
    VALUES (:instance_id, :seq, :hash, :occurred_at)
        ON CONFLICT (instance_id, seq) DO NOTHING
"""
NEWEST = """
    SELECT instance_id, seq, hash, occurred_at FROM audit_checkpoints
     WHERE instance_id = :instance_id ORDER BY seq DESC LIMIT :limit
"""


class CheckpointRepository:
    """The table of checkpoints."""

    def insert(self, tx: Transaction, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""
        values = {
            "instance_id": checkpoint.instance_id,
            "seq": checkpoint.seq,
            "hash": checkpoint.hash,
            "occurred_at": checkpoint.occurred_at,
        }
        tx.execute(INSERT, values)

    def newest(self, tx: Transaction, instance_id: str, *, limit: int) -> tuple[Checkpoint, ...]:
        """Return the newest checkpoints of a chain, newest first."""
        return tuple(_checkpoint(row) for row in tx.query(NEWEST, {"instance_id": instance_id, "limit": limit}))


def _checkpoint(row: Row) -> Checkpoint:
    return Checkpoint(row["instance_id"], row["seq"], row["hash"], row["occurred_at"])
