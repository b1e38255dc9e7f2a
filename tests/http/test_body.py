"""Chunked bodies: what is accepted, h11 reads as the same; cuts do not matter."""

import random

import h11
import pytest

from gateway.http.body import BodyReader, ChunkError

BODIES = 20_000
SEED = 20_252
HEAD = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
SPOILERS = [b"\r", b"\n", b"\r\n", b"0", b"f", b" ", b";", b"\x00", b"-", b"0x", b":", b"\x80"]


def make_body(random_: random.Random) -> bytes:
    raw = b""
    for _ in range(random_.randrange(4)):
        size = random_.randrange(1, 20)
        extension = random_.choice([b"", b"", b"", b";a", b";a=b", b';a="b c"'])
        raw += (random_.choice([b"%x", b"%X", b"0%x"]) % size) + extension + b"\r\n" + random_.randbytes(size) + b"\r\n"
    raw += (
        random_.choice([b"0", b"00"]) + b"\r\n" + random_.choice([b"", b"", b"A: b\r\n", b"A: b\r\nC:\r\n"]) + b"\r\n"
    )
    while random_.random() < 0.3:
        at = random_.randrange(len(raw))
        raw = raw[:at] + random_.choice(SPOILERS) + raw[at + random_.randrange(2) :]
    return raw + b"GET"


def read(raw: bytes, cuts: list[int]) -> tuple[bytes, bytes, bool] | None:
    reader = BodyReader(None, line_bytes=100, trailer_bytes=100)
    body = b""
    try:
        for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
            body += reader.feed(raw[start:end])
    except ChunkError:
        return None
    return body, reader.rest, reader.is_finished


def read_by_h11(raw: bytes) -> tuple[bytes, bytes]:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(HEAD + raw)
    body = b""
    connection.next_event()
    while type(event := connection.next_event()) is h11.Data:
        body += bytes(event.data)
    assert type(event) is h11.EndOfMessage
    return body, connection.trailing_data[0]


def test_what_is_accepted_h11_reads_as_the_same_body() -> None:
    random_ = random.Random(SEED)
    accepted = 0
    for _ in range(BODIES):
        raw = make_body(random_)
        result = read(raw, [])
        if result is not None and result[2]:
            accepted += 1
            assert read_by_h11(raw) == result[:2]
    assert accepted > BODIES // 3


def test_a_body_is_read_the_same_wherever_it_is_cut() -> None:
    random_ = random.Random(SEED + 1)
    for _ in range(BODIES // 10):
        raw = make_body(random_)
        cuts = sorted(random_.sample(range(1, len(raw)), k=min(5, len(raw) - 1)))
        whole, cut = read(raw, []), read(raw, cuts)
        assert cut == whole


@pytest.mark.parametrize("raw", [b"5\r\nabc", b"5", b"5\r", b"3\r\nabc", b"3\r\nabc\r", b"0\r\n", b"0\r\nA: b", b""])
def test_a_body_that_has_not_ended_is_neither_refused_nor_finished(raw: bytes) -> None:
    result = read(raw, [])
    assert result is not None
    assert not result[2]


def test_nothing_is_read_after_the_end() -> None:
    reader = BodyReader(None, line_bytes=100, trailer_bytes=100)
    assert reader.feed(b"1\r\na\r\n0\r\n\r\nnext") == b"a"
    assert reader.feed(b" one") == b""
    assert reader.rest == b"next one"
