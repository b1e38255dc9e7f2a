"""The server: accepts connections, gives each a session, and drains. Knows no route and no API key."""

import contextlib
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import TaskGroup

from gateway.http.accept import Acceptor, Shares
from gateway.http.messages import HttpError
from gateway.http.request_reader import ServerState
from gateway.http.session import Session
from gateway.http.transport import Connection, DeadlinePassed, Sweep, open_accepted

_ROOM_SECONDS = 0.1
_REQUEST = re.compile(rb"[A-Z]{3,16} ")  # what begins like one, which nothing of TLS does


@dataclass(eq=False, repr=False, kw_only=True)
class Server(ServerState):
    """An HTTP/1.1 server over sockets that listen already.

    shares, index: the connection counts of all processes that accept from the same sockets, and which of them this is.
    """

    tls: ssl.SSLContext | None = None
    shares: Shares | None = None
    index: int = 0

    def __post_init__(self) -> None:
        self._stopping = anyio.Event()
        self._tasks: TaskGroup  # of `serve`, one task for each connection
        self._count = 0
        self._opening: set[anyio.CancelScope] = set()
        self._gone = anyio.Event()

    def stop(self) -> None:
        """Make `serve` drain and return. May be called before `serve` and more than once; from the loop's thread."""
        self._stopping.set()

    async def serve(self, listeners: Sequence[socket.socket], started: Callable[[], object]) -> None:
        """Serve `listeners` until `stop`, then drain; closes them. Call it once.

        started: called when connections are accepted. On `stop` the connections that the kernel has accepted are taken
        first; requests under way get `drain_seconds`; idle connections get `drain_idle_seconds`, in case a request is
        on its way. What is left is cancelled.
        """
        shares = self.shares
        self.sweep = sweep = Sweep(self.limits.sweep_seconds)
        try:
            async with anyio.create_task_group() as self._tasks:
                acceptor = Acceptor(
                    listeners,
                    sweep,
                    take=self._take,
                    is_ahead=None if shares is None else partial(shares.is_ahead, self.index),
                )
                self._note_count(0)
                acceptor.resume()
                started()
                try:
                    await self._stopping.wait()
                    self.is_stopping = True
                    for end in tuple(self.endless):
                        end()
                finally:
                    acceptor.close()
                await self._drain()
                self._tasks.cancel_scope.cancel()
        finally:
            for connection in tuple(sweep.connections):
                connection.abort()
            with anyio.move_on_after(1, shield=True):
                await sweep.wait_empty()  # aborted connections are lost in the next turn of the loop

    def _take(self, accepted: socket.socket, peer: str) -> bool:
        """Start a task for a new connection from the IP address `peer`; return whether there is room for another."""
        limits = self.limits
        self._note_count(1)
        self._tasks.start_soon(self._run, accepted, peer, self._is_full())
        return self._open_count() < limits.connections + limits.connections // 8 + 8

    def _note_count(self, change: int) -> None:
        self._count += change
        if self.shares is not None:
            self.shares.note(self.index, self._count)

    def _open_count(self) -> int:
        # A closed connection may have bytes to send yet: it still takes a descriptor.
        return max(self._count, len(self.sweep.connections))

    def _is_full(self) -> bool:
        return self._open_count() > self.limits.connections

    async def _is_still_full(self) -> bool:
        """Return whether there is no room, after connections that were left had a moment to end."""
        if self._is_full():
            await anyio.sleep(_ROOM_SECONDS)
        return self._is_full()

    async def _run(self, accepted: socket.socket, peer: str, is_surplus: bool) -> None:
        try:
            connection = await self._open(accepted, peer)
            if connection is None:
                return
            refusal = None
            if self.tls is not None and not connection.is_tls:
                refusal = HttpError(400, "invalid_request", "This port speaks HTTPS alone: ask with https://.")
            await Session(connection, self, is_surplus=self._is_still_full if is_surplus else None).run(refusal)
        finally:
            self._note_count(-1)
            if self._count == 0:
                self._gone.set()

    async def _open(self, accepted: socket.socket, peer: str) -> Connection | None:
        """Return a connection that has something to say; None when it failed, or speaks neither TLS nor HTTP."""
        seconds = self.limits.handshake_seconds
        with anyio.CancelScope() as scope:
            self._opening.add(scope)
            try:
                connection = await open_accepted(
                    accepted, self.sweep, peer=peer, tls=self.tls, handshake_seconds=seconds
                )
                if connection is None or self.tls is None or connection.is_tls:
                    return connection
                connection.deadline_seconds = self.sweep.now_seconds() + seconds
                with contextlib.suppress(DeadlinePassed):
                    if _REQUEST.match(await connection.read()):
                        return connection
                connection.abort()
            finally:
                self._opening.discard(scope)
        return None

    async def _drain(self) -> None:
        """Wait until every connection has ended, as long as the limits allow; end the idle ones earlier."""
        limits = self.limits
        self.shares = None  # another process may use our index by now
        with anyio.move_on_after(limits.drain_seconds):
            with anyio.move_on_after(limits.drain_idle_seconds):
                await self._wait_empty()
            for scope in self._opening:
                scope.cancel()
            for connection in tuple(self.sweep.connections):
                if connection.is_idle:
                    connection.close(limits.drain_idle_seconds)
            await self._wait_empty()

    async def _wait_empty(self) -> None:
        while self._count:
            self._gone = anyio.Event()
            await self._gone.wait()
        await self.sweep.wait_empty()
