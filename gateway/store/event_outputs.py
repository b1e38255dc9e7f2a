"""Store event outputs, and how far each has sent the events."""

from gateway.domain.event_outputs import EventOutput
from gateway.store.database import Transaction
from gateway.store.table import Table

ANY_ENABLED = "SELECT EXISTS (SELECT * FROM event_outputs WHERE enabled) AS found"
PROGRESS = """
    UPDATE event_outputs
       SET audit_position = :audit_position, alert_position = :alert_position, sent = :sent, failed = :failed,
           dropped = :dropped, last_sent_at = :last_sent_at, last_error = :last_error, last_error_at = :last_error_at
     WHERE id = :id
"""
DISABLE = "UPDATE event_outputs SET enabled = 0, version = version + 1 WHERE id = :id"


class EventOutputRepository(Table[EventOutput]):
    """The table of event outputs. `change` writes what belongs to the operator, `progress` what the sender does."""

    def __init__(self) -> None:
        changes = ("name", "target", "secret", "kinds", "min_severity", "allow_private", "enabled")
        super().__init__("event_outputs", EventOutput, changes=changes)

    def is_any_on(self, tx: Transaction) -> bool:
        """Return whether an output is enabled."""
        return bool(tx.query(ANY_ENABLED)[0]["found"])

    def progress(self, tx: Transaction, output: EventOutput) -> None:
        """Write how far the sender has come."""
        tx.execute(PROGRESS, self.params(output))

    def disable(self, tx: Transaction, output_id: str) -> None:
        """Disable an output whose receiver asked for no more events."""
        tx.execute(DISABLE, {"id": output_id})
