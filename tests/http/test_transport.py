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
from gateway.http.transport import Connection, Sweep, dial, open_accepted

from .tls_peer import receive


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
async def test_what_comes_with_a_cancellation_is_read_once(cancel_first: bool) -> None:
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
            assert got or await connection.read() == b"a"
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


def in_one_turn(*calls: Callable[[], object]) -> None:
    """Have the event loop call one after the other, as it does with what is ready at once."""
    loop: Any = current_token().native_token
    for call in calls:
        loop.call_soon(call)


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


async def test_one_turn_of_the_loop_takes_a_bounded_number_of_connections() -> None:
    listener = CountingListener(fileno=listen("127.0.0.1", 0).detach())
    taken = 0

    def take(accepted: socket.socket, peer: str) -> bool:
        nonlocal taken
        accepted.close()
        taken += 1
        return True

    acceptor = Acceptor([listener], Sweep(1), take=take)
    assert acceptor._accept(listener)
    assert taken == 512
    acceptor.close()
    assert taken == 1200


async def test_a_listener_that_somebody_has_shut_down_is_closed_all_the_same() -> None:
    listener = listen("127.0.0.1", 0)
    acceptor = Acceptor([listener], Sweep(1), take=lambda accepted, peer: True)
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

    acceptor = Acceptor([listener], Sweep(1), take=take)
    acceptor.resume()
    acceptor._accept(listener)
    acceptor._accept(listener)
    assert count == 2
    acceptor.close()
    assert count == 3


async def test_what_the_system_holds_for_a_connection_that_is_given_up_is_dropped() -> None:
    sweep = Sweep(1)
    with listen("127.0.0.1", 0) as listener, socket.socket() as theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # before connecting, or it only grows
        theirs.connect(listener.getsockname())
        listener.setblocking(True)
        accepted, _ = listener.accept()
        accepted.setblocking(False)
        connection = await open_accepted(accepted, sweep, tls=None, handshake_seconds=1)
        assert connection is not None
        while not connection.is_full:
            connection.write(b"0123456789" * 200_000)
        connection.abort()
        await sweep.wait_empty()
        with pytest.raises(ConnectionResetError):  # and not what was on its way, then nothing for minutes
            while theirs.recv(65_536):
                pass


async def test_what_nobody_reads_is_not_received_without_end() -> None:
    async with opened(Sweep(10)) as (connection, theirs), anyio.create_task_group() as tasks:
        theirs.setblocking(True)
        tasks.start_soon(anyio.to_thread.run_sync, theirs.sendall, b"a" * 1_000_000)
        found = len(await connection.read())
        await anyio.sleep(0.05)
        ahead = len(await connection.read())
        assert ahead <= 2 * 65_536
        found += ahead
        while found < 1_000_000:
            found += len(await connection.read())


async def test_a_connection_that_is_given_up_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            made.append(self)

    with listen("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
    monkeypatch.setattr(socket, "socket", Noted)
    with pytest.raises(ConnectionRefusedError):
        await dial(host, port, Sweep(1))
    assert [one.fileno() for one in made] == [-1]


async def test_a_connection_that_nobody_waits_for_any_more_is_closed() -> None:
    sweep = Sweep(1)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        host, port = full.getsockname()
        waiting = [await dial(host, port, sweep)]
        with anyio.move_on_after(0.2) as scope:
            while True:
                waiting.append(await dial(host, port, sweep))
        assert scope.cancelled_caught
        for one in waiting:
            one.abort()
        await sweep.wait_empty()


def test_a_connection_belongs_to_a_loop() -> None:
    with pytest.raises(RuntimeError):
        Connection(Sweep(1))
