"""What is accepted h11 reads as the same, and it never depends on cuts."""

import random

import pytest
from fuzz.heads import LIMITS, assert_same, make_head

from gateway.http import head as head_module
from gateway.http.head import parse_head
from gateway.http.messages import HttpError, Limits

HEADS = 50_000
SEED = 20_251


def test_what_is_accepted_h11_reads_as_the_same() -> None:
    random_, accepted = random.Random(SEED), 0
    for _ in range(HEADS):
        raw = make_head(random_)
        try:
            head = parse_head(raw, LIMITS)
        except HttpError:
            continue
        if head is not None and raw.partition(b" ")[2].startswith(b"/") and not raw.startswith(b"\r\n"):
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
    return (
        head.method,
        head.path,
        head.query,
        list(head.headers.items()),
        head.size_bytes,
        head.body_bytes,
        head.is_last,
    )


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


def test_a_head_keeps_to_smaller_limits() -> None:
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
