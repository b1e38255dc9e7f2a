"""Every SQL statement about overrides of rules."""

from gateway.domain.rule_overrides import RuleOverride
from gateway.shield.detections import Severity
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction

_COLUMNS = "rule, enabled, severity, reason, changed_at, changed_by, version"
ALL = f"SELECT {_COLUMNS} FROM rule_overrides ORDER BY rule"  # noqa: S608  # our own column names
FIND = f"SELECT {_COLUMNS} FROM rule_overrides WHERE rule = :rule"  # noqa: S608
KEEP = f"""
    INSERT INTO rule_overrides ({_COLUMNS})
    VALUES (:rule, :enabled, :severity, :reason, :changed_at, :changed_by, :version)
        ON CONFLICT (rule) DO UPDATE
       SET enabled = excluded.enabled, severity = excluded.severity, reason = excluded.reason,
           changed_at = excluded.changed_at, changed_by = excluded.changed_by, version = excluded.version
"""  # noqa: S608


class RuleOverrideRepository:
    """The table of overrides. None is deleted: its version goes on."""

    def all(self, tx: Transaction) -> tuple[RuleOverride, ...]:
        """Return all of them."""
        return tuple(_record(row) for row in tx.query(ALL))

    def find(self, tx: Transaction, rule: str) -> RuleOverride | None:
        """Return that of a rule."""
        rows = tx.query(FIND, {"rule": rule})
        return _record(rows[0]) if rows else None

    def keep(self, tx: AuthorityTransaction, record: RuleOverride) -> None:
        """Write what holds for a rule from now on."""
        tx.change(
            KEEP,
            {
                "rule": record.rule,
                "enabled": int(record.enabled),
                "severity": record.severity.value if record.severity else None,
                "reason": record.reason,
                "changed_at": record.changed_at,
                "changed_by": record.changed_by,
                "version": record.version,
            },
        )


def _record(row: Row) -> RuleOverride:
    return RuleOverride(
        rule=row["rule"],
        enabled=bool(row["enabled"]),
        severity=Severity(row["severity"]) if row["severity"] else None,
        reason=row["reason"],
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
        version=row["version"],
    )
