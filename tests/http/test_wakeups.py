"""Which sockets are read, and when the tasks go on that wait for them."""

import errno
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from gateway.http import wakeups
from gateway.http.transport import Connection, Sweep, open_accepted
from gateway.http.wakeups import wakeups_here


@asynccontextmanager
async def opened(count: int) -> AsyncIterator[list[tuple[Connection, socket.socket]]]:
    """Open connections, each with its peer; at the end all are closed."""
    sweep = Sweep(10)
    pairs = []
    for _ in range(count):
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        connection = await open_accepted(ours, sweep, tls=None, handshake_seconds=1)
        assert connection is not None
        pairs.append((connection, theirs))
    yield pairs
    for connection, theirs in pairs:
        theirs.close()
        connection.abort()
    await sweep.wait_empty()


@pytest.fixture(params=[True, False], ids=["epoll", "loop"])
def has_epoll(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have the system one, as Linux has, or none."""
    if not request.param:
        monkeypatch.setattr(wakeups, "_epoll", None)
    elif wakeups._epoll is None:
        pytest.skip("there is none here")
    return bool(request.param)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.usefixtures("has_epoll")
async def test_what_comes_and_the_end_are_told_wherever_the_loop_runs() -> None:
    async with opened(2) as ((one, peer), (other, _)):
        for data in (b"a", b"b"):
            peer.send(data)
            with anyio.fail_after(10):
                assert await one.read() == data
        peer.close()
        with anyio.fail_after(10):
            assert await one.read() == b""
        assert not other.has_unread()


@pytest.mark.usefixtures("has_epoll")
async def test_nothing_is_open_any_more_when_the_last_connection_is_closed() -> None:
    before = descriptors()
    for _ in range(3):
        async with opened(2) as ((_, peer), (other, _)):
            peer.close()
            other.abort()
        assert descriptors() == before


async def test_a_held_connection_is_read_on_when_no_descriptor_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    before = descriptors()
    async with opened(1) as ((one, peer),):
        peer.send(b"a" * 100_000)
        with anyio.fail_after(10):
            while not one._is_held:
                await anyio.lowlevel.checkpoint()
        with monkeypatch.context() as patched:
            patched.setattr(wakeups, "_epoll", fail)
            assert len(one.take()) == 100_000
        async with opened(1) as ((other, other_peer),):  # which finds one, beside the first
            for connection, its_peer in ((other, other_peer), (one, peer)):
                its_peer.send(b"b")
                with anyio.fail_after(10):
                    assert await connection.read() == b"b"
    assert descriptors() == before


@pytest.mark.usefixtures("has_epoll")
async def test_a_socket_that_another_one_has_ended_in_the_same_turn_is_not_read() -> None:
    async with opened(2) as ((one, one_peer), (other, other_peer)):
        told: list[Connection] = []

        def end(first: Connection, second: Connection) -> Callable[[], object]:
            def tell() -> None:
                told.append(first)
                second.abort()
                second.on_end = None

            return tell

        one.on_end, other.on_end = end(one, other), end(other, one)
        one_peer.close()
        other_peer.close()
        with anyio.fail_after(10):
            while not told:
                await anyio.lowlevel.checkpoint()
        assert len(told) == 1


async def test_a_read_that_fails_leaves_nobody_waiting_who_got_something(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    here = wakeups_here()
    here.loop.set_exception_handler(lambda loop, context: reported.append(context["exception"]))
    async with opened(2) as ((one, one_peer), (other, other_peer)):
        got: list[bytes] = []
        failure = ValueError("told nobody")

        def fail() -> None:
            raise failure

        async def read() -> None:
            got.append(await other.read())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            one.on_end = fail
            other_peer.send(b"a")
            one_peer.close()
        one.on_end = None
        assert (got, reported) == ([b"a"], [failure])
