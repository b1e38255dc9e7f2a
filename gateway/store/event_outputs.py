"""Store event outputs, and how far each has sent the events."""

from gateway.domain.event_outputs import EventOutput
from gateway.store.database import Transaction
from gateway.store.table import Table

OUTPUTS = Table(
    "event_outputs",
    EventOutput,
    changes=("name", "target", "secret", "kinds", "min_severity", "allow_private", "enabled"),
)
ANY_ENABLED = "SELECT EXISTS (SELECT * FROM event_outputs WHERE enabled) AS found"
PROGRESS = """
    UPDATE event_outputs
       SET audit_position = :audit_position, alert_position = :alert_position, sent = :sent, failed = :failed,
           dropped = :dropped, last_sent_at = :last_sent_at, last_error = :last_error, last_error_at = :last_error_at
     WHERE id = :id
"""
DISABLE = "UPDATE event_outputs SET enabled = 0, version = version + 1 WHERE id = :id"


class EventOutputRepository:
    """The table of event outputs."""

    def insert(self, tx: Transaction, output: EventOutput) -> None:
        """Insert an output with a name that is not taken."""
        OUTPUTS.insert(tx, output)

    def all(self, tx: Transaction) -> tuple[EventOutput, ...]:
        """Return all outputs, oldest first."""
        return OUTPUTS.all(tx)

    def is_any_on(self, tx: Transaction) -> bool:
        """Return whether an output is enabled."""
        return bool(tx.query(ANY_ENABLED)[0]["found"])

    def change(self, tx: Transaction, output: EventOutput) -> None:
        """Write what an operator may change, and raise the version."""
        OUTPUTS.update(tx, output)

    def progress(self, tx: Transaction, output: EventOutput) -> None:
        """Write how far the sender has come. All other columns belong to the operator."""
        tx.execute(PROGRESS, OUTPUTS.params(output))

    def disable(self, tx: Transaction, output_id: str) -> None:
        """Disable an output whose receiver asked for no more events."""
        tx.execute(DISABLE, {"id": output_id})

    def remove(self, tx: Transaction, output_id: str) -> None:
        """Delete an output."""
        OUTPUTS.delete(tx, output_id)
