"""From raw bytes to the head of one request: a strict guard over the raw lines, and then h11, which is the authority.

The guard refuses what h11 0.16 repairs without a word: Content-Length beside Transfer-Encoding, equal repeated lengths,
bare LF, folded lines, HTTP/1.2 and later, an empty Host, control bytes, heads of any size.
"""

import re
from dataclasses import dataclass

import h11

from gateway.http.messages import Headers, HttpError, Limits, Request
from gateway.http.target import check_host, split_absolute, split_target

_TOKEN = rb"[-!#$%&'*+.^_`|~0-9A-Za-z]"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb"+) ([!-~]+) HTTP/([0-9])\.([0-9])")
_FIELD_LINE = re.compile(rb"(" + _TOKEN + rb"+):([\t -~\x80-\xff]*)")
_TOKENS = re.compile(rb"[ \t]*" + _TOKEN + rb"+[ \t]*(?:,[ \t]*" + _TOKEN + rb"+[ \t]*)*")
# In a head that has not ended yet: a control byte, LF without CR, CR without LF.
_NEVER_IN_HEAD = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)(?=[\x00-\xff])")

_LENGTH_DIGITS = 20

# RFC 9110 section 5.3: these are no lists, so two of them are two different requests to two readers.
_SINGLE = frozenset(
    b"authorization content-length content-type cookie date expect from host if-modified-since if-range"
    b" if-unmodified-since max-forwards origin proxy-authorization range referer transfer-encoding user-agent".split()
)


@dataclass(slots=True, eq=False, kw_only=True)
class Head(Request):
    """A request whose head was read, its framing decided. Its reader completes it.

    size_bytes: how much of the buffer the head took. body_bytes: declared length of the body, None when it is chunked.
    is_last: the connection ends after this request. expects_continue: the body waits for ``100 Continue``.
    """

    size_bytes: int
    body_bytes: int | None
    is_last: bool
    expects_continue: bool


def parse_head(
    data: bytes, limits: Limits, *, allowed_hosts: frozenset[str] | None = None, seen_bytes: int = 0
) -> Head | None:
    """Return the head at the start of `data`, or None when it has not ended yet and may still become good.

    seen_bytes: how much of `data` an earlier call returned None for; it is not searched again.

    Raises:
        HttpError: 400, 414, 417, 421, 431, 501 or 505; the rest of the connection cannot be read.
    """
    start = 2 if data.startswith(b"\r\n") else 0  # RFC 9112 section 2.2: one empty line before a request is ignored
    end = data.find(b"\r\n\r\n", max(start, seen_bytes - 3))
    if end < 0 and _NEVER_IN_HEAD.search(data, max(start, seen_bytes - 1)) is not None:
        raise _malformed("The head holds a control character or a line that does not end in CRLF.")
    head = data[start:end] if end >= 0 else data[start:].rstrip(b"\r\n")
    lines = head[: limits.head_bytes + limits.line_bytes].split(b"\r\n", limits.header_count + 1)
    if len(lines[0]) > limits.line_bytes:
        raise HttpError(414, "uri_too_long", "The request line is too long.")
    is_long = start + len(head) + 4 > limits.head_bytes or max(map(len, lines)) > limits.line_bytes
    if is_long or len(lines) > limits.header_count + 1:
        raise HttpError(431, "headers_too_large", "The header block is too large.")
    return _read_head(head, end + 4, allowed_hosts) if end >= 0 else None


def _read_head(raw: bytes, size_bytes: int, allowed_hosts: frozenset[str] | None) -> Head:
    """Guard the lines of `raw` (without the empty line), let h11 parse them and decide the framing."""
    first, *lines = raw.split(b"\r\n")
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise _malformed("The request line is malformed.")
    if found[3] + found[4] not in (b"11", b"10"):
        raise HttpError(505, "http_version_not_supported", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    is_http10 = found[4] == b"0"
    singles = check_lines(lines, _SINGLE)
    body_bytes = _read_framing(singles, is_http10=is_http10)
    if singles.get(b"expect", b"100-continue").lower() != b"100-continue":
        raise HttpError(417, "expectation_failed", "The only expectation that is met is 100-continue.")
    expects_continue = b"expect" in singles and not is_http10  # RFC 9110 section 10.1.1
    try:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=len(raw) + 5)
        connection.receive_data(raw + b"\r\n\r\n")
        event = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise _malformed("The head is malformed.") from error
    assert type(event) is h11.Request
    fields: dict[str, str] = {}
    for raw_name, raw_value in event.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    target = event.target.decode("ascii")
    host = fields.get("host")
    if not target.startswith("/"):
        target_host, target = split_absolute(target)
        if host is not None and target_host.lower() != host.lower():
            raise _malformed("The request target names another host than the Host header.")
        host = target_host
    path, query = split_target(target)
    if host is not None:
        check_host(host, allowed_hosts)
    elif allowed_hosts is not None:
        raise HttpError(421, "host_not_allowed", "This server does not answer without a host.")
    is_last = is_http10 or "close" in [word.strip() for word in fields.get("connection", "").lower().split(",")]
    return Head(
        event.method.decode("ascii"),
        path,
        query,
        Headers(fields),
        size_bytes=size_bytes,
        body_bytes=body_bytes,
        is_last=is_last,
        is_http10=is_http10,
        expects_continue=expects_continue,
    )


def check_lines(lines: list[bytes], single: frozenset[bytes]) -> dict[bytes, bytes]:
    """Refuse header lines that h11 would repair or merge, and return the fields of `single`, which may not repeat.

    For heads of requests and of replies. Names are in lower case, values without the blanks around them.

    Raises:
        HttpError: 400.
    """
    singles: dict[bytes, bytes] = {}
    for line in lines:
        found = _FIELD_LINE.fullmatch(line)
        if found is None:
            raise _malformed("A header line is malformed or folded.")
        name = found[1].lower()
        if name in singles:
            raise _malformed("A header that must be single was sent twice.")
        if name in single:
            singles[name] = found[2].strip(b" \t")
    if b"content-length" in singles and b"transfer-encoding" in singles:
        raise _malformed("Content-Length and Transfer-Encoding were both sent.")
    return singles


def _read_framing(singles: dict[bytes, bytes], *, is_http10: bool) -> int | None:
    """Return the length of the body, None for chunked. RFC 9112 section 6.3, its lenient parts left out."""
    coding = singles.get(b"transfer-encoding")
    if coding is not None:
        codings = [word.strip(b" \t") for word in coding.lower().split(b",")]
        if is_http10 or codings.count(b"chunked") > 1 or _TOKENS.fullmatch(coding) is None:
            raise _malformed("The Transfer-Encoding header is malformed.")
        if codings != [b"chunked"]:
            raise HttpError(501, "not_implemented", "The only transfer coding that is read is chunked.")
        return None
    length = singles.get(b"content-length")
    if length is None:
        return 0
    if not length.isdigit():
        raise _malformed("The Content-Length header is malformed.")
    if len(length) > _LENGTH_DIGITS:  # more than h11 reads
        raise HttpError(413, "body_too_large", "The Content-Length is over the limit of every path.")
    return int(length)


def _malformed(message: str) -> HttpError:
    return HttpError(400, "invalid_request", message)
