"""Reserve the worst case in every budget before a prompt is sent, and settle the real cost afterwards.

Requests that run side by side never overrun a budget: each reserves the most it can cost, and is refused if that is no
longer there. Reserving is one transaction over all budgets that cover the request, in the database's one writer, so it
is exact over all processes. It does not wait for the disk: a power cut ends the request as well, and a job releases
what it held. Settling belongs to the transaction that records the completion. While no budget covers a request, all it
costs is a look at an empty list.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from gateway.domain.alerts import AlertSource, fingerprint
from gateway.domain.budgets import HOLD_SECONDS, BudgetAction, BudgetScope, Spender, Standing, Usage
from gateway.errors import BudgetExceeded
from gateway.services.alerts import Alerts
from gateway.services.core import Service
from gateway.shield.detections import Severity
from gateway.store.database import Transaction

SOFT_RULE = "budget-soft-limit"
EXCEEDED_RULE = "budget-exceeded"
UNKNOWN_PRICE_RULE = "unknown-price"
_MOST_UNPRICED = 1000
_ORPHANS_A_TURN = 500


class OverBudget(BudgetExceeded):
    """A budget has less left than a completion may cost. standing: how it stood."""

    def __init__(self, standing: Standing, now_at: int) -> None:
        budget = standing.budget
        super().__init__(
            f"The {budget.window} budget {budget.id} has not enough left for what this request may cost at most.",
            retry_after_seconds=max(1, -(-(standing.period.ends_at - now_at) // 1000)),
        )
        self.standing = standing


@dataclass(slots=True)
class Reservation:
    """What one completion takes from budgets.

    worst: what it can cost at most. held: ids of the budgets, and when their periods began; empty until taken.
    """

    id: str
    worst: Usage
    held: tuple[tuple[str, int], ...] = ()


class Spending(Service):
    """Takes from budgets and gives back. Creates and changes no budget."""

    alerts: Alerts
    _unpriced: set[str] = field(default_factory=set, init=False)

    def any(self) -> bool:
        """Tell whether there is any budget at all. Raises StoreUnavailable: none were read yet."""
        return bool(self.store.authority.now.budgets)

    def covering(self, spender: Spender) -> tuple[str, ...]:
        """Return the ids of the budgets that cover `spender`."""
        return tuple(budget.id for budget in self.store.authority.now.budgets if budget.covers(spender))

    async def reserve(self, reservation: Reservation, budget_ids: Collection[str]) -> None:
        """Take the worst case from all these budgets, or from none of them.

        Raises:
            OverBudget: one has less left. Nothing was taken. Of several, the one that waits longest.
            StoreUnavailable: nothing was taken.
        """
        worst = reservation.worst

        def work(tx: Transaction) -> tuple[tuple[str, int], ...]:
            now_at = tx.now_at()
            standings = self._standings(tx, budget_ids, now_at)
            short = [
                standing
                for standing in standings
                if standing.budget.action is BudgetAction.BLOCK
                and not standing.has_room(worst.amount(standing.budget.unit), now_at)
            ]
            if short:
                raise OverBudget(max(short, key=lambda standing: standing.period.ends_at), now_at)
            for standing in standings:
                amount = worst.amount(standing.budget.unit)
                if self.store.budgets.reserve(tx, reservation.id, standing, amount, now_at=now_at):
                    self.end_alerts(tx, standing.budget.id, now_at, "A new period has begun.")
            return tuple((standing.budget.id, standing.period.begins_at) for standing in standings)

        reservation.held = await self.store.db.write(work, is_durable=False)

    def settle(self, tx: Transaction, reservation: Reservation, used: Usage | None, providers: Collection[str]) -> None:
        """Release in `tx` what was taken and add `used`; None if nothing was used.

        providers: ids and names of the providers that may be paid; a budget of another provider pays nothing. The job
        for orphans may have released the hold already.
        """
        self.store.budgets.release(tx, reservation.id)
        if used is None:
            return
        now_at = self.clock.now_at()
        for budget_id, begins_at in reservation.held:
            budget = self.store.budgets.by_id(tx, budget_id)
            if budget is None or (budget.scope is BudgetScope.PROVIDER and budget.scope_value not in providers):
                continue
            standing = self.store.budgets.spend(tx, budget, begins_at, used.amount(budget.unit))
            self._raise_alerts(tx, standing, now_at)

    def refused(self, tx: Transaction, error: OverBudget) -> None:
        """Raise in `tx`, once in a period, the alert that a budget refuses."""
        now_at = self.clock.now_at()
        for standing in self._standings(tx, (error.standing.budget.id,), now_at):
            if standing.exceeded_at is None:
                self._raise(tx, standing, now_at, "Requests are refused until the period ends.")

    def unpriced(self, model: str | None, used: Usage | None) -> str | None:
        """Return the model if its price is unknown and this process has raised no alert of it yet."""
        is_unknown = used is not None and used.microusd is None and model not in self._unpriced
        return model if is_unknown else None

    def note_unpriced(self, tx: Transaction, model: str, occurred_at: int) -> None:
        """Raise in `tx` the alert that the price of a model is unknown, unless there is one."""
        if len(self._unpriced) < _MOST_UNPRICED:
            tx.after_commit(lambda: self._unpriced.add(model))
        if self.store.alerts.latest(tx, fingerprint(AlertSource.BUDGET, UNKNOWN_PRICE_RULE, model)) is not None:
            return
        self.alerts.raise_event(
            tx,
            source=AlertSource.BUDGET,
            rule=UNKNOWN_PRICE_RULE,
            severity=Severity.LOW,
            title=f"Nobody knows what {model} costs",
            description="It is counted in tokens, and costs budgets of dollars nothing. Give its provider a price.",
            subject=model,
            occurred_at=occurred_at,
        )

    def end_alerts(self, tx: Transaction, budget_id: str, now_at: int, resolution: str) -> None:
        """Resolve in `tx` the alerts of a budget that has room again."""
        for rule in (SOFT_RULE, EXCEEDED_RULE):
            self.alerts.end_event(
                tx,
                source=AlertSource.BUDGET,
                rule=rule,
                subject=budget_id,
                occurred_at=now_at,
                resolution=resolution,
            )

    async def release_orphans(self) -> None:
        """Release what requests reserved whose process died, so that nobody settles them.

        Raises:
            StoreUnavailable: the next time may do.
        """
        orphans = await self.store.db.read(
            lambda tx: self.store.budgets.orphans(tx, before=tx.now_at() - HOLD_SECONDS * 1000, limit=_ORPHANS_A_TURN)
        )
        if orphans:
            await self.store.db.write(lambda tx: [self.store.budgets.release(tx, one) for one in orphans])

    def _standings(self, tx: Transaction, budget_ids: Collection[str], now_at: int) -> list[Standing]:
        """Return how these budgets stand, read afresh: a limit may have been changed a moment ago."""
        found = (self.store.budgets.by_id(tx, budget_id) for budget_id in budget_ids)
        return [self.store.budgets.standing(tx, budget, now_at) for budget in found if budget is not None]

    def _raise_alerts(self, tx: Transaction, standing: Standing, now_at: int) -> None:
        """Raise each alert of a budget once in a period."""
        if standing.spent > standing.budget.effective_amount(now_at):
            if standing.exceeded_at is None:
                self._raise(tx, standing, now_at, "More was spent than its limit.")
        elif standing.soft_at is None and standing.is_soft(now_at):
            self._raise(tx, standing, now_at, "It still has room.", is_soft=True)

    def _raise(self, tx: Transaction, standing: Standing, now_at: int, what: str, *, is_soft: bool = False) -> None:
        budget = standing.budget
        self.store.budgets.mark_alerted(tx, standing, is_soft=is_soft, now_at=now_at)
        covered = budget.scope.value + (f" {budget.scope_value}" if budget.scope_value else "")
        self.alerts.raise_event(
            tx,
            source=AlertSource.BUDGET,
            rule=SOFT_RULE if is_soft else EXCEEDED_RULE,
            severity=Severity.MEDIUM if is_soft else Severity.HIGH,
            title=f"A budget is {budget.soft_pct} % spent" if is_soft else "A budget is used up",
            description=f"Budget {budget.name or budget.id} ({covered}, {budget.unit} a {budget.window}). {what}",
            subject=budget.id,
            occurred_at=now_at,
            evidence=(
                {
                    "budget": budget.id,
                    "unit": budget.unit.value,
                    "limit": budget.effective_amount(now_at),
                    "spent": standing.spent,
                    "reserved": standing.reserved,
                    "resets_at": standing.period.ends_at,
                },
            ),
        )
