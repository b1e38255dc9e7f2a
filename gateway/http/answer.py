"""Render an answer to bytes: status line, Date, framing and the headers of the handler. Pure, but for the time."""

import re
from email.utils import formatdate
from http import HTTPStatus

from gateway.http.messages import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
# RFC 9110 section 5: a name is a token; a value holds no control character. The server alone sends the names left out.
_FIELDS = re.compile(
    r"(?:(?!(?:connection|content-length|date|keep-alive|transfer-encoding):)"
    r"[!#$%&'*+.^_`|~0-9A-Za-z-]++: [ -~\xa1-\xac\xae-\xff]*+\r\n)*+",
    re.IGNORECASE,
)
_WITHOUT_BODY = frozenset({204, 304})
_CHUNKED = "transfer-encoding: chunked\r\n"
_REASONS = {status.value: status.phrase for status in HTTPStatus}


def render(response: Response, *, is_last: bool, is_head: bool = False, is_http10: bool = False) -> bytes:
    """Return head and body of `response`, or the head alone for a stream or an answer to HEAD.

    is_last: the connection ends after this answer. is_http10: the end of the connection then ends a stream.

    Raises:
        ValueError: a status or header that may not be sent, such as a value with a line break.
    """
    status, body = response.status, response.body
    if not 200 <= status <= 599:
        raise ValueError("the status of an answer is 200 to 599")
    if response.stream is not None:
        body, framing = b"", "" if is_http10 else _CHUNKED
    elif status in _WITHOUT_BODY:
        body, framing = b"", ""
    else:
        framing = f"content-length: {len(body)}\r\n"
    fields = "".join([f"{name}: {value}\r\n" for name, value in response.headers])
    # A line break in a value would make one more line.
    if fields.count("\r\n") != len(response.headers) or _FIELDS.fullmatch(fields) is None:
        raise ValueError("a header is malformed, or only the server may send it")
    close = "connection: close\r\n" if is_last else ""
    reason = _REASONS.get(status, "")
    date = formatdate(usegmt=True)  # as RFC 9110 section 5.6.7 writes it
    head = f"HTTP/1.1 {status} {reason}\r\ndate: {date}\r\n{fields}{close}{framing}\r\n"
    return head.encode("latin-1") if is_head or not body else head.encode("latin-1") + body


def render_chunk(piece: bytes) -> bytes:
    """Return one chunk of the chunked coding. `piece` is not empty."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)
