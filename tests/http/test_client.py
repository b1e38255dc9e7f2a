"""The client against an upstream that is a script of bytes on a real socket."""

import contextlib
import gc
import gzip
import random
import socket
import ssl
import struct
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.streams.tls
import pytest

from gateway.http.client import Client
from gateway.http.messages import (
    BadReply,
    ClientError,
    ConnectFailed,
    NoReply,
    Reply,
    ReplyTimeout,
    ReplyTooLarge,
    Terms,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Script = Callable[["Call"], Awaitable[None]]


class Call:
    """One connection that the client made. number: from 0."""

    def __init__(self, stream: anyio.abc.ByteStream, number: int) -> None:
        self.stream = stream
        self.number = number
        self.request = b""

    async def read(self) -> bytes:
        """Read one request with Content-Length or none."""
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += await self.stream.receive()
        head, _, body = raw.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length: "):
                length = int(line[16:])
        while len(body) < length:
            body += await self.stream.receive()
        self.request = head + b"\r\n\r\n" + body
        return self.request

    async def send(self, raw: bytes) -> None:
        await self.stream.send(raw)


class Upstream:
    """What the client talks to. calls: one per connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.calls: list[Call] = []

    def url(self, path: str = "/v1/x?y=1", scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@contextlib.asynccontextmanager
async def scripted(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Upstream]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    upstream = Upstream(listener.extra(anyio.abc.SocketAttribute.local_port))
    streams = listener if tls is None else anyio.streams.tls.TLSListener(listener, tls, standard_compatible=False)

    async def serve(stream: anyio.abc.ByteStream) -> None:
        call = Call(stream, len(upstream.calls))
        upstream.calls.append(call)
        async with stream:
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await script(call)

    with anyio.fail_after(20):
        async with streams, anyio.create_task_group() as tasks:
            tasks.start_soon(streams.serve, serve)
            yield upstream
            tasks.cancel_scope.cancel()


def answers(*raws: bytes) -> Script:
    """Return a script: to each request of a connection the next of `raws`, then the end."""

    async def script(call: Call) -> None:
        for raw in raws:
            await call.read()
            await call.send(raw)

    return script


def answers_for_ever(raw: bytes) -> Script:
    async def script(call: Call) -> None:
        while True:
            await call.read()
            await call.send(raw)

    return script


@contextlib.asynccontextmanager
async def making(**options: Any) -> AsyncIterator[Client]:
    client = Client(sweep_seconds=0.02, **options)
    try:
        yield client
    finally:
        await client.aclose()


async def ask(client: Client, url: str, **changed: Any) -> Reply:
    options: dict[str, Any] = {
        "method": "POST",
        "headers": (("Content-Type", "application/json"),),
        "body": b"{}",
    }
    terms: dict[str, Any] = {
        "connect_seconds": 5,
        "first_byte_seconds": 5,
        "total_seconds": 10,
        "max_reply_bytes": 10_000,
        "allow_address": None,
    }
    for name, value in changed.items():
        (terms if name in terms else options)[name] = value
    return await client.request(url=url, **options, terms=Terms(**terms))


async def fail(client: Client, url: str, **changed: Any) -> ClientError:
    with pytest.raises(ClientError) as caught:
        await ask(client, url, **changed)
    return caught.value


async def ask_once(raw: bytes, **changed: Any) -> Reply:
    async with scripted(answers(raw)) as upstream, making() as client:
        return await ask(client, upstream.url(), **changed)


async def fail_once(raw: bytes, **changed: Any) -> ClientError:
    async with scripted(answers(raw)) as upstream, making() as client:
        return await fail(client, upstream.url(), **changed)


# Requests.


async def test_a_request_is_sent_whole_and_in_one_form() -> None:
    async with scripted(answers(OK)) as upstream, making() as client:
        reply = await ask(client, upstream.url(), headers=(("X-A", "b"), ("traceparent", "00-1")), body=b"abc")
        assert (reply.status, reply.body, dict(reply.headers)["content-length"]) == (200, b"ok", "2")
        assert upstream.calls[0].request == (
            b"POST /v1/x?y=1 HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nx-a: b\r\ntraceparent: 00-1\r\n"
            b"accept-encoding: gzip, deflate\r\ncontent-length: 3\r\n\r\nabc" % upstream.port
        )


async def test_a_get_has_no_length_and_keeps_its_own_accept_encoding() -> None:
    async with scripted(answers(OK)) as upstream, making() as client:
        await ask(client, upstream.url(""), method="GET", headers=(("accept-encoding", "identity"),), body=b"")
        assert upstream.calls[0].request == (
            b"GET / HTTP/1.1\r\nhost: 127.0.0.1:%d\r\naccept-encoding: identity\r\n\r\n" % upstream.port
        )


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "GE T"},
        {"headers": (("a b", "c"),)},
        {"headers": (("a", "b\r\nc: d"),)},
        {"headers": (("a", "b\nc"),)},
        {"headers": (("Host", "there"),)},
        {"headers": (("Content-Length", "1"),)},
        {"headers": (("a", "\u20ac"),)},
    ],
)
async def test_a_malformed_request_is_never_sent(changed: dict[str, Any]) -> None:
    async with scripted(answers(OK)) as upstream, making() as client:
        with pytest.raises(ValueError):
            await ask(client, upstream.url(), **changed)
        assert upstream.calls == []


@pytest.mark.parametrize(
    "url",
    ["ftp://h/", "h/a", "http://", "http://me@h/", "http://h/a b", "http://h/\r\n", "http://h\u00e9/", "http://h:x/"],
)
async def test_a_malformed_url_is_never_connected_to(url: str) -> None:
    async with making() as client:
        with pytest.raises(ValueError):
            await ask(client, url)


# Replies.

BODIES = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
    "chunked, read slowly": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "until the end": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "HTTP/1.0 with a length": b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello",
    "close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    "keep-alive": b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
    "close among others": b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 5\r\n\r\nhello",
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
    "empty reason": b"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello",
    "foreign bytes": b"HTTP/1.1 200 \xe9\r\nA: \xe9\r\nContent-Length: 5\r\n\r\nhello",
    "empty value": b"HTTP/1.1 200 OK\r\nA:\r\nContent-Length: 5\r\n\r\nhello",
    "two cookies": b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\nhello",
    "many fields": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 150 + b"Content-Length: 5\r\n\r\nhello",
    "continue first": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n"
    b"Content-Length: 5\r\n\r\nhello",
    "identity": b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
    "bytes after the reply": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1",
}
ENDING = {"until the end", "HTTP/1.0", "HTTP/1.0 with a length", "close", "close among others", "bytes after the reply"}
REUSED = BODIES.keys() - ENDING


@pytest.mark.parametrize("name", BODIES)
async def test_a_good_reply_is_read_and_its_connection_kept_only_if_clean(name: str) -> None:
    async def script(call: Call) -> None:
        await call.read()
        await call.send(BODIES[name])
        if name not in REUSED:
            return
        await call.read()
        await call.send(OK)

    async with scripted(script) as upstream, making() as client:
        reply = await ask(client, upstream.url())
        assert (reply.status, reply.body) == (200, b"hello")
        if name in REUSED:
            assert (await ask(client, upstream.url())).body == b"ok"
        else:
            assert (await ask(client, upstream.url())).body == b"hello"
        assert len(upstream.calls) == (1 if name in REUSED else 2)


@pytest.mark.parametrize("name", BODIES)
async def test_a_good_reply_is_read_the_same_byte_by_byte(name: str) -> None:
    async def script(call: Call) -> None:
        await call.read()
        for at in range(len(BODIES[name])):
            await call.send(BODIES[name][at : at + 1])
            await anyio.lowlevel.checkpoint()

    async with scripted(script) as upstream, making() as client:
        assert (await ask(client, upstream.url())).body == b"hello"


@pytest.mark.parametrize(
    ("method", "raw"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"),
    ],
)
async def test_a_reply_without_a_body_is_complete_at_once(method: str, raw: bytes) -> None:
    async with scripted(answers_for_ever(raw)) as upstream, making() as client:
        for _ in range(2):
            assert (await ask(client, upstream.url(), method=method, body=b"")).body == b""
        assert len(upstream.calls) == 1


async def test_a_redirect_is_not_followed() -> None:
    reply = await ask_once(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    assert (reply.status, dict(reply.headers)["location"]) == (302, "http://127.0.0.1:1/")


BAD = {
    "nothing": b"",
    "garbage": b"hello\r\n\r\n",
    "garbage without end": b"\x15\x03\x01",
    "other protocol": b"ICY 200 OK\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "status of letters": b"HTTP/1.1 abc OK\r\n\r\n",
    "status above": b"HTTP/1.1 600 OK\r\n\r\n",
    "head that ends early": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
    "head without end": b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000,
    "head too large": b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
    "too many fields": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 201 + b"\r\n",
    "bare LF": b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 2\r\n\r\nok",
    "folded": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nok",
    "NUL": b"HTTP/1.1 200 OK\r\nA: \x00\r\nContent-Length: 2\r\n\r\nok",
    "field without colon": b"HTTP/1.1 200 OK\r\nA\r\nContent-Length: 2\r\n\r\nok",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "list of lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
    "length and coding": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two codings": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "other coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "coding in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
    "long length": b"HTTP/1.1 200 OK\r\nContent-Length: 00000000000000000002\r\n\r\nok",
    "empty length": b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok",
    "body that ends early": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
    "chunks that end early": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
    "malformed chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nok\r\n",
    "switch of protocols": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
    "interim replies only": b"HTTP/1.1 100 Continue\r\n\r\n" * 17,
    "interim reply and no more": b"HTTP/1.1 100 Continue\r\n\r\n",
    "unknown content coding": b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nok",
    "two content codings": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\nok",
    "two coding fields": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
    "no gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_reply_is_refused_and_its_connection_is_not_kept(name: str) -> None:
    async with scripted(answers(BAD[name])) as upstream, making() as client:
        error = await fail(client, upstream.url())
        assert type(error) is (NoReply if name == "nothing" else BadReply)
        assert str(error) == error.reason
        assert not any(client._idle.values()) or "content coding" in error.reason


async def test_a_reset_within_a_reply_without_length_is_no_end() -> None:
    async def script(call: Call) -> None:
        await call.read()
        await call.send(b"HTTP/1.1 200 OK\r\n\r\nhel")
        await anyio.wait_all_tasks_blocked()
        raw = call.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with scripted(script) as upstream, making() as client:
        assert type(await fail(client, upstream.url())) is BadReply


# Sizes and codings.


def encoded(coding: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (coding, len(body)) + body


TEXT = b"hello " * 100
RAW_DEFLATE = zlib.compressobj(wbits=-15)
CODED = {
    "gzip": (b"gzip", gzip.compress(TEXT, mtime=0)),
    "x-gzip": (b"X-GZip", gzip.compress(TEXT, mtime=0)),
    "two members": (b"gzip", gzip.compress(TEXT[:300], mtime=0) + gzip.compress(TEXT[300:], mtime=0)),
    "deflate": (b"deflate", zlib.compress(TEXT)),
    "deflate without header": (b"deflate", RAW_DEFLATE.compress(TEXT) + RAW_DEFLATE.flush()),
}


@pytest.mark.parametrize("name", CODED)
async def test_content_codings_are_undone(name: str) -> None:
    assert (await ask_once(encoded(*CODED[name]))).body == TEXT


async def test_a_long_body_is_decoded_in_a_thread() -> None:
    noise = random.Random(7).randbytes(100_000)
    reply = await ask_once(encoded(b"gzip", gzip.compress(noise, mtime=0)), max_reply_bytes=200_000)
    assert reply.body == noise


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(TEXT, mtime=0)[:-1],
        gzip.compress(TEXT, mtime=0) + b"x",
        gzip.compress(b"a", mtime=0) * 17,
        gzip.compress(TEXT, mtime=0)[:-8] + b"\0" * 8,
    ],
)
async def test_a_gzip_body_that_is_cut_or_goes_on_or_is_spoiled_is_refused(body: bytes) -> None:
    assert type(await fail_once(encoded(b"gzip", body))) is BadReply


async def test_bytes_after_a_deflated_body_are_refused() -> None:
    assert type(await fail_once(encoded(b"deflate", zlib.compress(TEXT) + b"x"))) is BadReply


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
async def test_a_bomb_is_refused_without_being_decoded_whole(coding: bytes) -> None:
    bomb = (gzip.compress if coding == b"gzip" else zlib.compress)(b"\0" * 50_000_000)
    tracemalloc.start()
    try:
        error = await fail_once(encoded(coding, bomb), max_reply_bytes=100_000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert type(error) is ReplyTooLarge
    assert peak_bytes < 5_000_000


async def test_a_refused_bomb_is_let_go_at_once() -> None:
    bomb = gzip.compress(bytes(100_000_000), 1)
    assert len(bomb) > 100_000  # decoded in a thread
    async with scripted(answers(encoded(b"gzip", bomb))) as upstream, making() as client:
        gc.collect()
        gc.disable()
        tracemalloc.start()
        is_refused = False
        try:
            try:
                await ask(client, upstream.url(), max_reply_bytes=10_000_000)
            except ReplyTooLarge:
                is_refused = True
            with anyio.fail_after(15):  # the thread lets go of its work a moment after its answer
                while tracemalloc.get_traced_memory()[0] > 5_000_000:
                    await anyio.lowlevel.checkpoint()
        finally:
            tracemalloc.stop()
            gc.enable()
    assert is_refused


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + b"a" * 101,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 101,
        encoded(b"gzip", gzip.compress(b"a" * 101, mtime=0)),
    ],
)
async def test_a_reply_over_the_limit_is_refused(raw: bytes) -> None:
    assert type(await fail_once(raw, max_reply_bytes=100)) is ReplyTooLarge


@pytest.mark.parametrize(
    "raw", [encoded(b"gzip", gzip.compress(b"a" * 100, mtime=0)), b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 100]
)
async def test_a_reply_at_the_limit_is_read(raw: bytes) -> None:
    assert len((await ask_once(raw, max_reply_bytes=100)).body) == 100


# The pool.


async def test_connections_are_kept_and_the_last_used_is_taken_first() -> None:
    entered = anyio.Event()

    async def script(call: Call) -> None:
        while True:
            await call.read()
            if call.number == 0 and not entered.is_set():
                await entered.wait()
            await call.send(OK)

    async with scripted(script) as upstream, making() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client, upstream.url())
            while not upstream.calls:
                await anyio.lowlevel.checkpoint()
            await ask(client, upstream.url())
            entered.set()
        assert len(upstream.calls) == 2
        upstream.calls[0].request = upstream.calls[1].request = b""
        await ask(client, upstream.url())
        assert [bool(call.request) for call in upstream.calls] == [True, False]


@pytest.mark.parametrize(("descriptors", "kept"), [(16, 64), (1_024, 120), (100_000, 150)])
async def test_a_crowd_that_comes_again_finds_its_connections_as_far_as_descriptors_go(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, kept: int
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (descriptors, descriptors))
    crowd, arrived = 150, anyio.Event()

    async def script(call: Call) -> None:
        while True:
            await call.read()
            if call.number == crowd - 1:
                arrived.set()
            await arrived.wait()
            await call.send(OK)

    async with scripted(script) as upstream, making() as client:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(crowd):
                    tasks.start_soon(ask, client, upstream.url())
            assert [len(idle) for idle in client._idle.values()] == [kept]
        assert len(upstream.calls) == 2 * crowd - kept


async def test_no_more_connections_are_kept_than_allowed() -> None:
    async with scripted(answers_for_ever(OK)) as upstream, making(pool_size_per_origin=1) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask, client, upstream.url())
        assert [len(idle) for idle in client._idle.values()] == [1]


async def test_who_needs_a_connection_gets_the_room_of_an_idle_one_to_another_upstream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.http.client.connections_allowed", lambda: 8)
    seen: list[int] = []
    async with (
        scripted(answers_for_ever(OK)) as one,
        scripted(answers_for_ever(OK)) as two,
        scripted(answers_for_ever(OK)) as three,
        making() as client,
    ):

        def look(address: str) -> bool:
            seen.append(len(client._sweep.connections))
            return True

        for upstream in (one, two, three, one):
            async with anyio.create_task_group() as tasks:
                for _ in range(6):
                    tasks.start_soon(partial(ask, client, upstream.url(), allow_address=look))
            seen.append(len(client._sweep.connections))
    assert max(seen) == 8


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced() -> None:
    async with scripted(answers(OK)) as upstream, making() as client:
        for count in (1, 2, 3):
            assert (await ask(client, upstream.url())).body == b"ok"
            assert len(upstream.calls) == count


async def test_a_kept_connection_that_ends_on_the_next_request_is_replaced_once() -> None:
    async def script(call: Call) -> None:
        if call.number == 0:
            await call.read()
            await call.send(OK)
        await call.read()  # and ends without an answer
        if call.number == 2:
            await call.send(OK)

    async with scripted(script) as upstream, making() as client:
        await ask(client, upstream.url())
        error = await fail(client, upstream.url())
        assert type(error) is NoReply
        assert len(upstream.calls) == 2
        assert (await ask(client, upstream.url())).body == b"ok"


async def test_a_kept_connection_that_speaks_without_being_asked_is_dropped() -> None:
    spoken = anyio.Event()

    async def script(call: Call) -> None:
        await call.read()
        await call.send(OK)
        if call.number == 0:
            await spoken.wait()
            await call.send(b"HTTP/1.1 408 Late\r\n\r\n")
        await call.read()

    async with scripted(script) as upstream, making() as client:
        await ask(client, upstream.url())
        spoken.set()
        (kept,) = next(iter(client._idle.values()))
        while not kept.unread:
            await anyio.lowlevel.checkpoint()
        assert (await ask(client, upstream.url())).status == 200
        assert len(upstream.calls) == 2


async def test_an_idle_connection_is_closed_in_time() -> None:
    ended = anyio.Event()

    async def script(call: Call) -> None:
        await call.read()
        await call.send(OK)
        with contextlib.suppress(anyio.EndOfStream):
            await call.stream.receive()
        ended.set()

    async with scripted(script) as upstream, making(idle_seconds=0.01) as client:
        await ask(client, upstream.url())
        await ended.wait()
        assert (await ask(client, upstream.url())).status == 200
        assert len(upstream.calls) == 2


@pytest.mark.usefixtures("short_buffers")
async def test_a_reply_before_the_request_was_taken_is_read_and_its_connection_is_not_kept() -> None:
    async def script(call: Call) -> None:
        await call.stream.receive(1)
        await call.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await anyio.sleep_forever()

    async with scripted(script) as upstream, making() as client:
        reply = await ask(client, upstream.url(), body=b"a" * 30_000_000)
        assert reply.status == 413
        assert not any(client._idle.values())


# Time.


@pytest.mark.parametrize(
    "raw", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"]
)
async def test_an_upstream_that_hangs_is_late(raw: bytes) -> None:
    async def script(call: Call) -> None:
        await call.read()
        if raw:
            await call.send(raw)
        await anyio.sleep_forever()

    async with scripted(script) as upstream, making() as client:
        changed = {"total_seconds": 0.5} if raw else {"first_byte_seconds": 0.5}
        error = await fail(client, upstream.url(), **changed)
        assert type(error) is ReplyTimeout


async def test_cancelling_closes_the_connection() -> None:
    asked, ended = anyio.Event(), anyio.Event()

    async def script(call: Call) -> None:
        await call.read()
        asked.set()
        try:
            await call.stream.receive()
        finally:
            ended.set()

    async with scripted(script) as upstream, making() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client, upstream.url())
            await asked.wait()
            tasks.cancel_scope.cancel()
        await ended.wait()
        assert not any(client._idle.values())


async def test_closing_the_client_ends_its_connections() -> None:
    async with scripted(answers_for_ever(OK)) as upstream:
        async with making() as client:
            await ask(client, upstream.url())
            (kept,) = next(iter(client._idle.values()))
        assert kept.is_gone
    await Client().aclose()


# Connecting.


async def test_a_port_where_nobody_listens_is_a_failed_connect() -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    await listener.aclose()
    async with making() as client:
        error = await fail(client, f"http://127.0.0.1:{port}/")
        assert type(error) is ConnectFailed


async def test_a_name_that_does_not_resolve_is_a_failed_connect() -> None:
    async with making() as client:
        error = await fail(client, "http://" + "a" * 64 + ".invalid/")
        assert type(error) is ConnectFailed


async def test_a_connect_that_takes_too_long_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def dial(*_: Any, **__: Any) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr("gateway.http.client.dial", dial)
    async with making() as client:
        error = await fail(client, "http://127.0.0.1:1/", connect_seconds=0.01)
        assert type(error) is ConnectFailed


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(anyio, "getaddrinfo", getaddrinfo)


async def test_the_next_address_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch, "127.0.0.2", "127.0.0.1", "127.0.0.1")
    async with scripted(answers(OK)) as upstream, making() as client:
        assert (await ask(client, upstream.url(host="model.test"))).status == 200
        assert upstream.calls[0].request.split(b"\r\n")[1] == b"host: model.test:%d" % upstream.port


async def test_every_address_is_checked_and_one_refusal_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def allow(address: str) -> bool:
        asked.append(address)
        return address != "169.254.169.254"

    async with scripted(answers_for_ever(OK)) as upstream, making() as client:
        for address in ("169.254.169.254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe"):
            resolving_to(monkeypatch, "127.0.0.1", address)
            error = await fail(client, upstream.url(host="model.test"), allow_address=allow)
            assert type(error) is ConnectFailed
        assert upstream.calls == []
        assert set(asked) == {"127.0.0.1", "169.254.169.254"}
        resolving_to(monkeypatch, "127.0.0.1")
        assert (await ask(client, upstream.url(host="model.test"), allow_address=allow)).status == 200
        assert (await ask(client, upstream.url(host="model.test"), allow_address=allow)).status == 200
        assert len(upstream.calls) == 1


async def test_a_kept_connection_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted(answers_for_ever(OK)) as upstream, making() as client:
        assert (await ask(client, upstream.url())).status == 200
        error = await fail(client, upstream.url(), allow_address=lambda address: False)
        assert type(error) is ConnectFailed
        assert len(upstream.calls) == 1


async def test_an_address_in_brackets_is_connected_to() -> None:
    async with making() as client:
        error = await fail(client, "http://[::1]:1/")
        assert type(error) is ConnectFailed


# TLS.


def server_context(certificate: tuple[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


async def test_https_is_spoken_with_a_certificate_that_is_trusted(certificate: tuple[str, str]) -> None:
    script = answers_for_ever(OK)
    async with scripted(script, server_context(certificate)) as upstream, making(ca_file=certificate[0]) as client:
        for _ in range(2):
            assert (await ask(client, upstream.url(scheme="https", host="localhost"))).body == b"ok"
        assert len(upstream.calls) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_https_is_refused_for_another_name_and_for_an_unknown_authority(
    certificate: tuple[str, str], host: str
) -> None:
    ca_file = None if host == "localhost" else certificate[0]
    listener = scripted(answers_for_ever(OK), server_context(certificate))
    async with listener as upstream, making(ca_file=ca_file) as client:
        error = await fail(client, upstream.url(scheme="https", host=host))
        assert type(error) is ConnectFailed


@pytest.mark.parametrize("says_end", [True, False])
async def test_a_tls_reply_without_length_is_complete_only_if_the_server_says_so(
    certificate: tuple[str, str], says_end: bool
) -> None:
    async def script(call: Call) -> None:
        await call.read()
        await call.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        if says_end:
            await call.stream.unwrap()

    listener = scripted(script, server_context(certificate))
    async with listener as upstream, making(ca_file=certificate[0]) as client:
        url = upstream.url(scheme="https", host="localhost")
        if says_end:
            assert (await ask(client, url)).body == b"hello"
        else:
            assert type(await fail(client, url)) is BadReply


async def test_https_to_a_server_that_speaks_no_tls_is_a_failed_connect(certificate: tuple[str, str]) -> None:
    async def script(call: Call) -> None:
        await call.stream.receive()
        await call.send(b"HTTP/1.1 400 Bad\r\n\r\n")

    async with scripted(script) as upstream, making(ca_file=certificate[0]) as client:
        error = await fail(client, upstream.url(scheme="https", host="localhost"))
        assert type(error) is ConnectFailed


async def test_https_is_refused_when_the_authorities_cannot_be_read(tmp_path: Path) -> None:
    async with making(ca_file=str(tmp_path / "none.pem")) as client:
        error = await fail(client, "https://127.0.0.1:1/")
        assert type(error) is ConnectFailed
