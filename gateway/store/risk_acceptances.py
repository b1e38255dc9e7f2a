"""Store risk acceptances."""

from gateway.domain.paging import Page
from gateway.domain.risk_acceptances import RiskAcceptance
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import AuthorityTable

MAX_ACCEPTANCE_LIMIT = 500


class RiskAcceptanceRepository(AuthorityTable[RiskAcceptance]):
    """The table of risk acceptances. None is removed: a revoked one stays as evidence."""

    def __init__(self) -> None:
        super().__init__(
            "risk_acceptances",
            RiskAcceptance,
            columns={"key": "key_id"},
            changes=("reason", "until_at", "revoked_at", "revoked_by"),
            id_prefix="ra",
        )

    def active(self, tx: Transaction, *, now_at: int) -> tuple[RiskAcceptance, ...]:
        """Return the acceptances that hold at `now_at`, oldest first."""
        return self.many(tx, "WHERE revoked_at IS NULL AND until_at > :now_at ORDER BY id", now_at=now_at)

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[RiskAcceptance]:
        """Return a part of all acceptances, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        query = ("risk-acceptances",)
        return self.read_page(tx, Where(), query, limit=limit, highest=MAX_ACCEPTANCE_LIMIT, cursor=cursor)
