"""The server on a real socket: what well-formed clients see."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

Serve = Callable[..., AbstractAsyncContextManager[Any]]
GET = b"GET /a?b=1 HTTP/1.1\r\nHost: here\r\n\r\n"


async def test_a_request_is_answered_and_the_connection_stays_open(serve: Serve) -> None:
    async with serve() as house, house.wire() as wire:
        for _ in range(3):
            answer = await wire.ask(GET)
            assert (answer.status, answer.body) == (200, b"GET /a ?b=1 0")
