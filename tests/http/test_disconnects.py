"""Who leaves while its answer is made has it given up, if that may be; who still reads is answered."""

import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from gateway.http import session, sse
from gateway.http.messages import Request, Response

from .conftest import House
from .tls_peer import GET, come_in

Serve = Callable[..., Any]
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_PROBE_SECONDS", 0.05)


class Handler:
    """Answers when the test says so, as a model does. has_left: it was cancelled."""

    def __init__(self, *, may_be_left: bool = True) -> None:
        self.may_be_left = may_be_left
        self.has_begun, self.has_left = anyio.Event(), anyio.Event()
        self.reply: anyio.Event

    async def handle(self, request: Request) -> Response:
        request.may_be_left = lambda: self.may_be_left
        if request.path == "/thread":
            self.has_begun.set()
            with anyio.CancelScope(shield=True):  # as a thread is waited for
                await anyio.sleep(0.2)
        self.reply = anyio.Event()
        self.has_begun.set()
        try:
            if request.path != "/now":
                await self.reply.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(5, shield=True):
                await anyio.sleep(0.01)  # as one who puts the books in order
                self.has_left.set()
            raise
        return Response(200, (), b"reply")


def asking(house: House, path: bytes = b"/", version: bytes = b"1.1") -> socket.socket:
    one = socket.create_connection(("127.0.0.1", house.port))
    one.settimeout(10)
    one.sendall((b"GET " + path + GET[5:]).replace(b"HTTP/1.1", b"HTTP/" + version))
    return one


def leave(one: socket.socket, how: str) -> None:
    if how == "reset":
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("path", [b"/", b"/thread"])
async def test_what_nobody_waits_for_is_given_up_and_the_others_are_answered(
    serve: Serve, how: str, path: bytes
) -> None:
    handler = Handler()
    async with serve(handler.handle) as house:
        one = asking(house, path)
        await handler.has_begun.wait()
        leave(one, how)
        with anyio.fail_after(5):
            await handler.has_left.wait()
        async with house.wire() as wire:
            assert (await wire.ask(b"GET /now" + GET[5:])).status == 200


@pytest.mark.parametrize("how", ["close", "half"])
async def test_who_has_ended_its_side_before_it_is_heard_is_looked_after_as_well(serve: Serve, how: str) -> None:
    handler = Handler()
    async with serve(handler.handle) as house:
        one = asking(house)  # nothing of the server runs before the next await
        one.shutdown(socket.SHUT_WR)
        if how == "close":
            one.close()
            with anyio.fail_after(5):
                await handler.has_left.wait()
        else:
            with one:
                await handler.has_begun.wait()
                handler.reply.set()
                raw = await anyio.to_thread.run_sync(one_answer, one)
            assert raw.startswith(b"HTTP/1.1 200 OK\r\n")  # what is made at once comes with nothing before it


@pytest.mark.parametrize("orderly", [True, False])
async def test_over_tls_as_well(serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext, orderly: bool) -> None:
    handler = Handler()
    async with serve(handler.handle, tls=ours) as house:
        peer = await come_in(house, theirs)
        peer.send(GET)
        await handler.has_begun.wait()
        if orderly:
            peer.end()
        peer.plain.close()
        with anyio.fail_after(5):
            await handler.has_left.wait()


async def test_who_speaks_http_1_0_is_sent_no_interim_answer_and_given_up_after_a_reset(serve: Serve) -> None:
    handler = Handler()
    async with serve(handler.handle) as house:
        with asking(house, version=b"1.0") as still:
            await handler.has_begun.wait()
            still.shutdown(socket.SHUT_WR)
            await anyio.sleep(0.3)
            handler.reply.set()
            assert (await anyio.to_thread.run_sync(one_answer, still)).startswith(b"HTTP/1.1 200 OK\r\n")
        handler.has_begun = anyio.Event()
        one = asking(house, version=b"1.0")
        await handler.has_begun.wait()
        leave(one, "reset")
        with anyio.fail_after(5):
            await handler.has_left.wait()


async def test_who_has_said_all_and_waits_is_answered(serve: Serve) -> None:
    handler = Handler()
    async with serve(handler.handle) as house:
        with asking(house) as one:
            await handler.has_begun.wait()
            one.shutdown(socket.SHUT_WR)
            await anyio.sleep(0.3)
            handler.reply.set()
            raw = await anyio.to_thread.run_sync(all_of, one)
        assert raw.startswith(2 * INTERIM + b"HTTP/1.1 200 OK\r\n")
        assert raw.endswith(b"\r\n\r\nreply")


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_what_may_not_be_left_is_done_and_nothing_is_sent_before(serve: Serve, how: str) -> None:
    handler = Handler(may_be_left=False)
    async with serve(handler.handle) as house:
        with asking(house) as still:
            await handler.has_begun.wait()
            reply = handler.reply
            still.shutdown(socket.SHUT_WR)
            handler.has_begun = anyio.Event()
            one = asking(house)
            await handler.has_begun.wait()
            leave(one, how)
            await anyio.sleep(0.3)
            assert not handler.has_left.is_set()
            handler.reply.set()
            reply.set()
            assert (await anyio.to_thread.run_sync(one_answer, still)).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("how", ["half", "close", "reset"])
@pytest.mark.parametrize("when", ["before", "within"])
async def test_events_go_on_for_who_has_said_all_and_end_for_who_has_left(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, how: str, when: str
) -> None:
    monkeypatch.setattr(sse, "_NUDGED_SECONDS", 0.05)
    has_ended, has_begun = anyio.Event(), anyio.Event()
    stream = sse.EventStream(has_ended.set, keep_alive_seconds=60)

    async def handle(request: Request) -> Response:
        has_begun.set()
        return Response(200, sse.SSE_HEADERS, stream=stream, ends_with_peer=True)

    async with serve(handle) as house:
        with asking(house) as one:
            if when == "within":
                await has_begun.wait()
                stream.send(b"first,")
                await anyio.wait_all_tasks_blocked()
            if how == "half":
                one.shutdown(socket.SHUT_WR)
                await has_begun.wait()
                await anyio.sleep(0.3)
                stream.send(b"last.")
                stream.end()
                raw = await anyio.to_thread.run_sync(all_of, one)
                assert sse.KEEP_ALIVE in raw
                assert raw.endswith(b"\r\nlast.\r\n0\r\n\r\n")
            else:
                leave(one, how)
            with anyio.fail_after(5):
                await has_ended.wait()


def all_of(one: socket.socket) -> bytes:
    raw = b""
    while data := one.recv(10_000):
        raw += data
    return raw


def one_answer(one: socket.socket) -> bytes:
    return one.recv(10_000)
