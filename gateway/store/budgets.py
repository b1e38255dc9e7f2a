"""Every SQL statement about budgets, their periods, and what requests hold of them."""

from collections.abc import Sequence

from gateway.domain.budgets import (
    Budget,
    BudgetAction,
    BudgetScope,
    BudgetUnit,
    BudgetWindow,
    Hold,
    Override,
    Period,
    Standing,
    period_of,
)
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction

_FIELDS = """
    id, name, scope, scope_value, unit, limit_amount, period, soft_pct, action, override_amount, override_until,
    override_reason, override_by, created_at, created_by, version
"""
_OF_BUDGET = ", ".join(f"b.{name.strip()}" for name in _FIELDS.split(","))
_FROM = "FROM budgets b LEFT JOIN api_keys k ON b.scope = 'key' AND k.id = b.scope_value"
INSERT = f"""
    INSERT INTO budgets ({_FIELDS})
    VALUES (:id, :name, :scope, :scope_value, :unit, :limit_amount, :period, :soft_pct, :action, :override_amount,
            :override_until, :override_reason, :override_by, :created_at, :created_by, :version)
"""  # noqa: S608  # our own column names
ALL = f"SELECT {_OF_BUDGET}, k.lineage {_FROM} ORDER BY b.id"
BY_ID = f"SELECT {_OF_BUDGET}, k.lineage {_FROM} WHERE b.id = :id"
COUNT = "SELECT COUNT(*) AS count FROM budgets"
CHANGE = """
    UPDATE budgets
       SET name = :name, limit_amount = :limit_amount, soft_pct = :soft_pct, action = :action,
           override_amount = :override_amount, override_until = :override_until, override_reason = :override_reason,
           override_by = :override_by, version = version + 1
     WHERE id = :id
"""
FORGET_TOLD = "UPDATE budget_periods SET soft_at = NULL, exceeded_at = NULL WHERE budget_id = :id"
REMOVE = "DELETE FROM budgets WHERE id = :id"
REMOVE_PERIODS = "DELETE FROM budget_periods WHERE budget_id = :id"
REMOVE_HOLDS = "DELETE FROM budget_holds WHERE budget_id = :id"
OF_PERIOD = """
    SELECT spent, reserved, soft_at, exceeded_at FROM budget_periods
     WHERE budget_id = :budget_id AND begins_at = :begins_at
"""
BEGIN_PERIOD = """
    INSERT INTO budget_periods (budget_id, begins_at) VALUES (:budget_id, :begins_at)
    ON CONFLICT (budget_id, begins_at) DO NOTHING
"""
FORGET_PERIODS = "DELETE FROM budget_periods WHERE budget_id = :budget_id AND begins_at < :before AND reserved = 0"
MOVE = """
    UPDATE budget_periods SET spent = spent + :spent, reserved = reserved + :reserved
     WHERE budget_id = :budget_id AND begins_at = :begins_at
"""
NOTE_SOFT = "UPDATE budget_periods SET soft_at = :now_at WHERE budget_id = :budget_id AND begins_at = :begins_at"
NOTE_EXCEEDED = """
    UPDATE budget_periods SET exceeded_at = :now_at WHERE budget_id = :budget_id AND begins_at = :begins_at
"""
HOLD = """
    INSERT INTO budget_holds (id, budget_id, begins_at, amount, held_at)
    VALUES (:id, :budget_id, :begins_at, :amount, :held_at)
"""
HELD_BY = "SELECT budget_id, begins_at, amount FROM budget_holds WHERE id = :id"
LET_GO = "DELETE FROM budget_holds WHERE id = :id"
ORPHANS = "SELECT DISTINCT id FROM budget_holds WHERE held_at < :before LIMIT :limit"
_KEEP_MS = 400 * 86_400_000


class BudgetRepository:
    """The tables of budgets."""

    def insert(self, tx: AuthorityTransaction, budget: Budget) -> None:
        """Insert a budget. Holds in every process once committed."""
        made = {"created_at": budget.created_at, "created_by": budget.created_by, "version": budget.version}
        tx.change(INSERT, _values(budget) | made)

    def all(self, tx: Transaction) -> tuple[Budget, ...]:
        """Return all budgets, oldest first."""
        return tuple(_budget(row) for row in tx.query(ALL))

    def count(self, tx: Transaction) -> int:
        """Return how many budgets there are."""
        return int(tx.query(COUNT)[0]["count"])

    def by_id(self, tx: Transaction, budget_id: str) -> Budget | None:
        """Return the budget of this id."""
        rows = tx.query(BY_ID, {"id": budget_id})
        return _budget(rows[0]) if rows else None

    def change(self, tx: AuthorityTransaction, budget: Budget, *, has_room: bool) -> None:
        """Write name, limits, action and override, and raise the version. Holds in every process once committed.

        has_room: whether there is more room than before, so that what was told of this period may be told again.
        """
        tx.change(CHANGE, _values(budget))
        if has_room:
            tx.execute(FORGET_TOLD, {"id": budget.id})

    def remove(self, tx: AuthorityTransaction, budget_id: str) -> None:
        """Delete a budget, its periods, and what is held of it."""
        tx.change(REMOVE, {"id": budget_id})
        tx.execute(REMOVE_PERIODS, {"id": budget_id})
        tx.execute(REMOVE_HOLDS, {"id": budget_id})

    def standing(self, tx: Transaction, budget: Budget, at: int) -> Standing:
        """Return how a budget stands in the period in which `at` lies."""
        return self._standing(tx, budget, period_of(budget.window, at))

    def reserve(self, tx: Transaction, hold_id: str, standing: Standing, amount: int, *, now_at: int) -> bool:
        """Hold `amount` of a budget under `hold_id`; tell whether it is the first of the period.

        Whether there is room is not looked at.
        """
        place = _place(standing)
        if not standing.has_begun:
            tx.execute(BEGIN_PERIOD, place)
            tx.execute(FORGET_PERIODS, {"budget_id": standing.budget.id, "before": now_at - _KEEP_MS})
        tx.execute(MOVE, place | {"spent": 0, "reserved": amount})
        tx.execute(HOLD, place | {"id": hold_id, "amount": amount, "held_at": now_at})
        return not standing.has_begun

    def let_go(self, tx: Transaction, hold_id: str) -> tuple[Hold, ...]:
        """Give back all that is held under `hold_id` and return what that was; nothing the second time."""
        holds = tuple(
            Hold(row["budget_id"], row["begins_at"], row["amount"]) for row in tx.query(HELD_BY, {"id": hold_id})
        )
        for hold in holds:
            place = {"budget_id": hold.budget_id, "begins_at": hold.begins_at}
            tx.execute(MOVE, place | {"spent": 0, "reserved": -hold.amount})
        if holds:
            tx.execute(LET_GO, {"id": hold_id})
        return holds

    def spend(self, tx: Transaction, budget: Budget, begins_at: int, amount: int) -> Standing:
        """Add `amount` to what is spent in the period that begins at `begins_at`; return how it stands then."""
        place = {"budget_id": budget.id, "begins_at": begins_at}
        if not tx.execute(MOVE, place | {"spent": amount, "reserved": 0}):
            tx.execute(BEGIN_PERIOD, place)
            tx.execute(MOVE, place | {"spent": amount, "reserved": 0})
        return self._standing(tx, budget, period_of(budget.window, begins_at))

    def note_told(self, tx: Transaction, standing: Standing, *, is_soft: bool, now_at: int) -> None:
        """Remember that the limit, or the soft one, was told of in this period."""
        tx.execute(BEGIN_PERIOD, _place(standing))
        tx.execute(NOTE_SOFT if is_soft else NOTE_EXCEEDED, _place(standing) | {"now_at": now_at})

    def orphans(self, tx: Transaction, *, before: int, limit: int) -> Sequence[str]:
        """Return ids under which something has been held since before `before`."""
        return [row["id"] for row in tx.query(ORPHANS, {"before": before, "limit": limit})]

    def _standing(self, tx: Transaction, budget: Budget, period: Period) -> Standing:
        rows = tx.query(OF_PERIOD, {"budget_id": budget.id, "begins_at": period.begins_at})
        if not rows:
            return Standing(budget, period)
        row = rows[0]
        return Standing(budget, period, row["spent"], row["reserved"], row["soft_at"], row["exceeded_at"], True)


def _place(standing: Standing) -> dict[str, object]:
    return {"budget_id": standing.budget.id, "begins_at": standing.period.begins_at}


def _values(budget: Budget) -> dict[str, object]:
    override = budget.override
    return {
        "id": budget.id,
        "name": budget.name,
        "scope": budget.scope.value,
        "scope_value": budget.scope_value,
        "unit": budget.unit.value,
        "limit_amount": budget.limit_amount,
        "period": budget.window.value,
        "soft_pct": budget.soft_pct,
        "action": budget.action.value,
        "override_amount": override.amount if override else None,
        "override_until": override.until_at if override else None,
        "override_reason": override.reason if override else None,
        "override_by": override.by if override else None,
    }


def _budget(row: Row) -> Budget:
    override = None
    if row["override_amount"] is not None:
        override = Override(
            amount=row["override_amount"],
            until_at=row["override_until"],
            reason=row["override_reason"],
            by=row["override_by"],
        )
    return Budget(
        id=row["id"],
        name=row["name"],
        scope=BudgetScope(row["scope"]),
        scope_value=row["scope_value"],
        lineage=row["lineage"],
        unit=BudgetUnit(row["unit"]),
        limit_amount=row["limit_amount"],
        window=BudgetWindow(row["period"]),
        soft_pct=row["soft_pct"],
        action=BudgetAction(row["action"]),
        override=override,
        created_at=row["created_at"],
        created_by=row["created_by"],
        version=row["version"],
    )
