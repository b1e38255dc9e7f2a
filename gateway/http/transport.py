"""Connections and their deadlines, on asyncio's own transports. The one file that names asyncio. Knows no HTTP.

One task reads each connection. What the peer sends while that task is busy is kept, up to `_READ_AHEAD_BYTES`; then the
socket is no longer read, so the peer has to wait. No connection has a timer: its owner sets `deadline_seconds`, and one
sweep a second ends every connection whose deadline has passed.

With TLS, asyncio cannot end one direction alone. When a TLS peer ends its side, the connection is gone.
"""

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Callable

NEVER = float("inf")
_READ_AHEAD_BYTES = 65_536
_FULL_BYTES = 65_536
_EMPTIED_BYTES = 16_384
_TLS_HANDSHAKE = b"\x16"  # RFC 8446 section 5.1: the first byte of a ClientHello
_RESET = struct.pack("ii", 1, 0)  # struct linger: on, for no time
_NO_PAIR = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")


class DeadlinePassed(Exception):
    """What the peer sent did not come before the deadline of the connection."""


class Connection(asyncio.BufferedProtocol):
    """One TCP or TLS connection, read by one task.

    deadline_seconds: monotonic time after which a waiting `read` raises DeadlinePassed; a connection that nobody reads
    is aborted. arrived_seconds: monotonic time at which the last bytes came. unread: bytes that came since the last
    `read`. peer: IP address of the other end. is_full: the peer has to take bytes first; `flush` before you write more.
    is_idle: set by the owner when it owes the peer nothing. has_ended: the peer has ended its side. has_ended_cleanly:
    not by a reset and, with TLS, with close_notify. on_end: called when the peer has ended its side, and again when the
    connection is lost. is_gone: nothing that is written from now on would arrive.
    """

    def __init__(self, sweep: "Sweep", peer: str = "") -> None:
        self.arrived_seconds = 0.0
        self.deadline_seconds = NEVER
        self.peer = peer
        self.is_tls = self.is_full = self.is_idle = self.is_gone = self.has_ended = self.has_ended_cleanly = False
        self.on_end: Callable[[], object] | None = None
        self._is_lost = self._is_paused = False
        self._sweep = sweep
        self._transport: asyncio.Transport  # set before anybody else has this object
        self.unread = b""
        self._read_waiter: asyncio.Future[None] | None = None
        self._flushed: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_tls = transport.get_extra_info("ssl_object") is not None
        transport.set_write_buffer_limits(_FULL_BYTES, _EMPTIED_BYTES)
        self._sweep.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._sweep.buffer  # asyncio calls `buffer_updated` before it reads anything else

    def buffer_updated(self, nbytes: int) -> None:
        data = self._sweep.buffer[:nbytes].tobytes()
        self.unread = self.unread + data if self.unread else data
        self.arrived_seconds = time.monotonic()
        if self._read_waiter is not None:
            _wake(self._read_waiter)
        elif len(self.unread) > _READ_AHEAD_BYTES and not self._is_paused:
            self._transport.pause_reading()
            self._is_paused = True

    def eof_received(self) -> bool:
        self.has_ended = True
        self.has_ended_cleanly = not self.is_tls or self._has_close_notify()
        self.is_gone |= self.is_tls
        _wake(self._read_waiter)
        if self.on_end is not None:
            self.on_end()
        return not self.is_tls  # without TLS, the peer may still read an answer

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = self.has_ended = self.is_gone = True
        self.is_full = False
        self._sweep.remove(self)
        _wake(self._read_waiter)
        _wake(self._flushed)
        if self.on_end is not None:
            self.on_end()

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        _wake(self._flushed)

    def _has_close_notify(self) -> bool:
        try:
            return bool(self._transport.get_extra_info("ssl_object").read(1) == b"")
        except ssl.SSLZeroReturnError:
            return True
        except ssl.SSLError:  # TLS waits for more: the TCP connection was cut
            return False

    async def read(self) -> bytes:
        """Wait for bytes and return all that have arrived; b"" once the peer has sent its last.

        Raises:
            DeadlinePassed: nothing came in time; what came late is `unread`. It is still open for an answer.
        """
        if not self.unread and not self.has_ended:
            self._read_waiter = self._sweep.loop.create_future()
            try:
                await self._read_waiter
            finally:
                self._read_waiter = None
        # The sweep sees only a peer that sends nothing at its tick; one that sends just then is late as well.
        if (self.unread or not self.has_ended) and time.monotonic() >= self.deadline_seconds:
            raise DeadlinePassed
        data, self.unread = self.unread, b""
        if self._is_paused and not self.is_gone:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        """Send `data`, or keep what the socket does not take. Does nothing when the peer is gone."""
        if not self.is_gone:
            self._transport.write(data)

    async def flush(self) -> None:
        """Wait until the peer has taken enough to write more, or is gone."""
        while self.is_full:
            self._flushed = self._sweep.loop.create_future()
            try:
                await self._flushed
            finally:
                self._flushed = None

    def is_quiet(self) -> bool:
        """Return whether both sides are open and no bytes are on their way in this process."""
        return not (self.unread or self.has_ended or self.is_gone or self._transport.get_write_buffer_size())

    def end_writing(self) -> bool:
        """Tell the peer that nothing more comes, and go on reading. Return False where that cannot be told (TLS)."""
        if self.is_gone or not self._transport.can_write_eof():
            return False
        try:
            self._transport.write_eof()
        except OSError:  # the peer has reset the connection, and asyncio has not noticed yet
            self.abort()
        return True

    def close(self, within_seconds: float) -> None:
        """Send what was written, then close; abort when the peer does not take it `within_seconds`."""
        if not self._is_lost:
            self.is_gone = True
            self.deadline_seconds = time.monotonic() + within_seconds
            if not self._transport.is_closing():  # a second call would disarm the `abort` of asyncio's TLS
                self._transport.close()

    def abort(self) -> None:
        """Close at once and drop what was not sent yet."""
        if not self._is_lost:
            self.is_gone = True
            if self.is_full:  # else the kernel keeps megabytes for a peer that reads nothing
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()

    def expire(self) -> None:
        """End what the deadline ends. The sweep calls this."""
        if self._read_waiter is None:
            self.abort()
        else:
            _wake(self._read_waiter)


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


class Sweep:
    """The open connections of one server or client, and the one timer that ends those past their deadline.

    The timer runs while a connection is open. buffer: where each socket puts what it received, one after the other.
    """

    def __init__(self, every_seconds: float) -> None:
        self.connections: set[Connection] = set()
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(_READ_AHEAD_BYTES))
        self._every_seconds = every_seconds
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
        now_seconds = self.now_seconds()
        for connection in [one for one in self.connections if one.deadline_seconds <= now_seconds]:
            connection.expire()
        self._timer = self.loop.call_later(self._every_seconds, self._tick) if self.connections else None


async def open_accepted(
    accepted: socket.socket, sweep: Sweep, *, peer: str = "", tls: ssl.SSLContext | None, handshake_seconds: float
) -> Connection | None:
    """Make a connection of an accepted socket; None when the peer left, or the handshake failed or took too long.

    A peer that begins without TLS where `tls` is given gets a plain connection, so that it can be refused.
    """
    try:
        async with asyncio.timeout(None if tls is None else handshake_seconds):
            if tls is not None and await _first_byte(accepted, sweep) != _TLS_HANDSHAKE:
                tls = None
            _, connection = await sweep.loop.connect_accepted_socket(lambda: Connection(sweep, peer), accepted, ssl=tls)
        return connection
    except OSError:  # TimeoutError and ssl.SSLError are OSErrors
        accepted.close()
        return None
    except BaseException:
        accepted.close()
        raise


async def _first_byte(accepted: socket.socket, sweep: Sweep) -> bytes:
    """Wait for the first byte of a peer, and leave it unread."""
    arrived = sweep.loop.create_future()
    sweep.loop.add_reader(accepted, _wake, arrived)
    try:
        await arrived
    finally:
        sweep.loop.remove_reader(accepted)
    return accepted.recv(1, socket.MSG_PEEK)


async def dial(
    address: str, port: int, sweep: Sweep, *, tls: ssl.SSLContext | None = None, server_name: str | None = None
) -> Connection:
    """Connect to exactly this IP address; with `tls`, check the certificate for `server_name`. Has no time limit.

    Raises:
        OSError: refused, unreachable, or the certificate or the handshake is bad (ssl.SSLError is an OSError).
    """
    name = None if tls is None else server_name
    _, connection = await sweep.loop.create_connection(
        lambda: Connection(sweep, address), address, port, ssl=tls, server_hostname=name
    )
    return connection


def server_tls(cert: str, key: str) -> ssl.SSLContext:
    """Return a context for a server with the PEM files `cert` (with its chain) and `key`; TLS 1.2 and later.

    Raises:
        OSError: a file cannot be read or is not PEM, they do not belong together, or the key needs a passphrase.
    """
    for path in (cert, key):
        with open(path, "rb"):
            pass  # an error names the file, which OpenSSL does not
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=_refuse_passphrase)
    except ssl.SSLError as error:
        if error.reason in _NO_PAIR:
            raise OSError("the key is not the one of the certificate") from error
        raise OSError(f"{cert} holds no certificate, or {key} no key, as PEM") from error
    return _strict_tls(context)


def client_tls(ca_file: str | None) -> ssl.SSLContext:
    """Return a context for a client that trusts the authorities of a PEM file, or the system's; TLS 1.2 and later.

    Raises:
        OSError: the file cannot be read or has no certificate.
    """
    try:
        return _strict_tls(ssl.create_default_context(cafile=ca_file))
    except ssl.SSLError as error:
        raise OSError("it holds no certificate as PEM") from error


def _strict_tls(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _refuse_passphrase() -> str:
    raise OSError("the key has a passphrase: take it off with `openssl pkey -in KEY -out FILE`")
