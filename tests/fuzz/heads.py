"""Heads made at random, mostly good, and how h11 reads them."""

import random

import h11

from gateway.http.head import Head
from gateway.http.messages import Limits

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
    read = read_by_h11(raw if head.body_bytes is not None else raw[: head.size_bytes] + b"0\r\n\r\n")
    assert read is not None
    request, body, is_last = read
    assert head.method == request.method.decode()
    target = request.target.decode()
    assert target.startswith("/")
    assert head.query == target.partition("?")[2]
    fields: dict[str, str] = {}
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode(), raw_value.decode("latin-1")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    assert dict(head.headers.items()) == fields
    if head.body_bytes is None:
        return  # chunked
    if len(raw) - head.size_bytes >= head.body_bytes:
        assert raw[head.size_bytes : head.size_bytes + head.body_bytes] == body
        if "upgrade" not in fields and head.method != "CONNECT":  # h11 would switch protocols, which we never do
            assert head.is_last == is_last
