"""What the transport does that no HTTP peer can see."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import current_token

from gateway.http.accept import Acceptor, listen
from gateway.http.transport import Connection, Sweep, open_accepted


@asynccontextmanager
async def opened(sweep: Sweep) -> AsyncIterator[tuple[Connection, socket.socket]]:
    """Open a connection whose peer is the other end of a pair; at the end it is closed and gone from the sweep."""
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        connection = await open_accepted(ours, sweep, tls=None, handshake_seconds=1)
        assert connection is not None
        yield connection, theirs
        connection.abort()
        await sweep.wait_empty()


async def test_a_peer_without_an_address_has_none() -> None:
    sweep = Sweep(0.01)
    async with opened(sweep) as (connection, theirs):
        assert connection.peer == ""
        theirs.send(b"a")
        assert await connection.read() == b"a"
        connection.abort()
        await sweep.wait_empty()
        # Whatever is asked of it afterwards does nothing.
        connection.write(b"b")
        connection.end_writing()
        connection.close(1)
        connection.abort()
        assert await connection.read() == b""


async def test_a_connection_that_was_closed_stays_so_when_its_peer_ends() -> None:
    sweep = Sweep(10)
    async with opened(sweep) as (connection, _):
        assert not connection.is_gone
        connection.eof_received()
        assert not connection.is_gone  # it may still read
        connection.close(1)
        connection.eof_received()
        assert connection.is_gone
        await sweep.wait_empty()


async def test_a_deadline_that_passes_as_data_arrives_is_not_late() -> None:
    async with opened(Sweep(10)) as (connection, _):

        async def read() -> None:
            got.append(await connection.read())

        for expire_first in (True, False):
            got: list[bytes] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                calls = [connection.expire, lambda: receive(connection, b"a")]
                in_one_turn(*(calls if expire_first else reversed(calls)))
            assert got == [b"a"]


@pytest.mark.parametrize("cancel_first", [True, False])
async def test_what_comes_with_a_cancellation_is_left_for_the_next_read(cancel_first: bool) -> None:
    async with opened(Sweep(10)) as (connection, theirs):
        got: list[bytes] = []

        async def read() -> None:
            got.append(await connection.read())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            calls = [tasks.cancel_scope.cancel, lambda: receive(connection, b"a")]
            in_one_turn(*(calls if cancel_first else reversed(calls)))
        with anyio.fail_after(30):
            assert (got, await connection.read()) == ([], b"a")
            theirs.send(b"b")
            assert await connection.read() == b"b"


async def test_all_that_came_in_one_turn_is_read_before_the_first_task_goes_on() -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    sweep = Sweep(10)
    seen: list[list[float]] = []
    connections: list[Connection] = []

    async def read(connection: Connection) -> None:
        await connection.read()
        seen.append([one.arrived_seconds for one in connections])

    async with anyio.create_task_group() as tasks:
        for ours, _ in pairs:
            ours.setblocking(False)
            connection = await open_accepted(ours, sweep, tls=None, handshake_seconds=1)
            assert connection is not None
            connections.append(connection)
            tasks.start_soon(read, connection)
        await anyio.wait_all_tasks_blocked()
        for _, theirs in pairs:
            theirs.send(b"a")
    assert len(seen) == 3 and all(all(times) for times in seen)
    for (_, theirs), connection in zip(pairs, connections, strict=True):
        theirs.close()
        connection.abort()
    await sweep.wait_empty()


async def test_what_several_tasks_write_in_one_turn_leaves_in_order_after_the_last_has_gone_on() -> None:
    pieces = [b"a", b"b" * 100_000, b"c"]
    arrived: list[bytes] = []
    async with opened(Sweep(10)) as (first, first_peer), opened(Sweep(10)) as (second, second_peer):

        async def answer(connection: Connection, *answers: bytes) -> None:
            await connection.read()
            for piece in answers:
                connection.write(piece)
            arrived.append(peeked(first_peer))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer, first, b"1")
            tasks.start_soon(answer, second, *pieces[:1])
            await anyio.wait_all_tasks_blocked()
            in_one_turn(lambda: receive(first, b"x"), lambda: receive(second, b"x"))
        assert arrived == [b"", b""]
        assert first_peer.recv(10) == b"1"
        assert second_peer.recv(10) == b"a"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer, first, b"2")
            tasks.start_soon(answer, second, *pieces)
            await anyio.wait_all_tasks_blocked()
            in_one_turn(lambda: receive(first, b"x"), lambda: receive(second, b"x"))
            second_peer.setblocking(True)
            whole = b"".join(pieces)
            assert await anyio.to_thread.run_sync(second_peer.recv, len(whole), socket.MSG_WAITALL) == whole


def peeked(peer: socket.socket) -> bytes:
    """Return what the peer could read now."""
    try:
        return peer.recv(10, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""


def in_one_turn(*calls: Callable[[], object]) -> None:
    """Have the event loop call one after the other, as it does with what is ready at once."""
    loop: Any = current_token().native_token
    for call in calls:
        loop.call_soon(call)


def receive(connection: Connection, data: bytes) -> None:
    """Have bytes come, as the event loop does."""
    connection.received(data)


class CountingListener(socket.socket):
    """A listener with more connections than are taken in one turn of the loop."""

    left = 1200

    def accept(self) -> tuple[socket.socket, Any]:
        if self.left == 0:
            raise BlockingIOError
        self.left -= 1
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours, None


@pytest.mark.parametrize("count", [1, 512])
async def test_one_turn_of_the_loop_takes_a_bounded_number_of_connections(count: int) -> None:
    listener = CountingListener(fileno=listen("127.0.0.1", 0).detach())
    taken = 0

    def take(accepted: socket.socket, peer: str) -> bool:
        nonlocal taken
        accepted.close()
        taken += 1
        return True

    acceptor = Acceptor([listener], Sweep(1), take=take, retry_seconds=1, accepts_per_turn=count)
    assert acceptor._accept(listener)
    assert taken == count
    acceptor.close()
    assert taken == 1200


async def test_a_listener_that_somebody_has_shut_down_is_closed_all_the_same() -> None:
    listener = listen("127.0.0.1", 0)
    acceptor = Acceptor([listener], Sweep(1), take=lambda accepted, peer: True, retry_seconds=1)
    listener.shutdown(socket.SHUT_RDWR)
    acceptor.close()
    assert listener.fileno() == -1


async def test_accepting_pauses_while_there_is_no_room() -> None:
    listener = CountingListener(fileno=listen("127.0.0.1", 0).detach())
    count = 0

    def take(accepted: socket.socket, peer: str) -> bool:
        nonlocal count
        accepted.close()
        count += 1
        return False

    acceptor = Acceptor([listener], Sweep(1), take=take, retry_seconds=60)
    acceptor.resume()
    acceptor._accept(listener)
    acceptor._accept(listener)
    assert count == 2
    acceptor.close()
    assert count == 3


def test_a_connection_belongs_to_a_loop() -> None:
    with pytest.raises(RuntimeError):
        Connection(Sweep(1))
