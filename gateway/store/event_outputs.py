"""Every SQL statement about event outputs, and about which events they have not sent yet."""

import json
from typing import Any

from gateway.domain.event_outputs import EventOutput, EventSeverity, OutputKind
from gateway.store.database import Row, Transaction

_COLUMNS = (
    "id", "name", "kind", "target", "secret", "kinds", "min_severity", "allow_private", "enabled", "created_at",
    "created_by", "version", "audit_position", "alert_position", "sent", "failed", "dropped", "last_sent_at",
    "last_error", "last_error_at",
)  # fmt: skip
_NAMES = ", ".join(_COLUMNS)
INSERT = f"""
    INSERT INTO event_outputs ({_NAMES}) VALUES ({", ".join(":" + name for name in _COLUMNS)})
"""  # noqa: S608  # our own column names
ALL = f"SELECT {_NAMES} FROM event_outputs ORDER BY id"  # noqa: S608
ANY_ON = "SELECT EXISTS (SELECT * FROM event_outputs WHERE enabled) AS found"
CHANGE = """
    UPDATE event_outputs
       SET name = :name, target = :target, secret = :secret, kinds = :kinds, min_severity = :min_severity,
           allow_private = :allow_private, enabled = :enabled, version = version + 1
     WHERE id = :id
"""
PROGRESS = """
    UPDATE event_outputs
       SET audit_position = :audit_position, alert_position = :alert_position, sent = :sent, failed = :failed,
           dropped = :dropped, last_sent_at = :last_sent_at, last_error = :last_error, last_error_at = :last_error_at
     WHERE id = :id
"""
DISABLE = "UPDATE event_outputs SET enabled = 0, version = version + 1 WHERE id = :id"
REMOVE = "DELETE FROM event_outputs WHERE id = :id"
_PROGRESS = (
    "audit_position",
    "alert_position",
    "sent",
    "failed",
    "dropped",
    "last_sent_at",
    "last_error",
    "last_error_at",
)


class EventOutputRepository:
    """The table of event outputs."""

    def insert(self, tx: Transaction, output: EventOutput) -> None:
        """Insert an output whose name none has."""
        tx.execute(INSERT, _values(output))

    def all(self, tx: Transaction) -> tuple[EventOutput, ...]:
        """Return all outputs, oldest first."""
        return tuple(_output(row) for row in tx.query(ALL))

    def is_any_on(self, tx: Transaction) -> bool:
        """Tell whether an output is enabled."""
        return bool(tx.query(ANY_ON)[0]["found"])

    def change(self, tx: Transaction, output: EventOutput) -> None:
        """Write what an operator may change, and raise the version."""
        names = ("id", "name", "target", "secret", "kinds", "min_severity", "allow_private", "enabled")
        values = _values(output)
        tx.execute(CHANGE, {name: values[name] for name in names})

    def progress(self, tx: Transaction, output: EventOutput) -> None:
        """Write how far the sender has come; the rest belongs to the operator."""
        values = _values(output)
        tx.execute(PROGRESS, {name: values[name] for name in ("id", *_PROGRESS)})

    def disable(self, tx: Transaction, output_id: str) -> None:
        """Switch an output off whose receiver wants no more."""
        tx.execute(DISABLE, {"id": output_id})

    def remove(self, tx: Transaction, output_id: str) -> None:
        """Delete an output."""
        tx.execute(REMOVE, {"id": output_id})


def _values(output: EventOutput) -> dict[str, Any]:
    values = {name: getattr(output, name) for name in _COLUMNS}
    return values | {
        "kind": output.kind.value,
        "kinds": json.dumps(output.kinds),
        "min_severity": output.min_severity.value,
        "allow_private": int(output.allow_private),
        "enabled": int(output.enabled),
    }


def _output(row: Row) -> EventOutput:
    values = {name: row[name] for name in _COLUMNS}
    return EventOutput(
        **values
        | {
            "kind": OutputKind(row["kind"]),
            "kinds": tuple(json.loads(row["kinds"])),
            "min_severity": EventSeverity(row["min_severity"]),
            "allow_private": bool(row["allow_private"]),
            "enabled": bool(row["enabled"]),
        }
    )
