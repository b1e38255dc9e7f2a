"""One connection of the server: head, body, handler, answer, again. Knows no route and no API key.

A client that disconnects is hard to tell from one that has sent all it wants to send: both end their side. If no answer
is ready after a second, the session sends ``100 Continue``, which every HTTP/1.1 client skips (RFC 9110 section 15.2).
The system of a client that is gone answers with a reset, and then the session cancels the handler.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio

from gateway.http.answer import CONTINUE, LAST_CHUNK, render, render_chunk
from gateway.http.head import Head
from gateway.http.messages import HttpError, Request, Response
from gateway.http.request_reader import RETRY, HeadRefused, RequestReader, ServerState
from gateway.http.transport import NEVER, Connection, DeadlinePassed

_SHORT_ANSWER_BYTES = 16_384  # what a socket takes at once
_PROBE_SECONDS = 1.0
_PROBES = 2  # the first is answered with a reset, the second one meets it
_TLS_SILENCE_SECONDS = 0.5


class Session:
    """Serves the requests of one connection in their order; nothing is read while one is being answered.

    is_surplus: returns whether the server is too full to answer the first request, which is 503 then. None: it is not.
    """

    def __init__(
        self, connection: Connection, state: ServerState, *, is_surplus: Callable[[], Awaitable[bool]] | None
    ) -> None:
        self._connection = connection
        self._state = state
        self._reader = RequestReader(connection, state)
        self._is_surplus = is_surplus
        self._scope = anyio.CancelScope()
        self._request: Request | None = None  # the one that the handler answers now
        self._is_long = False

    async def run(self, refusal: HttpError | None = None) -> None:
        """Serve until either side has had enough, or only refuse; then close. Only cancellation is raised."""
        connection, state = self._connection, self._state
        connection.on_end = self._note_end
        try:
            with self._scope:
                try:
                    if refusal is not None:
                        raise refusal
                    await self._serve_all()
                except HttpError as error:
                    await self._refuse(state.refuse(error))
                except HeadRefused as refused:
                    await self._refuse(refused.response)
            if self._scope.cancelled_caught:
                connection.abort()
        except Exception as error:
            state.sweep.report("a connection ended by an error of the server", error)
            connection.abort()
        except BaseException:
            connection.abort()
            raise
        finally:
            self._reader.release()
            connection.on_end = None
            connection.close(self._linger_seconds() if connection.is_idle else state.limits.write_seconds)

    async def _serve_all(self) -> None:
        head = await self._reader.next_head(is_first=True)
        if head is not None and self._is_surplus is not None and await self._is_surplus():
            raise HttpError(503, "overloaded", "Too many connections are open.", headers=RETRY)
        while head is not None and await self._serve(head):
            head = await self._reader.next_head()
        if head is not None:
            await self._linger()

    async def _serve(self, head: Head) -> bool:
        """Serve the request of this head; return whether another may follow."""
        connection, state = self._connection, self._state
        head.peer, head.is_tls = connection.peer, connection.is_tls
        head.started_seconds = connection.arrived_seconds
        if head.body_bytes != 0:
            try:
                head.body = await self._reader.read_body(head)
            except HttpError as error:
                error.request = head
                raise
        head.arrived_seconds = connection.arrived_seconds
        connection.deadline_seconds = NEVER
        response = await self._handle(head)
        is_last = head.is_last or state.is_stopping or (response.stream is not None and head.is_http10)
        await self._answer(response, is_last=is_last, is_http10=head.is_http10)
        self._reader.release()
        return not is_last and not connection.is_gone

    async def _handle(self, request: Request) -> Response:
        """Return the handler's answer, 500 if it fails. It is cancelled when the client disconnects and that may be."""
        self._request = request
        if self._connection.has_ended:
            self._note_end()
        try:
            return await self._state.handle(request)
        except Exception as error:
            self._state.sweep.report("a handler raised", error)
            return self._state.refuse(HttpError(500, "internal_error", "The server could not answer."))
        finally:
            self._request = None

    def _note_end(self) -> None:
        """Act on the end of the peer's side, or of the connection, while a handler runs."""
        request = self._request
        if request is None:
            return
        if self._connection.is_gone and request.may_be_left is not None:
            self._probe(request, 0)
        else:
            self._state.sweep.loop.call_later(_PROBE_SECONDS, self._probe, request, _PROBES)

    def _probe(self, request: Request, probes: int) -> None:
        """Cancel the handler if the client is gone; else find out whether it still reads."""
        if self._request is not request or request.may_be_left is None or not request.may_be_left():
            return
        if self._connection.is_gone:
            self._scope.cancel()
        elif probes and not request.is_http10:
            self._connection.write(CONTINUE)
            self._state.sweep.loop.call_later(_PROBE_SECONDS, self._probe, request, probes - 1)

    async def _answer(self, response: Response, *, is_last: bool, is_http10: bool) -> None:
        """Send an answer; 500 in place of one that may not be sent."""
        state, is_head, stream = self._state, self._reader.is_head, response.stream
        self._is_long = stream is not None
        try:
            try:
                raw = render(response, is_last=is_last, is_head=is_head, is_http10=is_http10)
            except ValueError as error:
                state.sweep.report("an answer could not be sent", error)
                response = state.refuse(HttpError(500, "internal_error", "The server could not answer."))
                raw = render(response, is_last=is_last, is_head=is_head)
            self._is_long |= len(raw) > _SHORT_ANSWER_BYTES
            await self._send(raw)
            if response.stream is not None and not is_head:
                if response.ends_with_peer:
                    await self._send_while_heard(response, is_chunked=not is_http10)
                else:
                    await self._send_stream(response.stream, is_chunked=not is_http10)
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()

    async def _send_while_heard(self, response: Response, *, is_chunked: bool) -> None:
        """Send a stream until it ends or the peer is gone: then the connection is closed."""
        connection, state, stream = self._connection, self._state, response.stream
        assert stream is not None
        nudge = getattr(stream, "nudge", None)

        def end() -> None:
            connection.close(state.limits.write_seconds)
            scope.cancel()

        def note_end() -> None:
            if connection.is_gone or nudge is None:
                end()
            else:
                nudge()  # a client that is gone answers the next event with a reset

        with anyio.CancelScope() as scope:
            connection.on_end = note_end
            if response.is_endless:
                state.endless.add(end)
            try:
                if state.is_stopping and response.is_endless:
                    end()
                elif connection.has_ended:
                    note_end()
                await self._send_stream(stream, is_chunked=is_chunked)
            finally:
                state.endless.discard(end)
                connection.on_end = self._note_end

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
        connection, limits = self._connection, self._state.limits
        for start in range(0, len(raw), limits.piece_bytes):
            connection.write(raw if len(raw) <= limits.piece_bytes else raw[start : start + limits.piece_bytes])
            if connection.is_full:
                connection.deadline_seconds = self._state.sweep.now_seconds() + limits.write_seconds
                await connection.flush()
                connection.deadline_seconds = NEVER
            if connection.is_gone:
                return

    async def _refuse(self, response: Response) -> None:
        """Answer with a refusal, the last of the connection."""
        self._reader.release()
        self._connection.write(render(response, is_last=True, is_head=self._reader.is_head))
        await self._linger()

    async def _linger(self) -> None:
        """After the last answer, read and throw away what the peer sends, for a while or until it ends its side.

        If the socket were closed at once, what still arrives would be answered with a reset, which can overtake the
        answer. With TLS the peer cannot be told that nothing more comes, so the wait ends once it sends nothing.
        """
        connection, limits = self._connection, self._state.limits
        if connection.has_ended or connection.is_gone:
            return
        silence_seconds = None if connection.end_writing() else _TLS_SILENCE_SECONDS
        if self._is_long:
            most_seconds = limits.write_seconds  # the end of the answer may still be on its way
        else:
            connection.is_idle = True  # nothing more is owed: a stop of the server need not wait
            most_seconds = self._linger_seconds()
        connection.deadline_seconds = self._state.sweep.now_seconds() + most_seconds
        left_bytes = limits.linger_bytes
        with contextlib.suppress(DeadlinePassed):
            while left_bytes > 0:
                data = b""
                with anyio.move_on_after(silence_seconds):
                    data = await connection.read()
                if not data:
                    return
                left_bytes -= len(data)

    def _linger_seconds(self) -> float:
        limits = self._state.limits
        return limits.drain_idle_seconds if self._state.is_stopping else limits.linger_seconds
