"""Read one reply of an upstream: a guard over the lines of its head, and then h11. Pure.

A reply about whose length two readers could disagree, or that ends early, is no reply: BadReply.
"""

import re
import sys
import zlib

import h11

from gateway.http.body import BodyReader, ChunkError
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


class ReplyReader:
    """Reads the reply to one request, which arrives in pieces.

    head: status and headers with an empty body, once they have come. is_finished: the reply is complete. is_reusable:
    the connection can take another request.
    """

    def __init__(self, method: str, max_reply_bytes: int) -> None:
        self.head: Reply | None = None
        self.is_finished = False
        self.is_reusable = False
        self._method = method
        self._max_reply_bytes = max_reply_bytes
        self._unread = b""
        self._interim_count = 0
        self._body: BodyReader | None = None  # once the head was read
        self._ends_with_connection = False
        self._is_last = False
        self._content_coding = ""
        self._pieces: list[bytes] = []
        self._size_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the connection; not after `is_finished`.

        Raises:
            BadReply: malformed. ReplyTooLarge: over `max_reply_bytes` already.
        """
        while self.head is None:
            data = self._unread + data
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > _HEAD_BYTES:
                if len(data) > _HEAD_BYTES or not data.startswith(b"HTTP/1."[: len(data)]):
                    raise BadReply("the head of the reply is malformed or too large")
                self._unread = data
                return
            try:
                self._read_head(data[:end])
            except (HttpError, h11.RemoteProtocolError) as error:
                raise BadReply("the head of the reply is malformed") from error
            data, self._unread = data[end + 4 :], b""
        self._take_body(data)

    def end(self, *, is_orderly: bool) -> None:
        """Take note that the upstream has ended the connection, in order or by a reset.

        Raises:
            BadReply: the reply was not complete.
        """
        if not is_orderly or not self._ends_with_connection:
            raise BadReply("the reply ended early")
        self.is_finished = True

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
        assert self.head is not None
        body = _decode(b"".join(self._pieces), self._content_coding, self._max_reply_bytes)
        return Reply(self.head.status, self.head.headers, body)

    @property
    def encoded_bytes(self) -> int:
        """How many bytes `reply` has to decode."""
        return self._size_bytes if self._content_coding else 0

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
        has_body = self._method != "HEAD" and status not in (204, 304)
        if has_body:
            self._content_coding = singles.get(b"content-encoding", b"").decode("latin-1").lower()
        body_bytes = int(length or 0) if has_body else 0
        if body_bytes > self._max_reply_bytes:
            raise ReplyTooLarge(_OVER_LIMIT)
        self._ends_with_connection = has_body and coding is None and length is None
        is_chunked = has_body and coding is not None
        most_bytes = sys.maxsize if self._ends_with_connection else body_bytes
        self._body = BodyReader(
            None if is_chunked else most_bytes, line_bytes=_CHUNK_LINE_BYTES, trailer_bytes=_HEAD_BYTES
        )
        headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers)
        options = [word.strip() for name, value in headers if name == "connection" for word in value.lower().split(",")]
        self._is_last = is_http10 or "close" in options
        self.head = Reply(status, headers, b"")

    def _take_body(self, data: bytes) -> None:
        assert self._body is not None
        try:
            self._pieces.append(self._body.feed(data))
        except ChunkError as error:
            raise BadReply(str(error)) from error
        self._size_bytes += len(self._pieces[-1])
        if self._size_bytes > self._max_reply_bytes:
            raise ReplyTooLarge(_OVER_LIMIT)
        self.is_finished = self._body.is_finished
        # Bytes that nobody asked for: what follows on this connection cannot be trusted.
        self.is_reusable = self.is_finished and not self._is_last and not self._body.rest


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
