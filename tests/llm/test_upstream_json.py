"""What asks a peer for JSON, over real connections: good answers, garbage, redirects, silence, floods, forbidden hosts."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketStream

from gateway.domain.addresses import address_check
from gateway.errors import UpstreamUnavailable
from gateway.http.client import Client
from gateway.llm.upstream import JsonReader

KEY = "k-made-up-key"


@asynccontextmanager
async def peer(reply: bytes | None, heads: list[bytes] | None = None) -> AsyncGenerator[str, None]:
    """Yield the URL of a server that answers every request with `reply`, or with silence."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            if heads is not None:
                heads.append(head)
            if reply is None:
                await anyio.sleep_forever()
            else:
                await stream.send(reply)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        yield f"http://127.0.0.1:{port}/api/v1/fleet"
        group.cancel_scope.cancel()


def http(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def ask(url: str, *, is_private: bool = True, seconds: float = 5.0) -> object:
    client = Client()
    try:
        allow = address_check(allow_private=is_private)
        reader, sent = JsonReader(client, user_agent="test"), {"x-service-key": KEY}
        return await reader.ask(url, sent, key=KEY, seconds=seconds, allow_address=allow)
    finally:
        await client.aclose()


async def test_a_good_answer_is_its_json_and_the_key_goes_in_its_header() -> None:
    heads: list[bytes] = []
    async with peer(http("200 OK", json.dumps({"data": [1]}).encode()), heads) as url:
        assert await ask(url) == {"data": [1]}
    assert b"x-service-key: " + KEY.encode() in heads[0].lower()
    assert heads[0].startswith(b"GET /api/v1/fleet HTTP/1.1")


@pytest.mark.parametrize(
    "reply",
    [
        http("302 Found", b"", "location: http://169.254.169.254/latest/meta-data"),
        http("401 Unauthorized", b"{}"),
        http("500 Oops", b"{}"),
        http("200 OK", b"<html>"),
        http("200 OK", b'{"a": 1, "a": 2}'),
        http("200 OK", b"[" * 5000),
        http("200 OK", b"[" + b"0," * 20_000 + b"0]"),
        http("200 OK", b'"' + b"x" * (1024 * 1024 + 1) + b'"'),
        b"\x16\x03\x01 this is no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}",
        b"",
    ],
)
async def test_garbage_is_told_without_the_key_and_without_its_content(reply: bytes) -> None:
    async with peer(reply) as url:
        with pytest.raises(UpstreamUnavailable) as caught:
            await ask(url)
    assert KEY not in caught.value.message and "meta-data" not in caught.value.message
    assert len(caught.value.message) < 200


async def test_silence_ends_at_the_limit() -> None:
    async with peer(None) as url:
        with anyio.fail_after(30), pytest.raises(UpstreamUnavailable):
            await ask(url, seconds=0.3)


async def test_a_private_address_is_not_asked_unless_that_is_meant() -> None:
    heads: list[bytes] = []
    async with peer(http("200 OK", b"{}"), heads) as url:
        with pytest.raises(UpstreamUnavailable):
            await ask(url, is_private=False)
    assert heads == []
