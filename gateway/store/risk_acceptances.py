"""Every SQL statement about risk acceptances."""

from gateway.domain.paging import ID_NUMBERS, Page, id_at, position_of, read_cursor, write_cursor
from gateway.domain.risk_acceptances import AcceptanceScope, RiskAcceptance
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction
from gateway.store.filters import check_limit

MAX_ACCEPTANCE_LIMIT = 500
_COLUMNS = """
    id, scope, rule, agent, key_id, digest, reason, accepted_at, accepted_by, until_at, revoked_at, revoked_by, version
"""
INSERT = f"""
    INSERT INTO risk_acceptances ({_COLUMNS})
    VALUES (:id, :scope, :rule, :agent, :key_id, :digest, :reason, :accepted_at, :accepted_by, :until_at, :revoked_at,
            :revoked_by, :version)
"""  # noqa: S608  # our own column names
BY_ID = f"SELECT {_COLUMNS} FROM risk_acceptances WHERE id = :id"  # noqa: S608
ACTIVE = f"""
    SELECT {_COLUMNS} FROM risk_acceptances WHERE revoked_at IS NULL AND until_at > :now_at ORDER BY id
"""  # noqa: S608
PAGE = f"SELECT {_COLUMNS} FROM risk_acceptances WHERE id < :before ORDER BY id DESC LIMIT :limit"  # noqa: S608
CHANGE = """
    UPDATE risk_acceptances
       SET reason = :reason, until_at = :until_at, revoked_at = :revoked_at, revoked_by = :revoked_by,
           version = version + 1
     WHERE id = :id
"""


class RiskAcceptanceRepository:
    """The table of risk acceptances."""

    def insert(self, tx: AuthorityTransaction, one: RiskAcceptance) -> None:
        """Insert an acceptance. Holds in every process once committed."""
        tx.change(
            INSERT,
            {
                "id": one.id,
                "scope": one.scope.value,
                "rule": one.rule,
                "agent": one.agent,
                "key_id": one.key,
                "digest": one.digest,
                "reason": one.reason,
                "accepted_at": one.accepted_at,
                "accepted_by": one.accepted_by,
                "until_at": one.until_at,
                "revoked_at": one.revoked_at,
                "revoked_by": one.revoked_by,
                "version": one.version,
            },
        )

    def by_id(self, tx: Transaction, acceptance_id: str) -> RiskAcceptance | None:
        """Return the acceptance of this id."""
        rows = tx.query(BY_ID, {"id": acceptance_id})
        return _acceptance(rows[0]) if rows else None

    def active(self, tx: Transaction, *, now_at: int) -> tuple[RiskAcceptance, ...]:
        """Return what is accepted at `now_at`, oldest first."""
        return tuple(_acceptance(row) for row in tx.query(ACTIVE, {"now_at": now_at}))

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[RiskAcceptance]:
        """Return a part of all acceptances, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        check_limit(limit, MAX_ACCEPTANCE_LIMIT)
        before = id_at("ra", read_cursor(cursor, ("risk-acceptances",), count=ID_NUMBERS)) if cursor else "ra`"
        rows = tx.query(PAGE, {"before": before, "limit": limit + 1})
        items = tuple(_acceptance(row) for row in rows[:limit])
        after = write_cursor(("risk-acceptances",), position_of(items[-1].id)) if len(rows) > limit else None
        return Page(items, limit, after)

    def change(self, tx: AuthorityTransaction, one: RiskAcceptance) -> None:
        """Write reason, end and revocation, and raise the version. Holds in every process once committed."""
        tx.change(
            CHANGE,
            {
                "id": one.id,
                "reason": one.reason,
                "until_at": one.until_at,
                "revoked_at": one.revoked_at,
                "revoked_by": one.revoked_by,
            },
        )


def _acceptance(row: Row) -> RiskAcceptance:
    return RiskAcceptance(
        id=row["id"],
        scope=AcceptanceScope(row["scope"]),
        rule=row["rule"],
        agent=row["agent"],
        key=row["key_id"],
        digest=row["digest"],
        reason=row["reason"],
        accepted_at=row["accepted_at"],
        accepted_by=row["accepted_by"],
        until_at=row["until_at"],
        revoked_at=row["revoked_at"],
        revoked_by=row["revoked_by"],
        version=row["version"],
    )
