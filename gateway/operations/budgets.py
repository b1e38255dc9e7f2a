"""The rows of budgets on the internal API, and what is shown of one. Rules are kept in `services.budgets`."""

from dataclasses import dataclass, field
from typing import Literal

from gateway.app import Gateway
from gateway.domain.budgets import (
    MAX_AMOUNT,
    MICRO,
    BudgetAction,
    BudgetScope,
    BudgetUnit,
    BudgetWindow,
    Standing,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.operations.operation import Answer, ById, Door, Operation, kind
from gateway.schema import JsonSchema
from gateway.services.budgets import ChangedBudget, WantedBudget, WantedOverride, shown_amount


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchBudget(ChangedBudget):
    """What is to change of the budget `id`."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideBudget(WantedOverride):
    """A higher limit for the budget `id`, until a time."""

    id: str


@dataclass(frozen=True, slots=True)
class OverrideView:
    """The limit that holds for a while. by: who raised it."""

    limit: float
    until_at: int = field(metadata={"json_name": "until"})
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A budget and how it stands in its period.

    limit, effective_limit, spent, reserved, remaining, forecast: in the unit, of dollars with up to six decimals.
    effective_limit: what holds now, an override included. reserved: of requests on their way. forecast: what will be
    spent at the end of the period if it goes on as until now.
    """

    id: str
    name: str
    scope: BudgetScope
    scope_value: str | None
    unit: BudgetUnit
    limit: float
    effective_limit: float
    window: BudgetWindow
    soft_pct: int
    action: BudgetAction
    status: Literal["ok", "warning", "exceeded"]
    spent: float
    reserved: float
    remaining: float
    forecast: float
    began_at: int
    resets_at: int
    override: OverrideView | None
    created_at: int
    created_by: str
    version: int


def view_budget(standing: Standing, now_at: int) -> BudgetView:
    """Return what is shown of a budget."""
    budget = standing.budget
    unit, limit, override = budget.unit, budget.effective_amount(now_at), budget.override
    status: Literal["ok", "warning", "exceeded"] = "warning" if standing.is_soft(now_at) and standing.spent else "ok"
    return BudgetView(
        id=budget.id,
        name=budget.name,
        scope=budget.scope,
        scope_value=budget.scope_value,
        unit=unit,
        limit=shown_amount(budget.limit_amount, unit),
        effective_limit=shown_amount(limit, unit),
        window=budget.window,
        soft_pct=budget.soft_pct,
        action=budget.action,
        status="exceeded" if standing.exceeded_at is not None or standing.spent >= limit else status,
        spent=shown_amount(standing.spent, unit),
        reserved=shown_amount(standing.reserved, unit),
        remaining=shown_amount(standing.remaining(now_at), unit),
        forecast=shown_amount(standing.forecast(now_at), unit),
        began_at=standing.period.begins_at,
        resets_at=standing.period.ends_at,
        override=None
        if override is None or override.until_at <= now_at
        else OverrideView(shown_amount(override.amount, unit), override.until_at, override.reason, override.by),
        created_at=budget.created_at,
        created_by=budget.created_by,
        version=budget.version,
    )


async def list_budgets(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[BudgetView]:
    """Return all budgets as one page."""
    now_at = gateway.clock.now_at()
    views = tuple(view_budget(standing, now_at) for standing in await gateway.budgets.list())
    return Page(views, len(views), None)


async def create_budget(gateway: Gateway, who: Principal, command: WantedBudget, context: RequestContext) -> BudgetView:
    """Make a budget."""
    return view_budget(await gateway.budgets.create(who, command, context), gateway.clock.now_at())


async def show_budget(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> BudgetView:
    """Return one budget."""
    return view_budget(await gateway.budgets.show(command.id), gateway.clock.now_at())


async def change_budget(gateway: Gateway, who: Principal, command: PatchBudget, context: RequestContext) -> BudgetView:
    """Change a budget."""
    return view_budget(await gateway.budgets.change(who, command.id, command, context), gateway.clock.now_at())


async def override_budget(
    gateway: Gateway, who: Principal, command: OverrideBudget, context: RequestContext
) -> BudgetView:
    """Raise the limit of a budget for a while."""
    standing = await gateway.budgets.override(who, command.id, command, context)
    return view_budget(standing, gateway.clock.now_at())


async def end_override(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> BudgetView:
    """Let the limit of a budget hold again."""
    return view_budget(await gateway.budgets.override(who, command.id, None, context), gateway.clock.now_at())


async def remove_budget(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> BudgetView:
    """Remove a budget and show it a last time."""
    return view_budget(await gateway.budgets.remove(who, command.id, context), gateway.clock.now_at())


_USD: dict[str, JsonSchema] = {"unit": {"enum": ["usd"]}, "limit": {"maximum": MAX_AMOUNT // MICRO}}
_COUNTED: dict[str, JsonSchema] = {"unit": {"enum": ["tokens", "requests"]}, "limit": {"type": "integer"}}
_OF_ALL: dict[str, JsonSchema] = {"scope": {"enum": ["global"]}, "scope_value": {"type": "null"}}
_OF_SOME: dict[str, JsonSchema] = {
    "scope": {"enum": [one.value for one in BudgetScope if one is not BudgetScope.GLOBAL]},
    "scope_value": {"type": "string"},
}

BUDGET_OPERATIONS = (
    Operation(
        name="budgets.list",
        route=("GET", "/api/budgets"),
        door=Door.SESSION,
        needs=Permission.BUDGETS_READ,
        answer=Answer.PAGE,
        gives=BudgetView,
        call=list_budgets,
        summary="List the budgets, oldest first: what is spent, reserved and left, and when the period ends.",
    ),
    Operation(
        name="budgets.create",
        route=("POST", "/api/budgets"),
        door=Door.SESSION,
        needs=Permission.BUDGETS_MANAGE,
        takes=WantedBudget,
        gives=BudgetView,
        call=create_budget,
        kinds=(
            kind(**_USD, **_OF_ALL),
            kind(("unit",), **_COUNTED, **_OF_ALL),
            kind(("scope", "scope_value"), **_USD, **_OF_SOME),
            kind(("unit", "scope", "scope_value"), **_COUNTED, **_OF_SOME),
        ),
        status=201,
        summary="Create a budget: `limit`, and maybe `unit`, `scope`, `scope_value`, `window`, `soft_pct`, `action`.",
    ),
    Operation(
        name="budgets.show",
        route=("GET", "/api/budgets/{id}"),
        door=Door.SESSION,
        needs=Permission.BUDGETS_READ,
        takes=ById,
        gives=BudgetView,
        call=show_budget,
        summary="Show one budget and how it stands.",
    ),
    Operation(
        name="budgets.change",
        route=("PATCH", "/api/budgets/{id}"),
        door=Door.SESSION,
        needs=Permission.BUDGETS_MANAGE,
        takes=PatchBudget,
        gives=BudgetView,
        call=change_budget,
        summary="Change `limit`, `soft_pct`, `action` or `name` of a budget; `version` or `If-Match` guards.",
    ),
    Operation(
        name="budgets.override",
        route=("POST", "/api/budgets/{id}/override"),
        door=Door.SESSION,
        needs=Permission.BUDGETS_MANAGE,
        takes=OverrideBudget,
        gives=BudgetView,
        call=override_budget,
        summary="Raise the limit of a budget to `limit` until `until`, for a `reason`.",
    ),
    Operation(
        name="budgets.override.end",
        route=("DELETE", "/api/budgets/{id}/override"),
        door=Door.SESSION,
        needs=Permission.BUDGETS_MANAGE,
        takes=ById,
        gives=BudgetView,
        call=end_override,
        summary="Let the limit of a budget hold again before its override ends.",
    ),
    Operation(
        name="budgets.remove",
        route=("DELETE", "/api/budgets/{id}"),
        door=Door.SESSION,
        needs=Permission.BUDGETS_MANAGE,
        takes=ById,
        gives=BudgetView,
        call=remove_budget,
        summary="Remove a budget and what was counted in it.",
    ),
)
