"""What a connection without TLS does that its peer, or the protocol above it, can see."""

import errno
import gc
import socket
import struct
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.http.accept import listen
from gateway.http.plain import PlainTransport
from gateway.http.transport import Sweep, dial, open_accepted
from gateway.http.wakeups import wakeups_here

HELD_BYTES = 65_536  # by the system, on each side
MUCH = b"0123456789" * 200_000


class Told:
    """A receiver that writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.news = anyio.Event()

    def note(self, event: object) -> None:
        self.events.append(event)
        self.news.set()
        self.news = anyio.Event()

    def received(self, data: bytes) -> None:
        self.note(data)

    def eof_received(self, *, is_orderly: bool = True) -> None:
        self.note("end" if is_orderly else "cut")

    def connection_lost(self, exc: Exception | None) -> None:
        self.note(exc.__class__.__name__ if exc else "lost")

    def pause_writing(self) -> None:
        self.note("full")

    def resume_writing(self) -> None:
        self.note("emptied")

    async def until(self, event: object) -> None:
        with anyio.fail_after(10):
            while event not in self.events:
                await self.news.wait()


class Odd:
    """A socket some of whose calls fail."""

    def __init__(self, inner: socket.socket, **failing: OSError) -> None:
        self.inner = inner
        self.failing = failing

    def __getattr__(self, name: str) -> Any:
        def fail(*given: object) -> None:
            raise self.failing[name]

        return fail if name in self.failing else getattr(self.inner, name)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with listen("127.0.0.1", 0) as listener:
        theirs = socket.socket()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, HELD_BYTES)  # before connecting, or it only grows
        theirs.connect(listener.getsockname())
        listener.setblocking(True)
        ours, _ = listener.accept()
    with theirs, ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HELD_BYTES)  # or the system chooses, up to many megabytes
        ours.setblocking(False)
        yield ours, theirs


def transport(ours: Any, told: Told) -> PlainTransport:
    return PlainTransport(wakeups_here(), ours, told, memoryview(bytearray(1000)))


async def read(peer: socket.socket, size: int) -> bytes:
    """Read from the peer while the loop goes on."""
    with anyio.fail_after(10):
        return await anyio.to_thread.run_sync(peer.recv, size, socket.MSG_WAITALL)


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


async def test_what_comes_is_handed_over_in_pieces_until_the_peer_ends(pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    told = Told()
    one = transport(ours, told)
    theirs.sendall(b"a" * 1500)
    await told.until(b"a" * 500)
    one._read()  # the loop may say so though nothing has come
    theirs.shutdown(socket.SHUT_WR)
    await told.until("end")
    assert told.events == [b"a" * 1000, b"a" * 500, "end"]
    one.write(b"still here")
    assert await read(theirs, 10) == b"still here"
    one.close()
    await told.until("lost")
    assert ours.fileno() == -1
    one.close()
    one.abort()
    one.resume_reading()
    await anyio.wait_all_tasks_blocked()
    assert told.events[3:] == ["lost"]


async def test_nothing_is_received_while_reading_is_paused(pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    told = Told()
    one = transport(ours, told)
    one.pause_reading()
    theirs.sendall(b"a")
    await anyio.sleep(0.01)
    assert told.events == []
    one.resume_reading()
    await told.until(b"a")
    one.abort()
    await told.until("lost")


@pytest.mark.parametrize("last", ["close", "write_eof"])
async def test_what_the_socket_does_not_take_is_sent_before_the_end(pair: tuple[socket.socket, ...], last: str) -> None:
    ours, theirs = pair
    told = Told()
    one = transport(ours, told)
    for piece in (b"first", MUCH, MUCH, b"last"):
        one.write(piece)
    assert told.events == ["full"]
    assert one.get_write_buffer_size() > 0
    getattr(one, last)()
    whole = b"first" + MUCH + MUCH + b"last"
    assert await read(theirs, len(whole)) == whole
    assert await read(theirs, 1) == b""
    await told.until("emptied")
    assert one.get_write_buffer_size() == 0
    if last == "close":
        await told.until("lost")
    else:
        theirs.sendall(b"heard")
        await told.until(b"heard")
        one.close()
        await told.until("lost")


async def test_what_is_held_is_dropped_by_abort(pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    told = Told()
    one = transport(ours, told)
    for _ in range(4):
        one.write(MUCH)
    one.close()
    one.abort()
    assert one.get_write_buffer_size() == 0
    await told.until("lost")
    one.write(b"too late")
    assert len(await read(theirs, 4 * len(MUCH))) < 4 * len(MUCH)
    assert told.events == ["full", "lost"]


async def test_a_peer_that_resets_is_noticed_by_who_reads_and_by_who_writes(pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    told = Told()
    transport(ours, told)
    reset(theirs)
    await told.until("ConnectionResetError")
    assert ours.fileno() == -1


async def test_a_send_that_fails_loses_the_connection_once(pair: tuple[socket.socket, ...]) -> None:
    ours, _ = pair
    told = Told()
    one = transport(Odd(ours, send=OSError(errno.EPIPE, "broken")), told)
    one.write(b"a")
    one.write(b"b")
    one.abort()
    assert told.events == []  # not while somebody writes
    await told.until("BrokenPipeError")
    assert one.get_write_buffer_size() == 0
    assert told.events == ["BrokenPipeError"]


async def test_a_later_send_that_fails_loses_the_connection(pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    told = Told()
    one = transport(ours, told)
    while not told.events:
        one.write(MUCH)
    one._send_more()  # the loop may say so though there is no room
    assert told.events == ["full"]
    one.pause_reading()
    reset(theirs)
    await told.until("ConnectionResetError")
    assert one.get_write_buffer_size() == 0


async def test_a_socket_that_takes_nothing_at_first_gets_it_later(pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    odd = Odd(ours, send=BlockingIOError())
    one = transport(odd, Told())
    one._send = odd.send
    one.write(b"abc")
    one._send_more()
    one._send = ours.send
    assert await read(theirs, 3) == b"abc"
    one.abort()


async def test_an_end_that_cannot_be_told_loses_the_connection(pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    told = Told()
    one = transport(Odd(ours, shutdown=OSError(errno.ENOTCONN, "gone")), told)
    one.write(MUCH + MUCH + MUCH)
    one.write_eof()
    assert len(await read(theirs, 3 * len(MUCH))) == 3 * len(MUCH)
    await told.until("OSError")


async def test_what_the_system_holds_for_a_connection_that_is_given_up_is_dropped(
    pair: tuple[socket.socket, ...],
) -> None:
    ours, theirs = pair
    told = Told()
    one = transport(ours, told)
    one.write(MUCH * 100)
    assert one.get_write_buffer_size() > 0
    one.abort()
    await told.until("lost")
    with pytest.raises(ConnectionResetError):  # and not what was on its way, then nothing for minutes
        while theirs.recv(65_536):
            pass


def living() -> list[PlainTransport]:
    return [one for one in gc.get_objects() if isinstance(one, PlainTransport)]


async def test_a_connection_that_is_over_is_no_garbage(pair: tuple[socket.socket, ...]) -> None:
    ours, _ = pair
    gc.collect()
    others = living()  # that a report of an error keeps
    gc.disable()
    try:
        sweep = Sweep(1)
        connection = await open_accepted(ours, sweep, tls=None, handshake_seconds=1)
        assert connection is not None
        connection.abort()
        await sweep.wait_empty()
        del connection
        await anyio.lowlevel.checkpoint()
        assert len(living()) == len(others)
    finally:
        gc.enable()


async def test_who_left_before_the_connection_was_made_is_none(pair: tuple[socket.socket, ...]) -> None:
    ours, _ = pair
    left: Any = Odd(ours, setsockopt=OSError(errno.EINVAL, "gone"))
    assert await open_accepted(left, Sweep(1), tls=None, handshake_seconds=1) is None
    assert ours.fileno() == -1


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
