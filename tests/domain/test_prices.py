"""Prices, to the micro-dollar, and the worst that a request can take."""

import pytest

from gateway.domain.prices import Price, Prices, read_prices, reply_bound, to_micro
from gateway.errors import InvalidRequest


@pytest.mark.parametrize(
    ("usd", "micro"), [(0, 0), (1, 1_000_000), (0.1, 100_000), (2.5, 2_500_000), (0.000001, 1), (1.1, 1_100_000)]
)
def test_dollars_are_read_exactly_as_they_were_written(usd: float, micro: int) -> None:
    assert to_micro(usd, param="limit") == micro


@pytest.mark.parametrize(
    ("usd", "micro"), [(0.0000001, 0), (1.2345678, 1_234_568), (0.0000005, 0), (0.0000015, 2), (1e-300, 0)]
)
def test_what_is_finer_than_a_millionth_is_rounded_half_to_even(usd: float, micro: int) -> None:
    assert to_micro(usd, param="limit") == micro


@pytest.mark.parametrize("usd", [-1, 1_000_001, True, "1", None, float("inf"), float("nan")])
def test_what_is_no_amount_is_refused(usd: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        to_micro(usd, param="limit")
    assert caught.value.param == "limit"


def test_a_cost_is_rounded_up_once_over_prompt_and_reply() -> None:
    price = Price(150_000, 600_000)
    assert price.cost_microusd(1, 0) == 1
    assert price.cost_microusd(1, 1) == 1
    assert price.cost_microusd(10, 10) == 8
    assert price.cost_microusd(0, 0) == 0


def test_the_longest_glob_that_matches_counts_and_the_first_table_that_knows_a_model() -> None:
    shipped = {"gpt-4o*": Price(1, 1), "gpt-4o-mini*": Price(2, 2), "o1*": Price(3, 3)}
    prices = Prices({"*": Price(9, 9)}, shipped)
    assert prices.find("anything") == Price(9, 9)
    prices = Prices(shipped)
    assert prices.find("GPT-4o-mini-2024") == Price(2, 2)
    assert prices.find("gpt-4o") == Price(1, 1)
    assert prices.find("openai/o1-x") == Price(3, 3)
    assert prices.find("gpt-5") is None


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ([], "prices"),
        ({"": {"input": 1, "output": 1}}, "prices"),
        ({"a\nb": {"input": 1, "output": 1}}, "prices"),
        ({"m": {"input": 1}}, "prices.m"),
        ({"m": {"input": 1, "output": 1, "cached": 1}}, "prices.m"),
        ({"m": {"input": "1", "output": 1}}, "prices.m.input"),
        ({"m": {"input": 1, "output": -1}}, "prices.m.output"),
        ({"m": {"input": 1, "output": 1, "max_reply_tokens": 0}}, "prices.m.max_reply_tokens"),
        ({"m": {"input": 1, "output": 1, "max_reply_tokens": 1.5}}, "prices.m.max_reply_tokens"),
    ],
)
def test_bad_prices_are_told_their_place(value: object, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_prices(value)
    assert caught.value.param == param


def test_prices_are_dollars_for_a_million_tokens() -> None:
    assert read_prices({"m": {"input": 2.5, "output": 10, "max_reply_tokens": 7}}) == {
        "m": Price(2_500_000, 10_000_000, 7)
    }


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, 100),
        ({"max_tokens": 7}, 7),
        ({"max_tokens": 7, "max_completion_tokens": 9}, 9),
        ({"max_tokens": 7, "n": 3}, 21),
        ({"n": 3}, 300),
        ({"max_tokens": 0}, 100),
        ({"max_tokens": None, "n": None}, 100),
    ],
)
def test_a_reply_is_bounded_by_the_request_else_by_the_default_for_each_choice(
    body: dict[str, object], tokens: int
) -> None:
    assert reply_bound(body, 100) == tokens
