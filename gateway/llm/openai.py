"""The OpenAI chat completions dialect: where the texts of a request and of a reply stand, and a reply's shape.

What is unknown is passed on, and read like everything else: only the words of the dialect itself are left out of a
scan. Shapes: https://platform.openai.com/docs/api-reference/chat.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from gateway.errors import BodyTooLarge, UpstreamUnavailable
from gateway.llm.base import ChatRequest, LeafKind, Leaves, Prompt, Reply, ReplyLeaves
from gateway.llm.leaves import Walk
from gateway.llm.masking import masked_choice, with_joined_parts, with_strings, withheld_choice
from gateway.llm.openai_request import TEXT_FIELDS, WORDS, check_request
from gateway.llm.openai_stream import ChatChunks, counted
from gateway.settings import MAX_CHAT_CHARS

# What a reply may hold, as it comes out of JSON: no subclasses.
_SAID, _CALLS, _WORD = (str, list, type(None)), (list, type(None)), (str, type(None))
MAX_PROMPT_NODES = 100_000
MAX_REPLY_NODES = 2_000_000

_TEXT_PARTS = frozenset((*TEXT_FIELDS, "thinking", "reasoning"))
_FILE_PARTS = frozenset(("input_audio", "audio", "file", "input_file", "image", "input_image", "video"))
_FILE_FIELDS = ("data", "file_data")
_TOOLS = ("tools", "functions")


@dataclass(frozen=True, slots=True)
class OpenAiDialect:
    """Reads requests and replies of POST /chat/completions.

    max_chars, max_reply_chars: of all texts of a request or reply together. max_messages: of one request.
    """

    max_chars: int = MAX_CHAT_CHARS
    max_messages: int = 2_000
    max_reply_chars: int = 1 << 24

    def read(self, body: object, raw: bytes | None = None, *, may_stream: bool = False) -> ChatRequest:
        """Check a parsed body; return it with every text of it that reaches the model. raw: the JSON of `body`.

        Raises:
            InvalidRequest: a field is missing or of the wrong type; `param` is its path.
            UnsupportedValue: `stream` is true and it `may_stream` not. BodyTooLarge: more text or values than allowed.
        """
        prompt = check_request(body, max_messages=self.max_messages, raw=raw, may_stream=may_stream)
        return ChatRequest(prompt, self.prompt_leaves(prompt))

    def prompt_leaves(self, prompt: Prompt) -> Leaves:
        """Return every text of the prompt that reaches the model.

        Raises:
            BodyTooLarge: more text or more values than allowed.
        """
        # The name of the model is scanned like all else, but it is no text of a chat.
        walk = Walk(WORDS, max_chars=self.max_chars, max_nodes=MAX_PROMPT_NODES, free_chars=len(prompt.model))
        messages = prompt.body["messages"]
        assert isinstance(messages, list)
        for index, message in enumerate(messages):
            _walk_message(walk, message, f"messages[{index}]")
        walk.fields(prompt.body, "", but=("messages", *_TOOLS))
        walk.fields({name: prompt.body[name] for name in _TOOLS if name in prompt.body}, "", LeafKind.TOOL)
        return walk.leaves()

    def read_reply(self, body: object) -> Reply:
        """Check a parsed answer; return it with its counts of tokens.

        Raises:
            UpstreamUnavailable: it is no completion.
        """
        choices, usage = (body.get("choices"), body.get("usage")) if isinstance(body, dict) else (None, None)
        is_whole = isinstance(choices, list) and choices and all(map(_is_choice, choices))
        if not isinstance(body, dict) or not is_whole or not isinstance(usage, dict | None):
            raise UpstreamUnavailable("The model gateway answered something that is no chat completion.")
        return Reply(body, (), *counted(usage or {}))

    def reply_leaves(self, reply: Reply) -> ReplyLeaves:
        """Return every text of the reply that reaches the client.

        Raises:
            UpstreamUnavailable: more text or more values than allowed.
        """
        outside, *inside = (
            Walk(WORDS, max_chars=self.max_reply_chars, max_nodes=MAX_REPLY_NODES) for _ in (reply, *_choices(reply))
        )
        try:
            for index, (walk, choice) in enumerate(zip(inside, _choices(reply), strict=True)):
                _walk_choice(walk, choice, f"choices[{index}]")
            outside.fields(reply.body, "", but=("choices",))
        except BodyTooLarge as error:
            raise UpstreamUnavailable("The model gateway answered more than can be scanned.") from error
        return ReplyLeaves(tuple(walk.leaves() for walk in inside), outside.leaves())

    def joined(self, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return the body of a prompt or reply with neighbouring text parts of a message as one."""
        messages, choices = body.get("messages"), body.get("choices")
        changed: dict[str, object] = {}
        if isinstance(messages, list):
            changed["messages"] = [with_joined_parts(message) for message in messages]
        if isinstance(choices, list):
            changed["choices"] = [
                {**choice, "message": with_joined_parts(choice["message"])} if _has_message(choice) else choice
                for choice in choices
            ]
        return {**body, **changed}

    def masked_reply(self, reply: Reply, masks: Mapping[str, str]) -> Reply:
        """Return the reply with texts exchanged, and without the log probabilities of choices that were changed."""
        return self._with_choices(reply, [masked_choice(choice, masks) for choice in _choices(reply)], masks)

    def withheld(self, reply: Reply, choices: Collection[int], masks: Mapping[str, str]) -> Reply:
        """Return the reply with a notice in place of some choices, and texts exchanged outside of all choices."""
        numbered = enumerate(_choices(reply))
        kept = [withheld_choice(choice, index) if index in choices else choice for index, choice in numbered]
        return self._with_choices(reply, kept, masks)

    def has_many(self, prompt: Prompt) -> bool:
        """Tell whether a prompt asks for several choices."""
        count = prompt.body.get("n")
        return isinstance(count, int) and count > 1

    def events(self, prompt: Prompt, around: Mapping[str, Any]) -> ChatChunks:
        """Return what makes the chunks of the reply to a prompt. around: what stands in each beside the choices."""
        options = prompt.body.get("stream_options")
        return ChatChunks(around, with_usage=isinstance(options, dict) and options.get("include_usage") is True)

    def _with_choices(self, reply: Reply, choices: Sequence[object], masks: Mapping[str, str]) -> Reply:
        outside = with_strings(self.outside(reply), masks)
        assert isinstance(outside, dict)
        return reply.with_body({**outside, "choices": choices})

    def outside(self, reply: Reply) -> dict[str, object]:
        """Return the body of the reply without its choices, in the order of its fields."""
        return {**reply.body, "choices": None}

    def bare(self, reply: Reply) -> Reply:
        """Return the reply with nothing but its choices."""
        return reply.with_body({"object": "chat.completion", "choices": reply.body["choices"]})


def _choices(reply: Reply) -> list[dict[str, object]]:
    choices = reply.body["choices"]
    assert isinstance(choices, list)
    return choices


def _has_message(choice: object) -> bool:
    return isinstance(choice, dict) and "message" in choice


def _is_choice(choice: object) -> bool:
    message = choice.get("message") if isinstance(choice, dict) else None
    return (
        isinstance(choice, dict)
        and isinstance(message, dict)
        and type(message.get("content")) in _SAID
        and type(message.get("tool_calls")) in _CALLS
        and type(choice.get("finish_reason")) in _WORD
    )


def _walk_choice(walk: Walk, choice: Mapping[str, object], place: str) -> None:
    message, logprobs = choice.get("message"), choice.get("logprobs")
    if isinstance(message, dict):
        _walk_message(walk, message, f"{place}.message")
    else:
        walk.collect(message, f"{place}.message")
    if logprobs is not None:
        _walk_logprobs(walk, logprobs, f"{place}.logprobs")
    walk.fields(choice, place, but=("message", "logprobs"))


def _walk_message(walk: Walk, message: Mapping[str, object], place: str) -> None:
    """Collect a message: its content as conversation, everything else as fields."""
    content, audio = message.get("content"), message.get("audio")
    if isinstance(content, str):
        walk.piece(content, f"{place}.content")
    elif isinstance(content, list):
        for index, part in enumerate(content):
            _walk_part(walk, part, f"{place}.content[{index}]")
    if isinstance(audio, dict) and "data" in audio:
        if not _walk_files(walk, audio, f"{place}.audio", may_be_bare=True):
            walk.unscanned(f"{place}.audio", "audio")
        message = {name: value for name, value in message.items() if name != "audio"}
    walk.fields(message, place, but=("content",))


def _walk_part(walk: Walk, part: object, place: str) -> None:
    if not isinstance(part, dict):
        walk.collect(part, place, LeafKind.CONTENT)
        return
    kind = part.get("type")
    if isinstance(kind, str) and kind in _TEXT_PARTS:
        fields = ("text", TEXT_FIELDS.get(kind, kind))
        for name, value in part.items():
            at = walk.key(name, place)
            if name in fields and isinstance(value, str):
                walk.step()
                walk.piece(value, at)
            else:
                walk.collect(value, at)
        return
    text = part.get("text")
    if isinstance(text, str) and not _is_data_url(text):  # who knows the kind, or does not care, reads it as text
        walk.step()
        walk.piece(text, f"{place}.text")
        part = {name: value for name, value in part.items() if name != "text"}
    if not _walk_files(walk, part, place, may_be_bare=isinstance(kind, str) and kind in _FILE_PARTS):
        walk.unscanned(place, kind)


def _walk_files(walk: Walk, value: object, place: str, *, may_be_bare: bool) -> bool:
    """Collect what may carry a file; tell whether it does, and all of it was read.

    may_be_bare: whether `data` and `file_data` hold base64 without a data: URL around it.
    """
    readable: list[bool] = []

    def visit(item: object, at: str, name: str) -> None:
        walk.step()
        if isinstance(item, str):
            is_bare = may_be_bare and name in _FILE_FIELDS
            if is_bare or _is_data_url(item):
                readable.append(walk.payload(item, at, is_bare=is_bare))
                return
        if isinstance(item, dict):
            for key, inner in item.items():
                visit(inner, walk.key(key, at), key)
        elif isinstance(item, list):
            for index, inner in enumerate(item):
                visit(inner, f"{at}[{index}]", name)
        else:
            walk.collect(item, at)

    visit(value, place, "")
    return bool(readable) and all(readable)


def _is_data_url(text: str) -> bool:
    return text[:64].lstrip()[:5].lower() == "data:"


def _walk_logprobs(walk: Walk, value: object, place: str) -> None:
    """Collect log probabilities: tokens are pieces of one text and are read as that text, and so are their bytes."""
    tokens: list[str] = []
    others: list[str] = []
    octets = bytearray()

    def visit(item: object, at: str, depth: int) -> None:
        walk.step()
        if isinstance(item, list):
            for inner in item:
                visit(inner, at, depth)
            return
        if not isinstance(item, dict):
            walk.collect(item, at)
            return
        for key, inner in item.items():
            if key == "token" and isinstance(inner, str):
                (tokens if depth < 2 else others).append(inner)
            elif key == "bytes" and _is_octets(inner):
                octets.extend(inner if depth < 2 else (*inner, 10))
            else:
                visit(inner, walk.key(key, at), depth + 1)

    visit(value, place, 0)
    joined = "".join(tokens)
    walk.text(joined, place, view="tokens")
    walk.text("\n".join(others), place, view="tokens")
    if (said := octets.decode("utf-8", "replace")) != joined:
        walk.text(said, place, view="bytes")


def _is_octets(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and 0 <= item <= 255 for item in value)
