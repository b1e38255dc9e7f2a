"""What the fast path accepts, h11 accepts as the same; and what is accepted at all never depends on cuts."""

import random

import h11
import pytest

from gateway.http import head as head_module
from gateway.http.head import Head, parse_head
from gateway.http.messages import HttpError, Limits

HEADS = 50_000
SEED = 20_251
LIMITS = Limits()

METHODS = [b"GET", b"POST", b"HEAD", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"CONNECT", b"TRACE", b"get", b"FOO"]
TARGETS = [
    b"/",
    b"/a",
    b"/a/b?c=d",
    b"/a%20b",
    b"/a?",
    b"*",
    b"a",
    b"http://h/a",
    b"//",
    b"/..",
    b"/a;b",
    b"/'(~)",
    b"/|",
]
VERSIONS = [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1", b"HTTP/1.1 "]
FIELDS = [
    b"Host: h",
    b"host:h:80",
    b"HOST: \t h \t",
    b"Host:",
    b"Accept: */*",
    b"Accept: a/b, c/d",
    b"User-Agent: a (b; c) d/1.0",
    b"Authorization: Bearer abc",
    b"Content-Type: application/json; charset=utf-8",
    b"Connection: keep-alive",
    b"Connection: close",
    b"Connection: Keep-Alive",
    b"Connection: close, te",
    b"Connection: upgrade",
    b"Upgrade: h2c",
    b"Content-Length: 0",
    b"Content-Length: 3",
    b"content-length:3 ",
    b"Content-Length: 03",
    b"Content-Length: 3, 3",
    b"Content-Length: -3",
    b"Content-Length: 1234567890123",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip",
    b"Expect: 100-continue",
    b"TE: trailers",
    b"Trailer: a",
    b"X-Empty:",
    b"X-Blank:  ",
    b"X-Trail: a  \t",
    b"X-Colon: a:b: c",
    b'X-Quote: "a\\b"',
    b"X-!#$%&'*+-.^_`|~: a",
    b"X-Latin: \xe9",
    b"X-Tab: a\tb",
    b"X Blank: a",
    b"X-Blank : a",
    b" folded",
    b"",
]
PLAIN = [FIELDS[at] for at in (4, 6, 7, 8, 9, 16, 31)]
SPOILERS = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\x00",
    b" ",
    b"\t",
    b":",
    b"\x7f",
    b"\x80",
    b"a",
    b",",
    b";",
    b"%",
    b"\r\n\r\n",
    b"\x0b",
]


def make_head(random_: random.Random) -> bytes:
    """Return a head that is mostly good, sometimes spoiled at a random place, and a body after it."""

    def mostly(good: list[bytes], every: list[bytes]) -> bytes:
        return random_.choice(good if random_.random() < 0.85 else every)

    fields = [random_.choice(FIELDS[:3]), *random_.sample(PLAIN, k=random_.randrange(len(PLAIN)))]
    if random_.random() < 0.5:
        fields += random_.choices(FIELDS, k=random_.randrange(1, 4))
    random_.shuffle(fields)
    first = b" ".join((mostly(METHODS[:7], METHODS), mostly(TARGETS[:5], TARGETS), mostly(VERSIONS[:1], VERSIONS)))
    raw = b"\r\n".join([first, *fields]) + b"\r\n\r\n"
    while random_.random() < 0.3:
        at = random_.randrange(len(raw))
        raw = raw[:at] + random_.choice(SPOILERS) + raw[at + random_.randrange(2) :]
    return raw + b"abc"


def read_by_h11(raw: bytes) -> tuple[h11.Request, bytes, bool] | None:
    """Return request, body and whether the connection ends after it; None when h11 refuses."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(raw)
    body = b""
    try:
        request = connection.next_event()
        if type(request) is not h11.Request:
            return None
        event = connection.next_event()
        while type(event) is h11.Data:
            body += bytes(event.data)
            event = connection.next_event()
        if type(event) is not h11.EndOfMessage:
            return request, body, False
    except h11.RemoteProtocolError:
        return None
    return request, body, connection.their_state is h11.MUST_CLOSE


def assert_same(head: Head, raw: bytes) -> None:
    read = read_by_h11(raw)
    assert read is not None
    request, body, is_last = read
    assert head.method == request.method.decode()
    target = request.target.decode()
    assert target.startswith("/")
    assert head.query == target.partition("?")[2]
    assert list(head.headers) == [(name.decode(), value.decode()) for name, value in request.headers]
    assert head.body_bytes is not None
    if len(raw) - head.size_bytes >= head.body_bytes:
        assert raw[head.size_bytes : head.size_bytes + head.body_bytes] == body
        assert head.is_last == is_last


def test_what_the_fast_path_accepts_h11_accepts_as_the_same() -> None:
    random_ = random.Random(SEED)
    accepted = 0
    for _ in range(HEADS):
        raw = make_head(random_)
        try:
            head = head_module._fast_head(raw, LIMITS, None)
        except HttpError:
            continue
        if head is not None:
            accepted += 1
            assert_same(head, raw)
    assert accepted > HEADS // 6


def outcome(raw: bytes, *, seen_bytes: int = 0) -> object:
    try:
        head = parse_head(raw, LIMITS, seen_bytes=seen_bytes)
    except HttpError as error:
        return error.status
    if head is None:
        return None
    return (head.method, head.path, head.query, list(head.headers), head.size_bytes, head.body_bytes, head.is_last)


def test_the_fast_path_and_the_strict_path_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random_ = random.Random(SEED + 1)
    heads = [make_head(random_) for _ in range(HEADS // 10)]
    fast = [outcome(raw) for raw in heads]
    monkeypatch.setattr(head_module, "_fast_head", lambda data, limits, allowed_hosts: None)
    assert [outcome(raw) for raw in heads] == fast


def test_a_head_is_read_the_same_wherever_it_is_cut() -> None:
    random_ = random.Random(SEED + 2)
    for _ in range(HEADS // 50):
        raw = make_head(random_)
        whole = outcome(raw)
        cut = random_.randrange(1, len(raw))
        first = outcome(raw[:cut])
        if first is None:
            assert outcome(raw, seen_bytes=cut) == whole
        elif isinstance(first, int):
            assert isinstance(whole, int)
        else:
            assert first == whole


def test_a_fast_head_keeps_to_smaller_limits() -> None:
    raw = b"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"
    for limits in (Limits(header_count=1), Limits(head_bytes=20), Limits(line_bytes=8)):
        with pytest.raises(HttpError) as caught:
            parse_head(raw, limits)
        assert caught.value.status in (414, 431)


def test_what_h11_alone_refuses_is_400(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_module, "check_lines", lambda lines, single: {})
    for raw in (b"GET / HTTP/1.1\r\nA: b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n"):
        with pytest.raises(HttpError) as caught:
            parse_head(raw, LIMITS)
        assert caught.value.status == 400


def test_a_head_shows_no_values() -> None:
    head = parse_head(b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hush\r\n\r\n", LIMITS)
    assert head is not None
    assert "hush" not in repr(head.headers)
    assert "authorization" in repr(head.headers)
    assert "authorization" in head.headers
