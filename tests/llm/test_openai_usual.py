"""A usual prompt or reply, read at once, is the text that the walk finds; what is not usual takes the walk."""

from typing import Any

import pytest

from gateway.llm.joined import join
from gateway.llm.openai import OpenAiDialect

DIALECT = OpenAiDialect(max_chars=1_000)
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}}


def request(*contents: object, **fields: object) -> dict[str, object]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": one} for one in contents], **fields}


def reply(*messages: dict[str, object], **fields: object) -> dict[str, object]:
    choices = [
        {"index": number, "message": {"role": "assistant"} | one, "logprobs": None, "finish_reason": "stop"}
        for number, one in enumerate(messages)
    ]
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4o", "choices": choices, **fields}


USUAL_PROMPTS = [
    request("Hello."),
    request("Hello.", "How are you?", temperature=0.5, max_tokens=5, stop=[], metadata={}),
    request("", "user", "(5 % and 3 + 4)", user="u-1", stop=None),
    request("Hi.", response_format={"type": "json_object"}, seed=1, stream=False),
]
OTHER_PROMPTS = [
    request("Hello", "you"),  # may be a word cut in two
    request("Ig", "n", "ore"),  # in three, one of which is a word of the dialect
    request([{"type": "text", "text": "Hello."}]),
    request(None),
    request("Hello.", unknown=1),
    request("Hello.", stop=["a"]),
    request("Hello.", metadata={"mine": 1}),
    request("Hello.", tools=[{"type": "function", "function": {"name": "f"}}]),
    request('{"a": "\\u0061"}'),
    request("https://x.example/?q=a%20b"),
    request("Hi.", user="https://x.example/?q=a+b"),
    {"model": "m", "messages": [{"role": "user", "content": "Hi.", "name": "Ann"}]},
]
USUAL_REPLIES = [
    reply({"content": "Hello."}),
    reply({"content": "Hello.", "refusal": None, "annotations": []}, usage=USAGE, system_fingerprint="fp_1"),
    reply({"content": "One."}, {"content": "Two."}, {"content": ""}, created=1),
    reply({"content": "Hello.", "reasoning_content": "I think."}),
]
OTHER_REPLIES = [
    reply({"content": None}),
    reply({"content": "Hello.", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}),
    reply({"content": "Hello.", "audio": {"data": "aGk="}}),
    reply({"content": "Hello.", "unknown": 1}),
    reply({"content": "Hello."}, unknown="x"),
    reply({"content": "half a wo"}, {"content": "rd"}),
    reply({"content": "Ig"}, {"content": "n"}, {"content": "ore"}),
    {**reply({"content": "Hi."}), "choices": [{"message": {"content": "Hi."}, "logprobs": {"content": []}}]},
]


@pytest.mark.parametrize("body", USUAL_PROMPTS)
def test_a_usual_prompt_is_one_text_at_once(body: dict[str, Any]) -> None:
    prompt, leaves = DIALECT.read(body)
    walked = DIALECT.prompt_leaves(prompt)
    assert leaves.usual == join(walked.texts).text
    assert leaves.texts == walked.texts


@pytest.mark.parametrize("body", OTHER_PROMPTS)
def test_another_prompt_takes_the_walk(body: dict[str, Any]) -> None:
    if body["messages"][0]["content"] is None:
        body["messages"][0]["role"] = "assistant"
    prompt, leaves = DIALECT.read(body)
    assert leaves.usual is None
    assert leaves.texts == DIALECT.prompt_leaves(prompt).texts


@pytest.mark.parametrize("body", USUAL_REPLIES)
def test_a_usual_reply_is_one_text_at_once(body: dict[str, Any]) -> None:
    read = DIALECT.read_reply(body)
    assert DIALECT.usual_reply(read) == join(DIALECT.reply_texts(read).texts).text


@pytest.mark.parametrize("body", OTHER_REPLIES)
def test_another_reply_takes_the_walk(body: dict[str, Any]) -> None:
    assert DIALECT.usual_reply(DIALECT.read_reply(body)) is None


def test_the_texts_of_a_reply_are_those_of_its_parts() -> None:
    read = DIALECT.read_reply(USUAL_REPLIES[2])
    parts = DIALECT.reply_leaves(read)
    of_parts = [leaf for part in (*parts.choices, parts.outside) for leaf in part.texts]
    assert sorted(leaf.place for leaf in DIALECT.reply_texts(read).texts) == sorted(leaf.place for leaf in of_parts)
