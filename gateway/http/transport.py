"""Sockets, connections and deadlines: the one file that names asyncio. Knows no HTTP.

Theory of operation. What one socket receives feeds one long-lived task per connection; an answer is one `send`. How
bytes come and go is `plain`'s and, with TLS, `secure`'s. No timer belongs to a connection: its owner sets
`deadline_seconds`, and one sweep a second ends what is late. What a peer sends while nobody reads is held up to
`_READ_AHEAD_BYTES`, then the socket is no longer read.
"""

import asyncio
import mmap
import socket
import ssl
import time
from collections.abc import Callable
from typing import cast

from gateway.http.plain import PlainTransport
from gateway.http.secure import SecureTransport
from gateway.http.wakeups import LATER_BYTES, Waiter, wakeups_here

NEVER = float("inf")
_READ_AHEAD_BYTES = 65_536
_ROOM_BYTES = 65_536
_NO_PAIR = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")


class DeadlinePassed(Exception):
    """The peer sent nothing until the deadline of the connection."""


class _Feed:
    """What the transport calls, and the state of one connection that its calls change."""

    __slots__ = (
        "_flusher", "_is_held", "_is_late", "_is_lost", "_loop", "_received", "_sweep", "_transport", "_wakeups",
        "arrival", "arrived_seconds", "deadline_seconds", "has_ended", "has_said_end", "is_full", "is_gone", "is_idle",
        "is_tls", "on_end", "peer",
    )  # fmt: skip

    def __init__(self, sweep: "Sweep", peer: str = "") -> None:
        self.arrived_seconds = 0.0
        self.deadline_seconds = NEVER
        self.peer = peer
        self.is_tls = False
        self.is_full = False
        self.is_idle = False
        self.is_gone = False
        self.has_said_end = False
        self._sweep = sweep
        self._loop = sweep.loop
        self._transport: PlainTransport | SecureTransport  # there before anybody else has this object
        self._received = b""
        self.has_ended = False
        self._is_lost = False
        self._is_held = False
        self._is_late = False
        self._wakeups = sweep.wakeups
        self.arrival = Waiter(sweep.wakeups)
        self._flusher: asyncio.Future[None] | None = None
        self.on_end: Callable[[], object] | None = None

    def connection_made(self, transport: PlainTransport | SecureTransport) -> None:
        self._transport = transport
        self.is_tls = isinstance(transport, SecureTransport)
        self._sweep.add(cast(Connection, self))

    def received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        self.arrived_seconds = time.monotonic()
        if not self.arrival.call() and len(self._received) > _READ_AHEAD_BYTES and not self.arrival.is_called():
            self._transport.pause_reading()
            self._is_held = True

    def eof_received(self, *, is_orderly: bool = True) -> None:
        self.has_ended = True
        self.has_said_end = is_orderly
        self.is_gone |= not is_orderly  # who has ended its side in order still reads
        self.arrival.call()
        if self.on_end is not None:
            self.on_end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = self.has_ended = self.is_gone = True
        self.is_full = False
        self._sweep.remove(cast(Connection, self))
        self.arrival.call()
        _wake(self._flusher)
        if self.on_end is not None:
            self.on_end()
            self.on_end = None  # who is told may know this object

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        _wake(self._flusher)


class Connection(_Feed):
    """One TCP or TLS connection, for one task that reads it.

    deadline_seconds: monotonic time after which a waiting `read` raises DeadlinePassed and anything else is aborted.
    arrived_seconds: monotonic time at which the last bytes came.
    peer: IP address of the other end. is_full: what was written waits for the peer; `flush` before writing more.
    arrival: what its task awaits for bytes, while there is nothing unread. is_idle: its owner's word that nothing is
    owed to the peer. has_ended: the peer ended its side. has_said_end: it did in order, not by a reset or, in TLS,
    without saying so.
    on_end: is called when it has ended its side, and when it is gone.
    is_gone: nothing that is written from now on would arrive.
    """

    __slots__ = ()

    async def read(self) -> bytes:
        """Wait for bytes and return all that have arrived; b"" once the peer has sent its last.

        Raises:
            DeadlinePassed: nothing came in time. The connection is still open for an answer.
        """
        if not self._received and not self.has_ended:
            await self.arrival
        return self.take()

    def take(self) -> bytes:
        """Do what `read` does, for a task that has awaited `arrival`, or need not."""
        data = self._received
        if self._is_late:
            self._is_late = False
            if not data:
                raise DeadlinePassed
        self._received = b""
        if self._is_held and not self.is_gone:
            self._is_held = False
            self._transport.resume_reading()
        return data

    async def wait_end(self) -> None:
        """Wait until the peer has ended its side or is gone. What it sends before stays unread. For one task."""
        if not self.has_ended:
            ended = self._loop.create_future()
            before, self.on_end = self.on_end, lambda: _wake(ended)
            try:
                await ended
            finally:
                self.on_end = None if self._is_lost else before

    def write(self, data: bytes) -> None:
        """Send `data`, or hold what the socket does not take. Does nothing when the peer is gone."""
        if self.is_gone:
            return
        wakeups = self._wakeups
        if wakeups.gathers and len(data) <= LATER_BYTES:
            wakeups.unsent.append((self._transport.write, data))
        else:
            if wakeups.unsent:
                wakeups.flush()
            self._transport.write(data)

    async def flush(self) -> None:
        """Wait until the peer has taken enough to write more, or is gone."""
        while self.is_full:
            self._flusher = self._loop.create_future()
            try:
                await self._flusher
            finally:
                self._flusher = None

    def has_unread(self) -> bool:
        """Say whether the peer has sent, or ended, since the last `read`."""
        return bool(self._received) or self.has_ended

    def is_quiet(self) -> bool:
        """Say whether both sides may say something, and nothing that either has said is on its way."""
        return not (self._received or self.has_ended or self.is_gone or self._transport.get_write_buffer_size())

    def end_writing(self) -> None:
        """Tell the peer that nothing more comes, and go on reading."""
        self._wakeups.flush()
        if not self.is_gone:
            try:
                self._transport.write_eof()
            except OSError:  # the peer has reset the connection, and nobody has noticed yet
                self.abort()

    def close(self, within_seconds: float) -> None:
        """Send what was written, then close; abort when the peer does not take it `within_seconds`."""
        if not self._is_lost:
            self._wakeups.flush()
            self.is_gone = True
            self.deadline_seconds = time.monotonic() + within_seconds
            self._transport.close()

    def abort(self) -> None:
        """Close at once and drop what has not left yet."""
        if not self._is_lost:
            self.is_gone = True
            self._transport.abort()

    def expire(self) -> None:
        """Act on a deadline that has passed. The sweep calls it."""
        if self.arrival.is_awaited:
            # The deadline stays: when bytes come in this very turn, the reader is not late, but will be.
            self._is_late = True
            self.arrival.call()
        elif not self.arrival.is_called():
            self.abort()


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


this_task = asyncio.current_task
"""Return the task that runs."""


class Sweep:
    """The open connections of one server or client, and the one timer that ends those past their deadline.

    on_tick: called at each sweep and at a first connection; on_remove: when one is lost. The timer runs while one is.
    """

    def __init__(self, every_seconds: float, on_tick: Callable[[], None] | None = None) -> None:
        self.connections: set[Connection] = set()
        self.on_remove: Callable[[], None] | None = None
        # Where a socket puts what it has, one after the other. A piece of memory for each read, large enough for any,
        # would lie among small things that stay, and the C library never gives back what is between them. Mapped by
        # itself, of which no more is taken than was ever needed.
        self.room = memoryview(mmap.mmap(-1, _ROOM_BYTES))
        self.loop = asyncio.get_running_loop()
        self.wakeups = wakeups_here()
        self._every_seconds = every_seconds
        self._on_tick = on_tick
        self._timer: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    now_seconds = staticmethod(time.monotonic)
    """Return the monotonic clock by which deadlines are set."""

    def add(self, connection: Connection) -> None:
        """Watch `connection` until it is lost."""
        self.connections.add(connection)
        if self._timer is None:
            self._tick()

    def remove(self, connection: Connection) -> None:
        """Forget a connection that is lost."""
        self.connections.discard(connection)
        if self.on_remove is not None:
            self.on_remove()
        if not self.connections:
            _wake(self._emptied)

    async def wait_empty(self) -> None:
        """Wait until no connection is open. For one task at a time."""
        while self.connections:
            self._emptied = self.loop.create_future()
            await self._emptied

    def report(self, message: str, error: BaseException) -> None:
        """Hand an error that no caller can see to the loop's exception handler."""
        self.loop.call_exception_handler({"message": message, "exception": error})

    def _tick(self) -> None:
        if self._on_tick is not None:
            self._on_tick()
        now_seconds = self.now_seconds()
        for connection in [one for one in self.connections if one.deadline_seconds <= now_seconds]:
            connection.expire()
        self._timer = self.loop.call_later(self._every_seconds, self._tick) if self.connections else None


def server_tls(cert: str, key: str) -> ssl.SSLContext:
    """Return a context for a server with the PEM files `cert` (with its chain) and `key`; TLS 1.2 and later.

    Raises:
        OSError: a file cannot be read or is none, or they do not belong together, or the key needs a passphrase.
    """
    for path in (cert, key):
        with open(path, "rb"):
            pass  # an error names the file, which OpenSSL does not
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(cert, key, password=_ask_nobody)
    except ssl.SSLError as error:
        if error.reason in _NO_PAIR:
            raise OSError("the key is not the one of the certificate") from error
        raise OSError(f"{cert} holds no certificate, or {key} no key, as PEM") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def _ask_nobody() -> str:
    raise OSError("the key has a passphrase: take it off with `openssl pkey -in KEY -out FILE`")


def client_tls(ca_file: str | None) -> ssl.SSLContext:
    """Return a context for a client that trusts the authorities of a PEM file, or the system's; TLS 1.2 and later.

    Raises:
        OSError: the file cannot be read or has no certificate.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise OSError("it holds no certificate as PEM") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


async def open_accepted(
    accepted: socket.socket, sweep: Sweep, *, peer: str = "", tls: ssl.SSLContext | None, handshake_seconds: float
) -> Connection | None:
    """Make a connection of an accepted socket. None when the peer left or the handshake failed or took too long.

    A peer that began without TLS where there is `tls` has a connection whose `is_tls` says so, to be told.
    peer: the IP address of its other end, as it was when it was accepted.
    """
    try:
        if tls is None:
            return _plain(accepted, sweep, peer)
        return await _secure(accepted, sweep, peer, tls, within_seconds=handshake_seconds)
    except OSError:
        return None


async def dial(
    address: str, port: int, sweep: Sweep, *, tls: ssl.SSLContext | None = None, server_name: str | None = None
) -> Connection:
    """Connect to exactly this IP address; with `tls`, check the certificate for `server_name`. Has no limit of time.

    Raises:
        OSError: refused, unreachable, or the certificate or the handshake is bad (ssl.SSLError is an OSError).
    """
    plain = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        plain.setblocking(False)
        await sweep.loop.sock_connect(plain, (address, port))
    except BaseException:
        plain.close()
        raise
    if tls is None:
        return _plain(plain, sweep, address)
    return await _secure(plain, sweep, address, tls, server_name=server_name)


def _plain(connected: socket.socket, sweep: Sweep, peer: str) -> Connection:
    connection = Connection(sweep, peer)
    try:
        connection.connection_made(PlainTransport(sweep.wakeups, connected, connection, sweep.room))
    except BaseException:
        connected.close()
        raise
    return connection


async def _secure(
    connected: socket.socket,
    sweep: Sweep,
    peer: str,
    tls: ssl.SSLContext,
    *,
    server_name: str | None = None,
    within_seconds: float = NEVER,
) -> Connection:
    """Make a connection whose handshake is done. server_name: None where the peer is the client."""
    connection = Connection(sweep, peer)
    try:
        transport = SecureTransport(sweep.wakeups, connected, connection, sweep.room, tls, server_name=server_name)
    except BaseException:
        connected.close()
        raise
    connection.connection_made(transport)
    connection.deadline_seconds = sweep.now_seconds() + within_seconds
    connection.is_idle = True  # nothing is owed to who has not said yet what it wants
    try:
        error = await transport.handshake()
    except BaseException:
        connection.abort()
        raise
    if error is not None:
        clear = transport.give_way(connection)
        try:
            if clear is None:
                raise error
        finally:
            del error  # which knows this frame
        plain, data = clear
        connection.connection_made(plain)
        connection.received(data)
        plain.resume_reading()
    connection.is_idle = False
    connection.deadline_seconds = NEVER
    return connection
