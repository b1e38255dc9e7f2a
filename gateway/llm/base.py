"""What passes between the chat, the dialect and the upstreams: records and one protocol. Names no transport."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from gateway.domain.policies import UnscannedPart
from gateway.errors import GatewayError, UpstreamUnavailable

MOST_TOKENS = 10**8
"""More than any reply takes. A larger count of an upstream is cut to this, so that no sum overflows."""


class LeafKind(StrEnum):
    """Which part a text plays in a request or reply.

    CONTENT: what the conversation says; neighbours are also read as one text. TOOL: names, descriptions and schemas
    of tools. FIELD: everything else.
    """

    CONTENT = "content"
    FIELD = "field"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One text that reaches the model or the client.

    place: path of the text, such as ``messages[1].content``; a key that is no word of the dialect stands as ``*``,
    since it may itself be a secret. view: empty for the text as sent, else how it was decoded: ``json``, ``url``,
    ``base64``, ``bytes``, ``tokens``.
    """

    place: str
    text: str
    kind: LeafKind = LeafKind.FIELD
    view: str = ""


@dataclass(frozen=True, slots=True)
class Leaves:
    """Every text of one request or of one part of a reply, and the places that hold something no one can read."""

    texts: tuple[Leaf, ...] = ()
    unscanned: tuple[UnscannedPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A checked chat request.

    raw: the strict JSON that it was read from, if nothing of it was changed; None to write `body` anew. user: the end
    user whom it names.
    """

    model: str
    body: Mapping[str, object] = field(repr=False)
    raw: bytes | None = field(default=None, repr=False)
    user: str | None = None

    @property
    def is_streamed(self) -> bool:
        """Whether the completion is wanted in pieces."""
        return self.body.get("stream") is True

    @property
    def offers_tools(self) -> bool:
        """Whether it has a list of tools."""
        return "tools" in self.body or "functions" in self.body


@dataclass(frozen=True, slots=True)
class Reply:
    """A checked completion.

    headers: the few of the upstream's that may be passed on, lower-case names. Token counts are None when the upstream
    reports none. is_large: walk through it in a thread. raw: the strict JSON that it was read from, if nothing of it
    was changed; None to write `body` anew. has_key: the provider had repeated the gateway's own key, which was masked.
    """

    body: Mapping[str, object]
    headers: tuple[tuple[str, str], ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    is_large: bool = False
    raw: bytes | None = None
    has_key: bool = False

    def with_body(self, body: Mapping[str, object]) -> "Reply":
        """Return this reply with another body."""
        return replace(self, body=body, raw=None)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A checked request and every text of it."""

    prompt: Prompt
    leaves: Leaves


@dataclass(frozen=True, slots=True)
class ReplyLeaves:
    """The texts of a reply: one entry a choice, in order, and what stands outside of the choices."""

    choices: tuple[Leaves, ...]
    outside: Leaves

    def together(self) -> Leaves:
        """Return all texts, content first, so that neighbours in the conversation stay neighbours."""
        parts = (*self.choices, self.outside)
        texts = sorted(
            (leaf for part in parts for leaf in part.texts), key=lambda leaf: leaf.kind is not LeafKind.CONTENT
        )
        return Leaves(tuple(texts), tuple(one for part in parts for one in part.unscanned))


class UpstreamFault(UpstreamUnavailable):
    """No completion came back. message: for the caller, without names and addresses.

    detail: for the operator, without keys. status: of the upstream's answer, None if there was none. may_repeat: the
    same request may succeed at the same upstream a moment later: nothing of an answer had come, or a passing failure.
    is_late: the request was sent and no whole answer came in time, so that the upstream may charge for one.
    """

    def __init__(
        self,
        message: str,
        *,
        detail: str,
        status: int | None = None,
        may_repeat: bool = False,
        is_late: bool = False,
    ) -> None:
        super().__init__(message)
        self.is_late = is_late
        self.detail = detail
        self.status = status
        self.may_repeat = may_repeat


_REFUSAL_CODES: Mapping[int, str] = {
    402: "insufficient_quota",
    404: "not_found",
    408: "request_timeout",
    409: "conflict",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
}


class UpstreamRefused(GatewayError):
    """The upstream answered with a status of the 4xx class that is the caller's to mend.

    status: the upstream's. code: a word of its own, else the contract's for that status. message: the upstream's own
    words, cut and without account names, but not yet scanned: only the chat service may let it out; None for ours.
    has_key: it had repeated our own key, which was masked.
    """

    def __init__(
        self,
        status: int,
        message: str | None = None,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_seconds: int | None = None,
        has_key: bool = False,
    ) -> None:
        super().__init__(
            message or f"The model gateway refused the request with status {status}.",
            param=param,
            retry_after_seconds=retry_after_seconds,
        )
        self.status = status
        self.has_key = has_key
        self.code = code or _REFUSAL_CODES.get(status, "invalid_request")


class ReplyStream(Protocol):
    """A completion that comes in pieces. Whoever has it closes it.

    headers: as of `Reply`. has_key: as of `Reply`.
    """

    headers: tuple[tuple[str, str], ...]
    has_key: bool

    async def next(self) -> Mapping[str, object] | None:
        """Return the next chunk, as JSON came for it; None at the end that the upstream declared.

        Raises:
            UpstreamFault: the stream broke off, is late, or holds something that is no chunk.
        """

    def without_key(self, text: str) -> str:
        """Return a text without the key that the gateway sends to the upstream."""

    def close(self) -> None:
        """End the stream; the upstream is told by the end of the connection."""


class Upstream(Protocol):
    """The connection to one provider of models."""

    async def stream(self, prompt: Prompt, traceparent: str | None = None) -> ReplyStream:
        """Send the prompt and return the completion as soon as its first chunk is there. Raises as `complete`."""

    async def complete(self, prompt: Prompt, traceparent: str | None = None) -> Reply:
        """Send the prompt and return the completion, checked for its shape and not yet scanned.

        traceparent: the caller's W3C trace context of version 00, well formed, to be continued.

        Raises:
            UpstreamUnavailable: unreachable, late, a 5xx, a 401 or 403, a redirect, or no completion.
            UpstreamRefused: any other 4xx.
        """

    async def models(self) -> tuple[Mapping[str, object], ...]:
        """Return the models on offer as OpenAI model objects.

        Raises:
            UpstreamUnavailable: the provider did not list them.
        """
