"""The built-in model `echo`: answers with the last user prompt, offline. Knows no provider.

Counting rule. A token is up to six letters, digits or underscores, or one other character that is no white space; the
white space before it belongs to it. A prompt's tokens are those of all texts of its messages, each text counted by
itself. The rule is no vendor's; it is exact, so that limits, budgets and usage can be tried without a provider.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.clock import Clock, Ids
from gateway.errors import InvalidRequest
from gateway.llm.base import Prompt, Reply
from gateway.llm.openai_stream import ChatChunks, StoredStream
from gateway.offload import ThreadOffload
from gateway.settings import MAX_CHAT_CHARS

ECHO_MODEL = "echo"
MAX_ECHO_CHARS = MAX_CHAT_CHARS
"""Bound of all choices together."""
_LONG_CHARS = 20_000
_MOST_CHUNKS = 1_000  # of each choice
_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")


class EchoModel:
    """An upstream that is a function."""

    def __init__(self, *, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._offload = ThreadOffload()

    async def complete(self, prompt: Prompt, traceparent: str | None = None) -> Reply:
        """Answer with the text of the last user message. `n`, `max_completion_tokens` and `max_tokens` are obeyed.

        Raises:
            InvalidRequest: `n` times the text is longer than `MAX_ECHO_CHARS`.
        """
        body = prompt.body
        messages = body["messages"]
        assert isinstance(messages, list)
        last = next((message for message in reversed(messages) if message["role"] == "user"), messages[-1])
        text, finish_reason = cut("".join(_texts(last)), _limit(body))
        count = body.get("n")
        choices = count if isinstance(count, int) else 1
        if choices * len(text) > MAX_ECHO_CHARS:
            raise InvalidRequest("n times the length of the prompt is more than echo answers.", param="n")
        texts = [text, *(one for message in messages for one in _texts(message))]
        is_long = sum(map(len, texts)) > _LONG_CHARS
        of_reply, *of_prompt = await self._offload.run(_counts, texts) if is_long else _counts(texts)
        prompt_tokens, reply_tokens = sum(of_prompt), choices * of_reply
        answer = {
            "id": self._ids.new("chatcmpl").replace("_", "-", 1),
            "object": "chat.completion",
            "created": self._clock.now_at() // 1000,
            "model": ECHO_MODEL,
            "choices": [
                {
                    "index": index,
                    "message": {"role": "assistant", "content": text, "refusal": None},
                    "logprobs": None,
                    "finish_reason": finish_reason,
                }
                for index in range(choices)
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": reply_tokens,
                "total_tokens": prompt_tokens + reply_tokens,
            },
        }
        return Reply(answer, prompt_tokens=prompt_tokens, completion_tokens=reply_tokens)

    async def stream(self, prompt: Prompt, traceparent: str | None = None) -> StoredStream:
        """Answer the same in pieces of a token or, if the text is long, of a thousandth. Raises as `complete`."""
        return StoredStream(_chunks((await self.complete(prompt, traceparent)).body))

    async def models(self) -> tuple[Mapping[str, object], ...]:
        """Return the one model there is."""
        return ({"id": ECHO_MODEL, "object": "model", "created": 0, "owned_by": "gateway"},)


def _chunks(body: Mapping[str, Any]) -> Iterator[Mapping[str, object]]:
    maker = ChatChunks({name: body[name] for name in ("id", "created", "model")}, with_usage=True)
    for choice in body["choices"]:
        text, index, begin = choice["message"]["content"], choice["index"], 0
        least = len(text) // _MOST_CHUNKS
        for token in _TOKEN.finditer(text):
            if token.end() - begin > least:
                yield maker.delta(index, {"content": text[begin : token.end()]})
                begin = token.end()
        yield maker.delta(index, {"content": text[begin:]}, finish_reason=choice["finish_reason"])
    yield from maker.usage(body["usage"])


def count_tokens(text: str) -> int:
    """Count tokens by the rule at the head of this file."""
    return sum(1 for _ in _TOKEN.finditer(text))


def _counts(texts: Sequence[str]) -> list[int]:
    return [count_tokens(text) for text in texts]


def cut(text: str, limit: int | None) -> tuple[str, str]:
    """Return at most `limit` tokens of `text` and the finish reason: ``stop`` for all of it, else ``length``."""
    if limit is None:
        return text, "stop"
    end = 0
    for number, token in enumerate(_TOKEN.finditer(text)):
        if number == limit:
            return text[:end], "length"
        end = token.end()
    return text, "stop"


def _limit(body: Mapping[str, object]) -> int | None:
    """Return the smaller of the two limits a request may set. Less than one token is no limit."""
    values = (body.get("max_completion_tokens"), body.get("max_tokens"))
    return min((value for value in values if isinstance(value, int) and value > 0), default=None)


def _texts(message: Mapping[str, object]) -> list[str]:
    content = message.get("content")
    parts = [part.get("text") for part in content] if isinstance(content, list) else [content]
    return [text for text in parts if isinstance(text, str)]
