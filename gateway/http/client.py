"""The HTTP/1.1 client: resolve, connect, TLS, a pool, one request and its reply. Follows no redirects.

Idle connections wait in one list per origin and check of its addresses, so that each connection in a list has passed
that check. The connection that was used last is taken first; the rest grow old, and the sweep closes them. Only a new
connection needs a timer of its own; everything later is a deadline of the connection.
"""

import re
import socket
import ssl
from collections.abc import Sequence
from functools import lru_cache, partial
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel

from gateway.http.messages import (
    AllowAddress,
    BadReply,
    ConnectFailed,
    NoReply,
    Reply,
    ReplyTimeout,
    Terms,
    connections_allowed,
)
from gateway.http.reply import IncomingReply
from gateway.http.transport import NEVER, Connection, DeadlinePassed, Sweep, client_tls, dial

_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VISIBLE = re.compile(r"[!-~]+")
_OURS = frozenset("connection content-length expect host keep-alive te trailer transfer-encoding upgrade".split())
_LEAST_POOL, _MOST_POOL = 64, 1_024
_WITH_BODY = ("POST", "PUT", "PATCH")


class _Origin(NamedTuple):
    is_tls: bool
    host: str
    port: int
    host_header: str


class Client:
    """Connections to any number of origins, for one event loop.

    pool_size_per_origin, idle_seconds: how many idle connections are kept and how long; None for a quarter of what this
    process can hold, 64 to 1,024. ca_file: PEM file of the authorities that https trusts, None for the system's.
    """

    def __init__(
        self,
        *,
        pool_size_per_origin: int | None = None,
        idle_seconds: float = 30.0,
        ca_file: str | None = None,
        sweep_seconds: float = 1.0,
    ) -> None:
        self._most_connections = connections_allowed()
        self._pool_size = pool_size_per_origin or min(max(self._most_connections // 4, _LEAST_POOL), _MOST_POOL)
        self._connecting = 0
        self._idle_seconds = idle_seconds
        self._ca_file = ca_file
        self._sweep = Sweep(sweep_seconds)
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[tuple[_Origin, AllowAddress | None], list[Connection]] = {}

    async def request(
        self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes, terms: Terms
    ) -> Reply:
        """Send one request and return its complete reply, whatever its status.

        headers: without Host, Content-Length and what concerns the connection. If a kept connection ends before the
        first byte of the reply, the request is sent again over a new one, once. Cancelling closes the connection.

        Raises:
            ConnectFailed, ReplyTimeout, BadReply, ReplyTooLarge: see there.
            ValueError: url, method or headers are malformed; nothing was sent.
        """
        reply = await self.stream(method, url, headers, body, terms)
        try:
            return await reply.whole()
        finally:
            reply.close()

    async def stream(
        self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes, terms: Terms
    ) -> IncomingReply:
        """Send one request and return its reply as soon as the first bytes are there. The caller closes it.

        Raises:
            ConnectFailed, ReplyTimeout, BadReply, ValueError: as `request`.
        """
        origin, target = _parse_url(url)
        raw = _render(method, origin, target, headers, body)
        end_seconds = Sweep.now_seconds() + terms.total_seconds
        idle = self._idle.setdefault((origin, terms.allow_address), [])
        kept, reply = _take_idle(idle), None
        if kept is not None:
            reply = await self._exchange(kept, idle, method, raw, terms, end_seconds)
        if reply is None:
            reply = await self._exchange(await self._open(origin, terms), idle, method, raw, terms, end_seconds)
        if reply is None:
            raise NoReply("the upstream ended the connection without a reply")
        return reply

    async def aclose(self) -> None:
        """Close all connections, those in use too."""
        for idle in self._idle.values():
            idle.clear()
        for connection in tuple(self._sweep.connections):
            connection.abort()
        with anyio.move_on_after(1, shield=True):
            await self._sweep.wait_empty()

    async def _exchange(
        self, connection: Connection, idle: list[Connection], method: str, raw: bytes, terms: Terms, end_seconds: float
    ) -> IncomingReply | None:
        """Send a request and return the beginning of the reply; None if the connection ended before its first byte."""
        data = b""
        try:
            connection.write(raw)
            data = await _read(connection, min(Sweep.now_seconds() + terms.first_byte_seconds, end_seconds))
        finally:
            if not data:
                connection.abort()
        if not data:
            return None

        async def more() -> bytes:
            more = await _read(connection, min(connection.arrived_seconds + terms.idle_seconds, end_seconds))
            if not more and not connection.has_ended_cleanly:
                raise BadReply("the reply ended by a reset")
            return more

        release = partial(self._release, connection, idle)
        return IncomingReply(method, terms.max_reply_bytes, data, more=more, release=release)

    def _release(self, connection: Connection, idle: list[Connection], is_reusable: bool) -> None:
        """Keep the connection if it can take another request and there is room, else close it."""
        if is_reusable and connection.is_quiet():
            if len(idle) >= self._pool_size:
                idle[:] = [one for one in idle if not one.is_gone]
            if len(idle) < self._pool_size:
                connection.deadline_seconds = connection.arrived_seconds + self._idle_seconds
                idle.append(connection)
                return
        connection.abort()

    async def _open(self, origin: _Origin, terms: Terms) -> Connection:
        """Connect. Where there are as many connections as this process can hold, an idle one to whomever is closed."""
        self._connecting += 1
        try:
            if len(self._sweep.connections) + self._connecting > self._most_connections:
                idle = next((one for idle in self._idle.values() for one in idle if not one.is_gone), None)
                if idle is not None:
                    idle.abort()
                    await anyio.lowlevel.checkpoint()  # its descriptor is free after this turn of the loop
            return await self._connect(origin, terms)
        finally:
            self._connecting -= 1

    async def _connect(self, origin: _Origin, terms: Terms) -> Connection:
        """Connect to the first address of the origin that answers; each gets its share of the time."""
        wait_seconds, allow_address = min(terms.connect_seconds, terms.total_seconds), terms.allow_address
        end_seconds = anyio.current_time() + wait_seconds
        reason, cause = "the upstream did not accept a connection in time", None
        with anyio.move_on_after(wait_seconds):
            addresses = await _resolve(origin)
            if allow_address is not None and not all(map(allow_address, addresses)):
                raise ConnectFailed("the address of the upstream is not allowed")
            for index, address in enumerate(addresses):
                share_seconds = (end_seconds - anyio.current_time()) / (len(addresses) - index)
                with anyio.move_on_after(share_seconds):
                    try:
                        if origin.is_tls and self._tls is None:
                            self._tls = client_tls(self._ca_file)
                        tls = self._tls if origin.is_tls else None
                        return await dial(address, origin.port, self._sweep, tls=tls, server_name=origin.host)
                    except ssl.SSLError as error:
                        reason = "the certificate or the TLS handshake of the upstream is bad"
                        raise ConnectFailed(reason) from error  # other addresses: the same name
                    except OSError as error:
                        reason, cause = "the upstream cannot be reached", error
        raise ConnectFailed(reason) from cause


def _take_idle(idle: list[Connection]) -> Connection | None:
    while idle:
        connection = idle.pop()
        if connection.is_quiet():
            return connection
        connection.abort()  # it has ended or has unread bytes
    return None


async def _read(connection: Connection, deadline_seconds: float) -> bytes:
    """Wait for bytes. The connection has a deadline only meanwhile, since its reader may have a slow reader."""
    connection.deadline_seconds = deadline_seconds
    try:
        data = await connection.read()
    except DeadlinePassed:
        raise ReplyTimeout("the reply did not come in time") from None
    connection.deadline_seconds = NEVER
    return data


async def resolve(url: str) -> tuple[str, ...]:
    """Return the addresses of a URL's host as `Client.request` would find them, an IPv4-mapped one as IPv4.

    Raises:
        ConnectFailed: the name cannot be resolved. ValueError: the URL is malformed.
    """
    return tuple(await _resolve(_parse_url(url)[0]))


async def _resolve(origin: _Origin) -> list[str]:
    """Return the addresses of the origin's host, in the system's order, an IPv4-mapped one as IPv4."""
    try:
        return [_unmapped(origin.host)]
    except ValueError:
        pass
    try:
        found = await anyio.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConnectFailed("the name of the upstream cannot be resolved") from error
    return list(dict.fromkeys(_unmapped(str(address[0])) for *_, address in found))


def _unmapped(address: str) -> str:
    """Return an IPv4-mapped IPv6 address as IPv4, so that no policy is passed by its spelling."""
    parsed = ip_address(address)
    return str((parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None) or parsed)


@lru_cache(64)
def _parse_url(url: str) -> tuple[_Origin, str]:
    parts = urlsplit(url)
    host = parts.hostname
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if (
        parts.scheme not in ("http", "https")
        or not host
        or parts.username is not None
        or not url.isascii()
        or _VISIBLE.fullmatch(url) is None
        or not target.startswith("/")
    ):
        raise ValueError("the URL is no plain http or https URL")
    is_tls = parts.scheme == "https"
    usual_port = 443 if is_tls else 80
    port = usual_port if parts.port is None else parts.port
    name = f"[{host}]" if ":" in host else host
    return _Origin(is_tls, host, port, name if port == usual_port else f"{name}:{port}"), target


def _render(method: str, origin: _Origin, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    if _TOKEN.fullmatch(method) is None:
        raise ValueError("the method is no token")
    lines = [f"{method} {target} HTTP/1.1", f"host: {origin.host_header}"]
    names = set()
    for name, value in headers:
        lower = name.lower()
        if lower in _OURS or _TOKEN.fullmatch(name) is None or not value.isprintable():
            raise ValueError(f"the header {name!r} may not be sent")
        names.add(lower)
        lines.append(f"{lower}: {value}")
    if "accept-encoding" not in names:
        lines.append("accept-encoding: gzip, deflate")
    if body or method in _WITH_BODY:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
