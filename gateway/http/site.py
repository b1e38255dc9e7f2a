"""What all connections of one server share. Knows no socket and no bytes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.http.answer import AnswerWriter
from gateway.http.head import Head
from gateway.http.messages import HttpError, Limits, Request, Response
from gateway.http.transport import Sweep


@dataclass(slots=True, eq=False)
class Site:
    """What all connections of one server share.

    heads: those of the last moment, by their bytes: what a head says depends on these alone, and clients send the same
    ones again and again. first_seconds, idle_seconds: how long a first and a next request are waited for. is_stopping:
    answers end their connection. held_bytes: bodies that are arriving or being handled. watchers: what ends each stream
    that would go on as long as its peer.
    """

    handle: Callable[[Request], Awaitable[Response]]
    refuse: Callable[[HttpError], Response]
    body_limit: Callable[[str, str], int]
    check: Callable[[Request], Awaitable[Response | None]] | None
    limits: Limits
    allowed_hosts: frozenset[str] | None
    writer: AnswerWriter
    sweep: Sweep
    heads: dict[bytes, Head]
    first_seconds: float = field(init=False)
    idle_seconds: float = field(init=False)
    is_stopping: bool = False
    held_bytes: int = 0
    watchers: set[Callable[[], None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.first_seconds, self.idle_seconds = self.limits.head_seconds, self.limits.idle_seconds

    def stop(self) -> None:
        """Have every answer be the last of its connection, and end the streams that have no end."""
        self.is_stopping = True
        self.first_seconds = self.idle_seconds = self.limits.drain_idle_seconds
        for end in tuple(self.watchers):
            end()
