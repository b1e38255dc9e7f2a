"""A real server on a loopback socket, and a raw client that reads answers without any HTTP library."""

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.abc
import pytest
from certificates import certificate as make

from gateway.http.accept import Shares, listen
from gateway.http.messages import HttpError, Limits, Request, Response
from gateway.http.server import Server
from gateway.http.transport import server_tls

QUICK = Limits(sweep_seconds=0.02, drain_idle_seconds=0.05, linger_seconds=1.0, connections=64)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """One raw connection to a server."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self.stream = stream
        self.buffer = b""

    async def send(self, raw: bytes) -> None:
        await self.stream.send(raw)

    async def _more(self) -> bool:
        try:
            self.buffer += await self.stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return False
        return True

    async def until(self, mark: bytes) -> bytes:
        with anyio.fail_after(60):
            while mark not in self.buffer:
                assert await self._more(), f"ended with {self.buffer[:300]!r}"
        raw, _, self.buffer = self.buffer.partition(mark)
        return raw + mark

    async def exactly(self, count: int) -> bytes:
        with anyio.fail_after(60):
            while len(self.buffer) < count:
                assert await self._more(), f"ended with {self.buffer[:300]!r}"
        raw, self.buffer = self.buffer[:count], self.buffer[count:]
        return raw

    async def answer(self, *, to_head: bool = False) -> Answer:
        """Read one answer with Content-Length or none."""
        head = (await self.until(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        assert first.startswith("HTTP/1.1 "), first
        body = b"" if to_head else await self.exactly(int(headers.get("content-length", "0")))
        return Answer(int(first[9:12]), headers, body)

    async def ask(self, raw: bytes) -> Answer:
        await self.send(raw)
        return await self.answer()

    async def end(self) -> bytes:
        """Return what is left until the server closes."""
        with anyio.fail_after(60):
            while await self._more():
                pass
        return self.buffer


def refuse(error: HttpError) -> Response:
    return Response(error.status, error.headers, error.code.encode())


async def echo(request: Request) -> Response:
    text = f"{request.method} {request.path} ?{request.query} {len(request.body)}"
    return Response(200, (("content-type", "text/plain"),), text.encode())


class House:
    """A running server."""

    def __init__(self, server: Server, port: int, tls: ssl.SSLContext | None) -> None:
        self.server = server
        self.port = port
        self.client_tls = tls
        self.has_ended = anyio.Event()

    @contextlib.asynccontextmanager
    async def wire(self, *, is_tls: bool = False) -> AsyncIterator[Wire]:
        if is_tls:
            stream: anyio.abc.ByteStream = await anyio.connect_tcp(
                "127.0.0.1",
                self.port,
                ssl_context=self.client_tls,
                tls_hostname="localhost",
                tls_standard_compatible=False,
            )
        else:
            stream = await anyio.connect_tcp("127.0.0.1", self.port)
        async with stream:
            yield Wire(stream)


Handle = Callable[[Request], Awaitable[Response]]


@contextlib.asynccontextmanager
async def serving(
    handle: Handle = echo,
    *,
    limits: Limits = QUICK,
    body_limit: int = 1000,
    check: Callable[[Request], Awaitable[Response | None]] | None = None,
    tls: ssl.SSLContext | None = None,
    client_tls: ssl.SSLContext | None = None,
    allowed_hosts: frozenset[str] | None = None,
    listener: socket.socket | None = None,
    shares: Shares | None = None,
    place: int = 0,
    **changed: float,
) -> AsyncIterator[House]:
    server = Server(
        handle=handle,
        refuse=refuse,
        body_limit=lambda method, path: body_limit,
        check=check,
        limits=replace(limits, **changed),  # type: ignore[arg-type]
        tls=tls,
        allowed_hosts=allowed_hosts,
        shares=shares,
        index=place,
    )
    listener = listener or listen("127.0.0.1", 0)
    house = House(server, listener.getsockname()[1], client_tls)
    started = anyio.Event()

    async def run() -> None:
        await server.serve([listener], started.set)
        house.has_ended.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await started.wait()
            yield house
            server.stop()


@pytest.fixture
def serve() -> Callable[..., contextlib.AbstractAsyncContextManager[House]]:
    """Return `serving`: an async context manager that runs a server and stops it at the end."""
    return serving


@pytest.fixture
def short_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the system hold little for a connection, which by its own settings may be many megabytes."""

    class Short(socket.socket):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            for side in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                self.setsockopt(socket.SOL_SOCKET, side, 65_536)

    monkeypatch.setattr(socket, "socket", Short)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def ours(certificate: tuple[str, str]) -> ssl.SSLContext:
    return server_tls(*certificate)


@pytest.fixture
def theirs(certificate: tuple[str, str]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate[0])
