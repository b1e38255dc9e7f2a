"""A streamed chat completion: its chunks put together to a whole one, and chunks made of what may leave. Pure.

Content, refusal and reasoning are channels, whose texts grow. Tool calls and whatever else a provider adds are put
together here and given out whole. Shape:
https://platform.openai.com/docs/api-reference/chat-streaming.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio.lowlevel

from gateway.llm.base import MOST_TOKENS, UpstreamFault
from gateway.llm.masking import strings
from gateway.llm.openai_request import MAX_CHOICES
from gateway.records import record

CHUNK, WHOLE = "chat.completion.chunk", "chat.completion"
MAX_TOOL_CALLS = 1_000
# Texts of these names may leave while they grow. Others wait for the end, since a name may itself be a secret.
_CHANNELS = frozenset(("content", "refusal", "reasoning", "reasoning_content"))
_CALLS = "tool_calls"
_OLD_CALL = "function_call"
# Of a tool call these grow; the others come once.
_GROWING = ("arguments", "input")

Event = Mapping[str, Any]
"""One event of a stream, as JSON is written of it."""


@record
class Piece:
    """Some more text of a reply. channel: which of the texts of a choice it continues."""

    channel: str
    text: str


def stream_body(body: Mapping[str, object]) -> dict[str, object]:
    """Return the body that asks an upstream for a stream with its usage."""
    options = body.get("stream_options")
    options = options if isinstance(options, dict) else {}
    return {**body, "stream": True, "stream_options": {**options, "include_usage": True}}


class _Parts(list[str]):
    """A text that grows."""


@dataclass(slots=True, eq=False)
class Choice:
    """One choice so far. calls: tool calls by their index. others: fields of deltas that are no text."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    around: dict[str, Any] = field(default_factory=dict)
    logprobs: dict[str, list[Any]] = field(default_factory=dict)
    finish_reason: str | None = None
    role: str = "assistant"

    def text(self, channel: str) -> str:
        """Return what the channel says so far."""
        parts = self.texts.get(channel, [])
        if len(parts) > 1:
            parts[:] = ["".join(parts)]
        return parts[0] if parts else ""

    def message(self) -> dict[str, Any]:
        """Return the message so far, as a whole completion has it."""
        message: dict[str, Any] = {"role": self.role, "content": None, **self.others}
        message |= {channel: self.text(channel) for channel in self.texts}
        if self.calls:
            message[_CALLS] = [_joined(call) for _, call in sorted(self.calls.items())]
        if _OLD_CALL in message:
            message[_OLD_CALL] = _joined(message[_OLD_CALL])
        return message


class ChatAssembly:
    """A completion that is put together from its chunks.

    choices: by their index. around: what stands outside of the choices. chars: of all texts so far.
    """

    def __init__(self, max_chars: int) -> None:
        self.choices: dict[int, Choice] = {}
        self.around: dict[str, Any] = {}
        self.usage: Mapping[str, Any] | None = None
        self.chars = 0
        self._max_chars = max_chars

    @property
    def is_complete(self) -> bool:
        """Whether every choice has said why it ends."""
        return bool(self.choices) and all(choice.finish_reason for choice in self.choices.values())

    def take(self, chunk: Mapping[str, object]) -> list[tuple[int, Piece]]:
        """Take the next chunk; return the texts that it adds, each with the index of its choice.

        Raises:
            UpstreamFault: it is no chunk, or the completion is longer than can be scanned.
        """
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            raise _no_chunk()
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage = usage
        for name, value in chunk.items():
            if name not in ("choices", "usage", "object"):
                self.around.setdefault(name, value)
        added: list[tuple[int, Piece]] = []
        for place, entry in enumerate(choices):
            index = entry.get("index", place) if isinstance(entry, dict) else None
            # An upstream that does not stream answers with a whole message.
            delta = None if index is None else entry.get("delta", entry.get("message"))
            if type(index) is not int or not 0 <= index < MAX_CHOICES or not isinstance(delta, dict | None):
                raise _no_chunk()
            choice = self.choices.setdefault(index, Choice())
            added += [(index, piece) for piece in self._delta(choice, delta or {})]
            self._ending(choice, entry)
        if self.chars > self._max_chars:
            raise UpstreamFault("The model gateway answered more than can be scanned.", detail="its answer is too long")
        return added

    def _delta(self, choice: Choice, delta: Mapping[str, Any]) -> Iterator[Piece]:
        for name, value in delta.items():
            if value is None:
                continue
            if name == "role":
                choice.role = value if isinstance(value, str) else choice.role
            elif name == _CALLS:
                self._calls(choice, value)
            elif name == _OLD_CALL and isinstance(value, dict):
                self._grow(choice.others.setdefault(_OLD_CALL, {}), value)
            elif isinstance(value, str):
                self.chars += len(value)
                choice.texts.setdefault(name, []).append(value)
                if value and name in _CHANNELS:
                    yield Piece(name, value)
            elif isinstance(value, list) and isinstance(choice.others.get(name), list):
                choice.others[name] += value
            else:
                choice.others[name] = value

    def _ending(self, choice: Choice, entry: Mapping[str, Any]) -> None:
        reason, logprobs = entry.get("finish_reason"), entry.get("logprobs")
        if reason is not None:
            if not isinstance(reason, str):
                raise _no_chunk()
            choice.finish_reason = reason
        if isinstance(logprobs, dict):
            for name, rows in logprobs.items():
                if isinstance(rows, list):
                    choice.logprobs.setdefault(name, []).extend(rows)
        for name, value in entry.items():
            if name not in ("index", "delta", "message", "finish_reason", "logprobs") and value is not None:
                choice.around[name] = value

    def _calls(self, choice: Choice, calls: Any) -> None:
        if not isinstance(calls, list):
            raise _no_chunk()
        for place, call in enumerate(calls):
            index = call.get("index", place) if isinstance(call, dict) else None
            if type(index) is not int or not 0 <= index < MAX_TOOL_CALLS:
                raise _no_chunk()
            known = choice.calls.setdefault(index, {})
            for name, value in call.items():
                if isinstance(value, dict) and isinstance(known.get(name, {}), dict):
                    self._grow(known.setdefault(name, {}), value)
                elif name != "index" and value is not None:
                    known[name] = value

    def _grow(self, known: dict[str, Any], more: Mapping[str, Any]) -> None:
        for name, value in more.items():
            if isinstance(value, str):
                self.chars += len(value)
                if name in _GROWING:
                    known.setdefault(name, _Parts()).append(value)
                else:
                    known[name] = value
            elif value is not None:
                known[name] = value

    def channels(self, index: int) -> Collection[str]:
        """Return the channels of a choice so far."""
        return [name for name in self.choices[index].texts if name in _CHANNELS]

    def texts(self) -> Iterator[str]:
        """Yield every text that a model wrote so far."""
        for choice in self.choices.values():
            yield from strings(choice.message())

    def body(self) -> dict[str, Any]:
        """Return the completion so far, in the shape of one that is not streamed."""
        choices = [
            {
                "index": index,
                "message": choice.message(),
                "logprobs": choice.logprobs or None,
                "finish_reason": choice.finish_reason,
                **choice.around,
            }
            for index, choice in sorted(self.choices.items())
        ]
        return {**self.around, "object": WHOLE, "choices": choices, "usage": self.usage}


def counted(usage: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Return the tokens of prompt and reply that an upstream reports; None for one that it does not."""
    prompt, reply = (
        min(value, MOST_TOKENS) if type(value) is int and value >= 0 else None  # no truth value
        for value in (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    )
    return prompt, reply


def _joined(value: Any) -> Any:
    """Return a tool call with its growing fields as strings."""
    if isinstance(value, _Parts):
        return "".join(value)
    return {name: _joined(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def _no_chunk() -> UpstreamFault:
    return UpstreamFault(
        "The model gateway answered something that is no chat completion.", detail="its stream holds no chunk of a chat"
    )


class ChatChunks:
    """Makes the chunks that a client gets of one completion.

    around: what stands in each beside the choices. with_usage: whether each has a usage, null in all but the last.
    """

    def __init__(self, around: Mapping[str, Any], *, with_usage: bool) -> None:
        self._around = {**around, "object": CHUNK}
        self._usage: dict[str, Any] = {"usage": None} if with_usage else {}
        self._begun: set[int] = set()

    def delta(self, index: int, delta: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Return a chunk with a delta of one choice; the first of each says the role. more: beside the delta."""
        first = {} if index in self._begun else {"role": "assistant"}
        self._begun.add(index)
        choice = {"index": index, "delta": {**first, **delta}, "logprobs": None, "finish_reason": None, **more}
        return {**self._around, "choices": [choice], **self._usage}

    def rest(self, choice: Mapping[str, Any], *, but: Collection[str], with_logprobs: bool) -> list[dict[str, Any]]:
        """Return the chunks for a whole choice without some channels, and for its end."""
        index, chunks = choice["index"], []
        left_out = {"role", *but}
        delta = {name: value for name, value in choice["message"].items() if name not in left_out and value is not None}
        if isinstance(calls := delta.get(_CALLS), list):
            delta[_CALLS] = [{"index": place, **call} for place, call in enumerate(calls)]
        if delta:
            more = {"logprobs": choice["logprobs"]} if with_logprobs else {}
            chunks.append(self.delta(index, delta, **more))
        told = {name: value for name, value in choice.items() if name not in ("index", "message", "logprobs")}
        return [*chunks, self.delta(index, {}, **told)]

    def block(self, index: int) -> dict[str, Any]:
        """Return the chunk that ends a choice that the shield blocked."""
        return self.delta(index, {}, finish_reason="content_filter")

    def usage(self, usage: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the last chunk, if usage was asked for."""
        return [{**self._around, "choices": [], "usage": usage}] if self._usage else []


class StoredStream:
    """A stream whose chunks are made here."""

    def __init__(self, chunks: Iterable[Mapping[str, object]]) -> None:
        self._chunks = iter(chunks)
        self.headers: tuple[tuple[str, str], ...] = ()
        self.has_key = False

    async def next(self) -> Mapping[str, object] | None:
        await anyio.lowlevel.checkpoint()
        return next(self._chunks, None)

    def without_key(self, text: str) -> str:
        return text

    def close(self) -> None:
        self._chunks = iter(())
