"""The OpenAI chat completions dialect: where the texts of a request and of a reply stand, and a reply's shape.

What is unknown is passed on, and read like everything else: only the words of the dialect itself are left out of a
scan. Shapes: https://platform.openai.com/docs/api-reference/chat.
"""

from collections.abc import Mapping
from typing import TypeGuard

from gateway.errors import BodyTooLarge, UpstreamUnavailable
from gateway.llm.base import MOST_TOKENS, LeafKind, Leaves, Prompt, Reply, ReplyLeaves
from gateway.llm.leaves import Walk
from gateway.llm.openai_request import ROLES, TEXT_FIELDS, check_request
from gateway.llm.openai_words import WORDS
from gateway.settings import MAX_CHAT_CHARS

# What a reply may hold, as it comes out of JSON: no subclasses.
_SAID, _CALLS, _WORD = (str, list, type(None)), (list, type(None)), (str, type(None))
MAX_PROMPT_NODES = 100_000
MAX_REPLY_NODES = 2_000_000

_TEXT_PARTS = frozenset((*TEXT_FIELDS, "thinking", "reasoning"))
_FILE_PARTS = frozenset(("input_audio", "audio", "file", "input_file", "image", "input_image", "video"))
_FILE_FIELDS = ("data", "file_data")
_TOOLS = ("tools", "functions")
_READ_BEFORE = ("messages", *_TOOLS)
_READ_APART = ("message", "logprobs")
_CHOICES, _CONTENT_FIELD = ("choices",), ("content",)


class OpenAiDialect:
    """Reads requests and replies of POST /chat/completions.

    max_chars: of all texts of a request together. max_messages: of one request.
    """

    def __init__(
        self, *, max_chars: int = MAX_CHAT_CHARS, max_messages: int = 2_000, max_reply_chars: int = 1 << 24
    ) -> None:
        self._max_chars = max_chars
        self._max_messages = max_messages
        self._max_reply_chars = max_reply_chars

    def read_prompt(self, body: object) -> Prompt:
        """Check a parsed body; `stream` before all else, since a client that wants a stream must not wait for 400.

        Raises:
            InvalidRequest: a field is missing or of the wrong type; `param` is its path.
            UnsupportedValue: `stream` is true.
        """
        return check_request(body, max_messages=self._max_messages).prompt

    def read(self, body: object, raw: bytes | None = None) -> tuple[Prompt, Leaves]:
        """Do what `read_prompt` and `prompt_leaves` do, and look at each field once. raw: the JSON of `body`."""
        checked = check_request(body, max_messages=self._max_messages, raw=raw)
        return checked.prompt, self._leaves(checked.prompt, checked.said)

    def prompt_leaves(self, prompt: Prompt) -> Leaves:
        """Return every text of the prompt that reaches the model.

        Raises:
            BodyTooLarge: more text or more values than allowed.
        """
        return self._leaves(prompt, prompt.body)

    def _leaves(self, prompt: Prompt, said: Mapping[str, object]) -> Leaves:
        # The name of the model is scanned like all else, but it is no text of a chat.
        walk = Walk(WORDS, max_chars=self._max_chars, max_nodes=MAX_PROMPT_NODES, free_chars=len(prompt.model))
        messages = prompt.body["messages"]
        assert isinstance(messages, list)
        for index, message in enumerate(messages):
            content = message.get("content")
            if len(message) == 2 and type(content) is str:  # the other field is its role, as in nearly all messages
                walk.piece(content, f"messages[{index}].content")
            else:
                _walk_message(walk, message, f"messages[{index}]")
        walk.fields(said, "", but=_READ_BEFORE)
        if "tools" in said or "functions" in said:
            tools = {name: said[name] for name in _TOOLS if name in said}
            walk.fields(tools, "", LeafKind.TOOL)
        return walk.leaves()

    def read_reply(
        self,
        body: object,
        *,
        headers: tuple[tuple[str, str], ...] = (),
        is_large: bool = False,
        raw: bytes | None = None,
    ) -> Reply:
        """Check a parsed answer. The rest is for the record, see `Reply`.

        Raises:
            UpstreamUnavailable: it is no completion.
        """
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(body, dict) or not isinstance(choices, list) or not choices:
            raise _no_completion()
        for choice in choices:
            message = choice.get("message") if isinstance(choice, dict) else None
            if (
                not isinstance(message, dict)
                or type(message.get("content")) not in _SAID
                or type(message.get("tool_calls")) not in _CALLS
                or type(choice.get("finish_reason")) not in _WORD
            ):
                raise _no_completion()
        usage = body.get("usage")
        if usage is None:
            return Reply(body, headers, None, None, is_large, raw)
        if not isinstance(usage, dict):
            raise _no_completion()
        sent, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
        # A count is a whole number that is no truth value.
        return Reply(
            body,
            headers,
            min(sent, MOST_TOKENS) if type(sent) is int and sent >= 0 else None,
            min(made, MOST_TOKENS) if type(made) is int and made >= 0 else None,
            is_large,
            raw,
        )

    def reply_texts(self, reply: Reply) -> Leaves:
        """Return every text of the reply that reaches the client, one choice after the other.

        Raises:
            UpstreamUnavailable: more text or more values than allowed.
        """
        choices = reply.body["choices"]
        assert isinstance(choices, list)
        parts = 1 + len(choices)
        walk = Walk(WORDS, max_chars=parts * self._max_reply_chars, max_nodes=parts * MAX_REPLY_NODES)
        try:
            for index, choice in enumerate(choices):
                _walk_choice(walk, choice, f"choices[{index}]")
            walk.fields(reply.body, "", but=_CHOICES)
        except BodyTooLarge as error:
            raise UpstreamUnavailable("The model gateway answered more than can be scanned.") from error
        return walk.leaves()

    def reply_leaves(self, reply: Reply) -> ReplyLeaves:
        """Return every text of the reply that reaches the client.

        Raises:
            UpstreamUnavailable: more text or more values than allowed.
        """
        choices = reply.body["choices"]
        assert isinstance(choices, list)
        try:
            inside = [self._choice_leaves(choice, f"choices[{index}]") for index, choice in enumerate(choices)]
            walk = self._reply_walk()
            walk.fields(reply.body, "", but=_CHOICES)
        except BodyTooLarge as error:
            raise UpstreamUnavailable("The model gateway answered more than can be scanned.") from error
        return ReplyLeaves(tuple(inside), walk.leaves())

    def _choice_leaves(self, choice: Mapping[str, object], place: str) -> Leaves:
        walk = self._reply_walk()
        _walk_choice(walk, choice, place)
        return walk.leaves()

    def _reply_walk(self) -> Walk:
        return Walk(WORDS, max_chars=self._max_reply_chars, max_nodes=MAX_REPLY_NODES)


def _no_completion() -> UpstreamUnavailable:
    return UpstreamUnavailable("The model gateway answered something that is no chat completion.")


def _walk_choice(walk: Walk, choice: Mapping[str, object], place: str) -> None:
    message, logprobs = choice.get("message"), choice.get("logprobs")
    if isinstance(message, dict):
        _walk_message(walk, message, f"{place}.message")
    else:
        walk.collect(message, f"{place}.message")
    if logprobs is not None:
        _walk_logprobs(walk, logprobs, f"{place}.logprobs")
    walk.fields(choice, place, but=_READ_APART)


def _walk_message(walk: Walk, message: Mapping[str, object], place: str) -> None:
    """Collect a message: its content as conversation, everything else as fields."""
    content, audio = message.get("content"), message.get("audio")
    if isinstance(content, str):
        walk.piece(content, f"{place}.content")
        if len(message) == 2 and message.get("role") in ROLES:
            return
    elif isinstance(content, list):
        for index, part in enumerate(content):
            _walk_part(walk, part, f"{place}.content[{index}]")
    if isinstance(audio, dict) and "data" in audio:
        if not _walk_files(walk, audio, f"{place}.audio", may_be_bare=True):
            walk.unscanned(f"{place}.audio", "audio")
        message = {name: value for name, value in message.items() if name != "audio"}
    walk.fields(message, place, but=_CONTENT_FIELD)


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
