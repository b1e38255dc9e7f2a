"""Store risk acceptances."""

from gateway.domain.paging import Page
from gateway.domain.risk_acceptances import RiskAcceptance
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import AuthorityTable

MAX_ACCEPTANCE_LIMIT = 500
ACCEPTANCES = AuthorityTable(
    "risk_acceptances",
    RiskAcceptance,
    columns={"key": "key_id"},
    changes=("reason", "until_at", "revoked_at", "revoked_by"),
    id_prefix="ra",
)
ACTIVE = ACCEPTANCES.select("WHERE revoked_at IS NULL AND until_at > :now_at ORDER BY id")


class RiskAcceptanceRepository:
    """The table of risk acceptances. A committed change holds in every process."""

    def insert(self, tx: AuthorityTransaction, one: RiskAcceptance) -> None:
        """Insert an acceptance."""
        ACCEPTANCES.insert(tx, one)

    def by_id(self, tx: Transaction, acceptance_id: str) -> RiskAcceptance | None:
        """Return the acceptance of this id."""
        return ACCEPTANCES.find(tx, acceptance_id)

    def active(self, tx: Transaction, *, now_at: int) -> tuple[RiskAcceptance, ...]:
        """Return the acceptances that hold at `now_at`, oldest first."""
        return ACCEPTANCES.many(tx, ACTIVE, now_at=now_at)

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[RiskAcceptance]:
        """Return a part of all acceptances, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        query = ("risk-acceptances",)
        return ACCEPTANCES.page(tx, Where(), query, limit=limit, highest=MAX_ACCEPTANCE_LIMIT, cursor=cursor)

    def change(self, tx: AuthorityTransaction, one: RiskAcceptance) -> None:
        """Write reason, end and revocation, and raise the version."""
        ACCEPTANCES.update(tx, one)
