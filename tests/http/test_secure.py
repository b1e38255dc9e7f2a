"""What a connection with TLS does that its peer, or the protocol above it, can see."""

import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.http.accept import listen
from gateway.http.messages import Request, Response
from gateway.http.transport import Sweep, client_tls, dial, server_tls

from .tls_peer import GET, come_in, connected

Serve = Callable[..., Any]
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
MUCH = b"0123456789" * 1_000_000


async def test_an_end_without_a_word_is_a_cut_and_the_connection_is_over(
    serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    async with serve(tls=ours) as house:
        peer = await come_in(house, theirs)
        with peer.plain:
            peer.send(GET[:10])
            peer.plain.shutdown(socket.SHUT_WR)
            with pytest.raises(AssertionError, match="the connection was cut"):  # and nothing was answered
                await anyio.to_thread.run_sync(peer.read, 1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_slow_reader_gets_all_of_a_last_answer(
    serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    theirs.maximum_version = version

    async def handle(request: Request) -> Response:
        return Response(200, body=MUCH[:1_000_000])

    listener = listen("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # as it is for the connections it accepts
    async with serve(handle, tls=ours, listener=listener, write_seconds=20) as house:
        peer = await come_in(house, theirs, room_bytes=4096)
        with peer.plain:
            peer.send(b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
            first = await anyio.to_thread.run_sync(peer.read, 900_000)
            await anyio.sleep(2.5)
            raw = first + await anyio.to_thread.run_sync(peer.rest)
            assert raw.endswith(b"\r\n\r\n" + MUCH[:1_000_000])


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_ends_its_side_while_the_end_of_a_last_answer_is_on_its_way_gets_all_of_it(
    serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    theirs.maximum_version = version
    body = MUCH[:999_000]

    async def handle(request: Request) -> Response:
        return Response(200, body=body)

    listener = listen("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    async with serve(handle, tls=ours, listener=listener, write_seconds=20) as house:
        peer = await come_in(house, theirs, room_bytes=4096)
        with peer.plain:
            peer.send(b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
            raw = await anyio.to_thread.run_sync(peer.read, 970_000)
            await anyio.sleep(0.2)  # the server has written all and said its end, and holds some of it
            peer.end()
            raw += await anyio.to_thread.run_sync(peer.rest)
            assert raw.endswith(b"\r\n\r\n" + body)


async def test_who_is_refused_while_sending_reads_why(
    serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    async with serve(tls=ours, linger_seconds=5) as house:
        peer = await come_in(house, theirs)
        with peer.plain:
            peer.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(MUCH))
            await anyio.to_thread.run_sync(peer.send, MUCH[:1_000_000])
            raw = await anyio.to_thread.run_sync(peer.read, 13)
            assert raw.startswith(b"HTTP/1.1 413 ")
            await anyio.to_thread.run_sync(peer.send, MUCH[1_000_000:])
            await anyio.to_thread.run_sync(peer.rest)


async def test_a_body_of_many_records_is_read_whole(serve: Serve, ours: ssl.SSLContext, theirs: ssl.SSLContext) -> None:
    async def handle(request: Request) -> Response:
        await anyio.sleep(0.05)  # so that much waits unread
        return Response(200, body=b"%d" % len(request.body.strip(b"0123456789")) + request.body[-5:])

    async with serve(handle, tls=ours, body_limit=1 << 24) as house:
        peer = await come_in(house, theirs)
        with peer.plain:
            head = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(MUCH)
            await anyio.to_thread.run_sync(peer.send, head + MUCH + head + MUCH)
            for byte in GET[:-2] + b"connection: close\r\n\r\n":
                await anyio.to_thread.run_sync(peer.send, bytes([byte]))
            raw = await anyio.to_thread.run_sync(peer.rest)
            assert raw.count(b"\r\n\r\n056789") == 2
            assert raw.count(b"HTTP/1.1 200 OK\r\n") == 3


async def test_draining_waits_for_no_handshake(serve: Serve, ours: ssl.SSLContext) -> None:
    async with serve(tls=ours, handshake_seconds=30, drain_idle_seconds=0.05, drain_seconds=30) as house:
        async with house.wire() as wire:
            await anyio.wait_all_tasks_blocked()
            house.server.stop()
            with anyio.fail_after(15):
                assert await wire.end() == b""
                await house.has_ended.wait()


async def test_what_is_no_record_ends_the_connection(ours: ssl.SSLContext, theirs: ssl.SSLContext) -> None:
    sweep = Sweep(1)
    connection, peer = await connected(ours, theirs, sweep)
    with peer.plain:
        peer.plain.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        assert await connection.read() == b""
        assert connection.is_gone
        assert not connection.has_ended_cleanly
        connection.write(b"into the void")
        connection.end_writing()
        connection.close(1)
        with pytest.raises(AssertionError, match="the connection was cut"):
            peer.rest()
    await sweep.wait_empty()


async def test_what_nobody_reads_is_not_received_without_end(ours: ssl.SSLContext, theirs: ssl.SSLContext) -> None:
    sweep = Sweep(1)
    connection, peer = await connected(ours, theirs, sweep)
    with peer.plain:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, peer.send, MUCH)
            found = await connection.read()
            await anyio.sleep(0.2)
            found += await connection.read()
            assert len(found) < 300_000
            while len(found) < len(MUCH):
                found += await connection.read()
        assert found == MUCH
        peer.send(b"and")
        peer.end()
        assert await connection.read() == b"and"
        assert await connection.read() == b""
        assert connection.has_ended_cleanly
        connection.abort()
    await sweep.wait_empty()


async def test_a_handshake_that_is_given_up_or_cut_leaves_no_connection(theirs: ssl.SSLContext) -> None:
    sweep = Sweep(1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with anyio.move_on_after(0.2) as giving_up:
            await dial("127.0.0.1", port, sweep, tls=theirs, server_name="localhost")
        assert giving_up.cancelled_caught
        silent, _ = listener.accept()
        await sweep.wait_empty()
        silent.close()

        async def cut() -> None:
            leaving, _ = await anyio.to_thread.run_sync(listener.accept)
            leaving.recv(10_000)
            leaving.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            with pytest.raises(ConnectionError):
                await dial("127.0.0.1", port, sweep, tls=theirs, server_name="localhost")
        await sweep.wait_empty()


def test_nobody_negotiates_anew(ours: ssl.SSLContext) -> None:
    assert ours.options & ssl.OP_NO_RENEGOTIATION
    assert ours.minimum_version == ssl.TLSVersion.TLSv1_2


def test_what_is_wrong_with_the_files_is_said_and_nobody_is_asked(certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    other, locked = str(tmp_path / "other.pem"), str(tmp_path / "locked.pem")
    make = ["openssl", "genpkey", "-algorithm", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", other]
    lock = ["openssl", "pkey", "-aes256", "-passout", "pass:abc", "-in", key, "-out", locked]
    for command in (make, lock):
        subprocess.run(command, check=True, capture_output=True)
    for files, reason in (
        ((cert, str(tmp_path / "none.pem")), "none.pem"),
        ((cert, other), "the key is not the one of the certificate"),
        ((cert, locked), "the key has a passphrase"),
        ((key, key), "holds no certificate"),
    ):
        with pytest.raises(OSError, match=reason):
            server_tls(*files)
    with pytest.raises(OSError, match="holds no certificate"):
        client_tls(key)
