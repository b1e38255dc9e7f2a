"""What the chat asks of the dialect that its clients speak: one API for prompts and replies. Names no dialect."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from gateway.llm.base import ChatRequest, Leaves, Prompt, Reply, ReplyLeaves
from gateway.records import record

Event = Mapping[str, Any]
"""One event of a stream, as JSON is written of it."""


@record
class Piece:
    """Some more text of a reply. channel: which of the texts of a choice it continues."""

    channel: str
    text: str


class Assembly(Protocol):
    """A reply that is put together from the events of a stream."""

    @property
    def is_complete(self) -> bool:
        """Whether every choice has said why it ends."""
        ...

    @property
    def around(self) -> Mapping[str, Any]:
        """What stands outside of the choices."""
        ...

    @property
    def indexes(self) -> Collection[int]:
        """The choices so far."""
        ...

    def take(self, event: Event) -> Sequence[tuple[int, Piece]]:
        """Take the next event; return the texts that it adds, each with the index of its choice.

        Raises:
            UpstreamFault: it is no event of a reply, or the reply is longer than can be scanned.
        """
        ...

    def text(self, index: int, channel: str) -> str:
        """Return what a channel of a choice says so far."""
        ...

    def channels(self, index: int) -> Collection[str]:
        """Return the channels of a choice so far."""
        ...

    def texts(self) -> Iterator[str]:
        """Yield every text that a model wrote so far."""
        ...

    def tokens(self) -> tuple[int | None, int | None]:
        """Return the tokens of prompt and reply that the upstream counted."""
        ...

    def body(self) -> Mapping[str, Any]:
        """Return the reply so far, as one that is not streamed."""
        ...


class Events(Protocol):
    """Makes the events that a client gets of one reply."""

    def text(self, index: int, channel: str, text: str) -> Event:
        """Return an event with more text of a channel."""
        ...

    def rest(self, choice: Mapping[str, Any], *, but: Collection[str], with_logprobs: bool) -> Sequence[Event]:
        """Return the events for a whole choice without some channels, and for its end."""
        ...

    def block(self, index: int) -> Event:
        """Return the event that ends a choice that the shield blocked."""
        ...

    def usage(self, usage: Mapping[str, Any]) -> Sequence[Event]:
        """Return the event that tells the usage, if it was asked for."""
        ...


class Dialect(Protocol):
    """Reads and writes prompts and replies of one API."""

    @property
    def max_reply_chars(self) -> int:
        """How long all texts of a reply may be together."""
        ...

    def read(self, body: object, raw: bytes | None = None, *, may_stream: bool = False) -> ChatRequest: ...
    def prompt_leaves(self, prompt: Prompt) -> Leaves: ...
    def reply_leaves(self, reply: Reply) -> ReplyLeaves: ...
    def joined(self, body: Mapping[str, object]) -> Mapping[str, object]: ...
    def masked_reply(self, reply: Reply, masks: Mapping[str, str]) -> Reply: ...
    def withheld(self, reply: Reply, choices: Collection[int], masks: Mapping[str, str]) -> Reply: ...
    def outside(self, reply: Reply) -> dict[str, object]: ...
    def bare(self, reply: Reply) -> Reply: ...

    def has_many(self, prompt: Prompt) -> bool:
        """Tell whether a prompt asks for several choices."""
        ...

    def assembly(self) -> Assembly:
        """Return what puts a streamed reply together."""
        ...

    def events(self, prompt: Prompt, around: Mapping[str, Any]) -> Events:
        """Return what makes the events of the reply to a prompt. around: what stands in each beside the choices."""
        ...
