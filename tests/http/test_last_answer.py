"""The end of a connection comes in stages: whoever sends more after its last answer can still read that one."""

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from gateway.http.messages import Request, Response

from .conftest import House
from .tls_peer import GET, Peer, come_in

Serve = Callable[..., Any]
CLOSE = GET[:-2] + b"connection: close\r\n\r\n"
OLD = GET.replace(b"HTTP/1.1", b"HTTP/1.0")
MUCH = b"x" * 100_000
Connect = tuple[ssl.SSLContext | None, Callable[[House], Any]]


async def pieces() -> AsyncIterator[bytes]:
    yield b"one"
    yield b"two"


async def handle(request: Request) -> Response:
    if request.path == "/stream":
        return Response(200, stream=pieces())
    return Response(200, (), b"a" * int(request.query or "3"))


class Slow:
    """A handler whose answer waits for `go`."""

    def __init__(self) -> None:
        self.begun, self.go = anyio.Event(), anyio.Event()

    async def __call__(self, request: Request) -> Response:
        self.begun.set()
        await self.go.wait()
        return Response(200, (), b"slow")


class Client:
    """A client over TLS or without. Its calls block, and are made in threads."""

    def __init__(self, plain: socket.socket, peer: Peer | None) -> None:
        self.plain = plain
        self._peer = peer

    async def send(self, data: bytes) -> None:
        await anyio.to_thread.run_sync(self._peer.send if self._peer else self.plain.sendall, data)

    async def rest(self) -> bytes:
        """Return what comes until the server ends its side. It fails where that was not said."""
        return await anyio.to_thread.run_sync(self._peer.rest if self._peer else self._rest)

    def _rest(self) -> bytes:
        raw = b""
        while data := self.plain.recv(65_536):
            raw += data
        return raw


@pytest.fixture(params=["plain", "tls"])
def connect(request: pytest.FixtureRequest, ours: ssl.SSLContext, theirs: ssl.SSLContext) -> Connect:
    """Return what the server needs to speak, and what connects to it."""

    async def plain(house: House) -> Client:
        one = socket.create_connection(("127.0.0.1", house.port))
        one.settimeout(20)
        return Client(one, None)

    async def secure(house: House) -> Client:
        peer = await come_in(house, theirs)
        return Client(peer.plain, peer)

    return (ours, secure) if request.param == "tls" else (None, plain)


@pytest.mark.parametrize(
    ("asked", "end"),
    [
        (CLOSE, b"\r\n\r\naaa"),
        (OLD, b"\r\n\r\naaa"),
        (CLOSE.replace(b"/ ", b"/?200000 "), b"a" * 200_000),
        (CLOSE.replace(b"/ ", b"/stream "), b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"),
        (OLD.replace(b"/ ", b"/stream "), b"\r\n\r\nonetwo"),
        (b"NONSENSE\r\n\r\n", b"\r\n\r\ninvalid_request"),
    ],
)
async def test_who_sends_more_after_its_last_answer_reads_all_of_it_and_is_not_reset(
    serve: Serve, connect: Connect, asked: bytes, end: bytes
) -> None:
    tls, come = connect
    async with serve(handle, tls=tls) as house:
        client = await come(house)
        with client.plain:
            await client.send(asked)
            for _ in range(5):
                await anyio.sleep(0.02)  # all was sent to it, and it reads nothing yet
                await client.send(MUCH)  # a reset fails the next one
            raw = await client.rest()
            await client.send(MUCH)
            assert client.plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert raw.startswith(b"HTTP/1.1 ")
        assert raw.endswith(end)


async def test_who_sends_more_after_its_answer_in_a_drain_is_not_reset(serve: Serve, connect: Connect) -> None:
    slow = Slow()
    tls, come = connect
    async with serve(slow, tls=tls, drain_idle_seconds=5) as house:
        client = await come(house)
        with client.plain:
            await client.send(GET)
            await slow.begun.wait()
            house.server.stop()
            slow.go.set()
            for _ in range(5):
                await anyio.sleep(0.02)
                await client.send(MUCH)
            assert (await client.rest()).endswith(b"\r\n\r\nslow")
        with anyio.fail_after(20):
            await house.has_ended.wait()


async def test_who_stays_after_its_last_answer_is_closed_in_time(serve: Serve, connect: Connect) -> None:
    tls, come = connect
    async with serve(handle, tls=tls, linger_seconds=0.05, connections=1) as house:
        stays = await come(house)
        with stays.plain:
            await stays.send(CLOSE)
            assert (await stays.rest()).endswith(b"aaa")
            await until_there_is_room(house, come)


async def test_who_leaves_after_its_last_answer_makes_room_at_once(serve: Serve, connect: Connect) -> None:
    tls, come = connect
    async with serve(handle, tls=tls, linger_seconds=60, write_seconds=60, connections=1) as house:
        for asked in (CLOSE, CLOSE.replace(b"/ ", b"/?200000 ")):
            leaves = await come(house)
            with leaves.plain:
                await leaves.send(asked)
                await leaves.rest()
            await until_there_is_room(house, come)


async def until_there_is_room(house: House, come: Callable[[House], Any]) -> None:
    with anyio.fail_after(20):
        while True:
            client = await come(house)
            with client.plain:
                await client.send(CLOSE)
                if (await client.rest()).startswith(b"HTTP/1.1 200 "):
                    return


@pytest.mark.parametrize("before", [True, False])
async def test_draining_waits_for_nobody_who_has_its_last_answer_and_stays(
    serve: Serve, connect: Connect, before: bool
) -> None:
    slow = Slow()
    tls, come = connect
    async with serve(slow, tls=tls, linger_seconds=60) as house:
        client = await come(house)
        with client.plain:
            await client.send(CLOSE)
            await slow.begun.wait()
            if before:
                house.server.stop()
                await anyio.sleep(0.2)  # idle connections have been ended by then
            slow.go.set()
            assert (await client.rest()).endswith(b"slow")
            house.server.stop()
            await house.has_ended.wait()  # or else the test does not end in time
