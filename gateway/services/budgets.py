"""Keep budgets and the overrides of their limits, and show their state. `spending` reserves and settles."""

from dataclasses import dataclass, field, replace
from typing import Annotated

from gateway import field_types
from gateway.domain.budgets import (
    DEFAULT_SOFT_PCT,
    MAX_AMOUNT,
    MAX_BUDGETS,
    MICRO,
    Budget,
    BudgetAction,
    BudgetScope,
    BudgetUnit,
    BudgetWindow,
    Override,
    Standing,
)
from gateway.domain.prices import to_micro
from gateway.domain.principals import Caller
from gateway.errors import Conflict, InvalidRequest
from gateway.schema import Bounds, check
from gateway.services.resource import Resource, as_conflict, check_future, find_key, patched
from gateway.services.spending import Spending
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

MAX_NAME_CHARS = 100
MAX_VALUE_CHARS = 256
MAX_REASON_CHARS = 500
MAX_OVERRIDE_DAYS = 366

Amount = Annotated[float, Bounds(0, MAX_AMOUNT)]
Percent = Annotated[int, Bounds(1, 100)]
Reason = Annotated[str, field_types.line(MAX_REASON_CHARS)]
Name = Annotated[str, field_types.line(MAX_NAME_CHARS, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedBudget:
    """A budget to create. limit: in the unit; dollars are rounded to a millionth."""

    limit: Amount
    unit: BudgetUnit = BudgetUnit.USD
    scope: BudgetScope = BudgetScope.GLOBAL
    scope_value: Annotated[str, field_types.line(MAX_VALUE_CHARS)] | None = None
    window: BudgetWindow = BudgetWindow.DAY
    soft_pct: Percent = DEFAULT_SOFT_PCT
    action: BudgetAction = BudgetAction.BLOCK
    name: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBudget:
    """Changes of a budget; None leaves a field as it is. Unit, scope and window never change."""

    limit: Amount | None = None
    soft_pct: Percent | None = None
    action: BudgetAction | None = None
    name: Name | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedOverride:
    """A higher limit until a time. limit: in the budget's unit."""

    limit: Amount
    until_at: field_types.UntilInAYear = field(metadata={"json_name": "until"})
    reason: Reason
    version: int | None = None


class Budgets(Resource[Budget]):
    """The budgets of this gateway. A new one counts requests from now on; a changed one keeps what was spent."""

    noun, nouns = "budget", "budgets"
    most = MAX_BUDGETS
    audited = ("name", "scope", "scope_value", "unit", "window", "soft_pct", "action")

    spending: Spending

    async def standings(self) -> tuple[Standing, ...]:
        """Return the state of every budget in its period, oldest budget first."""
        return await self.store.db.read(lambda tx: tuple(self._result(tx, one) for one in self.store.budgets.all(tx)))

    async def standing(self, name: str) -> Standing:
        """Return the state of one budget. Raises NotFound."""
        return await self.store.db.read(lambda tx: self._result(tx, self.find(tx, name)))

    def _made(self, tx: AuthorityTransaction, new: WantedBudget) -> Budget:
        value = (new.scope_value or "").strip() or None
        if new.scope is BudgetScope.GLOBAL and value:
            raise InvalidRequest("A global budget has no scope_value.", param="scope_value")
        if new.scope is not BudgetScope.GLOBAL and not value:
            raise InvalidRequest(f"scope_value must name the {new.scope.value}.", param="scope_value")
        amount = amount_of(new.limit, new.unit)
        if new.scope is BudgetScope.KEY:
            value = find_key(self.store, tx, value or "", param="scope_value").id
        blank = Budget(**self._born("bud", tx.caller.principal), limit_amount=amount)
        return patched(blank, new, name=new.name.strip(), scope_value=value)

    def _changed(self, tx: AuthorityTransaction, before: Budget, changes: ChangedBudget) -> Budget:
        with as_conflict():  # the unit of the budget forbids the limit
            limit = before.limit_amount if changes.limit is None else amount_of(changes.limit, before.unit)
        name = before.name if changes.name is None else changes.name.strip()
        return patched(before, changes, name=name, limit_amount=limit)

    def _result(self, tx: Transaction, record: Budget) -> Standing:
        return self.store.budgets.standing(tx, record, self.clock.now_at())

    async def override(self, caller: Caller, name: str, wanted: WantedOverride | None) -> Standing:
        """Raise the limit until a time, or end the override with None. The audit log keeps who did it and why.

        Raises:
            InvalidRequest: the time is not in the future, or the reason is empty. NotFound: there is none.
            Conflict: the limit is not higher, or not one of this unit; another version.
            AuditUnavailable: nothing was changed.
        """
        if wanted is not None:
            check(wanted)

        def changed(before: Budget) -> Budget:
            if wanted is None:
                return replace(before, override=None)
            with as_conflict():
                amount = amount_of(wanted.limit, before.unit)
            if amount <= before.limit_amount:
                raise Conflict("An override must be higher than the limit of the budget.", param="limit")
            check_future(wanted.until_at, self.clock.now_at(), param="until", days=MAX_OVERRIDE_DAYS)
            reason, by = wanted.reason.strip(), caller.principal.name
            return replace(before, override=Override(amount=amount, until_at=wanted.until_at, reason=reason, by=by))

        version, action = (wanted.version, "overridden") if wanted else (None, "override_ended")
        return await self.audit.commit_authority(
            caller, lambda tx: self._result(tx, self._update(tx, name, version, changed, action))
        )

    async def remove(self, caller: Caller, name: str) -> Standing:
        """Remove a budget with its counts, and return its last state. Raises as `Resource.remove`."""

        def work(tx: AuthorityTransaction) -> Standing:
            standing = self._result(tx, self.find(tx, name))
            self.store.budgets.remove(tx, name)
            self.spending.end_alerts(tx, name, self.clock.now_at(), "The budget was removed.")
            before = self._shown(standing.budget) | {"spent": standing.spent}
            self._append(tx, "removed", name, before=before)
            return standing

        return await self.audit.commit_authority(caller, work)

    def _write(self, tx: AuthorityTransaction, before: Budget, after: Budget) -> None:
        now_at = self.clock.now_at()
        has_room = after.effective_amount(now_at) > before.effective_amount(now_at)
        self.store.budgets.change(tx, after)
        if has_room:
            self.store.budgets.forget_alerts(tx, after.id)
            self.spending.end_alerts(tx, after.id, now_at, "The limit was raised.")

    def _shown(self, record: Budget) -> dict[str, object]:
        shown = super()._shown(record) | {"limit": shown_amount(record.limit_amount, record.unit)}
        if record.override is not None:
            limit = shown_amount(record.override.amount, record.unit)
            shown["override"] = {"limit": limit, "until": record.override.until_at, "reason": record.override.reason}
        return shown


def amount_of(limit: float, unit: BudgetUnit) -> int:
    """Return a limit as a whole number of micro-dollars, tokens or requests. Raises InvalidRequest if it is none."""
    if unit is BudgetUnit.USD:
        return to_micro(limit, param="limit", most=MAX_AMOUNT // MICRO)
    if not 0 <= limit <= MAX_AMOUNT or limit != int(limit):
        raise InvalidRequest(f"limit must be a whole number from 0 to {MAX_AMOUNT}.", param="limit")
    return int(limit)


def shown_amount(amount: int, unit: BudgetUnit) -> float:
    """Return an amount as the API writes it: dollars with up to six decimals, or a whole number."""
    return amount / MICRO if unit is BudgetUnit.USD else amount
