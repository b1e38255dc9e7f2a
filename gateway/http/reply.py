"""Read one reply of an upstream: a guard over the lines of its head, and then h11. Knows no connection.

A reply about whose length two readers could disagree, or that ends early, is no reply: BadReply.
"""

import re
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio.to_thread
import h11

from gateway.http.body import UNTIL_END, BodyReader, ChunkError
from gateway.http.head import check_lines
from gateway.http.messages import BadReply, ClientError, HttpError, Reply, ReplyTooLarge

_HEAD_BYTES = 65_536
_HEADER_COUNT = 200
_CHUNK_LINE_BYTES = 1_024
_INTERIM_REPLIES = 16
_GZIP_MEMBERS = 16
_DECODE_HERE_BYTES = 65_536  # longer bodies are decoded in a thread
_ENDED_EARLY = "the reply ended early"
_OVER_LIMIT = "the reply is over the limit"
_SINGLE = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [\t -~\x80-\xff]*)?")


class IncomingReply:
    """The reply to one request, read while it comes. Whoever has it closes it: only then its connection is free.

    data: its first bytes. more: waits for the next; b"" when the upstream has ended the connection in order. release:
    is told once whether the connection can take another request.
    """

    def __init__(
        self,
        method: str,
        max_reply_bytes: int,
        data: bytes,
        *,
        more: Callable[[], Awaitable[bytes]],
        release: Callable[[bool], object],
    ) -> None:
        self._method = method
        self._max_reply_bytes = max_reply_bytes
        self._data = data
        self._more = more
        self._release: Callable[[bool], object] | None = release
        self._head: Reply | None = None
        self._body: BodyReader
        self._interim_count = 0
        self._body_bytes: int | None = UNTIL_END
        self._content_coding = ""
        self._is_last = False
        self._size_bytes = 0

    async def head(self) -> Reply:
        """Return status and headers, with an empty body. Raises as `read`."""
        while self._head is None:
            end = self._data.find(b"\r\n\r\n")
            if end < 0 or end > _HEAD_BYTES:
                if len(self._data) > _HEAD_BYTES or not self._data.startswith(b"HTTP/1."[: len(self._data)]):
                    raise BadReply("the head of the reply is malformed or too large")
                more = await self._more()
                if not more:
                    raise BadReply(_ENDED_EARLY)
                self._data += more
                continue
            try:
                self._read_head(self._data[:end])
            except (HttpError, h11.RemoteProtocolError) as error:
                raise BadReply("the head of the reply is malformed") from error
            self._data = self._data[end + 4 :]
        return self._head

    async def read(self) -> bytes:
        """Return the next bytes of the body as they are sent, its content coding not undone; b"" at its end.

        Raises:
            ReplyTimeout, ReplyTooLarge: see there. BadReply: malformed, or ended early.
        """
        await self.head()
        piece = b""
        while not piece and not self._body.is_finished:
            data, self._data = self._data or await self._more(), b""
            if not data:
                if self._body_bytes != UNTIL_END:
                    raise BadReply(_ENDED_EARLY)
                return b""
            try:
                piece = self._body.feed(data)
            except ChunkError as error:
                raise BadReply(str(error)) from error
            self._size_bytes += len(piece)
            if self._size_bytes > self._max_reply_bytes:
                raise ReplyTooLarge(_OVER_LIMIT)
        return piece

    async def whole(self) -> Reply:
        """Return the complete reply, its content coding undone. Raises as `read`."""
        head, pieces = await self.head(), []
        while piece := await self.read():
            pieces.append(piece)
        coded = (b"".join(pieces), self._content_coding, self._max_reply_bytes)
        if self._content_coding and self._size_bytes > _DECODE_HERE_BYTES:
            body = await anyio.to_thread.run_sync(_decode_or_error, *coded)
            if isinstance(body, ClientError):
                raise type(body)(body.reason)  # the idle thread still holds the first one
        else:
            body = _decode(*coded)
        return replace(head, body=body)

    def close(self) -> None:
        """Let the connection be used again if it can be, else closed."""
        if self._release is None:
            return
        release, self._release = self._release, None
        is_read = self._head is not None and self._body.is_finished
        # Bytes that nobody asked for: what follows on this connection cannot be trusted.
        release(is_read and not self._is_last and not self._data and not self._body.rest)

    def _read_head(self, raw: bytes) -> None:
        """Guard the lines of `raw`, let h11 parse them and, if it is no 1xx, decide where the body ends.

        RFC 9112 section 6.3.
        """
        first, *lines = raw.split(b"\r\n", _HEADER_COUNT + 1)
        found = _STATUS_LINE.fullmatch(first)
        if found is None or len(lines) > _HEADER_COUNT:
            raise BadReply("the head of the reply is malformed or too large")
        is_http10 = found[1] == b"0"
        singles = check_lines(lines, _SINGLE)
        length, coding = singles.get(b"content-length"), singles.get(b"transfer-encoding")
        if coding is not None and (is_http10 or coding.lower() != b"chunked"):
            raise BadReply("the reply has a transfer coding that is not read here")
        if length is not None and (not length.isdigit() or len(length) > 15):
            raise BadReply("the reply has a malformed Content-Length")
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=len(raw) + 5)
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(raw + b"\r\n\r\n")
        event = connection.next_event()
        assert isinstance(event, h11.Response | h11.InformationalResponse)
        status = event.status_code
        if status < 200:
            self._interim_count += 1
            if status == 101 or self._interim_count > _INTERIM_REPLIES:
                raise BadReply("the upstream switched protocols or sent too many interim replies")
            return
        if self._method == "HEAD" or status in (204, 304):
            self._body_bytes = 0
        else:
            self._content_coding = singles.get(b"content-encoding", b"").decode("latin-1").lower()
            if coding is not None:
                self._body_bytes = None
            elif length is not None:
                self._body_bytes = int(length)
                if self._body_bytes > self._max_reply_bytes:
                    raise ReplyTooLarge(_OVER_LIMIT)
        self._body = BodyReader(self._body_bytes, line_bytes=_CHUNK_LINE_BYTES, trailer_bytes=_HEAD_BYTES)
        headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers)
        options = [word.strip() for name, value in headers if name == "connection" for word in value.lower().split(",")]
        self._is_last = is_http10 or "close" in options
        self._head = Reply(status, headers, b"")


def _decode(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Undo a content coding: gzip, deflate (with or without the zlib header) or none, in lower case.

    Never holds over `max_bytes`.
    """
    if coding in ("", "identity") or not body:
        return body
    if coding in ("gzip", "x-gzip"):
        window = 31
    elif coding == "deflate":
        has_header = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
        window = 15 if has_header else -15
    else:
        raise BadReply("the reply has a content coding that was not asked for")
    pieces: list[bytes] = []
    left_bytes = max_bytes
    for _ in range(_GZIP_MEMBERS):  # RFC 1952 section 2.2: a gzip file is one member or more
        decoder = zlib.decompressobj(window)
        try:
            piece = decoder.decompress(body, left_bytes + 1)
        except zlib.error as error:
            raise BadReply("the reply's content coding is malformed") from error
        left_bytes -= len(piece)
        if left_bytes < 0:
            raise ReplyTooLarge(_OVER_LIMIT)
        if not decoder.eof:
            raise BadReply("the reply's content coding ended early")
        pieces.append(piece)
        body = decoder.unused_data
        if not body:
            return b"".join(pieces)
        if window != 31:
            break
    raise BadReply("bytes follow the end of the reply's content coding")


def _decode_or_error(body: bytes, coding: str, max_bytes: int) -> bytes | ClientError:
    """Undo a content coding in a thread.

    An error is returned without the thread's traceback: its frames would keep the decoded bytes of a compression bomb
    until the next garbage collection.
    """
    try:
        return _decode(body, coding, max_bytes)
    except ClientError as error:
        error.__traceback__ = None
        error.__cause__ = error.__context__ = None
        return error
