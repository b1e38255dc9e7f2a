"""A client that does with TLS just what a test says, and connections of the server with one at the other end."""

import socket
import ssl

import anyio
import pytest

from gateway.http.transport import Connection, Sweep, open_accepted

from .conftest import House

GET = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"


class Peer:
    """The client. It blocks, and is called in threads."""

    def __init__(self, tls: ssl.SSLContext, plain: socket.socket) -> None:
        self.plain = plain
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = tls.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def shake(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self.say()
                self.receive()
            finally:
                self.say()

    def say(self) -> None:
        self.plain.sendall(self.outgoing.read())

    def receive(self) -> bool:
        data = self.plain.recv(65_536)
        self.incoming.write(data)
        return bool(data)

    def send(self, data: bytes) -> None:
        while data:
            data = data[self.tls.write(data) :]
        self.say()

    def end(self) -> None:
        unread = self.incoming.read()  # which OpenSSL would take for the answer
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.say()
        self.incoming.write(unread)

    def read(self, least_bytes: int) -> bytes:
        """Return what is sent, until there is so much or close_notify. It fails where neither comes."""
        found = b""
        while len(found) < least_bytes:
            try:
                piece = self.tls.read(16_384)
            except ssl.SSLZeroReturnError:
                piece = b""
            except ssl.SSLWantReadError:
                assert self.receive(), "the connection was cut"
                continue
            if not piece:
                break
            found += piece
        return found

    def rest(self) -> bytes:
        return self.read(1 << 30)


async def come_in(house: House, tls: ssl.SSLContext, *, room_bytes: int | None = None) -> Peer:
    """Return a client of a server that runs. room_bytes: how much its socket holds unread."""
    plain = socket.socket()
    if room_bytes is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room_bytes)
    plain.settimeout(10)
    plain.connect(("127.0.0.1", house.port))
    peer = Peer(tls, plain)
    await anyio.to_thread.run_sync(peer.shake)
    return peer


async def connected(ours: ssl.SSLContext, theirs: ssl.SSLContext, sweep: Sweep) -> tuple[Connection, Peer]:
    """Return a connection of the server whose handshake is done, and the client."""
    one, other = socket.socketpair()
    one.setblocking(False)
    other.settimeout(10)
    peer = Peer(theirs, other)
    made: list[Connection | None] = []

    async def accept() -> None:
        made.append(await open_accepted(one, sweep, tls=ours, handshake_seconds=5))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept)
        await anyio.to_thread.run_sync(peer.shake)
    assert made[0] is not None
    return made[0], peer


def receive(connection: Connection, data: bytes) -> None:
    """Have bytes come, as the event loop does."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))
