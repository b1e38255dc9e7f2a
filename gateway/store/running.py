"""Every SQL statement about what gateways that serve say of their settings."""

from gateway.store.database import Transaction

NOTE = """
    INSERT INTO running_gateways (instance_id, seen_at, facts) VALUES (:id, :seen_at, :facts)
        ON CONFLICT (instance_id) DO UPDATE SET seen_at = excluded.seen_at, facts = excluded.facts
"""
NEWEST = """
    SELECT instance_id, facts FROM running_gateways WHERE seen_at >= :since ORDER BY seen_at DESC LIMIT 1
"""
FORGET = "DELETE FROM running_gateways"


class RunningRepository:
    """The table of gateways that serve."""

    def note(self, tx: Transaction, instance_id: str, seen_at: int, facts: str) -> None:
        """Write what a gateway says in place of what it said before."""
        tx.execute(NOTE, {"id": instance_id, "seen_at": seen_at, "facts": facts})

    def newest(self, tx: Transaction, *, since: int) -> tuple[str, ...]:
        """Return the id and the facts of the gateway that was heard of last since a time; empty when there is none."""
        rows = tx.query(NEWEST, {"since": since})
        return (rows[0]["instance_id"], rows[0]["facts"]) if rows else ()

    def forget(self, tx: Transaction) -> None:
        """Delete what all have said."""
        tx.execute(FORGET)
