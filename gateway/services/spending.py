"""Take the worst case from every budget before a prompt leaves, and put the real one in its place afterwards.

Theory of operation. A budget is never overrun by requests that run side by side, because each takes what it can cost
at most before it is sent, and is refused when that is no longer there. Taking is one transaction over all budgets that
cover the request, in the database's one writer, so it is exact over all processes of the host. It is visible to all of
them at once, but the disk is not waited for: a power cut ends the request as well, and what it held would have been
given back anyway. Settling is part of the transaction that records the completion, which does wait for the disk.

While no budget covers a request, all it costs is a comparison of two integers.
"""

from collections.abc import Collection
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.alerts import AlertSource
from gateway.domain.budgets import (
    HOLD_SECONDS,
    Budget,
    BudgetAction,
    BudgetScope,
    Spender,
    Standing,
    Usage,
)
from gateway.errors import BudgetExceeded
from gateway.services.alerts import Alerts
from gateway.shield.detections import Severity
from gateway.store.database import Transaction
from gateway.store.store import Store

SOFT_RULE = "budget-soft-limit"
EXCEEDED_RULE = "budget-exceeded"
_ORPHANS_A_TURN = 500


class OverBudget(BudgetExceeded):
    """A budget has not enough left for what a completion may cost. standing: how it stood."""

    def __init__(self, standing: Standing, now_at: int) -> None:
        budget = standing.budget
        super().__init__(
            f"The {budget.window} budget {budget.id} has not enough left for what this request may cost at most.",
            retry_after_seconds=max(1, -(-(standing.period.ends_at - now_at) // 1000)),
        )
        self.standing = standing


@dataclass(frozen=True, slots=True)
class Held:
    """A budget from which something was taken, and the beginning of its period then."""

    budget_id: str
    begins_at: int


class Spending:
    """The budgets at work. Makes and changes none."""

    def __init__(self, *, store: Store, clock: Clock, alerts: Alerts) -> None:
        self._store = store
        self._clock = clock
        self._alerts = alerts
        self._known: tuple[Budget, ...] = ()
        self._generation = -1

    def any(self) -> bool:
        """Tell whether there is any budget at all.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        generation = self._store.generation.value()
        if generation != self._generation:
            self._known = self._store.db.read_now(self._store.budgets.all)
            self._generation = generation
        return bool(self._known)

    def covering(self, spender: Spender) -> tuple[str, ...]:
        """Return the ids of the budgets that cover `spender`. `any` comes first."""
        return tuple(budget.id for budget in self._known if budget.covers(spender))

    async def reserve(self, hold_id: str, budget_ids: Collection[str], worst: Usage) -> tuple[Held, ...]:
        """Take `worst` from all these budgets under `hold_id`, or from none of them.

        Raises:
            OverBudget: one has less left. Nothing was taken. Of several, the one that waits longest.
            StoreUnavailable: nothing was taken.
        """
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> tuple[Held, ...]:
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
                if self._store.budgets.reserve(tx, hold_id, standing, amount, now_at=now_at):
                    self.end_alerts(tx, standing.budget.id, now_at, "A new period has begun.")
            return tuple(Held(standing.budget.id, standing.period.begins_at) for standing in standings)

        return await self._store.db.write(work, is_durable=False)

    def settle(
        self, tx: Transaction, hold_id: str, held: Collection[Held], actual: Usage | None, providers: Collection[str]
    ) -> None:
        """Give back in `tx` what was taken under `hold_id` and add what was used. actual: None when nothing was.

        providers: id and name of the one that answered; a budget of another one is given all back. Also right when
        what was held was taken for an orphan's meanwhile.
        """
        self._store.budgets.let_go(tx, hold_id)
        if actual is None:
            return
        now_at = self._clock.now_at()
        for one in held:
            budget = self._store.budgets.by_id(tx, one.budget_id)
            if budget is None or (budget.scope is BudgetScope.PROVIDER and budget.scope_value not in providers):
                continue
            standing = self._store.budgets.spend(tx, budget, one.begins_at, actual.amount(budget.unit))
            self._tell(tx, standing, now_at)

    def refused(self, tx: Transaction, error: OverBudget) -> None:
        """Tell in `tx`, once in a period, that a budget refuses."""
        now_at = self._clock.now_at()
        budget = self._store.budgets.by_id(tx, error.standing.budget.id)
        if budget is not None:
            standing = self._store.budgets.standing(tx, budget, now_at)
            if standing.exceeded_at is None:
                self._tell_exceeded(tx, standing, now_at, "Requests are refused until the period ends.")

    def end_alerts(self, tx: Transaction, budget_id: str, now_at: int, resolution: str) -> None:
        """Resolve in `tx` the alerts of a budget that has room again."""
        for rule in (SOFT_RULE, EXCEEDED_RULE):
            self._alerts.end_event(
                tx,
                source=AlertSource.BUDGET,
                rule=rule,
                subject=budget_id,
                occurred_at=now_at,
                resolution=resolution,
            )

    async def release_orphans(self) -> None:
        """Give back what is held by requests that nobody settles any more: their process died.

        Raises:
            StoreUnavailable: the next time may do.
        """
        if not self.any():
            return
        before = self._clock.now_at() - HOLD_SECONDS * 1000
        orphans = await self._store.db.read(
            lambda tx: self._store.budgets.orphans(tx, before=before, limit=_ORPHANS_A_TURN)
        )
        if orphans:
            await self._store.db.write(lambda tx: [self._store.budgets.let_go(tx, one) for one in orphans])

    def _standings(self, tx: Transaction, budget_ids: Collection[str], now_at: int) -> list[Standing]:
        """Return how these budgets stand, read afresh: a limit may have been changed a moment ago."""
        found = (self._store.budgets.by_id(tx, budget_id) for budget_id in budget_ids)
        return [self._store.budgets.standing(tx, budget, now_at) for budget in found if budget is not None]

    def _tell(self, tx: Transaction, standing: Standing, now_at: int) -> None:
        """Raise each alert of a budget once in a period."""
        if standing.spent > standing.budget.effective_amount(now_at):
            if standing.exceeded_at is None:
                self._tell_exceeded(tx, standing, now_at, "More was spent than its limit.")
        elif standing.soft_at is None and standing.is_soft(now_at):
            self._store.budgets.note_told(tx, standing, is_soft=True, now_at=now_at)
            title = f"A budget is {standing.budget.soft_pct} % spent"
            self._raise(tx, SOFT_RULE, Severity.MEDIUM, title, "It still has room.", standing, now_at)

    def _tell_exceeded(self, tx: Transaction, standing: Standing, now_at: int, what: str) -> None:
        self._store.budgets.note_told(tx, standing, is_soft=False, now_at=now_at)
        self._raise(tx, EXCEEDED_RULE, Severity.HIGH, "A budget is used up", what, standing, now_at)

    def _raise(
        self, tx: Transaction, rule: str, severity: Severity, title: str, what: str, standing: Standing, now_at: int
    ) -> None:
        budget = standing.budget
        covered = budget.scope.value + (f" {budget.scope_value}" if budget.scope_value else "")
        self._alerts.raise_event(
            tx,
            source=AlertSource.BUDGET,
            rule=rule,
            severity=severity,
            title=title,
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
