"""The tool that reads, sets and removes budgets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.budgets import DEFAULT_SOFT_PCT, Budget, BudgetScope, BudgetUnit, BudgetWindow, Standing
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import UntilInAYear
from gateway.mcp.tool import Tool, ToolOutput, one_line
from gateway.operations.budgets import BudgetView, view_budget
from gateway.schema import Bounds, encode, json_schema
from gateway.services.budgets import ChangedBudget, Reason, WantedBudget, WantedOverride
from gateway.strict_json import write_time

_MOST_NAMED = 10
_PLACE = ("scope", "scope_value", "unit", "window")
_LIMIT = ("limit", "daily_limit_usd")
_Percent = Annotated[int, Bounds(1, 100)]
_Action = Literal["list", "get", "set", "create", "delete", "override"]


@dataclass(frozen=True, slots=True)
class ManageBudget:
    """What to do with which budget. One is named by id, or by scope, scope_value, unit and window.

    get, set and create take the default for what is left out of the four; for delete and override any budget matches.
    """

    action: Annotated[
        _Action,
        "list (default); get; set: change the limit of the budget that is named, or make it; create: needs limit; "
        "delete: needs id or scope; override: a higher limit until a time, needs id or scope, and limit.",
    ] = "list"
    daily_limit_usd: Annotated[float | None, "The limit, with unit usd and window day."] = None
    alert_threshold_pct: Annotated[_Percent | None, "Warn from this part of the limit on."] = None
    scope: Annotated[
        BudgetScope | None,
        "What is counted: everything (global, the default of a new one), or one key, agent, model, provider.",
    ] = None
    scope_value: Annotated[str | None, "Which key, agent, model or provider."] = None
    unit: Annotated[BudgetUnit | None, "usd (default), tokens or requests."] = None
    limit: Annotated[float | None, "The limit in the unit."] = None
    window: Annotated[BudgetWindow | None, "hour, day (default), week or month; in UTC."] = None
    id: Annotated[str | None, "The budget, bud_ and so on."] = None
    until: Annotated[UntilInAYear | None, "Until when an override holds, such as 4h; else to the period's end."] = None
    reason: Annotated[Reason | None, "Why, for whoever reads the audit log later."] = None


@dataclass(frozen=True, slots=True)
class BudgetList:
    """The budgets that were asked for, or the one that was made, changed or removed."""

    action: _Action
    budgets: tuple[BudgetView, ...]


async def _manage(gateway: Gateway, principal: Principal, command: ManageBudget, context: RequestContext) -> ToolOutput:
    match command.action:
        case "list":
            found = await gateway.budgets.list()
        case "get":
            found = (await _named(gateway, _placed(command)),)
        case "create":
            found = (await gateway.budgets.create(principal, _wanted(command), context),)
        case "set":
            found = (await _set(gateway, principal, command, context),)
        case "delete":
            _check_named(command, "delete needs id or scope: which budget?")
            named = await _named(gateway, command)
            found = (await gateway.budgets.remove(principal, named.budget.id, context),)
        case "override":
            found = (await _override(gateway, principal, command, context),)
    now_at = gateway.clock.now_at()
    views = tuple(view_budget(standing, now_at) for standing in found)
    heads = {"list": "Budgets:", "get": "Budget:", "create": "Made:", "set": "Set:", "delete": "Removed:"}
    head = heads.get(command.action, "Raised for a while:") if views else "There is no budget."
    return ToolOutput("\n".join([head, *map(_line, views)]), encode(BudgetList(command.action, views)))


async def _set(gateway: Gateway, principal: Principal, command: ManageBudget, context: RequestContext) -> Standing:
    """Change the budget that is named, or make it where only its place is named and nothing stands there."""
    if command.daily_limit_usd is None:
        _check_named(command, "set needs id or scope, or daily_limit_usd: which budget?")
    if (command.limit, command.daily_limit_usd, command.alert_threshold_pct) == (None, None, None):
        raise InvalidRequest("limit, daily_limit_usd or alert_threshold_pct is missing.", param="limit")
    try:
        named = await _named(gateway, _placed(command))
    except NotFound:
        if command.id is not None:
            raise
        return await gateway.budgets.create(principal, _wanted(command), context)
    limit = _limit(command, named.budget.unit, named.budget.window)
    wanted = ChangedBudget(limit=limit, soft_pct=command.alert_threshold_pct, version=named.budget.version)
    return await gateway.budgets.change(principal, named.budget.id, wanted, context)


async def _override(gateway: Gateway, principal: Principal, command: ManageBudget, context: RequestContext) -> Standing:
    _check_named(command, "override needs id or scope: which budget?")
    named = await _named(gateway, command)
    limit = _limit(command, named.budget.unit, named.budget.window)
    if limit is None:
        raise InvalidRequest("limit is missing: the limit that holds meanwhile.", param="limit")
    until_at = named.period.ends_at if command.until is None else command.until
    reason = command.reason or "set by an assistant"
    wanted = WantedOverride(limit=limit, until_at=until_at, reason=reason)
    return await gateway.budgets.override(principal, named.budget.id, wanted, context)


async def _named(gateway: Gateway, command: ManageBudget) -> Standing:
    """Return the one budget that is meant.

    Raises:
        NotFound: there is none. Conflict: there are several, so that one must be named by id.
    """
    if command.id is not None:
        if any(getattr(command, name) is not None for name in _PLACE):
            raise InvalidRequest(f"Give id, or {', '.join(_PLACE)}.", param="id")
        return await gateway.budgets.show(command.id)
    value = command.scope_value
    if command.scope is BudgetScope.KEY and value is not None:
        value = (await gateway.keys.show(value)).id  # a budget has the id, whatever the key was named by
    wanted = (command.scope, value, command.unit, command.window)
    found = [one for one in await gateway.budgets.list() if _fits(one.budget, wanted)]
    if not found:
        raise NotFound("There is no such budget; list shows all.")
    if len(found) > 1:
        ids = ", ".join(one.budget.id for one in found[:_MOST_NAMED])
        raise Conflict(f"{len(found)} budgets match. Name one by id: {ids}.", param="id")
    return found[0]


def _fits(budget: Budget, wanted: Sequence[object]) -> bool:
    """Tell whether a budget is what is named of scope, scope_value, unit and window; None is any."""
    found = (budget.scope, budget.scope_value, budget.unit, budget.window)
    return all(want in (None, one) for want, one in zip(wanted, found, strict=True))


def _placed(command: ManageBudget) -> ManageBudget:
    """Fill in the defaults of what names a budget."""
    if command.id is not None:
        return command
    return replace(command, scope=_scope(command), unit=_unit(command), window=_window(command))


def _check_named(command: ManageBudget, message: str) -> None:
    if command.id is None and command.scope is None:
        raise InvalidRequest(message, param="id")


def _wanted(command: ManageBudget) -> WantedBudget:
    unit, window = _unit(command), _window(command)
    limit = _limit(command, unit, window)
    if limit is None:
        raise InvalidRequest("limit or daily_limit_usd is missing.", param="limit")
    return WantedBudget(
        limit=limit,
        unit=unit,
        scope=_scope(command),
        scope_value=command.scope_value,
        window=window,
        soft_pct=DEFAULT_SOFT_PCT if command.alert_threshold_pct is None else command.alert_threshold_pct,
    )


def _limit(command: ManageBudget, unit: BudgetUnit, window: BudgetWindow) -> float | None:
    """Return the limit that is wanted of a budget of this unit and window, or None if none is named."""
    if command.daily_limit_usd is None:
        return command.limit
    if command.limit is not None:
        raise InvalidRequest("Give limit or daily_limit_usd, not both.", param="daily_limit_usd")
    if (unit, window) != (BudgetUnit.USD, BudgetWindow.DAY):
        raise InvalidRequest("daily_limit_usd goes with unit usd and window day.", param="daily_limit_usd")
    return command.daily_limit_usd


def _scope(command: ManageBudget) -> BudgetScope:
    return command.scope or BudgetScope.GLOBAL


def _unit(command: ManageBudget) -> BudgetUnit:
    return command.unit or BudgetUnit.USD


def _window(command: ManageBudget) -> BudgetWindow:
    return command.window or BudgetWindow.DAY


def _line(view: BudgetView) -> str:
    whose = view.scope.value if view.scope_value is None else f"{view.scope.value} {one_line(view.scope_value)}"
    override = view.override
    raised = "" if override is None else f" Raised until {write_time(override.until_at)}: {one_line(override.reason)}"
    return (
        f"- {view.id} {whose}: {view.spent:g} of {view.effective_limit:g} {view.unit.value} spent this "
        f"{view.window.value} ({view.status}), {view.remaining:g} left until {write_time(view.resets_at)}; over it: "
        f"{view.action.value}; warns from {view.soft_pct} %.{raised}"
    )


MANAGE_BUDGET = Tool(
    name="manage_budget",
    title="Manage budgets",
    description=(
        "Read, set, create, remove or raise for a while the budgets of this gateway: dollars, tokens or requests by "
        "hour, day, week or month, for everything or for one key, agent, model or provider. Answers what was spent and "
        "what is left."
    ),
    takes=ManageBudget,
    gives=lambda: json_schema(BudgetList, written=True),
    call=_manage,
    is_read_only=False,
    is_destructive=True,
    is_idempotent=False,
    actions={
        "list": (),
        "get": ("id", *_PLACE),
        "set": ("id", *_PLACE, *_LIMIT, "alert_threshold_pct"),
        "create": (*_PLACE, *_LIMIT, "alert_threshold_pct"),
        "delete": ("id", *_PLACE),
        "override": ("id", *_PLACE, *_LIMIT, "until", "reason"),
    },
)
"""The row of the tool."""
