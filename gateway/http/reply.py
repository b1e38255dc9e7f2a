"""Read one reply of an upstream: a guard over the lines of its head, and then h11. Pure.

A reply about whose length two readers could disagree, or that ends early, is no reply: BadReply.
"""

import re
import zlib
from dataclasses import dataclass

import h11

from gateway.http.chunked import ChunkError, ChunkReader
from gateway.http.head import check_lines
from gateway.http.messages import BadReply, HttpError, Reply, ReplyTooLarge

_HEAD_BYTES = 65_536
_HEADER_COUNT = 200
_CHUNK_LINE_BYTES = 1_024
_INTERIM_REPLIES = 16
_GZIP_MEMBERS = 16
_OVER_LIMIT = "the reply is over the limit"
_SINGLE = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [\t -~\x80-\xff]*)?")


@dataclass(slots=True, eq=False)
class _ReplyHead:
    """Status, fields and framing.

    body_bytes: declared length; None when chunked or until the connection ends. content_coding: "" for none.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    size_bytes: int
    body_bytes: int | None
    is_chunked: bool
    is_last: bool
    content_coding: str


class ReplyReader:
    """Reads the reply to one request, which arrives in pieces.

    is_finished: the reply is complete. is_reusable: the connection can take another request.
    """

    def __init__(self, method: str, max_reply_bytes: int) -> None:
        self.is_finished = False
        self.is_reusable = False
        self._method = method
        self._max_reply_bytes = max_reply_bytes
        self._unread = b""
        self._seen_bytes = 0
        self._interim_count = 0
        self._head: _ReplyHead | None = None
        self._chunks: ChunkReader | None = None
        self._pieces: list[bytes] = []
        self._size_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the connection; not after `is_finished`.

        Raises:
            BadReply: malformed. ReplyTooLarge: over `max_reply_bytes` already.
        """
        if self._head is None:
            data = self._unread + data if self._unread else data
            head = self._next_head(data)
            if head is None:
                return
            self._begin_body(head)
            data, self._unread = self._unread[head.size_bytes :], b""
        self._take_body(data)

    def end(self, *, is_orderly: bool) -> None:
        """Take note that the upstream has ended the connection, in order or by a reset.

        Raises:
            BadReply: the reply was not complete.
        """
        head = self._head
        if not is_orderly or head is None or head.is_chunked or head.body_bytes is not None:
            raise BadReply("the reply ended early", was_sent=True)
        self.is_finished = True

    def head(self) -> Reply | None:
        """Return status and headers with an empty body; None while the head has not come."""
        return None if self._head is None else Reply(self._head.status, self._head.headers, b"")

    def take(self) -> bytes:
        """Return the bytes of the body that came since the last call, still coded. `reply` then lacks them."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken

    def reply(self) -> Reply:
        """Return the reply, its content coding undone. Takes time in proportion to the body.

        Raises:
            BadReply: the coding is unknown or the body is not coded so. ReplyTooLarge: decoded it is over the limit.
        """
        assert self._head is not None
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        body = _decode(body, self._head.content_coding, self._max_reply_bytes)
        return Reply(self._head.status, self._head.headers, body)

    @property
    def encoded_bytes(self) -> int:
        """How many bytes `reply` has to decode."""
        return self._size_bytes if self._head is not None and self._head.content_coding else 0

    def _next_head(self, data: bytes) -> _ReplyHead | None:
        """Return the first head that is no 1xx."""
        while True:
            head = _parse_head(data, self._seen_bytes)
            self._unread = data
            if head is None:
                self._seen_bytes = len(data)
                return None
            self._seen_bytes = 0
            if head.status >= 200:
                return head
            self._interim_count += 1
            if head.status == 101 or self._interim_count > _INTERIM_REPLIES:
                raise BadReply("the upstream switched protocols or sent too many interim replies", was_sent=True)
            data = data[head.size_bytes :]

    def _begin_body(self, head: _ReplyHead) -> None:
        """Decide where the body ends. RFC 9112 section 6.3."""
        if self._method == "HEAD" or head.status in (204, 304):
            head.body_bytes, head.is_chunked, head.content_coding = 0, False, ""
        elif head.body_bytes is None and not head.is_chunked:
            head.is_last = True
        if head.body_bytes is not None and head.body_bytes > self._max_reply_bytes:
            raise ReplyTooLarge(_OVER_LIMIT, was_sent=True)
        self._head = head
        if head.is_chunked:
            self._chunks = ChunkReader(line_bytes=_CHUNK_LINE_BYTES, trailer_bytes=_HEAD_BYTES)

    def _take_body(self, data: bytes) -> None:
        head = self._head
        assert head is not None
        rest = b""
        if self._chunks is not None:
            try:
                data = self._chunks.feed(data)
            except ChunkError as error:
                raise BadReply(str(error), was_sent=True) from error
            self.is_finished, rest = self._chunks.is_finished, self._chunks.rest
        elif head.body_bytes is not None:
            missing_bytes = head.body_bytes - self._size_bytes
            data, rest = (data, b"") if len(data) <= missing_bytes else (data[:missing_bytes], data[missing_bytes:])
            self.is_finished = len(data) == missing_bytes
        self._size_bytes += len(data)
        if self._size_bytes > self._max_reply_bytes:
            raise ReplyTooLarge(_OVER_LIMIT, was_sent=True)
        self._pieces.append(data)
        # Bytes that nobody asked for: what follows on this connection cannot be trusted.
        self.is_reusable = self.is_finished and not head.is_last and not rest


def _parse_head(data: bytes, seen_bytes: int) -> _ReplyHead | None:
    """Return the head at the start of `data`, None when it has not ended yet."""
    end = data.find(b"\r\n\r\n", max(0, seen_bytes - 3))
    if end < 0 or end > _HEAD_BYTES:
        if len(data) > _HEAD_BYTES or not data.startswith(b"HTTP/1."[: len(data)]):
            raise BadReply("the head of the reply is malformed or too large", was_sent=True)
        return None
    try:
        return _read_head(data[:end], end + 4)
    except (HttpError, h11.RemoteProtocolError) as error:
        raise BadReply("the head of the reply is malformed", was_sent=True) from error


def _read_head(raw: bytes, size_bytes: int) -> _ReplyHead:
    """Guard the lines of `raw`, let h11 parse them and decide the framing."""
    first, *lines = raw.split(b"\r\n", _HEADER_COUNT + 1)
    found = _STATUS_LINE.fullmatch(first)
    if found is None or len(lines) > _HEADER_COUNT:
        raise BadReply("the head of the reply is malformed or too large", was_sent=True)
    is_http10 = found[1] == b"0"
    singles = check_lines(lines, _SINGLE)
    length, coding = singles.get(b"content-length"), singles.get(b"transfer-encoding")
    if coding is not None and (is_http10 or coding.lower() != b"chunked"):
        raise BadReply("the reply has a transfer coding that is not read here", was_sent=True)
    if length is not None and (not length.isdigit() or len(length) > 15):
        raise BadReply("the reply has a malformed Content-Length", was_sent=True)
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=len(raw) + 5)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(raw + b"\r\n\r\n")
    event = connection.next_event()
    assert isinstance(event, h11.Response | h11.InformationalResponse)
    headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers)
    options = [word.strip() for name, value in headers if name == "connection" for word in value.lower().split(",")]
    return _ReplyHead(
        event.status_code,
        headers,
        size_bytes,
        body_bytes=None if length is None else int(length),
        is_chunked=coding is not None,
        is_last=is_http10 or "close" in options,
        content_coding=singles.get(b"content-encoding", b"").decode("latin-1"),
    )


def _decode(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Undo a content coding: gzip, deflate (with or without the zlib header) or none. Never holds over `max_bytes`."""
    coding = coding.lower()
    if coding in ("", "identity") or not body:
        return body
    if coding in ("gzip", "x-gzip"):
        window = 31
    elif coding == "deflate":
        has_header = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
        window = 15 if has_header else -15
    else:
        raise BadReply("the reply has a content coding that was not asked for", was_sent=True)
    pieces: list[bytes] = []
    left_bytes = max_bytes
    for _ in range(_GZIP_MEMBERS):  # RFC 1952 section 2.2: a gzip file is one member or more
        decoder = zlib.decompressobj(window)
        try:
            piece = decoder.decompress(body, left_bytes + 1)
        except zlib.error as error:
            raise BadReply("the reply's content coding is malformed", was_sent=True) from error
        left_bytes -= len(piece)
        if left_bytes < 0:
            raise ReplyTooLarge(_OVER_LIMIT, was_sent=True)
        if not decoder.eof:
            raise BadReply("the reply's content coding ended early", was_sent=True)
        pieces.append(piece)
        body = decoder.unused_data
        if not body:
            return b"".join(pieces)
        if window != 31:
            break
    raise BadReply("bytes follow the end of the reply's content coding", was_sent=True)
