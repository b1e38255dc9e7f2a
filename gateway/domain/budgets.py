"""Budgets: what they cover, their periods, and when one has not enough left. Pure; amounts are whole numbers.

An amount is counted in the budget's unit: micro-dollars (millionths of a US dollar), tokens or requests. Periods are
those of the UTC calendar: the hour, the day, the week from Monday, the month.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from re import Pattern, compile

from gateway.records import record

MICRO = 1_000_000
MAX_BUDGETS = 1000
MAX_AMOUNT = 2**53 - 1
"""The largest amount that every JSON reader keeps exactly."""
DEFAULT_SOFT_PCT = 80
HOLD_SECONDS = 3_900
"""Five minutes more than a provider may take. What is held longer belongs to a process that died."""


class BudgetScope(StrEnum):
    """What a budget covers: everything, or what matches its `scope_value`."""

    GLOBAL = "global"
    KEY = "key"
    AGENT = "agent"
    MODEL = "model"
    PROVIDER = "provider"


class BudgetUnit(StrEnum):
    """What is counted. usd: in micro-dollars."""

    USD = "usd"
    TOKENS = "tokens"
    REQUESTS = "requests"


class BudgetWindow(StrEnum):
    """How long a period is. Periods are the calendar's, in UTC; a week begins on Monday."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class BudgetAction(StrEnum):
    """What happens at the limit: an alert, or a refusal as well."""

    WARN = "warn"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Period:
    """One calendar period, half-open; Unix milliseconds."""

    begins_at: int
    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Another limit for a while. amount: in the budget's unit. by: who set it."""

    amount: int
    until_at: int
    reason: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent in each period. Times in Unix milliseconds.

    scope_value: id of a key, name of an agent or provider, or glob of a model; None for ``global``. lineage: of the
    key, so that a rotated key spends from the same budget. limit_amount: in the unit. version: rises with every change.
    """

    id: str
    name: str = ""
    scope: BudgetScope = BudgetScope.GLOBAL
    scope_value: str | None = None
    lineage: str | None = None
    unit: BudgetUnit = BudgetUnit.USD
    limit_amount: int
    window: BudgetWindow = BudgetWindow.DAY
    soft_pct: int = DEFAULT_SOFT_PCT
    action: BudgetAction = BudgetAction.BLOCK
    override: Override | None = None
    created_at: int
    created_by: str
    version: int = 1

    def effective_amount(self, now_at: int) -> int:
        """Return the limit that holds at `now_at`."""
        override = self.override
        return override.amount if override is not None and override.until_at > now_at else self.limit_amount

    def covers(self, spender: "Spender") -> bool:
        """Tell whether the budget is about this completion."""
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
    """Who and what a completion is spent for. key: the key's lineage. providers: all that may come to answer."""

    key: str | None
    agent: str
    model: str
    providers: Collection[str]


@record
class Usage:
    """What a completion takes, or at most takes. microusd: None when nobody knows a price."""

    tokens: int
    microusd: int | None

    def amount(self, unit: BudgetUnit) -> int:
        """Return what it is in this unit; what has no price costs a budget of dollars nothing."""
        match unit:
            case BudgetUnit.USD:
                return self.microusd or 0
            case BudgetUnit.TOKENS:
                return self.tokens
            case BudgetUnit.REQUESTS:
                return 1


@dataclass(frozen=True, slots=True)
class Hold:
    """What one completion holds of one period of one budget until it is settled."""

    budget_id: str
    begins_at: int
    amount: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How a budget stands in its period. All amounts in its unit.

    exceeded_at, soft_at: when an alert was raised. has_begun: whether anything was taken from it in this period.
    """

    budget: Budget
    period: Period
    spent: int = 0
    reserved: int = 0
    soft_at: int | None = None
    exceeded_at: int | None = None
    has_begun: bool = False

    def remaining(self, now_at: int) -> int:
        """Return what may still be reserved; never less than nothing."""
        return max(0, self.budget.effective_amount(now_at) - self.spent - self.reserved)

    def has_room(self, amount: int, now_at: int) -> bool:
        """Tell whether `amount` more stays within the limit."""
        return self.spent + self.reserved + amount <= self.budget.effective_amount(now_at)

    def is_soft(self, now_at: int) -> bool:
        """Tell whether what is spent has reached the soft limit."""
        return self.spent * 100 >= self.budget.effective_amount(now_at) * self.budget.soft_pct

    def forecast(self, now_at: int) -> int:
        """Return what is spent at the end of the period if it goes on as until now."""
        elapsed = max(1, now_at - self.period.begins_at)
        return self.spent * (self.period.ends_at - self.period.begins_at) // elapsed


def period_of(window: BudgetWindow, at: int) -> Period:
    """Return the period of the UTC calendar in which `at` lies."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    begin = moment.replace(minute=0, second=0, microsecond=0)
    if window is BudgetWindow.HOUR:
        return _period(begin, begin + timedelta(hours=1))
    begin = begin.replace(hour=0)
    if window is BudgetWindow.DAY:
        return _period(begin, begin + timedelta(days=1))
    if window is BudgetWindow.WEEK:
        begin -= timedelta(days=begin.weekday())
        return _period(begin, begin + timedelta(days=7))
    begin = begin.replace(day=1)
    return _period(begin, (begin + timedelta(days=32)).replace(day=1))


def glob(pattern: str) -> Pattern[str]:
    """Return a pattern of names that may hold ``*``, ``?`` and ``[…]``, for names in folded case."""
    return _compiled(pattern.casefold())


@lru_cache(4096)
def _compiled(pattern: str) -> Pattern[str]:
    return compile(translate(pattern))


def _period(begin: datetime, end: datetime) -> Period:
    return Period(int(begin.timestamp()) * 1000, int(end.timestamp()) * 1000)
