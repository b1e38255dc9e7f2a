"""The records of server and client: Request, Response, Terms, Reply, Headers, their errors and the server's Limits.

Records only: no socket, no framing. `Request` and `Response` are made once or more for every request and therefore not
frozen (a frozen record of nine fields costs two microseconds to make). A `Request` is changed by the server alone; a
`Response` is made for one request, and changed by whoever completes it before it is sent.
"""

import math
import resource
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

_SPARE_DESCRIPTORS = 64  # database, log, listeners, the archive, threads' pipes


class Headers(dict[str, str]):
    """Header fields by lower-case name. A field that was sent several times is joined with ``", "``.

    The server refuses a request that repeats a field which must be single, so a joined value is always a list.
    """

    def __repr__(self) -> str:
        return f"Headers({', '.join(self)})"  # never the values: some are secrets


@dataclass(slots=True, eq=False)
class Request:
    """One request whose head and body have arrived complete and were found well formed.

    path: canonical and percent-decoded, but for an encoded slash, which stays ``%2F``; never holds ``//``, a dot
    segment, a backslash or a control character.
    query: as sent, without the ``?``; "" when there is none.
    peer: IP address of the other end of the connection, "" when it has none.
    started_seconds: monotonic time at which the first bytes of the request had arrived.
    call: what the server's `check` of the head keeps here for `handle`.
    arrived_seconds: monotonic time at which the last bytes had arrived; infinite when unknown.
    may_be_left: returns whether the handler may be cancelled when the client disconnects; None for no.
    is_http10: the request was made in HTTP/1.0.
    """

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes = field(default=b"", repr=False)
    peer: str = ""
    is_tls: bool = False
    started_seconds: float = 0.0
    call: Any = None
    arrived_seconds: float = float("inf")
    may_be_left: Callable[[], bool] | None = None
    is_http10: bool = False


@dataclass(slots=True, eq=False)
class Response:
    """An answer. Either `body` is sent whole, or `stream` piece by piece.

    headers: names and values of printable Latin-1. Content-Length, Transfer-Encoding, Connection and Date are the
    server's business and may not be among them. ends_with_peer: the stream may be silent for so long that the server
    would not notice that its peer is gone. When the peer ends its side, the server calls the stream's `nudge`, which
    makes it send something; a stream without one is broken off. is_endless: a stop of the server ends the
    stream at once.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    stream: AsyncIterator[bytes] | None = None
    ends_with_peer: bool = False
    is_endless: bool = True


class HttpError(Exception):
    """A request that is refused before, or instead of, being handled.

    status, code: of the API's error table, such as 431 and ``headers_too_large``. message: a sentence for a person; it
    never repeats what was sent. headers: to add to the answer. param: the field at fault, or None. request: the one
    that the server refused by itself, if its head was read.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: tuple[tuple[str, str], ...] = (),
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers
        self.param = param
        self.request: Request | None = None


class BodyTooLong(HttpError):
    """The body of a request is over the limit of its path. limit_bytes: that limit."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(413, "body_too_large", f"The body is longer than {limit_bytes} bytes.")
        self.limit_bytes = limit_bytes


AllowAddress = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How long and how much, and with whom. Made once for many requests.

    total_seconds: also bounds the other times. idle_seconds: the longest silence within the body. max_reply_bytes:
    holds before and after decompression. allow_address: is asked for every address the host resolves to (an IPv4-mapped
    one as IPv4); one refusal refuses the host. Exactly an address that was checked is connected to.
    """

    connect_seconds: float = math.inf
    first_byte_seconds: float = math.inf
    total_seconds: float
    max_reply_bytes: int
    allow_address: AllowAddress | None = None
    idle_seconds: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """The complete answer of an upstream.

    headers: names in lower case, and values as sent. body: its content coding undone.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class ClientError(Exception):
    """A request to an upstream that got no good reply.

    reason: a phrase without address, secret or content. After any but ConnectFailed, the upstream may have got the
    request and acted on it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ConnectFailed(ClientError):
    """No connection was made: name, address, port, TLS, or too late."""


class ReplyTimeout(ClientError):
    """The reply did not begin, or did not end, in time."""


class BadReply(ClientError):
    """What came is no complete, unambiguous HTTP/1 reply."""


class NoReply(BadReply):
    """The connection ended before the first byte of a reply."""


class ReplyTooLarge(ClientError):
    """The reply is over `max_reply_bytes`, as sent or decoded."""


def connections_allowed() -> int:
    """Return how many connections this process can hold: each may need one more to the upstream."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        soft = 1 << 20
    return max((soft - _SPARE_DESCRIPTORS) // 2, 8)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one peer may take of the server. Times are enforced by a sweep, up to `sweep_seconds` late.

    head_bytes, line_bytes, header_count: of a request's head; chunk_line_bytes: a chunk's size with its extensions.
    head_seconds: from the first byte of a head to its last, and from the accepted connection to its first byte;
    idle_seconds: between an answer and the next request; write_seconds: until a peer takes `piece_bytes` of an answer.
    linger_seconds, linger_bytes: how long and how much is read and thrown away after a last answer, so that the peer
    can read that. drain_idle_seconds, drain_seconds: what idle and busy connections get after `stop`.
    unchecked_bytes: how much of a body is read before the head is checked. connections: beyond it, a request is
    answered 503. held_bytes: bodies of all connections that have not arrived whole
    or are being handled; beyond it, 503.
    """

    head_bytes: int = 32_768
    line_bytes: int = 16_384
    header_count: int = 100
    chunk_line_bytes: int = 256
    trailer_bytes: int = 8_192
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    write_seconds: float = 30.0
    handshake_seconds: float = 10.0
    linger_seconds: float = 5.0
    linger_bytes: int = 32 * 1024 * 1024
    drain_idle_seconds: float = 1.0
    drain_seconds: float = 30.0
    sweep_seconds: float = 1.0
    piece_bytes: int = 262_144
    unchecked_bytes: int = 65_536
    held_bytes: int = 512 * 1024 * 1024
    connections: int = field(default_factory=connections_allowed)
