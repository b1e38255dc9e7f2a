"""Budgets kept: made, changed, raised for a while, removed, and how they stand. Spending from them is `spending`'s."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated

from gateway import field_types
from gateway.clock import Clock, Ids
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
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.schema import Bounds
from gateway.services.audit import Audit
from gateway.services.audit_trail import AuditTrail, check_version
from gateway.services.spending import Spending
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store

MAX_NAME_CHARS = 100
MAX_VALUE_CHARS = 256
MAX_REASON_CHARS = 500
MAX_OVERRIDE_MS = 366 * 86_400_000

Amount = Annotated[float, Bounds(0, MAX_AMOUNT)]
Percent = Annotated[int, Bounds(1, 100)]
Reason = Annotated[str, field_types.line(MAX_REASON_CHARS)]
Name = Annotated[str, field_types.line(MAX_NAME_CHARS, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedBudget:
    """What is said of a budget to be made. limit: in the unit; dollars are rounded to a millionth."""

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
    """What is to change of a budget; None leaves a field as it is. What it counts, and for whom, never changes."""

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


class Budgets:
    """The budgets of this gateway. Who may manage them is checked by the edges."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit, spending: Spending) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._spending = spending
        self._trail = AuditTrail(audit, "budget")

    async def list(self) -> tuple[Standing, ...]:
        """Return how every budget stands in its period, oldest budget first."""
        now_at = self._clock.now_at()

        def look(tx: Transaction) -> tuple[Standing, ...]:
            return tuple(self._store.budgets.standing(tx, one, now_at) for one in self._store.budgets.all(tx))

        return await self._store.db.read(look)

    async def show(self, budget_id: str) -> Standing:
        """Return how one budget stands.

        Raises:
            NotFound: there is none.
        """
        now_at = self._clock.now_at()
        return await self._store.db.read(lambda tx: self._store.budgets.standing(tx, self._find(tx, budget_id), now_at))

    async def create(self, principal: Principal, wanted: WantedBudget, context: RequestContext) -> Standing:
        """Make a budget. It counts from now on; what is on its way already is not counted.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: there is no such key, or there are too many budgets.
            AuditUnavailable: it was not made.
        """
        now_at = self._clock.now_at()
        budget = Budget(
            id=self._ids.new("bud"),
            name=_checked_name(wanted.name),
            scope=wanted.scope,
            scope_value=_checked_value(wanted),
            unit=wanted.unit,
            limit_amount=amount_of(wanted.limit, wanted.unit),
            window=wanted.window,
            soft_pct=_checked_pct(wanted.soft_pct),
            action=wanted.action,
            created_at=now_at,
            created_by=principal.name,
        )

        def work(tx: AuthorityTransaction) -> Standing:
            if self._store.budgets.count(tx) >= MAX_BUDGETS:
                raise Conflict(f"There are {MAX_BUDGETS} budgets; remove some first.")
            made = replace(budget, scope_value=self._key(tx, budget)) if budget.scope is BudgetScope.KEY else budget
            self._store.budgets.insert(tx, made)
            self._trail.note(tx, "budget_created", principal, context, id=made.id, after=_shown(made))
            return self._store.budgets.standing(tx, self._find(tx, made.id), now_at)

        return await self._audit.commit_authority(work)

    async def change(
        self, principal: Principal, budget_id: str, wanted: ChangedBudget, context: RequestContext
    ) -> Standing:
        """Change a budget; what holds already is left alone. What was spent in this period stays spent.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is none.
            Conflict: another version, or a limit that the unit of this budget cannot have.
            AuditUnavailable: nothing was changed.
        """

        def changed(before: Budget) -> Budget:
            return replace(
                before,
                name=before.name if wanted.name is None else _checked_name(wanted.name),
                limit_amount=before.limit_amount if wanted.limit is None else _amount(wanted.limit, before),
                soft_pct=before.soft_pct if wanted.soft_pct is None else _checked_pct(wanted.soft_pct),
                action=wanted.action or before.action,
            )

        return await self._change(principal, budget_id, wanted.version, changed, "budget_changed", context)

    async def override(
        self, principal: Principal, budget_id: str, wanted: WantedOverride | None, context: RequestContext
    ) -> Standing:
        """Raise the limit until a time, or with None end that early. Whoever did it, and why, is kept.

        Raises:
            InvalidRequest: the time is not to come, the reason empty. NotFound: there is none.
            Conflict: the limit is not higher, or none of this unit; another version.
            AuditUnavailable: nothing was changed.
        """
        now_at = self._clock.now_at()

        def changed(before: Budget) -> Budget:
            if wanted is None:
                return replace(before, override=None)
            amount = _amount(wanted.limit, before)
            if amount <= before.limit_amount:
                raise Conflict("An override must be higher than the limit of the budget.", param="limit")
            if not now_at < wanted.until_at <= now_at + MAX_OVERRIDE_MS:
                raise InvalidRequest("until must be in the future, at most a year from now.", param="until")
            reason = checked_reason(wanted.reason)
            return replace(
                before, override=Override(amount=amount, until_at=wanted.until_at, reason=reason, by=principal.name)
            )

        action = "budget_override_ended" if wanted is None else "budget_overridden"
        version = wanted.version if wanted else None
        return await self._change(principal, budget_id, version, changed, action, context)

    async def remove(self, principal: Principal, budget_id: str, context: RequestContext) -> Standing:
        """Remove a budget, with what was counted in it, and return how it stood.

        Raises:
            NotFound: there is none. AuditUnavailable: it is still there.
        """
        now_at = self._clock.now_at()

        def work(tx: AuthorityTransaction) -> Standing:
            standing = self._store.budgets.standing(tx, self._find(tx, budget_id), now_at)
            self._store.budgets.remove(tx, budget_id)
            self._spending.end_alerts(tx, budget_id, now_at, "The budget was removed.")
            before = _shown(standing.budget) | {"spent": standing.spent}
            self._trail.note(tx, "budget_removed", principal, context, id=budget_id, before=before)
            return standing

        return await self._audit.commit_authority(work)

    async def _change(
        self,
        principal: Principal,
        budget_id: str,
        version: int | None,
        changed: Callable[[Budget], Budget],
        action: str,
        context: RequestContext,
    ) -> Standing:
        now_at = self._clock.now_at()

        def work(tx: AuthorityTransaction) -> Standing:
            before = self._find(tx, budget_id)
            check_version(version, before.version, "budget")
            after = changed(before)
            if after != before:
                has_room = after.effective_amount(now_at) > before.effective_amount(now_at)
                self._store.budgets.change(tx, after, has_room=has_room)
                if has_room:
                    self._spending.end_alerts(tx, budget_id, now_at, "The limit was raised.")
                self._trail.note(
                    tx, action, principal, context, id=budget_id, before=_shown(before), after=_shown(after)
                )
            return self._store.budgets.standing(tx, self._find(tx, budget_id), now_at)

        return await self._audit.commit_authority(work)

    def _find(self, tx: Transaction, budget_id: str) -> Budget:
        budget = self._store.budgets.by_id(tx, budget_id)
        if budget is None:
            raise NotFound("There is no such budget.")
        return budget

    def _key(self, tx: Transaction, budget: Budget) -> str:
        """Return the id of the key that a budget names by id or prefix."""
        text = budget.scope_value or ""
        record = self._store.keys.by_id(tx, text)
        records = (record,) if record else self._store.keys.by_prefix(tx, text)
        if len(records) != 1:
            raise Conflict("scope_value must be the id or the prefix of one API key.", param="scope_value")
        return records[0].id


def amount_of(limit: float, unit: BudgetUnit) -> int:
    """Return a limit as a whole number of micro-dollars, tokens or requests.

    Raises:
        InvalidRequest: less than nothing, too much, or a part of a token or a request.
    """
    if unit is BudgetUnit.USD:
        return to_micro(limit, param="limit", most=MAX_AMOUNT // MICRO)
    if not 0 <= limit <= MAX_AMOUNT or limit != int(limit):
        raise InvalidRequest(f"limit must be a whole number from 0 to {MAX_AMOUNT}.", param="limit")
    return int(limit)


def _amount(limit: float, budget: Budget) -> int:
    """Return a limit for a budget that stands. That it fits another unit is for its sender to find out: Conflict."""
    try:
        return amount_of(limit, budget.unit)
    except InvalidRequest as error:
        raise Conflict(error.message, param=error.param) from None


def shown_amount(amount: int, unit: BudgetUnit) -> float:
    """Return an amount as the API writes it: dollars with up to six decimals, or a whole number."""
    return amount / MICRO if unit is BudgetUnit.USD else amount


def checked_reason(text: str) -> str:
    """Return a reason without blanks around it.

    Raises:
        InvalidRequest: it is empty, too long or not printable.
    """
    reason = text.strip()
    if not 1 <= len(reason) <= MAX_REASON_CHARS or not field_types.is_line(reason):
        raise InvalidRequest(f"reason must be 1 to {MAX_REASON_CHARS} printable characters.", param="reason")
    return reason


def _checked_name(text: str) -> str:
    name = text.strip()
    if len(name) > MAX_NAME_CHARS or not field_types.is_line(name):
        raise InvalidRequest(f"name must be at most {MAX_NAME_CHARS} printable characters.", param="name")
    return name


def _checked_value(wanted: WantedBudget) -> str | None:
    value = (wanted.scope_value or "").strip()
    if wanted.scope is BudgetScope.GLOBAL:
        if value:
            raise InvalidRequest("A global budget has no scope_value.", param="scope_value")
        return None
    if not 1 <= len(value) <= MAX_VALUE_CHARS or not field_types.is_line(value):
        raise InvalidRequest(
            f"scope_value must name the {wanted.scope.value}, in at most {MAX_VALUE_CHARS} printable characters.",
            param="scope_value",
        )
    return value


def _checked_pct(soft_pct: int) -> int:
    if not 1 <= soft_pct <= 100:
        raise InvalidRequest("soft_pct must be 1 to 100.", param="soft_pct")
    return soft_pct


def _shown(budget: Budget) -> dict[str, object]:
    """Return what the audit log keeps of a budget."""
    override = budget.override
    shown: dict[str, object] = {
        "name": budget.name,
        "scope": budget.scope,
        "scope_value": budget.scope_value,
        "unit": budget.unit,
        "limit": shown_amount(budget.limit_amount, budget.unit),
        "window": budget.window,
        "soft_pct": budget.soft_pct,
        "action": budget.action,
    }
    if override is not None:
        shown["override"] = {
            "limit": shown_amount(override.amount, budget.unit),
            "until": override.until_at,
            "reason": override.reason,
        }
    return shown
