"""Store budgets, their periods, and the reservations of requests."""

from collections.abc import Sequence

from gateway.domain.budgets import Budget, Hold, Override, Standing, period_of
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction, insert_into
from gateway.store.table import AuthorityTable, Table

OVERRIDE = ("override_amount", "override_until", "override_reason", "override_by")
LINEAGE = "(SELECT lineage FROM api_keys WHERE budgets.scope = 'key' AND id = budgets.scope_value) AS lineage"
FORGET_ALERTS = "UPDATE budget_periods SET soft_at = NULL, exceeded_at = NULL WHERE budget_id = :id"
OF_PERIOD = """
    SELECT spent, reserved, soft_at, exceeded_at FROM budget_periods
     WHERE budget_id = :budget_id AND begins_at = :begins_at
"""
BEGIN_PERIOD = insert_into("budget_periods", ("budget_id", "begins_at")) + " ON CONFLICT DO NOTHING"
FORGET_PERIODS = "DELETE FROM budget_periods WHERE budget_id = :budget_id AND begins_at < :before AND reserved = 0"
MOVE = """
    UPDATE budget_periods SET spent = spent + :spent, reserved = reserved + :reserved
     WHERE budget_id = :budget_id AND begins_at = :begins_at
"""
HOLDS = Table("budget_holds", Hold, extra=("id", "held_at"))
ORPHANS = "SELECT DISTINCT id FROM budget_holds WHERE held_at < :before LIMIT :limit"
_KEEP_MS = 400 * 86_400_000


class BudgetRepository(AuthorityTable[Budget]):
    """The tables of budgets. The lineage of a budget is that of its key."""

    def __init__(self) -> None:
        super().__init__(
            "budgets",
            Budget,
            columns={"window": "period", "lineage": None, "override": None},
            extra=OVERRIDE,
            changes=("name", "limit_amount", "soft_pct", "action"),
        )

    def select(self, rest: str = "") -> str:
        return f"SELECT {self.names}, {', '.join(OVERRIDE)}, {LINEAGE} FROM budgets {rest}"  # noqa: S608

    def params(self, record: Budget) -> dict[str, object]:
        one = record.override
        values = (None,) * len(OVERRIDE) if one is None else (one.amount, one.until_at, one.reason, one.by)
        return super().params(record) | dict(zip(OVERRIDE, values, strict=True))

    def record(self, row: Row, **others: object) -> Budget:
        amount, until_at, reason, by = (row[column] for column in OVERRIDE)
        override = None if amount is None else Override(amount=amount, until_at=until_at, reason=reason, by=by)
        return super().record(row, override=override, lineage=row["lineage"])

    def forget_alerts(self, tx: Transaction, budget_id: str) -> None:
        """Let the alerts of the periods be raised again, because the budget has more room."""
        tx.execute(FORGET_ALERTS, {"id": budget_id})

    def remove(self, tx: AuthorityTransaction, key: str) -> bool:
        tx.execute("DELETE FROM budget_periods WHERE budget_id = :id", {"id": key})
        tx.execute("DELETE FROM budget_holds WHERE budget_id = :id", {"id": key})
        return super().remove(tx, key)

    def standing(self, tx: Transaction, budget: Budget, at: int) -> Standing:
        period = period_of(budget.window, at)
        rows = tx.query(OF_PERIOD, {"budget_id": budget.id, "begins_at": period.begins_at})
        if not rows:
            return Standing(budget, period)
        row = rows[0]
        return Standing(budget, period, row["spent"], row["reserved"], row["soft_at"], row["exceeded_at"], True)

    def reserve(self, tx: Transaction, hold_id: str, standing: Standing, amount: int, *, now_at: int) -> bool:
        """Hold `amount` of a budget under `hold_id` and return whether it is the first hold of the period.

        Does not check whether there is room.
        """
        period = _period_of(standing)
        if not standing.has_begun:
            tx.execute(BEGIN_PERIOD, period)
            tx.execute(FORGET_PERIODS, {"budget_id": standing.budget.id, "before": now_at - _KEEP_MS})
        tx.execute(MOVE, period | {"spent": 0, "reserved": amount})
        hold = Hold(standing.budget.id, standing.period.begins_at, amount)
        HOLDS.insert(tx, hold, id=hold_id, held_at=now_at)
        return not standing.has_begun

    def release(self, tx: Transaction, hold_id: str) -> tuple[Hold, ...]:
        """Release and return the holds of `hold_id`. A second call finds none."""
        holds = HOLDS.many(tx, "WHERE id = :id", id=hold_id)
        for hold in holds:
            period = {"budget_id": hold.budget_id, "begins_at": hold.begins_at}
            tx.execute(MOVE, period | {"spent": 0, "reserved": -hold.amount})
        if holds:
            tx.execute("DELETE FROM budget_holds WHERE id = :id", {"id": hold_id})
        return holds

    def spend(self, tx: Transaction, budget: Budget, begins_at: int, amount: int) -> Standing:
        """Add `amount` to the spending of the period that begins at `begins_at`, and return the new standing."""
        period = {"budget_id": budget.id, "begins_at": begins_at}
        if not tx.execute(MOVE, period | {"spent": amount, "reserved": 0}):
            tx.execute(BEGIN_PERIOD, period)
            tx.execute(MOVE, period | {"spent": amount, "reserved": 0})
        return self.standing(tx, budget, begins_at)

    def mark_alerted(self, tx: Transaction, standing: Standing, *, is_soft: bool, now_at: int) -> None:
        """Record that an alert about the limit, or the soft limit, was raised in this period."""
        tx.execute(BEGIN_PERIOD, _period_of(standing))
        column = "soft_at" if is_soft else "exceeded_at"
        sql = f"UPDATE budget_periods SET {column} = :now_at WHERE budget_id = :budget_id AND begins_at = :begins_at"  # noqa: S608
        tx.execute(sql, _period_of(standing) | {"now_at": now_at})

    def orphans(self, tx: Transaction, *, before: int, limit: int) -> Sequence[str]:
        """Return ids of holds that were taken before `before` and never released."""
        return [row["id"] for row in tx.query(ORPHANS, {"before": before, "limit": limit})]


def _period_of(standing: Standing) -> dict[str, object]:
    return {"budget_id": standing.budget.id, "begins_at": standing.period.begins_at}
