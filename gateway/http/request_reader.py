"""Reads the requests of one connection: head, body, and the limits that hold while they arrive. Handles nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio.lowlevel

from gateway.http.answer import CONTINUE
from gateway.http.body import BodyReader, ChunkError
from gateway.http.head import Head, parse_head
from gateway.http.messages import BodyTooLong, HttpError, Limits, Request, Response
from gateway.http.transport import NEVER, Connection, DeadlinePassed, Sweep

RETRY = (("retry-after", "1"),)


@dataclass(eq=False, repr=False, kw_only=True)
class ServerState:
    """What all connections of one server share.

    handle: answers a request; what it raises is answered 500. check: is given the head of a request with a large body
    before that is read, and returns the answer that refuses it, or None; without it every body is read. refuse:
    renders every refusal of the protocol, so that there is one error shape. body_limit: method and path to the bytes a
    body may have. allowed_hosts: host names (lower case, with a port or without) that are answered; None for all.

    is_stopping: answers end their connection. held_bytes: bodies that are arriving or being handled. endless: functions
    that each end a stream which would last as long as its peer. sweep: given when the server begins to serve.
    """

    handle: Callable[[Request], Awaitable[Response]]
    refuse: Callable[[HttpError], Response]
    body_limit: Callable[[str, str], int]
    check: Callable[[Request], Awaitable[Response | None]] | None = None
    limits: Limits = field(default_factory=Limits)
    allowed_hosts: frozenset[str] | None = None
    sweep: Sweep = field(init=False)
    is_stopping: bool = field(default=False, init=False)
    held_bytes: int = field(default=0, init=False)
    endless: set[Callable[[], None]] = field(default_factory=set, init=False)

    def idle_seconds(self, *, is_first: bool) -> float:
        """Return how long the server waits for the next request of a connection, or its first."""
        if self.is_stopping:
            return self.limits.drain_idle_seconds
        return self.limits.head_seconds if is_first else self.limits.idle_seconds


class HeadRefused(Exception):
    """The head of a request was checked, and `response` refuses it. Its body was not read."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class RequestReader:
    """Reads one request after the other from `connection`.

    is_head: the request that is read now, or was read last, has the method HEAD, so that its answer has no body.
    """

    def __init__(self, connection: Connection, state: ServerState) -> None:
        self.is_head = False
        self._connection = connection
        self._state = state
        self._unread = b""
        self._held_bytes = 0

    async def next_head(self, *, is_first: bool = False) -> Head | None:
        """Return the next head; None when the peer ended, or sent nothing at all in time."""
        connection, state = self._connection, self._state
        now_seconds = state.sweep.now_seconds()
        data = self._unread
        if data:
            connection.arrived_seconds = now_seconds  # it waited for the answer before it
            await anyio.lowlevel.checkpoint()  # pipelined requests give way to the other connections
        else:
            connection.deadline_seconds = now_seconds + state.idle_seconds(is_first=is_first)
            has_waited = connection.unread and not is_first
            connection.is_idle = True
            try:
                data = await connection.read()
            except DeadlinePassed:
                if not connection.unread:
                    return None
                connection.deadline_seconds = NEVER  # it is idle no more, and nobody has closed it yet
                data = await connection.read()
            finally:
                connection.is_idle = False
            if has_waited:
                connection.arrived_seconds = now_seconds
            if not data:
                return None
        return await self._read_head(data)

    async def _read_head(self, data: bytes) -> Head | None:
        """Return the head that begins with `data`; None when the peer is gone before the end of the head."""
        connection, state = self._connection, self._state
        self.is_head = data.startswith(b"HEAD ")
        seen_bytes = 0
        while (
            head := parse_head(data, state.limits, allowed_hosts=state.allowed_hosts, seen_bytes=seen_bytes)
        ) is None:
            if seen_bytes == 0:
                connection.deadline_seconds = state.sweep.now_seconds() + state.limits.head_seconds
            seen_bytes = len(data)
            try:
                more = await connection.read()
            except DeadlinePassed:
                raise HttpError(408, "request_timeout", "The head did not arrive in time.") from None
            if not more:
                if connection.is_gone:
                    return None
                raise HttpError(400, "invalid_request", "The connection ended within the head.")
            data += more
            self.is_head = data.startswith(b"HEAD ")
        self.is_head = head.method == "HEAD"
        self._unread = data[head.size_bytes :]
        return head

    async def read_body(self, head: Head) -> bytes:
        """Return the whole body of the request that `head` begins.

        Raises:
            HttpError: it is malformed, too long or too late. HeadRefused: the check of the head refuses the request.
        """
        state, limits = self._state, self._state.limits
        limit_bytes, declared_bytes = state.body_limit(head.method, head.path), head.body_bytes or 0
        if declared_bytes > limit_bytes:
            raise BodyTooLong(limit_bytes)
        is_checked = declared_bytes > limits.unchecked_bytes
        if is_checked:
            await self._check(head)
        if head.expects_continue and not self._unread:
            self._connection.write(CONTINUE)
        self._connection.deadline_seconds = state.sweep.now_seconds() + limits.body_seconds
        reader = BodyReader(head.body_bytes, line_bytes=limits.chunk_line_bytes, trailer_bytes=limits.trailer_bytes)
        data, pieces, size_bytes = self._unread, [b""], 0
        while True:
            try:
                piece = reader.feed(data)
            except ChunkError as error:
                raise HttpError(400, "invalid_request", "The chunked body is malformed.") from error
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > limit_bytes:
                raise BodyTooLong(limit_bytes)
            if reader.is_finished:
                self._unread = reader.rest
                return b"".join(pieces)
            if size_bytes > limits.unchecked_bytes and not is_checked:
                is_checked = True
                await self._check(head)
            data = await self._more()

    async def _check(self, head: Head) -> None:
        """Have the head of a request checked, so that unknown callers cannot fill the memory."""
        if self._state.check is None:
            return
        deadline_seconds, self._connection.deadline_seconds = self._connection.deadline_seconds, NEVER
        response = await self._state.check(head)
        self._connection.deadline_seconds = deadline_seconds
        if response is not None:
            raise HeadRefused(response)

    async def _more(self) -> bytes:
        """Return the next bytes of a body. They are counted as held until the request was answered."""
        state = self._state
        try:
            data = await self._connection.read()
        except DeadlinePassed:
            raise HttpError(408, "request_timeout", "The body did not arrive in time.") from None
        if not data:
            raise HttpError(400, "invalid_request", "The connection ended within the body.")
        self._held_bytes += len(data)
        state.held_bytes += len(data)
        if state.held_bytes > state.limits.held_bytes:
            raise HttpError(503, "overloaded", "Too much is being sent at once.", headers=RETRY)
        return data

    def release(self) -> None:
        """Count the body of the last request as held no more."""
        self._state.held_bytes -= self._held_bytes
        self._held_bytes = 0
