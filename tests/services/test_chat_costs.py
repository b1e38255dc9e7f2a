"""The most that a completion can cost, and what it did: never less than any tokenizer makes of it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway import settings
from gateway.clock import Clock, Ids
from gateway.domain.budgets import Usage
from gateway.domain.prices import Price, Prices
from gateway.errors import SetupError
from gateway.llm.base import Prompt, Reply
from gateway.llm.echo import EchoModel
from gateway.llm.prices import load_prices
from gateway.services.chat_costs import DEFAULT_REPLY_TOKENS, OPAQUE_TOKENS, ChatCosts
from gateway.strict_json import write_json

COSTS = ChatCosts(Prices({"m": Price(1_000_000, 2_000_000, 50), "free-size": Price(1_000_000, 2_000_000)}))


@pytest.fixture
def echo() -> EchoModel:
    clock = Clock()
    return EchoModel(clock=clock, ids=Ids(clock))


@dataclass
class Provider:
    """A provider that may answer."""

    prices: Prices | None = None
    is_echo: bool = False


def prompt(model: str = "m", **fields: object) -> Prompt:
    return Prompt(model, {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields})


def test_the_worst_is_all_bytes_of_the_prompt_and_the_longest_reply_in_every_choice() -> None:
    one = prompt(n=3)
    size = len(write_json(one.body))
    assert COSTS.worst(one, [Provider()], 0) == Usage(size + 150, size + 300)
    one = prompt(n=3, max_tokens=7)
    size = len(write_json(one.body))
    assert COSTS.worst(one, [Provider()], 0) == Usage(size + 21, size + 42)
    assert COSTS.worst(one, [Provider()], 2).tokens == size + 21 + 2 * OPAQUE_TOKENS


def test_a_model_without_a_limit_has_that_of_the_settings() -> None:
    one = prompt("free-size")
    assert COSTS.worst(one, [Provider()], 0).tokens == len(write_json(one.body)) + DEFAULT_REPLY_TOKENS
    assert ChatCosts(Prices(), reply_tokens=9).worst(one, [Provider()], 0) == Usage(len(write_json(one.body)) + 9, None)


def test_the_dearest_of_all_who_may_answer_counts() -> None:
    one = prompt(max_tokens=10)
    size = len(write_json(one.body))
    dear = Provider(Prices({"*": Price(5_000_000, 9_000_000)}))
    assert COSTS.worst(one, [Provider(), dear], 0).microusd == 5 * size + 90
    assert COSTS.worst(prompt("unknown"), [Provider()], 0).microusd is None
    assert COSTS.worst(prompt("unknown"), [Provider(), dear], 0).microusd is not None


def test_what_was_counted_is_charged_at_the_price_of_who_answered() -> None:
    reply = Reply({}, prompt_tokens=10, completion_tokens=5)
    assert COSTS.actual(prompt(), reply, Provider(), None) == Usage(15, 20)
    assert COSTS.actual(prompt(), reply, Provider(Prices({"m": Price(0, 0)})), None) == Usage(15, 0)
    assert COSTS.actual(prompt("unknown"), reply, Provider(), None) == Usage(15, None)


@pytest.mark.parametrize("reply", [Reply({}), Reply({}, prompt_tokens=3), Reply({}, completion_tokens=3)])
def test_what_nobody_counted_is_charged_as_it_was_taken(reply: Reply) -> None:
    assert COSTS.actual(prompt(), reply, Provider(), Usage(99, 7)) == Usage(99, 7)
    assert COSTS.actual(prompt(), reply, Provider(), None) is None


def test_a_count_beyond_all_sense_breaks_no_sum() -> None:
    reply = Reply({}, prompt_tokens=2**62, completion_tokens=-5)
    used = COSTS.actual(prompt(), reply, Provider(Prices({"*": Price(10**12, 10**12)})), None)
    assert used is not None and used.microusd is not None
    assert 0 < used.microusd < 2**62
    huge = prompt(max_tokens=2**60, n=128)
    assert (COSTS.worst(huge, [Provider(Prices({"*": Price(10**12, 10**12)}))], 0).microusd or 0) < 2**62


@pytest.mark.parametrize("text", ["a", "word " * 50, "日本語のテキスト", "\U0001f600" * 9, 'say "x"\n\\', ""])
@pytest.mark.parametrize("more", [{}, {"n": 5}, {"max_tokens": 3}])
async def test_the_built_in_model_never_says_more_than_was_taken(
    text: str, more: dict[str, object], echo: EchoModel
) -> None:
    one = Prompt("echo", {"model": "echo", "messages": [{"role": "user", "content": text}], **more})
    reply = await echo.complete(one)
    costs, provider = ChatCosts(load_prices()), Provider(is_echo=True)
    worst = costs.worst(one, [provider], 0)
    used = costs.actual(one, reply, provider, None)
    assert used is not None and used.microusd is not None and worst.microusd is not None
    assert used.tokens <= worst.tokens
    assert used.microusd <= worst.microusd


def test_the_shipped_table_is_whole_and_the_longest_name_wins() -> None:
    prices = load_prices()
    assert prices.find("gpt-4o-mini-2024-07-18") == Price(150_000, 600_000, 16_384)
    assert prices.find("openai/gpt-4o") == Price(2_500_000, 10_000_000, 16_384)
    assert prices.find("claude-3-5-haiku-latest") == Price(800_000, 4_000_000, 8192)
    assert prices.find("somebody-elses-model") is None


@pytest.mark.parametrize("value", ["0", "-5"])
def test_a_reply_cannot_be_set_to_take_nothing(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_BUDGET_REPLY_TOKENS", value)
    with pytest.raises(SetupError) as caught:
        settings.load({})
    assert "budget_reply_tokens" in (caught.value.param or "").lower()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be used"),
        ("[]", "cannot be used"),
        ('{"models": {"m": {"input": 1}}}', "models.m"),
        (None, "cannot be read"),
    ],
)
def test_a_bad_file_of_prices_is_told_and_why(tmp_path: Path, text: str | None, reason: str) -> None:
    file = tmp_path / "prices.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SetupError) as caught:
        load_prices(str(file))
    assert reason in caught.value.message
