"""A blocking connection to PostgreSQL: TLS, deadlines, and many statements in one round trip.

A link keeps no state in the session, so a transaction pooler may stand between. It is for one thread at a time.
"""

import base64
import contextlib
import functools
import re
import select
import socket
import ssl
from collections.abc import Iterator, Sequence

from gateway.clock import Clock, Ids
from gateway.errors import SetupError
from gateway.settings import is_loopback
from gateway.store.postgres_address import WAIT_SECONDS, Address, fault, place
from gateway.store.postgres_protocol import (
    SSL_REQUEST,
    SYNC,
    TERMINATE,
    ProtocolFault,
    Reader,
    Result,
    ServerError,
    startup,
    statement,
)  # fmt: skip
from gateway.store.postgres_scram import Scram, channel_binding

_CHUNK = 65_536
_KEEPALIVE = {"TCP_NODELAY": 1, "TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
_KEEPALIVE["TCP_USER_TIMEOUT"] = 1000 * WAIT_SECONDS
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|::|:([A-Za-z_]\w*)""", re.DOTALL | re.ASCII)


class LinkLost(Exception):
    """There is no connection: no host answers, a deadline passed, it broke, or the server broke the protocol.

    Nobody knows whether what was under way is committed. code: the SQLSTATE, where the server said why; else "".
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


@functools.lru_cache(1024)
def translate(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with $1, $2 … in place of its `:name` parameters, and the names in that order.

    A name that occurs twice has one number. Quoted text, comments and `::` stay as they are.
    """
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f"${names.setdefault(found[1], len(names) + 1)}"

    return _TOKEN.sub(number, sql), tuple(names)


class Link:
    """A connection to the first host that takes writes. status: "I", or inside a transaction "T", or "E" if it failed.

    Raises:
        LinkLost: no host answers and takes writes.
        ServerError: a host refused the login; such as 28P01 for a wrong password, 3D000 for no such database.
        SetupError: TLS, the certificate, the login or the encoding is none that the gateway accepts.
    """

    def __init__(self, address: Address, password: str | None) -> None:
        self._address, self._password = address, password
        self._poll = select.poll()
        self._socket: socket.socket | None = None
        errors: list[LinkLost | ServerError | SetupError] = []
        for host, port in address.hosts:
            for with_tls in _ways(address, host):
                self.place = place(host, port)
                try:
                    return self._open(host, port, with_tls)
                except (LinkLost, ServerError, SetupError) as error:
                    self.close()
                    errors.append(error)
        telling = [error for error in errors if not isinstance(error, LinkLost)]
        code = next((error.code for error in errors if isinstance(error, LinkLost)), "")
        raise telling[-1] if telling else LinkLost("; ".join(dict.fromkeys(map(str, errors))), code)

    @property
    def status(self) -> str:
        return self._reader.status

    def run(self, batch: Sequence[tuple[str, Sequence[object]]], *, wait_seconds: float = WAIT_SECONDS) -> list[Result]:
        """Run statements with the values of $1, $2 … in one round trip, and return a result of each.

        Without BEGIN they are one transaction. wait_seconds: how long the server may be silent.

        Raises:
            ServerError: a statement failed, and the later ones did not run. The link can be used.
            LinkLost: the link is closed, and nobody knows whether the statements ran.
            TypeError, ValueError: as `statement`. Nothing was sent.
        """
        data = b"".join([statement(sql, values) for sql, values in batch])
        if not batch:
            return []
        with self._guard():
            self._talk(data + SYNC, len(batch), wait_seconds)
        if self._reader.error is not None:
            raise self._reader.error
        return self._reader.results

    def close(self) -> None:
        """End the connection, which rolls back what is open. May be called twice."""
        if self._socket is not None:
            with contextlib.suppress(OSError), self._socket as ended:
                self._socket, self._poll = None, select.poll()
                ended.send(TERMINATE)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Close the link on whatever breaks an exchange off: what comes next would answer something else."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | UnicodeError | ProtocolFault):
                said = self._reader.error
                reason = str(said) if said else getattr(error, "strerror", None) or str(error)
                code = said.code if said else ""
                raise LinkLost(f"The connection to the database at {self.place} broke: {reason}.", code) from None
            raise

    def _talk(self, data: bytes, count: int, seconds: float) -> None:
        """Send, and read meanwhile: neither side may wait for the other with its buffers full."""
        if self._wait(select.POLLIN | select.POLLOUT, seconds) & ~select.POLLOUT:
            self._receive()  # what came since the last exchange: a notice, or the reason why the server has ended it
            if self._reader.error is not None:
                raise ConnectionResetError("nothing more follows the error")
        self._reader.expect(count)
        rest = memoryview(data)
        while rest or self._reader.is_waiting:
            ready = self._wait(select.POLLIN | select.POLLOUT if rest else select.POLLIN, seconds)
            if ready & ~select.POLLOUT:
                self._receive()
                if self._reader.to_send:  # in a login, which has nothing else to send by now
                    rest, self._reader.to_send = memoryview(self._reader.to_send), b""
            elif self._socket is not None:
                with contextlib.suppress(BlockingIOError, ssl.SSLWantWriteError):
                    rest = rest[self._socket.send(rest) :]

    def _wait(self, events: int, seconds: float) -> int:
        if self._socket is None:
            raise ConnectionResetError("it is closed")
        self._poll.register(self._socket, events)
        ready = self._poll.poll(1000 * seconds)
        if not ready:
            raise TimeoutError(f"no answer within {seconds:g} s")
        return ready[0][1]

    def _receive(self) -> None:
        assert self._socket is not None
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionResetError("the server has ended it")
            self._reader.feed(data)

    def _open(self, host: str, port: int, with_tls: bool) -> None:
        address, binding = self._address, None
        self._reader = Reader(None)
        with self._guard():
            self._socket = _connect(host, port, address.connect_seconds)
            self._poll.register(self._socket)
            if with_tls and self._starts_tls(host):
                binding = self._secure(host)
            self._socket.setblocking(False)
            if self._password is not None:
                nonce = base64.b64encode(Ids(Clock()).random_bytes(18)).decode()
                self._reader = Reader(Scram(self._password, nonce, binding=binding))
            names = {"user": address.user, "database": address.database, "application_name": address.application_name}
            self._talk(startup(**names, client_encoding="UTF8"), 0, address.connect_seconds)
        row = self.run([("SELECT current_setting('transaction_read_only')", ())])[0].rows[0]
        if row[0] != "off":
            raise LinkLost(f"The database at {self.place} takes no writes: it is a standby or read-only.", "25006")

    def _starts_tls(self, host: str) -> bool:
        """Ask the server for TLS, and return whether it offers it. Where it must, an answer of no is an error."""
        assert self._socket is not None
        self._socket.sendall(SSL_REQUEST)
        answer = self._socket.recv(1)  # no more, or it might be a message from somebody before TLS begins
        if answer not in (b"S", b"N"):
            raise ProtocolFault("an unknown answer to the request for TLS")
        if answer == b"N" and not (is_loopback(host) and self._address.sslmode in ("", "allow", "prefer")):
            advice = "Turn it on there (ssl = on): without TLS the gateway uses only loopback and Unix sockets."
            raise SetupError(f"The database server {self.place} offers no TLS. {advice}", param="database_url")
        return answer == b"S"

    def _secure(self, host: str) -> bytes | None:
        """Begin TLS, and return what binds the login to it."""
        assert self._socket is not None
        plain, context = self._socket, _tls_context(self._address)
        self._poll.unregister(plain)  # it gives its descriptor away
        try:
            secured = context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            advice = "Name the file of its authority with sslrootcert, and the host as the certificate does."
            text = f"The certificate of the database server {self.place} is not accepted: {error.verify_message}."
            raise SetupError(f"{text} {advice}", param="database_url") from None
        self._socket = secured
        self._poll.register(secured)
        return channel_binding(secured.getpeercert(binary_form=True) or b"")


def _ways(address: Address, host: str) -> tuple[bool, ...]:
    """Return with TLS or without, in the order to try it at a host. With TLS, the host may still offer none."""
    if host.startswith("/"):
        return (False,)
    local = {"disable": (False,), "allow": (False, True), "prefer": (True, False)}
    return local.get(address.sslmode, (True,)) if is_loopback(host) else (True,)


def _tls_context(address: Address) -> ssl.SSLContext:
    """Return what verifies the server as `sslmode` says. Raises SetupError: a file cannot be used."""
    root, cert = address.files.get("sslrootcert", "system"), address.files.get("sslcert")
    name = "sslrootcert"
    try:
        context = ssl.create_default_context(cafile=None if root == "system" else root)
        name = "sslcert or sslkey"
        if cert is not None:
            context.load_cert_chain(cert, address.files.get("sslkey"), password=lambda: "")  # asks nobody
    except OSError as error:
        raise fault(f"has a file as {name} that cannot be used ({error.strerror or 'no PEM'})") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.check_hostname = address.sslmode in ("", "verify-full")
    if address.sslmode in ("allow", "prefer") or (address.sslmode == "require" and "sslrootcert" not in address.files):
        context.verify_mode = ssl.CERT_NONE
    return context


def _connect(host: str, port: int, seconds: int) -> socket.socket:
    if host.startswith("/"):
        local = socket.socket(socket.AF_UNIX)
        try:
            local.settimeout(seconds)
            local.connect(f"{host}/.s.PGSQL.{port}")
        except BaseException:
            local.close()
            raise
        return local
    remote = socket.create_connection((host, port), seconds)
    remote.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not every system has all
            remote.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return remote
