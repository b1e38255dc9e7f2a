"""Server-sent events: their bytes, their order, silence, a peer that does not read, the end."""

import anyio
import pytest

from gateway.http.sse import KEEP_ALIVE, EventReader, EventStream, EventTooLong, render_event


def test_an_event_has_a_name_and_one_line_of_data() -> None:
    assert render_event(b'{"a":1}') == b'event: message\ndata: {"a":1}\n\n'
    assert render_event(b"/message?a=b", "endpoint") == b"event: endpoint\ndata: /message?a=b\n\n"


@pytest.mark.parametrize("data", [b"a\nb", b"a\rb", b"\n"])
def test_data_with_a_line_break_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="one line"):
        render_event(data)


def new_stream(closed: list[str], *, keep_alive_seconds: float = 60.0, limit_bytes: int = 100) -> EventStream:
    return EventStream(lambda: closed.append("closed"), keep_alive_seconds=keep_alive_seconds, limit_bytes=limit_bytes)


async def test_events_go_out_in_order_and_end_after_what_was_sent() -> None:
    stream = new_stream([])
    stream.send(b"a")
    stream.send(b"b")
    assert await anext(stream) == b"ab"
    stream.send(b"c")
    stream.end()
    stream.send(b"too late")
    assert [piece async for piece in stream] == [b"c"]


async def test_a_waiting_stream_wakes_when_something_is_sent() -> None:
    stream = new_stream([])
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                assert await anext(stream) == b"a"

            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            stream.send(b"a")


async def test_a_silent_stream_carries_comments() -> None:
    stream = new_stream([], keep_alive_seconds=0.001)
    with anyio.fail_after(30):
        assert [await anext(stream), await anext(stream)] == [KEEP_ALIVE, KEEP_ALIVE]


async def test_a_stream_whose_peer_does_not_read_ends_and_holds_nothing() -> None:
    stream = new_stream([], limit_bytes=10)
    for _ in range(1000):
        stream.send(b"12345")
    assert [piece async for piece in stream] == []


async def test_its_owner_is_told_of_the_end_once_even_if_nothing_was_ever_read() -> None:
    closed: list[str] = []
    stream = new_stream(closed)
    stream.send(b"a")
    await stream.aclose()
    await stream.aclose()
    assert closed == ["closed"]
    assert [piece async for piece in stream] == []


LINES = b'\xef\xbb\xbf: hello\ndata: {"a": 1}\n\nevent: x\ndata:two\ndata: lines\nid: 7\n\ndata\n\nretry: 9\n\ndata: end\n\n'
EVENTS = [b'{"a": 1}', b"two\nlines", b"", b"end"]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_however_they_are_cut(line_end: bytes, size: int) -> None:
    raw, reader = LINES.replace(b"\n", line_end), EventReader(100)
    pieces = [raw[begin : begin + size] for begin in range(0, len(raw), size)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


def test_an_event_without_end_is_refused() -> None:
    for piece in (b"data: " + b"x" * 90, b"data: xxxxxxxx\n"):
        reader = EventReader(100)
        with pytest.raises(EventTooLong):
            for _ in range(20):
                reader.feed(piece)
