import threading

import pytest

from gateway.clock import Clock, Ids
from gateway.errors import InvalidRequest
from gateway.llm import echo
from gateway.llm.base import Prompt
from gateway.llm.echo import EchoModel, count_tokens, cut
from gateway.llm.openai import OpenAiDialect

CLOCK = Clock()
ECHO = EchoModel(clock=CLOCK, ids=Ids(CLOCK))


async def answered(*messages: object, **fields: object) -> dict[str, object]:
    reply = await ECHO.complete(Prompt("echo", {"model": "echo", "messages": list(messages), **fields}))
    assert OpenAiDialect().read_reply(reply.body).prompt_tokens == reply.prompt_tokens
    return dict(reply.body)


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


async def test_echo_answers_with_the_last_user_prompt() -> None:
    answer = await answered(user("one"), user("two"), {"role": "assistant", "content": "three"})
    choice = answer["choices"][0]  # type: ignore[index]
    assert choice["message"]["content"] == "two"
    assert choice["finish_reason"] == "stop"
    assert str(answer["id"]).startswith("chatcmpl-") and answer["object"] == "chat.completion"


async def test_text_parts_are_answered_as_one_text() -> None:
    parts = [{"type": "text", "text": "Hello "}, {"type": "image_url"}, {"type": "text", "text": "world"}]
    answer = await answered(user(parts))
    assert answer["choices"][0]["message"]["content"] == "Hello world"  # type: ignore[index]


async def test_without_a_user_the_last_message_is_answered() -> None:
    answer = await answered({"role": "system", "content": "alone"})
    assert answer["choices"][0]["message"]["content"] == "alone"  # type: ignore[index]
    silent = await answered({"role": "assistant", "content": None})
    assert silent["choices"][0]["message"]["content"] == ""  # type: ignore[index]


async def test_n_choices_are_given_and_counted() -> None:
    answer = await answered(user("Hello world"), n=3)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]  # type: ignore[index, attr-defined]
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 6, "total_tokens": 8}


async def test_so_many_choices_that_they_would_fill_the_memory_are_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        await answered(user("x" * 500_000), n=128)
    assert caught.value.param == "n"


@pytest.mark.parametrize(
    "limits", [{"max_tokens": 2}, {"max_completion_tokens": 2}, {"max_tokens": 9, "max_completion_tokens": 2}]
)
async def test_the_smaller_token_limit_is_obeyed(limits: dict[str, int]) -> None:
    answer = await answered(user("one two three"), **limits)
    choice = answer["choices"][0]  # type: ignore[index]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one two", "length")
    assert answer["usage"]["completion_tokens"] == 2  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("  \n", 0), ("Hello, world!", 4), ("abcdefg", 2), ("\N{LOCK}\N{LOCK}", 2), ("a_1 b", 2)],
)
def test_tokens_are_counted_by_the_rule(text: str, count: int) -> None:
    assert count_tokens(text) == count


def test_cutting_at_the_exact_count_is_not_cutting() -> None:
    assert cut("one two ", 2) == ("one two ", "stop")
    assert cut("one two three", 2) == ("one two", "length")
    assert cut("one", None) == ("one", "stop")


def test_a_flood_of_blanks_is_counted_in_linear_time() -> None:
    assert count_tokens(" " * 500_000) == 0


async def test_the_one_model_is_listed() -> None:
    assert [model["id"] for model in await ECHO.models()] == ["echo"]


@pytest.mark.parametrize(("words", "is_here"), [(10, True), (20_000, False)])
async def test_a_long_prompt_is_counted_in_a_thread(monkeypatch: pytest.MonkeyPatch, words: int, is_here: bool) -> None:
    threads: list[int] = []
    count = echo.count_tokens
    monkeypatch.setattr(echo, "count_tokens", lambda text: (threads.append(threading.get_ident()), count(text))[1])
    usage = (await answered(user("go " * words)))["usage"]
    assert usage == {"prompt_tokens": words, "completion_tokens": words, "total_tokens": 2 * words}
    assert {one == threading.get_ident() for one in threads} == {is_here}
