"""Periods of the calendar, what a budget covers, and how it stands."""

from datetime import UTC, datetime

import pytest

from gateway.domain.budgets import (
    Budget,
    BudgetScope,
    BudgetWindow,
    Override,
    Period,
    Spender,
    Standing,
    period_of,
)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def budget(**fields: object) -> Budget:
    return Budget(**{"id": "bud_1", "limit_amount": 100, "created_at": 0, "created_by": "x", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("window", "moment", "begin", "end"),
    [
        ("hour", "2026-03-29T01:59:59.999", "2026-03-29T01:00:00", "2026-03-29T02:00:00"),
        ("day", "2026-12-31T23:59:59", "2026-12-31T00:00:00", "2027-01-01T00:00:00"),
        ("day", "2026-12-31T00:00:00", "2026-12-31T00:00:00", "2027-01-01T00:00:00"),
        ("week", "2026-11-22T12:00:00", "2026-11-16T00:00:00", "2026-11-23T00:00:00"),
        ("week", "2026-11-23T00:00:00", "2026-11-23T00:00:00", "2026-11-30T00:00:00"),
        ("month", "2028-02-29T12:00:00", "2028-02-01T00:00:00", "2028-03-01T00:00:00"),
        ("month", "2026-12-01T00:00:00", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
    ],
)
def test_periods_are_those_of_the_utc_calendar(window: str, moment: str, begin: str, end: str) -> None:
    assert period_of(BudgetWindow(window), at(moment)) == Period(at(begin), at(end))


@pytest.mark.parametrize(
    ("scope", "value", "is_covered"),
    [
        ("global", None, True),
        ("key", "key_1", True),
        ("key", "key_2", False),
        ("agent", "Crawler", True),
        ("agent", "crawler", False),
        ("model", "GPT-4o*", True),
        ("model", "gpt-4", False),
        ("provider", "prv_1", True),
        ("provider", "openai", True),
        ("provider", "other", False),
    ],
)
def test_a_budget_covers_what_matches_its_scope(scope: str, value: str | None, is_covered: bool) -> None:
    spender = Spender("key_1", "Crawler", "gpt-4o-mini", frozenset(("prv_1", "openai")))
    assert budget(scope=BudgetScope(scope), scope_value=value).covers(spender) is is_covered


def test_a_rotated_key_spends_from_the_budget_of_the_first() -> None:
    one = budget(scope=BudgetScope.KEY, scope_value="key_2", lineage="key_1")
    assert one.covers(Spender("key_1", "a", "m", ()))
    assert not budget(scope=BudgetScope.KEY, scope_value="key_2").covers(Spender(None, "a", "m", ()))


def test_room_is_what_is_neither_spent_nor_reserved_to_the_last_unit() -> None:
    standing = Standing(budget(), Period(0, 1000), spent=60, reserved=30)
    assert standing.remaining(0) == 10
    assert standing.has_room(10, 0)
    assert not standing.has_room(11, 0)
    assert Standing(budget(), Period(0, 1000), spent=150).remaining(0) == 0


def test_an_override_holds_until_its_end() -> None:
    one = budget(override=Override(amount=500, until_at=10, reason="r", by="x"))
    assert (one.effective_amount(9), one.effective_amount(10)) == (500, 100)


def test_the_soft_limit_is_reached_at_its_percentage_and_not_before() -> None:
    assert not Standing(budget(), Period(0, 1000), spent=79).is_soft(0)
    assert Standing(budget(), Period(0, 1000), spent=80).is_soft(0)


def test_the_forecast_goes_on_as_until_now() -> None:
    assert Standing(budget(), Period(0, 1000), spent=30).forecast(250) == 120
    assert Standing(budget(), Period(0, 1000), spent=30).forecast(0) == 30_000
