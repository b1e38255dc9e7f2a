"""A deadline is one, however the bytes come: also for who sends one just before each look of the sweep."""

import contextlib
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from gateway.http.transport import DeadlinePassed, Sweep, open_accepted

from .tls_peer import receive

Serve = Callable[..., AbstractAsyncContextManager[Any]]
NO_SWEEP = {"sweep_seconds": 600.0}


@pytest.mark.parametrize(
    ("first", "changed"),
    [
        (b"GET /a HTTP/1.1\r\nHost: here\r\nX-Slow: ", {"head_seconds": 0.05}),
        (b"POST /a HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n", {"body_seconds": 0.05}),
        (
            b"POST /a HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n",
            {"body_seconds": 0.05},
        ),
    ],
)
async def test_who_sends_a_byte_at_a_time_is_ended_at_the_deadline_even_if_no_sweep_sees_it(
    serve: Serve, first: bytes, changed: dict[str, float]
) -> None:
    async with serve(**changed, **NO_SWEEP) as house, house.wire() as wire:

        async def drip() -> None:
            await wire.send(first)
            while True:
                await wire.send(b"a")
                await anyio.sleep(0.005)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drip)
            answer = await wire.answer()
            tasks.cancel_scope.cancel()
        assert (answer.status, answer.body, answer.headers["connection"]) == (408, b"request_timeout", "close")


async def test_who_goes_on_sending_after_a_refusal_is_ended_in_time_even_if_no_sweep_sees_it(serve: Serve) -> None:
    async with serve(linger_seconds=0.05, **NO_SWEEP) as house, house.wire() as wire:
        await wire.send(b"no request\r\n\r\n")
        assert (await wire.answer()).status == 400
        with anyio.fail_after(5), contextlib.suppress(anyio.BrokenResourceError):
            while True:
                await wire.send(b"a")
                await anyio.sleep(0.005)


async def test_bytes_that_come_after_the_deadline_are_late_even_before_a_sweep() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        sweep = Sweep(600)
        connection = await open_accepted(ours, sweep, tls=None, handshake_seconds=1)
        assert connection is not None
        connection.deadline_seconds = 0.0
        receive(connection, b"a")
        with pytest.raises(DeadlinePassed):
            await connection.read()
        connection.abort()
        await sweep.wait_empty()


async def test_who_was_too_slow_leaves_nothing_that_is_held_behind(serve: Serve) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: here\r\nContent-Length: 900\r\n\r\n"
    async with serve(body_seconds=0.05, linger_seconds=0.05, held_bytes=1000, connections=4) as house:
        for _ in range(8):  # more than there is room for, were any of it kept
            async with house.wire() as wire:
                await wire.send(head)
                await wire.send(b"a" * 600)
                assert (await wire.answer()).status == 408
                assert await wire.end() == b""
        async with house.wire() as wire:
            await wire.send(head + b"a" * 900)  # at once: however slow the host is, it is not late
            assert (await wire.answer()).status == 200
