"""Budgets: what they cover, their periods, and whether one has enough left. Pure; amounts are integers.

An amount is in the unit of its budget: micro-dollars (millionths of a US dollar), tokens or requests. A period is the
hour, the day, the week from Monday or the month of the UTC calendar.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from gateway.domain.globs import glob
from gateway.records import record

MICRO = 1_000_000
MAX_BUDGETS = 1000
MAX_AMOUNT = 2**53 - 1
"""The largest integer that every JSON reader represents exactly."""
DEFAULT_SOFT_PCT = 80
HOLD_SECONDS = 3_900
"""Five minutes more than the longest provider timeout. An older hold belongs to a process that died."""


class BudgetScope(StrEnum):
    """What a budget covers: every completion, or those that match its `scope_value`."""

    GLOBAL = "global"
    KEY = "key"
    AGENT = "agent"
    MODEL = "model"
    PROVIDER = "provider"


class BudgetUnit(StrEnum):
    """What a budget counts. An amount of ``usd`` is in micro-dollars."""

    USD = "usd"
    TOKENS = "tokens"
    REQUESTS = "requests"


class BudgetWindow(StrEnum):
    """The length of a period."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class BudgetAction(StrEnum):
    """What happens at the limit: an alert, or an alert and a refusal."""

    WARN = "warn"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Period:
    """One half-open calendar period, in Unix milliseconds."""

    begins_at: int
    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A temporary limit. amount: in the unit of the budget. by: the name of the user who set it."""

    amount: int = field(metadata={"json_name": None})
    until_at: int = field(metadata={"json_name": "until"})
    reason: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit on spending in each period. Times in Unix milliseconds.

    scope_value: the id of a key, the name of an agent or provider, or a glob of models; None for ``global``. lineage:
    of the key, so that a rotated key spends from the same budget. version: rises with every change.
    """

    id: str
    name: str = ""
    scope: BudgetScope = BudgetScope.GLOBAL
    scope_value: str | None = None
    lineage: str | None = field(default=None, metadata={"json_name": None})
    unit: BudgetUnit = BudgetUnit.USD
    limit_amount: int = field(metadata={"json_name": None})
    window: BudgetWindow = BudgetWindow.DAY
    soft_pct: int = DEFAULT_SOFT_PCT
    action: BudgetAction = BudgetAction.BLOCK
    override: Override | None = None
    created_at: int
    created_by: str
    version: int = 1

    def effective_amount(self, now_at: int) -> int:
        override = self.override
        return override.amount if override is not None and override.until_at > now_at else self.limit_amount

    def covers(self, spender: "Spender") -> bool:
        match self.scope:
            case BudgetScope.GLOBAL:
                return True
            case BudgetScope.KEY:
                return spender.key is not None and spender.key in (self.scope_value, self.lineage)
            case BudgetScope.AGENT:
                return spender.agent == self.scope_value
            case BudgetScope.MODEL:
                return glob(self.scope_value or "").match(spender.model.casefold()) is not None
            case BudgetScope.PROVIDER:
                return self.scope_value in spender.providers


@dataclass(frozen=True, slots=True)
class Spender:
    """The attributes of a completion that decide which budgets cover it.

    key: the lineage of the API key. providers: every provider that may answer.
    """

    key: str | None
    agent: str
    model: str
    providers: Collection[str]


@record
class Usage:
    """What a completion uses, or its upper bound. microusd: None when there is no price for the model."""

    tokens: int
    microusd: int | None

    def amount(self, unit: BudgetUnit) -> int:
        """Return the usage in this unit. A completion without a price costs a dollar budget nothing."""
        return {BudgetUnit.USD: self.microusd or 0, BudgetUnit.TOKENS: self.tokens, BudgetUnit.REQUESTS: 1}[unit]


@dataclass(frozen=True, slots=True)
class Hold:
    """The amount that one completion reserves in one period of one budget until it is settled."""

    budget_id: str
    begins_at: int
    amount: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a budget in one period. Amounts are in its unit.

    exceeded_at, soft_at: when the alert was raised. has_begun: whether the period has any spending or reservation.
    """

    budget: Budget
    period: Period
    spent: int = 0
    reserved: int = 0
    soft_at: int | None = None
    exceeded_at: int | None = None
    has_begun: bool = False

    def remaining(self, now_at: int) -> int:
        """Return what may still be reserved, at least 0."""
        return max(0, self.budget.effective_amount(now_at) - self.spent - self.reserved)

    def has_room(self, amount: int, now_at: int) -> bool:
        return self.spent + self.reserved + amount <= self.budget.effective_amount(now_at)

    def is_soft(self, now_at: int) -> bool:
        return self.spent * 100 >= self.budget.effective_amount(now_at) * self.budget.soft_pct

    def forecast(self, now_at: int) -> int:
        """Return the spending at the end of the period, extrapolated at the present rate."""
        elapsed = max(1, now_at - self.period.begins_at)
        return self.spent * (self.period.ends_at - self.period.begins_at) // elapsed


def period_of(window: BudgetWindow, at: int) -> Period:
    """Return the period of the UTC calendar that contains `at`."""
    hour = datetime.fromtimestamp(at / 1000, UTC).replace(minute=0, second=0, microsecond=0)
    day = hour.replace(hour=0)
    match window:
        case BudgetWindow.HOUR:
            begin, end = hour, hour + timedelta(hours=1)
        case BudgetWindow.DAY:
            begin, end = day, day + timedelta(days=1)
        case BudgetWindow.WEEK:
            begin = day - timedelta(days=day.weekday())
            end = begin + timedelta(days=7)
        case BudgetWindow.MONTH:
            begin = day.replace(day=1)
            end = (begin + timedelta(days=32)).replace(day=1)
    return Period(int(begin.timestamp()) * 1000, int(end.timestamp()) * 1000)
