"""Replies: what is accepted h11 reads as the same; cuts do not matter."""

import random

import anyio
import h11

from gateway.http.messages import ClientError
from gateway.http.reply import IncomingReply

REPLIES = 20_000
SEED = 20_253
STARTS = [b"HTTP/1.1 200 OK", b"HTTP/1.1 404 Not Found", b"HTTP/1.1 500", b"HTTP/1.1 204 No Content", b"HTTP/1.1 200 "]
ODD_STARTS = [
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 100 Continue",
    b"HTTP/1.1 99 Odd",
    b"HTTP/2 200",
    b"HTTP/1.1 200 \xe9",
    b"",
]
FIELDS = [
    b"Content-Length: 3",
    b"Transfer-Encoding: chunked",
    b"Date: Thu, 20 Nov 2025 13:44:00 GMT",
    b"Content-Type: application/json",
    b"Set-Cookie: a=b",
    b"Connection: keep-alive",
    b"Connection: close",
    b"X-Empty:",
    b"X-Trail: a  ",
]
ODD_FIELDS = [
    b"Content-Length: 03",
    b"Content-Length: 3, 3",
    b"Content-Length: x",
    b"Content-Length:",
    b"Transfer-Encoding: gzip",
    b"Transfer-Encoding: CHUNKED",
    b"Connection: Close, x",
    b"Content-Encoding: identity",
    b"Content-Encoding: gzip",
    b"X-Tab: a\tb",
    b"X-Latin: \xe9",
    b"X Blank: a",
    b" folded",
]
SPOILERS = [b"\r", b"\n", b"\r\n", b"\x00", b" ", b":", b"\x80", b"0", b",", b"\r\n\r\n"]
BODIES = [b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\nHTTP/1.1", b"abcHTTP/1.1", b"ab", b""]


def make_reply(random_: random.Random) -> bytes:
    """Return a reply that is mostly good, sometimes spoiled at a random place."""
    start = random_.choice(STARTS if random_.random() < 0.9 else ODD_STARTS)
    fields = [random_.choice(FIELDS[:2]), *random_.sample(FIELDS[2:], k=random_.randrange(4))]
    if random_.random() < 0.3:
        fields += random_.choices(FIELDS + ODD_FIELDS, k=random_.randrange(1, 3))
    random_.shuffle(fields)
    raw = b"\r\n".join([start, *fields]) + b"\r\n\r\n" + random_.choice(BODIES)
    while random_.random() < 0.2:
        at = random_.randrange(len(raw))
        raw = raw[:at] + random_.choice(SPOILERS) + raw[at + random_.randrange(2) :]
    return raw


def asking_connection() -> h11.Connection:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    return connection


class EndOfInput(Exception):
    """The reply goes on after the last piece."""


Outcome = tuple[int, tuple[tuple[str, str], ...], bytes, bool] | str | None


def outcome(raw: bytes, *cuts: int) -> Outcome:
    """Return status, headers, body and whether the connection is reusable; the error's name; None if incomplete."""
    return anyio.run(read_pieces, [raw[start:end] for start, end in zip((0, *cuts), (*cuts, len(raw)), strict=True)])


async def read_pieces(pieces: list[bytes]) -> Outcome:
    coming, reusable = iter(pieces), []

    async def more() -> bytes:
        try:
            return next(coming)
        except StopIteration:
            raise EndOfInput from None

    reply = IncomingReply("GET", 1000, b"", more=more, release=reusable.append)
    try:
        whole = await reply.whole()
    except ClientError as error:
        return type(error).__name__
    except EndOfInput:
        return None
    reply.close()
    if next(coming, None) is not None:
        return None  # the reply was over before the cut; what follows belongs to nobody
    return whole.status, whole.headers, whole.body, reusable[0]


def read_by_h11(raw: bytes) -> tuple[int, bytes] | None:
    connection = asking_connection()
    connection.receive_data(raw)
    status, body = 0, b""
    try:
        while type(event := connection.next_event()) is not h11.EndOfMessage:
            if isinstance(event, h11.Response | h11.InformationalResponse):
                status = event.status_code
            elif type(event) is h11.Data:
                body += bytes(event.data)
            else:
                return None
    except h11.RemoteProtocolError:
        return None
    return status, body


def test_a_reply_that_is_accepted_h11_reads_as_the_same() -> None:
    random_ = random.Random(SEED + 1)
    accepted = 0
    for _ in range(REPLIES // 2):
        raw = make_reply(random_)
        result = outcome(raw)
        if isinstance(result, tuple):
            accepted += 1
            assert read_by_h11(raw) == (result[0], result[2])
    assert accepted > REPLIES // 10


def test_a_reply_is_read_the_same_wherever_it_is_cut() -> None:
    random_ = random.Random(SEED + 3)
    for _ in range(REPLIES // 4):
        raw = make_reply(random_)
        cut = random_.randrange(1, len(raw))
        cut_outcome = outcome(raw, cut)
        if cut_outcome is not None:
            assert cut_outcome == outcome(raw)
