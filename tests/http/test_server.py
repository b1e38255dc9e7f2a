"""The server on a real socket: order, bodies, answers, deadlines, drain."""

import asyncio
import errno
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.http.accept import Shares, listen
from gateway.http.messages import HttpError, Limits, Request, Response, connections_allowed
from gateway.http.server import Server
from gateway.http.transport import server_tls

Serve = Callable[..., AbstractAsyncContextManager[Any]]
GET = b"GET /a?b=1 HTTP/1.1\r\nHost: here\r\n\r\n"
OLD = b"GET / HTTP/1.0\r\nHost: here\r\n\r\n"


def post(body: bytes, *lines: bytes) -> bytes:
    head = b"POST /p HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n" % len(body)
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


@pytest.fixture
async def reported() -> list[dict[str, Any]]:
    """Return a list that gets what is handed to the loop's exception handler."""
    contexts: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: contexts.append(context))
    return contexts


# Order and bodies.


async def test_a_request_is_answered_and_the_connection_stays_open(serve: Serve) -> None:
    async with serve() as house, house.wire() as wire:
        for _ in range(3):
            answer = await wire.ask(GET)
            assert (answer.status, answer.body) == (200, b"GET /a ?b=1 0")
            assert answer.headers.keys() == {"date", "content-type", "content-length"}


async def test_a_head_that_comes_again_is_read_as_before_however_it_is_cut(serve: Serve) -> None:
    head = GET.replace(b"GET", b"HEAD", 1)
    async with serve() as house, house.wire() as wire:
        for raw in (GET, head, head, GET.replace(b"b=1", b"b=2"), post(b"xyz"), post(b"abc"), GET, head):
            method, _, rest = raw.partition(b" ")
            for cut in (0, 2, len(raw) - 1):
                await wire.send(raw[:cut] or raw)
                if cut:
                    await anyio.wait_all_tasks_blocked()
                    await wire.send(raw[cut:])
                answer = await wire.answer(to_head=method == b"HEAD")
                path, _, query = rest.partition(b" ")[0].partition(b"?")
                size = 3 if method == b"POST" else 0
                told = b"%b %b ?%b %d" % (method, path, query, size)
                assert answer.body == (b"" if method == b"HEAD" else told)


async def test_a_head_that_came_over_another_connection_is_read_as_there(serve: Serve) -> None:
    async with serve() as house, house.wire() as one, house.wire() as two:
        for number in range(200):  # more than are remembered
            raw = GET.replace(b"b=1", b"b=%d" % number)
            for wire in (one, two, one):
                assert (await wire.ask(raw)).body == b"GET /a ?b=%d 0" % number
        assert (await one.ask(post(b"xyz"))).body == (await two.ask(post(b"abc"))).body == b"POST /p ? 3"


async def test_pipelined_requests_are_answered_one_after_the_other_in_order(serve: Serve) -> None:
    running = 0

    async def handle(request: Request) -> Response:
        nonlocal running
        assert running == 0
        running += 1
        await anyio.lowlevel.checkpoint()
        running -= 1
        return Response(200, body=request.query.encode())

    async with serve(handle) as house, house.wire() as wire:
        await wire.send(b"".join(b"GET /?%d HTTP/1.1\r\nHost: here\r\n\r\n" % number for number in range(200)))
        for number in range(200):
            assert (await wire.answer()).body == b"%d" % number


@pytest.mark.parametrize("is_in_one_piece", [True, False])
async def test_a_pipelined_request_has_not_waited_while_the_one_before_it_was_answered(
    serve: Serve, is_in_one_piece: bool
) -> None:
    waited: list[float] = []
    entered = anyio.Event()

    async def handle(request: Request) -> Response:
        waited.append(time.monotonic() - request.arrived_seconds)
        entered.set()
        await anyio.sleep(1)
        return Response(200)

    async with serve(handle) as house, house.wire() as wire:
        await wire.send(GET + GET if is_in_one_piece else GET)
        await entered.wait()
        if not is_in_one_piece:
            await wire.send(GET)
        for _ in range(2):
            await wire.answer()
    assert max(waited) < 0.8


@pytest.mark.usefixtures("short_buffers")
async def test_a_flood_of_pipelined_requests_is_not_read_while_one_is_answered(serve: Serve) -> None:
    entered, leave = anyio.Event(), anyio.Event()

    async def handle(request: Request) -> Response:
        entered.set()
        await leave.wait()
        return Response(200)

    async with serve(handle) as house, house.wire() as wire:
        await wire.send(GET)
        await entered.wait()
        sent = 0
        with anyio.move_on_after(0.2):
            while True:
                await wire.send(GET * 3000)
                sent += 3000
        assert sent * len(GET) < 3_000_000  # the kernel's buffers filled up, ours did not
        leave.set()
        for _ in range(min(sent, 1000)):
            assert (await wire.answer()).status == 200


async def test_bodies_of_all_sizes_arrive_whole(serve: Serve) -> None:
    async def handle(request: Request) -> Response:
        return Response(200, body=request.body)

    async with serve(handle, body_limit=3_000_000) as house, house.wire() as wire:
        for size in (0, 1, 65_536, 2_000_000):
            body = bytes(range(256)) * (size // 256) + b"a" * (size % 256)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wire.send, post(body) + GET)
                assert (await wire.answer()).body == body
                assert (await wire.answer()).body == b""


async def test_the_request_says_who_and_how(serve: Serve) -> None:
    seen: list[Request] = []

    async def handle(request: Request) -> Response:
        seen.append(request)
        return Response(200)

    async with serve(handle) as house, house.wire() as wire:
        await wire.ask(b"GET / HTTP/1.1\r\nHost: here\r\nX-Key: a b\r\nAccept: c\r\naccept: d\r\n\r\n")
    (request,) = seen
    assert (request.peer, request.is_tls, request.headers.get("x-key"), request.headers.get("accept")) == (
        "127.0.0.1",
        False,
        "a b",
        "c, d",
    )
    assert request.headers.get("none", "nothing") == "nothing"
    assert request.started_seconds > 0


async def refuse_all(request: Request) -> Response:
    assert request.body == b""
    return Response(401, (), f"no {request.path}".encode())


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 1000\r\n\r\n",
        b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
        b"Content-Length: 101\r\n\r\n" + b"a" * 50,
        b"Transfer-Encoding: chunked\r\n\r\n65\r\n" + b"a" * 101 + b"\r\n",
    ],
)
async def test_a_large_body_is_read_only_if_its_head_may_come_in(serve: Serve, head: bytes) -> None:
    async with serve(check=refuse_all, unchecked_bytes=100) as house, house.wire() as wire:
        answer = await wire.ask(b"POST /x HTTP/1.1\r\nHost: here\r\n" + head)
        assert (answer.status, answer.body) == (401, b"no /x")
        assert answer.headers["connection"] == "close"


async def test_a_small_body_needs_no_check(serve: Serve) -> None:
    chunked = (
        b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + b"a" * 100 + b"\r\n0\r\n\r\n"
    )
    async with serve(check=refuse_all, unchecked_bytes=100) as house, house.wire() as wire:
        raw = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n" + b"a" * 100
        assert (await wire.ask(raw)).body == b"POST / ? 100"
        assert (await wire.ask(chunked)).body == b"POST / ? 100"
        assert (await wire.ask(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")).status == 200


async def test_a_head_that_may_come_in_is_checked_once_and_its_body_read_whole(serve: Serve) -> None:
    checked: list[Request] = []

    async def check(request: Request) -> None:
        checked.append(request)
        request.call = "seen"

    async def handle(request: Request) -> Response:
        return Response(200, (), f"{request.call} {len(request.body)}".encode())

    chunk = b"65\r\n" + b"a" * 101 + b"\r\n"
    async with serve(handle, check=check, unchecked_bytes=100) as house, house.wire() as wire:
        raw = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 500\r\n\r\n" + b"a" * 500
        assert (await wire.ask(raw)).body == b"seen 500"
        await wire.send(b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            await wire.send(chunk)
        assert (await wire.ask(b"0\r\n\r\n")).body == b"seen 303"
    assert len(checked) == 2


async def test_a_body_that_waits_for_continue_gets_it(serve: Serve) -> None:
    head = b"POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n"
    async with serve() as house, house.wire() as wire:
        await wire.send(head)
        assert await wire.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert (await wire.ask(b"abc")).body == b"POST / ? 3"
        assert (await wire.ask(head + b"abc")).body == b"POST / ? 3"  # it did not wait
        await wire.send(head.replace(b"HTTP/1.1", b"HTTP/1.0"))
        await anyio.wait_all_tasks_blocked()
        assert (await wire.ask(b"abc")).body == b"POST / ? 3"  # and no 100 before it


async def test_a_body_over_the_limit_that_waits_for_continue_does_not_get_it(serve: Serve) -> None:
    async with serve() as house, house.wire() as wire:
        answer = await wire.ask(
            b"POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n"
        )
        assert (answer.status, answer.body) == (413, b"body_too_large")
        assert await wire.end() == b""


@pytest.mark.parametrize("size", [999, 1000, 1001])
async def test_a_body_that_comes_with_its_head_is_held_to_the_limit_whether_the_head_is_known_or_not(
    serve: Serve, size: int
) -> None:
    raw = post(b"a" * size)
    async with serve() as house:
        for _ in range(2):
            async with house.wire() as wire:
                assert (await wire.ask(raw)).status == (200 if size <= 1000 else 413)
        async with house.wire() as wire:  # the same head, and the body later: it is the same
            await wire.send(raw[:-1])
            await anyio.wait_all_tasks_blocked()
            await wire.send(raw[-1:])
            assert (await wire.answer()).status == (200 if size <= 1000 else 413)


async def test_a_refusal_is_readable_while_the_body_is_still_being_sent(serve: Serve) -> None:
    async with serve() as house, house.wire() as wire:
        answer = await wire.ask(post(b"a" * 20_000_000))
        assert answer.status == 413
        assert await wire.end() == b""


async def test_what_is_thrown_away_after_a_refusal_is_bounded(serve: Serve) -> None:
    async with serve(linger_bytes=1000) as house, house.wire() as wire:
        with pytest.raises(anyio.BrokenResourceError):
            await wire.send(b"\0" * 60_000_000)


async def test_bodies_that_are_held_are_bounded_over_all_connections(serve: Serve) -> None:
    head = b"POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 900\r\n\r\n"
    async with serve(held_bytes=1000) as house, house.wire() as one, house.wire() as two:
        for wire in (one, two):
            await wire.send(head)
            await wire.until(b"100 Continue\r\n\r\n")
            await wire.send(b"a" * 600)
        answer = await two.answer()
        assert (answer.status, answer.body, answer.headers["retry-after"]) == (503, b"overloaded", "1")
        assert (await one.ask(b"a" * 300)).status == 200
        await one.send(head)
        await one.until(b"100 Continue\r\n\r\n")
        assert (await one.ask(b"a" * 900)).status == 200  # what was held before is free again


# Answers.


async def test_head_has_the_length_but_no_body(serve: Serve) -> None:
    async with serve() as house, house.wire() as wire:
        for _ in range(2):
            await wire.send(b"HEAD / HTTP/1.1\r\nHost: here\r\n\r\n")
            answer = await wire.answer(to_head=True)
            assert (answer.status, answer.headers["content-length"]) == (200, "10")
        await wire.send(b"HEAD /%00 HTTP/1.1\r\nHost: here\r\n\r\n")
        assert (await wire.answer(to_head=True)).status == 400
        assert await wire.end() == b""


@pytest.mark.parametrize("status", [204, 304])
async def test_a_status_without_body_has_none(serve: Serve, status: int) -> None:
    async def handle(request: Request) -> Response:
        return Response(status, body=b"none")

    async with serve(handle) as house, house.wire() as wire:
        for _ in range(2):
            answer = await wire.ask(GET)
            assert (answer.status, answer.body) == (status, b"")
            assert "content-length" not in answer.headers


@pytest.mark.parametrize(
    "raw",
    [
        OLD,
        GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        GET.replace(b"\r\n\r\n", b"\r\nConnection: te, Close\r\n\r\n"),
    ],
)
async def test_the_connection_ends_when_asked(serve: Serve, raw: bytes) -> None:
    async with serve() as house, house.wire() as wire:
        answer = await wire.ask(raw)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await wire.end() == b""


async def test_a_half_closed_client_gets_its_answer(serve: Serve) -> None:
    entered, leave = anyio.Event(), anyio.Event()

    async def handle(request: Request) -> Response:
        entered.set()
        await leave.wait()
        return Response(200, body=b"late")

    async with serve(handle) as house, house.wire() as wire:
        await wire.send(GET)
        await wire.stream.send_eof()
        await entered.wait()
        leave.set()
        assert (await wire.answer()).body == b"late"
        assert await wire.end() == b""


@pytest.mark.parametrize("raw", [GET[:-2], post(b"abc")[:-1]])
async def test_a_request_that_ends_early_is_400(serve: Serve, raw: bytes) -> None:
    async with serve() as house, house.wire() as wire:
        await wire.send(raw)
        await wire.stream.send_eof()
        assert (await wire.answer()).status == 400
        assert await wire.end() == b""


async def test_a_client_that_hangs_up_does_not_cancel_the_handler(serve: Serve) -> None:
    entered, leave, left = anyio.Event(), anyio.Event(), anyio.Event()

    async def handle(request: Request) -> Response:
        entered.set()
        await leave.wait()
        left.set()
        return Response(200, body=b"a" * 1000)

    async with serve(handle) as house:
        async with house.wire() as wire:
            await wire.send(GET)
            await entered.wait()
        await anyio.wait_all_tasks_blocked()
        leave.set()
        await left.wait()
        async with house.wire() as wire:
            assert (await wire.ask(GET)).status == 200


@pytest.mark.parametrize(
    "response",
    [
        Response(200, (("a", "b\r\nc: d"),)),
        Response(200, (("a", "b\nc"),)),
        Response(200, (("a\r\nb", "c"),)),
        Response(200, (("a:b", "c"),)),
        Response(200, (("a", "\0"),)),
        Response(200, (("a", "\u20ac"),)),
        Response(200, (("Content-Length", "5"),)),
        Response(200, (("transfer-encoding", "chunked"),)),
        Response(100),
        Response(99),
        Response(600),
    ],
)
async def test_an_answer_that_may_not_be_sent_becomes_500(
    serve: Serve, response: Response, reported: list[dict[str, Any]]
) -> None:
    async def handle(request: Request) -> Response:
        return response

    async with serve(handle) as house, house.wire() as wire:
        for _ in range(2):
            answer = await wire.ask(GET)
            assert (answer.status, answer.body) == (500, b"internal_error")
            assert "c" not in answer.headers
    assert len(reported) == 2


async def test_a_handler_that_raises_is_answered_500_and_reported(serve: Serve, reported: list[dict[str, Any]]) -> None:
    async def handle(request: Request) -> Response:
        raise RuntimeError("oops")

    async with serve(handle) as house, house.wire() as wire:
        for _ in range(2):
            answer = await wire.ask(GET)
            assert (answer.status, answer.body) == (500, b"internal_error")
    assert [str(context["exception"]) for context in reported] == ["oops", "oops"]


async def test_an_error_of_the_server_ends_one_connection_and_is_reported(reported: list[dict[str, Any]]) -> None:
    def body_limit(method: str, path: str) -> int:
        raise RuntimeError("oops")

    async def handle(request: Request) -> Response:
        return Response(200)

    server = Server(handle=handle, refuse=lambda error: Response(error.status), body_limit=body_limit)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener], started.set)
        await started.wait()
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(post(b"a"))
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(GET)
            assert (await stream.receive()).startswith(b"HTTP/1.1 200 OK\r\n")
        server.stop()
        server.stop()
    assert [str(context["exception"]) for context in reported] == ["oops"]


@pytest.mark.parametrize("raw", [b"\0", OLD])
async def test_a_refusal_that_cannot_be_made_ends_one_connection_and_is_reported(
    raw: bytes, reported: list[dict[str, Any]]
) -> None:
    async def handle(request: Request) -> Response:
        return Response(200, (("a", "\n"),))

    server = Server(
        handle=handle,
        refuse=lambda error: Response(200, (("a", "\n"),)),
        body_limit=lambda method, path: 0,
        limits=Limits(sweep_seconds=0.01, drain_idle_seconds=0.01),
    )
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener], started.set)
        await started.wait()
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(raw)
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()
        server.stop()
    assert reported


async def test_what_follows_the_last_request_does_not_eat_its_answer(serve: Serve) -> None:
    async with serve() as house, house.wire() as wire:
        answer = await wire.ask(OLD + b"a" * 2_000_000)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await wire.end() == b""


# Streams.


class Pieces:
    """An answer in pieces. closed: it was told that no more is wanted."""

    def __init__(self, *pieces: bytes, gate: anyio.Event | None = None, error: Exception | None = None) -> None:
        self.pieces = list(pieces)
        self.gate = gate
        self.error = error
        self.closed = anyio.Event()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self.pieces:
            return self.pieces.pop(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed.set()


def streaming(pieces: AsyncIterator[bytes]) -> Callable[[Request], Any]:
    async def handle(request: Request) -> Response:
        return Response(200, (("content-type", "text/event-stream"),), stream=pieces)

    return handle


async def test_a_stream_goes_out_in_chunks_as_they_come(serve: Serve) -> None:
    gate = anyio.Event()
    pieces = Pieces(b"one", b"", b"twenty-seven", gate=gate)
    async with serve(streaming(pieces)) as house, house.wire() as wire:
        await wire.send(GET)
        head = await wire.until(b"\r\n\r\n")
        assert b"\r\ntransfer-encoding: chunked\r\n" in head
        assert b"content-length" not in head
        assert await wire.until(b"seven\r\n") == b"3\r\none\r\nc\r\ntwenty-seven\r\n"
        gate.set()
        assert await wire.until(b"0\r\n\r\n") == b"0\r\n\r\n"
        await pieces.closed.wait()
        assert (await wire.ask(GET)).headers["transfer-encoding"] == "chunked"


async def test_a_stream_to_http10_ends_with_the_connection(serve: Serve) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async with serve(streaming(pieces())) as house, house.wire() as wire:
        await wire.send(OLD)
        head = await wire.until(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        assert b"\r\nconnection: close\r\n" in head
        assert await wire.end() == b"onetwo"


async def test_a_stream_is_not_sent_to_head_and_is_closed(serve: Serve) -> None:
    pieces = Pieces(b"one")
    async with serve(streaming(pieces)) as house, house.wire() as wire:
        await wire.send(b"HEAD / HTTP/1.1\r\nHost: here\r\n\r\n" * 2)
        for _ in range(2):
            assert (await wire.answer(to_head=True)).status == 200
        assert pieces.closed.is_set()
        assert pieces.pieces == [b"one"]


async def test_a_stream_that_breaks_ends_the_connection_without_the_last_chunk(
    serve: Serve, reported: list[dict[str, Any]]
) -> None:
    pieces = Pieces(b"one", error=RuntimeError("oops"))
    async with serve(streaming(pieces)) as house, house.wire() as wire:
        await wire.send(GET)
        await wire.until(b"\r\n\r\n")
        assert not (await wire.end()).endswith(b"0\r\n\r\n")
        assert pieces.closed.is_set()
    assert len(reported) == 1


async def test_a_stream_ends_when_the_client_has_gone(serve: Serve) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"a" * 1000
                await anyio.lowlevel.checkpoint()
        finally:
            ended.set()

    ended = anyio.Event()
    async with serve(streaming(pieces())) as house:
        async with house.wire() as wire:
            await wire.send(GET)
            await wire.until(b"\r\n\r\n")
        await ended.wait()


async def test_an_iterator_that_cannot_be_closed_is_good_enough(serve: Serve) -> None:
    class Bare:
        def __aiter__(self) -> AsyncIterator[bytes]:
            return self  # type: ignore[return-value]

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

    async with serve(streaming(Bare())) as house, house.wire() as wire:  # type: ignore[arg-type]
        await wire.send(GET)
        await wire.until(b"\r\n\r\n0\r\n\r\n")


# Peers that take too much, or too little.


async def test_a_client_that_was_refused_and_stays_is_closed(serve: Serve) -> None:
    async with serve(linger_seconds=0.05) as house, house.wire() as wire:
        assert (await wire.ask(b"\0")).status == 400
        house.server.stop()
        await house.has_ended.wait()


async def test_a_long_answer_waits_for_its_reader(serve: Serve) -> None:
    body = bytes(range(256)) * 40_000

    async def handle(request: Request) -> Response:
        return Response(200, body=body)

    async with serve(handle) as house, house.wire() as wire:
        await wire.send(GET)
        await anyio.wait_all_tasks_blocked()
        assert (await wire.answer()).body == body


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.usefixtures("short_buffers")
async def test_a_client_that_does_not_read_is_dropped(serve: Serve, is_stream: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"a" * 100_000
        finally:
            ended.set()

    async def handle(request: Request) -> Response:
        if is_stream:
            return Response(200, stream=pieces())
        ended.set()
        return Response(200, body=b"a" * 20_000_000)

    ended = anyio.Event()
    async with serve(handle, write_seconds=0.05) as house, house.wire() as wire:
        await wire.send(GET)
        await ended.wait()
        house.server.stop()
        await house.has_ended.wait()  # long before the drain would have ended it
        assert len(await wire.end()) < 20_000_000


@pytest.mark.parametrize(
    ("raw", "changed"),
    [
        (GET[:-2], {"head_seconds": 0.05}),
        (b"G", {"head_seconds": 0.05}),
        (post(b"abc")[:-1], {"body_seconds": 0.05}),
        (post(b"abc")[:-3], {"body_seconds": 0.05}),
        (b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n", {"body_seconds": 0.05}),
    ],
)
async def test_a_request_that_does_not_arrive_in_time_is_408(
    serve: Serve, raw: bytes, changed: dict[str, float]
) -> None:
    async with serve(**changed, linger_seconds=0.05) as house, house.wire() as wire:
        await wire.send(raw)
        answer = await wire.answer()
        assert (answer.status, answer.body, answer.headers["connection"]) == (408, b"request_timeout", "close")
        assert await wire.end() == b""


async def test_a_head_that_arrives_byte_by_byte_gets_no_more_time(serve: Serve) -> None:
    async with serve(head_seconds=0.05) as house, house.wire() as wire:
        with pytest.raises((AssertionError, anyio.BrokenResourceError)):
            while True:
                await wire.send(b"a")
                await anyio.sleep(0.005)
                with anyio.move_on_after(0.001):
                    assert not await wire.answer(), "answered"


async def test_a_request_after_the_idle_time_is_answered_as_long_as_the_connection_is_open(serve: Serve) -> None:
    async with serve(idle_seconds=0.05, sweep_seconds=30) as house, house.wire() as wire:
        for _ in range(2):
            assert (await wire.ask(GET)).status == 200
            await anyio.sleep(0.2)


@pytest.mark.parametrize("changed", [{"head_seconds": 0.05}, {"idle_seconds": 0.05}])
async def test_an_idle_connection_is_closed_without_a_word(serve: Serve, changed: dict[str, float]) -> None:
    async with serve(**changed) as house, house.wire() as wire:
        if "idle_seconds" in changed:
            await wire.ask(GET)
        assert await wire.end() == b""


async def test_a_full_server_answers_503_and_then_accepts_no_more_until_one_leaves(serve: Serve) -> None:
    async with serve(connections=1) as house, house.wire() as first:
        assert (await first.ask(GET)).status == 200
        async with house.wire() as second:
            answer = await second.ask(GET)
            assert (answer.status, answer.body, answer.headers["retry-after"]) == (503, b"overloaded", "1")
            assert await second.end() == b""
        crowd = []
        for _ in range(12):
            stream = await anyio.connect_tcp("127.0.0.1", house.port)
            await stream.send(GET)
            crowd.append(stream)
        for stream in crowd:
            assert (await stream.receive()).startswith(b"HTTP/1.1 503 ")
            await stream.aclose()
        assert (await first.ask(GET)).status == 200


async def test_when_a_crowd_has_left_the_next_caller_is_accepted_and_answered_at_once(serve: Serve) -> None:
    async with serve(connections=4, sweep_seconds=600.0) as house:  # no timer comes to its help
        crowd = [await anyio.connect_tcp("127.0.0.1", house.port) for _ in range(60)]
        await crowd[0].send(GET)
        assert (await crowd[0].receive()).startswith(b"HTTP/1.1 200 ")
        for stream in crowd:
            await stream.aclose()
        with anyio.fail_after(5):
            async with house.wire() as wire:
                assert (await wire.ask(GET)).status == 200


class FailingListener(socket.socket):
    """A listener whose next `accept` calls fail with the given numbers."""

    failures: list[int]

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            raise OSError(self.failures.pop(0), "made up")
        return super().accept()


async def test_the_server_survives_the_end_of_file_descriptors_and_clients_that_left_at_once() -> None:
    plain = listen("127.0.0.1", 0)
    listener = FailingListener(fileno=plain.detach())
    listener.failures = [errno.EMFILE, errno.ECONNABORTED, errno.ENFILE, errno.EPROTO]

    async def handle(request: Request) -> Response:
        return Response(200)

    server = Server(
        handle=handle,
        refuse=lambda error: Response(error.status),
        body_limit=lambda method, path: 0,
        limits=Limits(sweep_seconds=0.01, drain_idle_seconds=0.01),
    )
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener], started.set)
        await started.wait()
        async with await anyio.connect_tcp("127.0.0.1", listener.getsockname()[1]) as stream:
            await stream.send(GET)
            assert (await stream.receive()).startswith(b"HTTP/1.1 200 OK\r\n")
        assert listener.failures == []
        listener.failures = [errno.EMFILE] * 3
        server.stop()


# Drain.


async def test_draining_answers_what_was_asked_and_what_waits_in_the_accept_queue(serve: Serve) -> None:
    entered, leave = anyio.Event(), anyio.Event()

    async def handle(request: Request) -> Response:
        if request.query == "slow":
            entered.set()
            await leave.wait()
        return Response(200, body=request.query.encode())

    async with serve(handle, drain_idle_seconds=1.0) as house:
        async with house.wire() as slow, house.wire() as idle:
            await slow.send(b"GET /?slow HTTP/1.1\r\nHost: here\r\n\r\n")
            await entered.wait()
            assert (await idle.ask(GET)).status == 200
            # From here to `stop` the loop does not turn: the kernel accepts, the server does not.
            queued = [socket.create_connection(("127.0.0.1", house.port)) for _ in range(20)]
            for one in queued:
                one.sendall(GET)
                one.setblocking(False)
            house.server.stop()
            for one in queued:
                async with await anyio.abc.SocketStream.from_socket(one) as stream:
                    raw = await stream.receive()
                    assert raw.startswith(b"HTTP/1.1 200 OK\r\n")
                    assert b"\r\nconnection: close\r\n" in raw
            assert not house.has_ended.is_set()
            answer = await idle.ask(GET)  # on its way when the drain began
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            leave.set()
            answer = await slow.answer()
            assert (answer.body, answer.headers["connection"]) == (b"slow", "close")
        await house.has_ended.wait()
        with pytest.raises(OSError):
            await anyio.connect_tcp("127.0.0.1", house.port)


async def test_draining_closes_idle_connections(serve: Serve) -> None:
    async with serve() as house, house.wire() as used, house.wire() as fresh:
        assert (await used.ask(GET)).status == 200
        house.server.stop()
        assert await used.end() == b""
        assert await fresh.end() == b""
        await house.has_ended.wait()


@pytest.mark.parametrize("before", [True, False])
async def test_draining_waits_for_nobody_who_was_refused_and_stays(serve: Serve, before: bool) -> None:
    async with serve(linger_seconds=60) as house, house.wire() as wire:
        await wire.send(b"NONSENSE")
        if not before:
            house.server.stop()
        assert (await wire.ask(b"\r\n\r\n")).status == 400
        house.server.stop()
        await house.has_ended.wait()  # or else the test does not end in time


@pytest.mark.usefixtures("short_buffers")
async def test_who_takes_its_answer_while_the_server_drains_is_not_waited_for_after_it(serve: Serve) -> None:
    async def handle(request: Request) -> Response:
        return Response(200, body=b"a" * 4_000_000 if request.query else b"")

    async with serve(handle) as house, house.wire() as slow, house.wire() as idle:
        assert (await idle.ask(GET)).status == 200
        await slow.send(b"GET /?much HTTP/1.1\r\nHost: here\r\n\r\n")
        await slow.until(b"\r\n\r\n")
        house.server.stop()
        assert await idle.end() == b""
        await slow.exactly(4_000_000)
        assert await slow.end() == b""
        await house.has_ended.wait()


async def test_draining_cancels_what_takes_too_long(serve: Serve) -> None:
    entered, cancelled = anyio.Event(), anyio.Event()

    async def handle(request: Request) -> Response:
        entered.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return Response(200)

    async with serve(handle, drain_seconds=0.1) as house, house.wire() as wire:
        await wire.send(GET)
        await entered.wait()
        house.server.stop()
        await house.has_ended.wait()
        assert cancelled.is_set()
        assert await wire.end() == b""


async def test_draining_drops_what_a_client_does_not_take(serve: Serve) -> None:
    listener = listen("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    answered = anyio.Event()

    async def handle(request: Request) -> Response:
        answered.set()
        return Response(200, body=b"a" * 60_000)

    async with serve(handle, listener=listener, drain_seconds=0.1) as house:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        with client:
            client.connect(("127.0.0.1", house.port))
            client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            await answered.wait()
            house.server.stop()
            await house.has_ended.wait()


async def test_a_server_that_was_stopped_before_it_started_returns(serve: Serve) -> None:
    async def handle(request: Request) -> Response:
        return Response(200)

    server = Server(handle=handle, refuse=lambda error: Response(500), body_limit=lambda method, path: 0)
    server.stop()
    listener = listen("127.0.0.1", 0)
    await server.serve([listener], lambda: None)
    assert listener.fileno() == -1


async def test_cancelling_the_server_closes_everything(serve: Serve) -> None:
    async def handle(request: Request) -> Response:
        return Response(200)

    server = Server(handle=handle, refuse=lambda error: Response(500), body_limit=lambda method, path: 0)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener], started.set)
        await started.wait()
        stream = await anyio.connect_tcp("127.0.0.1", port)
        await stream.send(GET)
        assert (await stream.receive()).startswith(b"HTTP/1.1 200")
        tasks.cancel_scope.cancel()
    async with stream:
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()
    assert listener.fileno() == -1


# Listening and TLS.


def test_a_port_that_is_taken_is_an_error() -> None:
    with listen("127.0.0.1", 0) as listener, pytest.raises(OSError):
        listen("127.0.0.1", listener.getsockname()[1])


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
async def test_every_address_includes_ipv4_and_the_peer_is_shown_as_such() -> None:
    try:
        listener = listen("::", 0)
    except OSError:
        pytest.skip("no IPv6 here")
    peers: list[str] = []

    async def handle(request: Request) -> Response:
        peers.append(request.peer)
        return Response(200)

    server = Server(
        handle=handle,
        refuse=lambda error: Response(500),
        body_limit=lambda method, path: 0,
        limits=Limits(sweep_seconds=0.01, drain_idle_seconds=0.01),
    )
    port = listener.getsockname()[1]
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener], started.set)
        await started.wait()
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(GET)
            await stream.receive()
        server.stop()
    assert peers == ["127.0.0.1"]


async def test_https_is_served(serve: Serve, certificate: tuple[str, str]) -> None:
    client_tls = ssl.create_default_context(cafile=certificate[0])
    seen: list[bool] = []

    async def handle(request: Request) -> Response:
        seen.append(request.is_tls)
        return Response(200, body=request.body * 100_000)

    async with serve(handle, tls=server_tls(*certificate), client_tls=client_tls) as house:
        async with house.wire(is_tls=True) as wire:
            for _ in range(2):
                assert (await wire.ask(post(b"abc"))).body == b"abc" * 100_000
            assert (await wire.ask(b"GET /\0 HTTP/1.1\r\n\r\n")).status == 400
        async with house.wire(is_tls=True) as wire:
            await wire.ask(GET)
    assert seen == [True] * 3


async def test_a_client_that_does_not_finish_the_handshake_is_dropped(
    serve: Serve, certificate: tuple[str, str]
) -> None:
    async with serve(tls=server_tls(*certificate), handshake_seconds=0.05) as house:
        async with house.wire() as wire:
            assert await wire.end() == b""
        async with house.wire() as wire:
            await wire.send(GET)  # plain bytes on a TLS port
            await wire.end()


async def test_draining_ends_a_handshake(serve: Serve, certificate: tuple[str, str]) -> None:
    async with serve(tls=server_tls(*certificate), drain_seconds=0.1) as house, house.wire() as wire:
        await anyio.wait_all_tasks_blocked()
        house.server.stop()
        assert await wire.end() == b""
        await house.has_ended.wait()


def test_files_that_are_no_certificate_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("none")
    with pytest.raises(OSError):
        server_tls(str(tmp_path / "none"), str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("descriptors", "allowed"), [(1024, 480), (10, 8), (resource.RLIM_INFINITY, ((1 << 20) - 64) // 2)]
)
def test_connections_leave_descriptors_for_the_upstream(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, allowed: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (descriptors, descriptors))
    assert connections_allowed() == allowed
    assert Limits().connections == allowed


def test_an_error_carries_what_the_answer_needs() -> None:
    error = HttpError(400, "invalid_request", "No.", param="a")
    assert (str(error), error.param, error.headers) == ("No.", "a", ())


# Streams.


class Silent:
    """A stream that says one thing and is then silent for ever."""

    def __init__(self) -> None:
        self.closed = anyio.Event()
        self._pieces = [b"first"]

    def __aiter__(self) -> "Silent":
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            await anyio.sleep_forever()
        return self._pieces.pop()

    async def aclose(self) -> None:
        self.closed.set()


@pytest.mark.parametrize("reset", [False, True])
async def test_a_silent_stream_ends_with_its_peer_if_it_says_so(serve: Serve, reset: bool) -> None:
    stream = Silent()

    async def handle(request: Request) -> Response:
        return Response(200, stream=stream, ends_with_peer=True)

    async with serve(handle) as house, house.wire() as wire:
        await wire.send(GET + GET)  # what was sent besides neither keeps it nor is answered within it
        await wire.until(b"5\r\nfirst\r\n")
        if reset:
            raw = wire.stream.extra(anyio.abc.SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            await wire.stream.aclose()
        else:
            await wire.stream.send_eof()
        with anyio.fail_after(15):
            await stream.closed.wait()
        if not reset:
            assert await wire.end() == b""


async def test_a_silent_stream_ends_with_the_server(serve: Serve) -> None:
    stream = Silent()

    async def handle(request: Request) -> Response:
        return Response(200, stream=stream, ends_with_peer=True)

    async with serve(handle, drain_seconds=60) as house, house.wire() as wire:
        await wire.send(GET)
        await wire.until(b"5\r\nfirst\r\n")
        house.server.stop()
        with anyio.fail_after(15):
            await stream.closed.wait()
            assert await wire.end() == b""
            await house.has_ended.wait()


@pytest.mark.parametrize("family", ["127.0.0.1", "::1"])
async def test_whoever_has_reset_the_connection_is_served_under_their_address(serve: Serve, family: str) -> None:
    served = anyio.Event()
    peers: list[str] = []

    async def handle(request: Request) -> Response:
        peers.append(request.peer)
        served.set()
        return Response(200)

    try:
        listener = listen(family, 0)
    except OSError:
        if ":" not in family:
            raise
        pytest.skip("the host has no IPv6")
    one = socket.create_connection(listener.getsockname()[:2])
    one.sendall(GET)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    one.close()
    async with serve(handle, listener=listener):
        with anyio.fail_after(15):
            await served.wait()
    assert peers == [family]


async def test_a_long_last_answer_arrives_whole_whatever_its_reader_sends_meanwhile(serve: Serve) -> None:
    body = b"x" * 3_000_000

    async def handle(request: Request) -> Response:
        return Response(200, (), body)

    async with serve(handle, write_seconds=20) as house:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", house.port))
            one.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            await anyio.sleep(0.2)
            one.sendall(GET)

            def read() -> int:
                size = 0
                while piece := one.recv(65_536):
                    size += len(piece)
                return size

            with anyio.fail_after(20):
                assert await anyio.to_thread.run_sync(read) > len(body)


async def test_another_stream_goes_on_for_a_peer_that_ended_its_side(serve: Serve) -> None:
    go = anyio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        await go.wait()
        yield b"two"

    async def handle(request: Request) -> Response:
        return Response(200, stream=pieces())

    async with serve(handle) as house, house.wire() as wire:
        await wire.send(GET)
        await wire.until(b"3\r\none\r\n")
        await wire.stream.send_eof()
        go.set()
        assert await wire.end() == b"3\r\ntwo\r\n0\r\n\r\n"


async def test_servers_that_accept_from_one_socket_have_about_as_many_connections(serve: Serve) -> None:
    def named(name: bytes) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            return Response(200, (), name)

        return handle

    listener = listen("127.0.0.1", 0)
    shares = Shares(2)
    told: list[bytes] = []
    async with (
        serve(named(b"a"), listener=listener.dup(), shares=shares, place=0) as house,
        serve(named(b"b"), listener=listener, shares=shares, place=1),
        AsyncExitStack() as stack,
    ):
        for _ in range(20):
            wire = await stack.enter_async_context(house.wire())
            told.append((await wire.ask(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")).body)
    assert 9 <= told.count(b"a") <= 11


@pytest.mark.parametrize(
    ("others", "own", "is_ahead"),
    [(0, 0, False), (0, 1, True), (7, 8, True), (8, 9, False), (64, 72, False), (64, 73, True)],
)
def test_who_has_an_eighth_more_than_another_is_ahead(others: int, own: int, is_ahead: bool) -> None:
    shares = Shares(2)
    shares.note(0, own)
    shares.note(1, others)
    assert shares.is_ahead(0) is is_ahead


async def test_a_server_takes_what_the_others_do_not(serve: Serve) -> None:
    shares = Shares(2)  # nobody is at the other place
    async with serve(shares=shares) as house, AsyncExitStack() as stack:
        for _ in range(3):
            wire = await stack.enter_async_context(house.wire())
            assert (await wire.ask(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")).status == 200
