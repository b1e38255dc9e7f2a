"""The rows of budgets on the internal API, and the view of a budget. The rules are in `services.budgets`."""

from dataclasses import dataclass
from typing import Literal

from gateway.app import Gateway
from gateway.domain.budgets import MAX_AMOUNT, MICRO, Budget, BudgetScope, Override, Standing
from gateway.domain.principals import Permission
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun, with_id
from gateway.records import project
from gateway.schema import JsonSchema
from gateway.services.budgets import ChangedBudget, WantedBudget, WantedOverride, shown_amount


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideView(Override):
    """A higher limit until a time."""

    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView(Budget):
    """A budget and its state in the current period.

    limit, effective_limit, spent, reserved, remaining, forecast: in the unit, of dollars with up to six decimals.
    effective_limit: the limit now, overrides included. reserved: held for requests in flight. forecast: the spending at
    the end of the period if the present rate continues.
    """

    limit: float
    effective_limit: float
    status: Literal["ok", "warning", "exceeded"]
    spent: float
    reserved: float
    remaining: float
    forecast: float
    began_at: int
    resets_at: int
    override: OverrideView | None


def _view(gateway: Gateway, standing: Standing) -> BudgetView:
    budget, now_at = standing.budget, gateway.clock.now_at()
    unit, limit, override = budget.unit, budget.effective_amount(now_at), budget.override
    status: Literal["ok", "warning", "exceeded"] = "warning" if standing.is_soft(now_at) and standing.spent else "ok"
    return project(
        BudgetView,
        budget,
        limit=shown_amount(budget.limit_amount, unit),
        effective_limit=shown_amount(limit, unit),
        status="exceeded" if standing.exceeded_at is not None or standing.spent >= limit else status,
        spent=shown_amount(standing.spent, unit),
        reserved=shown_amount(standing.reserved, unit),
        remaining=shown_amount(standing.remaining(now_at), unit),
        forecast=shown_amount(standing.forecast(now_at), unit),
        began_at=standing.period.begins_at,
        resets_at=standing.period.ends_at,
        override=None
        if override is None or override.until_at <= now_at
        else project(OverrideView, override, limit=shown_amount(override.amount, unit)),
    )


# Null stands for the default.
_USD: dict[str, JsonSchema] = {"unit": {"enum": ["usd", None]}, "limit": {"maximum": MAX_AMOUNT // MICRO}}
_COUNTED: dict[str, JsonSchema] = {"unit": {"enum": ["tokens", "requests"]}, "limit": {"type": "integer"}}
_OF_ALL: dict[str, JsonSchema] = {"scope": {"enum": ["global", None]}, "scope_value": {"type": "null"}}
_OF_SOME: dict[str, JsonSchema] = {
    "scope": {"enum": [one.value for one in BudgetScope if one is not BudgetScope.GLOBAL]},
    "scope_value": {"type": "string"},
}

_BUDGETS = Noun("budgets", BudgetView, Permission.BUDGETS_READ, Permission.BUDGETS_MANAGE, view=_view)

OPERATIONS = (
    _BUDGETS.list(
        "List the budgets, oldest first: what is spent, reserved and left, and when the period ends.",
        method="standings",
    ),
    _BUDGETS.create(
        WantedBudget,
        "Create a budget: `limit`, and optionally `unit`, `scope`, `scope_value`, `window`, `soft_pct`, `action`.",
        kinds=(
            kind(**_USD, **_OF_ALL),
            kind(("unit",), **_COUNTED, **_OF_ALL),
            kind(("scope", "scope_value"), **_USD, **_OF_SOME),
            kind(("unit", "scope", "scope_value"), **_COUNTED, **_OF_SOME),
        ),
    ),
    _BUDGETS.show("Show one budget and its state.", method="standing"),
    _BUDGETS.change(
        ChangedBudget, "Change `limit`, `soft_pct`, `action` or `name` of a budget; `version` or `If-Match` guards."
    ),
    _BUDGETS.row(
        "override",
        "POST /{id}/override",
        "Raise the limit of a budget to `limit` until `until`, for a `reason`.",
        takes=with_id(WantedOverride),
    ),
    _BUDGETS.row(
        "override.end",
        "DELETE /{id}/override",
        "End the override of a budget early, so that its usual limit applies again.",
        takes=ById,
        call=lambda gateway, caller, command: gateway.budgets.override(caller, command.id, None),
    ),
    _BUDGETS.remove("Remove a budget and what was counted in it."),
)
