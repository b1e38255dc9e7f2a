"""What somebody may do to a port with TLS who means it ill, or does not speak it, and what becomes of the others."""

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.http.messages import Request, Response
from gateway.http.transport import Connection, Sweep, dial

from .tls_peer import GET, Peer, connected

Serve = Callable[..., Any]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"])
async def test_who_speaks_http_to_a_port_of_https_is_told_once_and_not_served(
    serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext, method: str
) -> None:
    asked = []

    async def handle(request: Request) -> Response:
        asked.append(request)
        return Response(200)

    async with serve(handle, tls=ours, client_tls=theirs) as house:
        async with house.wire() as wire:
            await wire.send(method.encode() + GET[3:] + GET)
            answer = await wire.answer()
            assert (answer.status, answer.body) == (400, b"invalid_request")
            assert answer.headers["connection"] == "close"
            await wire.send(GET)
            assert await wire.end() == b""
        async with house.wire(is_tls=True) as wire:
            assert (await wire.ask(GET)).status == 200
    assert len(asked) == 1


async def test_who_has_begun_with_tls_is_not_spoken_to_in_the_clear(
    serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    async with serve(tls=ours) as house, house.wire() as wire:
        outgoing = ssl.MemoryBIO()
        with pytest.raises(ssl.SSLWantReadError):
            theirs.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
        await wire.send(outgoing.read())
        await wire.exactly(3)
        await wire.send(GET)
        assert b"HTTP" not in await wire.end()


async def test_who_sends_much_without_tls_reads_why_nobody_takes_it(serve: Serve, ours: ssl.SSLContext) -> None:
    async with serve(tls=ours, linger_seconds=5) as house, house.wire() as wire:
        await wire.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4000000\r\n\r\n" + b"x" * 4_000_000)
        assert (await wire.answer()).status == 400


@pytest.mark.parametrize("first", [b"get / HTTP/1.1\r\n", b"SSH-2.0-x\r\n", b"G", b"\x00" * 100, b"EHLO\r\n" * 9])
async def test_what_is_neither_is_not_answered(serve: Serve, ours: ssl.SSLContext, first: bytes) -> None:
    async with serve(tls=ours, handshake_seconds=0.2) as house, house.wire() as wire:
        await wire.send(first)
        assert await wire.end() == b""


async def test_who_is_gone_before_it_was_told_leaves_nothing_behind(
    serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    async with serve(tls=ours, client_tls=theirs) as house:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", house.port)) as one:
                one.sendall(GET)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        async with house.wire(is_tls=True) as wire:
            assert (await wire.ask(GET)).status == 200
        async with house.wire() as wire:
            assert (await wire.ask(GET)).status == 400
            assert await wire.end() == b""


async def test_a_server_that_speaks_no_tls_is_an_error_to_a_client(theirs: ssl.SSLContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            one, _ = listener.accept()
            with one:
                one.recv(10_000)
                one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        sweep = Sweep(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, answer)
            with pytest.raises(ssl.SSLError):
                await dial("127.0.0.1", listener.getsockname()[1], sweep, tls=theirs, server_name="localhost")
        await sweep.wait_empty()


@asynccontextmanager
async def having_written(
    ours: ssl.SSLContext, theirs: ssl.SSLContext, records: list[bytes]
) -> AsyncIterator[tuple[Connection, Peer]]:
    """A connection and its client, which has records to send; the connection is gone behind it."""
    sweep = Sweep(1)
    connection, peer = await connected(ours, theirs, sweep)
    with peer.plain:
        for record in records:
            peer.tls.write(record)
        yield connection, peer
        connection.abort()
    await sweep.wait_empty()


async def test_small_records_that_nobody_reads_are_not_received_and_come_when_they_are_read(
    ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    records = [b"y" * 1_000] * 90 + [b"x"] * 500 + [b"z" * 1_000] * 90
    async with having_written(ours, theirs, records) as (connection, peer), anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, peer.say)
        await anyio.sleep(0.1)
        found = b""
        while len(found) < 180_500:
            found += await connection.read()
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
    assert found == b"".join(records)
