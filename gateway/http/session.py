"""One connection of the server: head, body, handler, answer, again. Knows no route and no API key."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel

from gateway.http.answer import CONTINUE, LAST_CHUNK, render_chunk
from gateway.http.chunked import ChunkError, ChunkReader
from gateway.http.head import Head, parse_head
from gateway.http.leaving import Leaving
from gateway.http.messages import BodyTooLong, HttpError, Request, Response
from gateway.http.site import Site
from gateway.http.transport import NEVER, Connection, DeadlinePassed
from gateway.http.wakeups import LATER_BYTES

_KEPT_HEAD_BYTES = 1_024
_KEPT_HEADS = 128
_RETRY = (("retry-after", "1"),)


class _Refused(Exception):
    """The head of a request was checked, and `response` refuses it. Its body was not read."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class Session:
    """Serves the requests of one connection in their order; nothing is read while one is being answered.

    is_surplus: tells whether the server is too full to answer the first request, which is 503 then. None: it is not.
    """

    __slots__ = (
        "_connection", "_held_bytes", "_is_head", "_is_long", "_is_surplus", "_leaving", "_site", "_unread",
    )  # fmt: skip

    def __init__(self, connection: Connection, site: Site, *, is_surplus: Callable[[], Awaitable[bool]] | None) -> None:
        self._connection = connection
        self._site = site
        self._leaving = Leaving(connection, site.sweep.loop)
        self._is_surplus = is_surplus
        self._unread = b""
        self._is_head = False
        self._held_bytes = 0
        self._is_long = False

    async def run(self, refusal: HttpError | None = None) -> None:
        """Serve until either side has had enough, or only refuse; then close. Only cancellation is raised."""
        connection, site = self._connection, self._site
        try:
            try:
                if refusal is not None:
                    raise refusal
                head = await self._next_head(is_first=True)
                if head is not None and self._is_surplus is not None and await self._is_surplus():
                    raise HttpError(503, "overloaded", "Too many connections are open.", headers=_RETRY)
                while head is not None and await self._serve(head):
                    head = await self._next_head()
                if head is not None:
                    await self._linger()
            except HttpError as error:
                await self._refuse(site.refuse(error))
            except _Refused as refused:
                await self._refuse(refused.response)
        except Exception as error:
            site.sweep.report("a connection ended by an error of the server", error)
            connection.abort()
        except BaseException:
            connection.abort()
            if not self._leaving.has_given_up:
                raise
        finally:
            self._release()
            connection.close(site.limits.write_seconds)

    async def _serve(self, head: Head) -> bool:
        """Serve the request of this head; say whether another may follow."""
        connection, site, leaving = self._connection, self._site, self._leaving
        began_seconds = connection.arrived_seconds
        method, path, query, headers, is_http10 = head.method, head.path, head.query, head.headers, head.is_http10
        peer, is_tls = connection.peer, connection.is_tls
        request = Request(method, path, query, headers, b"", peer, is_tls, began_seconds, is_http10=is_http10)
        if len(self._unread) == head.whole_bytes:
            request.body, self._unread = self._unread, b""
        elif head.body_bytes != 0:
            try:
                request.body = await self._read_body(head, request)
            except HttpError as error:
                error.request = request
                raise
        request.arrived_seconds = connection.arrived_seconds
        connection.deadline_seconds = NEVER
        if head.is_http10:
            leaving.is_silent = True
        leaving.request = request
        if connection.has_ended:
            leaving.look_later()
        try:
            response = await site.handle(request)
        except Exception as error:
            site.sweep.report("a handler raised", error)
            response = site.refuse(HttpError(500, "internal_error", "The server could not answer."))
        leaving.request = None
        is_last, stream = head.is_last or site.is_stopping, response.stream
        if stream is None:
            try:
                raw = site.writer.render(response, is_last=is_last, is_head=self._is_head)
            except ValueError as error:
                raw = self._refusal(error, is_last=is_last)
            if len(raw) > site.limits.piece_bytes:
                await self._send(raw)
            else:
                connection.write(raw)
                if connection.is_full:
                    await self._flush()
        else:
            is_last = is_last or head.is_http10
            await self._answer_stream(response, stream, is_last=is_last, is_http10=head.is_http10)
        if self._held_bytes:
            self._release()
        if is_last:
            self._is_long = stream is not None or len(raw) > LATER_BYTES
        return not is_last and not connection.is_gone

    # Reading.

    async def _next_head(self, *, is_first: bool = False) -> Head | None:
        """Return the next head; None when the peer ended, or sent nothing at all in time."""
        connection, site = self._connection, self._site
        data = self._unread
        if data:
            connection.arrived_seconds = site.sweep.now_seconds()  # it waited for the answer before it
            await anyio.lowlevel.checkpoint()  # pipelined requests give way to the other connections
        else:
            now_seconds = site.sweep.now_seconds()
            connection.deadline_seconds = now_seconds + (site.first_seconds if is_first else site.idle_seconds)
            connection.is_idle = True
            try:
                if not connection.has_unread():
                    await connection.arrival
                elif not is_first:
                    connection.arrived_seconds = now_seconds
                data = connection.take()
            except DeadlinePassed:
                return None
            finally:
                connection.is_idle = False
            if not data:
                return None
        head = site.heads.get(data[: data.find(b"\r\n\r\n") + 4])
        if head is None:
            head, data = await self._read_head(data)
            if head is None:
                return None
        self._is_head = head.method == "HEAD"
        self._unread = data[head.size_bytes :]
        return head

    async def _read_head(self, data: bytes) -> tuple[Head | None, bytes]:
        """Return the head that `data` begins with, and all that was read; None when the peer is gone before its end."""
        connection = self._connection
        seen_bytes = 0
        while (head := self._parse(data, seen_bytes)) is None:
            if seen_bytes == 0:
                connection.deadline_seconds = self._site.sweep.now_seconds() + self._site.limits.head_seconds
            seen_bytes = len(data)
            try:
                more = await connection.read()
            except DeadlinePassed:
                raise HttpError(408, "request_timeout", "The head did not arrive in time.") from None
            if not more:
                if connection.is_gone:
                    return None, data
                raise HttpError(400, "invalid_request", "The connection ended within the head.")
            self._check_deadline("The head did not arrive in time.")
            data += more
        return head, data

    def _check_deadline(self, message: str) -> None:
        """Refuse a request that drips in: the sweep ends only those who send nothing at its tick."""
        if self._site.sweep.now_seconds() >= self._connection.deadline_seconds:
            raise HttpError(408, "request_timeout", message)

    def _parse(self, data: bytes, seen_bytes: int) -> Head | None:
        """Return the head at the start of `data`, see `parse_head`, and keep it if it is short."""
        self._is_head = data.startswith(b"HEAD ")
        site = self._site
        head = parse_head(data, site.limits, allowed_hosts=site.allowed_hosts, seen_bytes=seen_bytes)
        if head is None:
            return None
        length = head.body_bytes
        if length == 0 or (
            length is not None
            and length <= site.limits.unchecked_bytes
            and length <= site.body_limit(head.method, head.path)
        ):
            head.whole_bytes = length
        if head.size_bytes <= _KEPT_HEAD_BYTES:
            if len(site.heads) >= _KEPT_HEADS:
                site.heads.clear()
            site.heads[data[: head.size_bytes]] = head
        return head

    async def _read_body(self, head: Head, request: Request) -> bytes:
        site = self._site
        limit_bytes = site.body_limit(head.method, head.path)
        declared_bytes = head.body_bytes
        if declared_bytes is not None and declared_bytes > limit_bytes:
            raise BodyTooLong(limit_bytes)
        if declared_bytes is not None and declared_bytes > site.limits.unchecked_bytes:
            await self._check(request)
        if head.expects_continue and not self._unread:
            self._connection.write(CONTINUE)
        self._connection.deadline_seconds = site.sweep.now_seconds() + site.limits.body_seconds
        if declared_bytes is None:
            return await self._read_chunks(limit_bytes, request)
        data = self._unread
        if len(data) >= declared_bytes:
            self._unread = data[declared_bytes:]
            return data[:declared_bytes] if self._unread else data
        pieces = [data]
        missing_bytes = declared_bytes - len(data)
        while missing_bytes > 0:
            data = await self._more()
            pieces.append(data[:missing_bytes])
            self._unread = data[missing_bytes:]
            missing_bytes -= len(data)
        return b"".join(pieces)

    async def _check(self, request: Request) -> None:
        """Have the head of a request checked, so that strangers cannot fill the memory with bodies."""
        check = self._site.check
        if check is None:
            return
        self._connection.deadline_seconds = NEVER
        response = await check(request)
        if response is not None:
            raise _Refused(response)

    async def _read_chunks(self, limit_bytes: int, request: Request) -> bytes:
        limits = self._site.limits
        is_checked = False
        reader = ChunkReader(line_bytes=limits.chunk_line_bytes, trailer_bytes=limits.trailer_bytes)
        data, pieces, size_bytes = self._unread, [b""], 0
        self._unread = b""
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
                deadline_seconds = self._connection.deadline_seconds
                await self._check(request)
                self._connection.deadline_seconds = deadline_seconds
            data = await self._more()

    async def _more(self) -> bytes:
        """Return the next bytes of a body. They are counted as held until the request was answered."""
        site = self._site
        try:
            data = await self._connection.read()
        except DeadlinePassed:
            raise HttpError(408, "request_timeout", "The body did not arrive in time.") from None
        if not data:
            raise HttpError(400, "invalid_request", "The connection ended within the body.")
        self._check_deadline("The body did not arrive in time.")
        self._held_bytes += len(data)
        site.held_bytes += len(data)
        if site.held_bytes > site.limits.held_bytes:
            raise HttpError(503, "overloaded", "Too much is being sent at once.", headers=_RETRY)
        return data

    def _release(self) -> None:
        self._site.held_bytes -= self._held_bytes
        self._held_bytes = 0

    # Writing.

    def _refusal(self, error: ValueError, *, is_last: bool) -> bytes:
        """Report an answer that cannot be sent, and return what goes in its place."""
        site = self._site
        site.sweep.report("an answer could not be sent", error)
        response = site.refuse(HttpError(500, "internal_error", "The server could not answer."))
        return site.writer.render(response, is_last=is_last, is_head=self._is_head)

    async def _answer_stream(
        self, response: Response, stream: AsyncIterator[bytes], *, is_last: bool, is_http10: bool
    ) -> None:
        try:
            try:
                raw = self._site.writer.render(response, is_last=is_last, is_head=self._is_head, is_http10=is_http10)
            except ValueError as error:
                await self._send(self._refusal(error, is_last=is_last))
                return
            await self._send(raw)
            if self._is_head:
                return
            if response.ends_with_peer:
                await self._send_while_heard(stream, is_chunked=not is_http10)
            else:
                await self._send_stream(stream, is_chunked=not is_http10)
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()

    async def _send_while_heard(self, stream: AsyncIterator[bytes], *, is_chunked: bool) -> None:
        """Send a stream until it ends or the peer is gone: then the connection is closed."""
        async with anyio.create_task_group() as tasks:

            def end() -> None:
                self._connection.close(self._site.limits.write_seconds)
                tasks.cancel_scope.cancel()

            async def break_off() -> None:
                await self._connection.wait_end()
                if self._connection.is_gone or (nudge := getattr(stream, "nudge", None)) is None:
                    end()
                else:
                    nudge()  # who has left looks like who has said all, until something is sent

            tasks.start_soon(break_off)
            self._site.watchers.add(end)
            try:
                if self._site.is_stopping:
                    end()
                await self._send_stream(stream, is_chunked=is_chunked)
            finally:
                self._site.watchers.discard(end)
            tasks.cancel_scope.cancel()

    async def _send_stream(self, stream: AsyncIterator[bytes], *, is_chunked: bool) -> None:
        connection = self._connection
        async for piece in stream:
            if piece:
                await self._send(render_chunk(piece) if is_chunked else piece)
            if connection.is_gone:
                return
        if is_chunked:
            await self._send(LAST_CHUNK)

    async def _send(self, raw: bytes) -> None:
        """Write `raw` in pieces, each of which the peer has to take within `write_seconds`."""
        connection, limits = self._connection, self._site.limits
        if len(raw) <= limits.piece_bytes:
            connection.write(raw)
            if connection.is_full:
                await self._flush()
            return
        for at in range(0, len(raw), limits.piece_bytes):
            connection.write(raw[at : at + limits.piece_bytes])
            if connection.is_full:
                await self._flush()
            if connection.is_gone:
                return

    async def _flush(self) -> None:
        connection = self._connection
        connection.deadline_seconds = self._site.sweep.now_seconds() + self._site.limits.write_seconds
        await connection.flush()
        connection.deadline_seconds = NEVER

    async def _refuse(self, response: Response) -> None:
        """Answer with a refusal, the last of the connection."""
        connection, site = self._connection, self._site
        self._release()
        connection.write(site.writer.render(response, is_last=True, is_head=self._is_head))
        await self._linger()

    async def _linger(self) -> None:
        """After the last answer, read and throw away what is sent besides, for a while or until the peer ends its side.

        Closing at once would reset the connection of who sends more, and the reset can overtake the answer.
        """
        connection, limits = self._connection, self._site.limits
        if connection.has_ended or connection.is_gone:
            return
        connection.end_writing()
        if self._is_long:
            most_seconds = limits.write_seconds  # its end may still be on its way
        else:
            connection.is_idle = True  # all that is owed was sent: nobody's end waits for it
            most_seconds = limits.drain_idle_seconds if self._site.is_stopping else limits.linger_seconds
        now_seconds = self._site.sweep.now_seconds
        connection.deadline_seconds = now_seconds() + most_seconds
        left_bytes = limits.linger_bytes
        with contextlib.suppress(DeadlinePassed):
            while left_bytes > 0 and now_seconds() < connection.deadline_seconds and (data := await connection.read()):
                left_bytes -= len(data)
