"""The tool that reads, sets and removes budgets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

from gateway.domain.budgets import BudgetScope, BudgetUnit, BudgetWindow
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import UntilInAYear
from gateway.mcp.tool import Effect, Tool, ToolCall, ToolOutput, one_line
from gateway.operations.budgets import BudgetView
from gateway.schema import encode, json_schema
from gateway.services.budgets import Percent, Reason
from gateway.strict_json import write_time

_MOST_NAMED = 10
_SELECTORS = ("scope", "scope_value", "unit", "window")
_LIMIT = ("limit", "daily_limit_usd")
_NEEDS = {
    "set": "set needs id or scope, or daily_limit_usd: which budget?",
    "delete": "delete needs id or scope: which budget?",
    "override": "override needs id or scope: which budget?",
}
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
    alert_threshold_pct: Annotated[Percent | None, "Warn from this part of the limit on."] = None
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


async def _manage(call: ToolCall, command: ManageBudget) -> ToolOutput:
    is_list = command.action == "list"
    found = (await call.operate("budgets.list", {})).items if is_list else (await _act(call, command),)
    budgets: tuple[BudgetView, ...] = tuple(found)
    heads = {"list": "Budgets:", "get": "Budget:", "create": "Made:", "set": "Set:", "delete": "Removed:"}
    head = heads.get(command.action, "Raised for a while:") if budgets else "There is no budget."
    return ToolOutput("\n".join([head, *map(_line, budgets)]), encode(BudgetList(command.action, budgets)))


async def _act(call: ToolCall, command: ManageBudget) -> Any:
    """Return the view of the one budget after the action. To set a budget that is not there creates it."""
    action, soft_pct = command.action, command.alert_threshold_pct
    is_daily = action == "set" and command.daily_limit_usd is not None
    if action in _NEEDS and (command.id, command.scope) == (None, None) and not is_daily:
        raise InvalidRequest(_NEEDS[action], param="id")
    if action == "set" and (command.limit, command.daily_limit_usd, soft_pct) == (None, None, None):
        raise InvalidRequest("limit, daily_limit_usd or alert_threshold_pct is missing.", param="limit")
    if action in ("get", "set", "create"):
        command = _with_defaults(command)
    found: BudgetView | None = None
    if action != "create":
        try:
            found = await _find(call, command)
        except NotFound:
            if action != "set" or command.id is not None:
                raise
    limit = _limit(command, found or command)
    if found is None:
        if limit is None:
            raise InvalidRequest("limit or daily_limit_usd is missing.", param="limit")
        given = encode(command)
        values = {name: given[name] for name in _SELECTORS} | {"limit": limit, "soft_pct": soft_pct}
        return await call.operate("budgets.create", values)
    named = {"id": found.id}
    match action:
        case "set":
            values = named | {"limit": limit, "soft_pct": soft_pct, "version": found.version}
            return await call.operate("budgets.change", values)
        case "delete":
            return await call.operate("budgets.remove", named)
        case "override":
            if limit is None:
                raise InvalidRequest("limit is missing: the limit that holds meanwhile.", param="limit")
            until = write_time(found.resets_at if command.until is None else command.until)
            values = named | {"limit": limit, "until": until, "reason": command.reason or "set by an assistant"}
            return await call.operate("budgets.override", values)
    return found


async def _find(call: ToolCall, command: ManageBudget) -> BudgetView:
    """Return the one budget that is meant. Several are a conflict: one must be named by id."""
    if command.id is not None:
        if any(getattr(command, name) is not None for name in _SELECTORS):
            raise InvalidRequest(f"Give id, or {', '.join(_SELECTORS)}.", param="id")
        return cast(BudgetView, await call.operate("budgets.show", {"id": command.id}))
    if command.scope is BudgetScope.KEY and command.scope_value is not None:
        # A budget holds the id of its key; the caller may have given the prefix.
        key = await call.gateway.keys.show(command.scope_value)
        command = replace(command, scope_value=key.id)
    wanted = {name: getattr(command, name) for name in _SELECTORS if getattr(command, name) is not None}
    budgets: Sequence[BudgetView] = (await call.operate("budgets.list", {})).items
    found = [one for one in budgets if all(getattr(one, name) == value for name, value in wanted.items())]
    if not found:
        raise NotFound("There is no such budget; list shows all.")
    if len(found) > 1:
        ids = ", ".join(one.id for one in found[:_MOST_NAMED])
        raise Conflict(f"{len(found)} budgets match. Name one by id: {ids}.", param="id")
    return found[0]


def _with_defaults(command: ManageBudget) -> ManageBudget:
    """Fill in the defaults of what selects a budget, unless its id does."""
    if command.id is not None:
        return command
    return replace(
        command,
        scope=command.scope or BudgetScope.GLOBAL,
        unit=command.unit or BudgetUnit.USD,
        window=command.window or BudgetWindow.DAY,
    )


def _limit(command: ManageBudget, budget: BudgetView | ManageBudget) -> float | None:
    """Return the wanted limit in the unit and window of a budget, or None if none was given."""
    if command.daily_limit_usd is None:
        return command.limit
    if command.limit is not None:
        raise InvalidRequest("Give limit or daily_limit_usd, not both.", param="daily_limit_usd")
    if (budget.unit, budget.window) != (BudgetUnit.USD, BudgetWindow.DAY):
        raise InvalidRequest("daily_limit_usd goes with unit usd and window day.", param="daily_limit_usd")
    return command.daily_limit_usd


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
    effect=Effect.DESTROYS,
    actions={
        "list": (),
        "get": ("id", *_SELECTORS),
        "set": ("id", *_SELECTORS, *_LIMIT, "alert_threshold_pct"),
        "create": (*_SELECTORS, *_LIMIT, "alert_threshold_pct"),
        "delete": ("id", *_SELECTORS),
        "override": ("id", *_SELECTORS, *_LIMIT, "until", "reason"),
    },
)
