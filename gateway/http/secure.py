"""A TLS connection as the transport of one protocol, over a plain one. Makes and resolves nothing, and knows no HTTP.

Theory of operation. OpenSSL reads from memory and writes to memory; the plain transport moves both. asyncio's own TLS
holds a quarter of a megabyte for each connection, drops what a slow peer has not taken two seconds after the end, and
ends both directions with either. Here bytes go through the room that all connections share, the socket is closed when
all has left, and a peer that has said its last (close_notify) still reads, as without TLS. The peer may not negotiate
anew, so that writing never waits for reading, and may not have keys changed again and again: that costs us as much as a
request each time, and an answer that nobody has to read. However small its records are, a peer has its share of a turn
of the loop: what is left is read in the next one, and nothing is received before that.
"""

import contextlib
import socket
import ssl
from typing import cast

from gateway.http.plain import PlainTransport, Receiver
from gateway.http.wakeups import Wakeups

# What TLS may answer by itself after the handshake, over the life of a connection: a new key takes 27 bytes.
_OWN_BYTES = 4_096
# What OpenSSL says where a peer begins with something else than TLS. It sends no alert then.
_NO_TLS = ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER")
# What is read for one connection in one turn of the loop: each takes 3 microseconds, if there is but a byte in it.
_RECORDS = 64


class _Layer:
    """What the plain transport calls, and the state of one connection that its calls change."""

    __slots__ = (
        "_begun", "_clear", "_error", "_has_begun", "_has_ended", "_incoming", "_is_behind", "_is_cut", "_is_due",
        "_is_ended", "_is_held", "_is_lost", "_loop", "_outgoing", "_own_bytes", "_plain", "_receiver", "_room", "_tls",
    )  # fmt: skip

    def __init__(
        self,
        wakeups: Wakeups,
        plain: socket.socket,
        receiver: Receiver,
        room: memoryview,
        context: ssl.SSLContext,
        *,
        server_name: str | None,
    ) -> None:
        self._loop = wakeups.loop
        self._receiver = receiver
        self._room = room
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        self._begun = wakeups.loop.create_future()
        self._clear = b""  # what the peer has sent, if that is no TLS
        self._error: OSError | None = None
        self._has_begun = False
        self._has_ended = False  # the peer, with close_notify or without
        self._is_behind = False  # there is more than was read, and nothing is received meanwhile
        self._is_cut = False  # the peer has ended the connection below
        self._is_due = False  # `_read` will be called
        self._is_ended = False  # our side
        self._is_held = False
        self._is_lost = False
        self._own_bytes = 0
        self._plain = PlainTransport(wakeups, plain, self, room)

    def received(self, data: bytes) -> None:
        """Take encrypted bytes."""
        self._incoming.write(data)
        if self._has_begun:
            self._read()
        else:
            self._shake(data)

    def eof_received(self, *, is_orderly: bool = True) -> None:
        """Take note that the connection below has ended."""
        self._is_cut = True
        if self._has_begun:
            self._read()
        else:
            self._fail(ConnectionResetError("the peer left within the handshake"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note that the socket is about to be closed."""
        self._is_lost = True
        if not self._begun.done():
            self._error = ConnectionAbortedError("the connection was lost within the handshake")
            self._begun.set_result(None)
        receiver = self._receiver
        del self._receiver  # which knows this object: a circle that would stay until the collector comes
        receiver.connection_lost(exc)

    def pause_writing(self) -> None:
        """Take note that much of what was written is held."""
        self._receiver.pause_writing()

    def resume_writing(self) -> None:
        """Take note that little of it is left."""
        self._receiver.resume_writing()

    def _shake(self, data: bytes = b"") -> None:
        """Go on with the handshake. data: what has come for it."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._flush()  # the alert that says why
            has_greeted = self._tls.shared_ciphers() is not None
            if error.reason in _NO_TLS and self._tls.server_side and not has_greeted:
                self._clear = data
            self._fail(error)
            return
        self._flush()
        self._has_begun = True
        if not self._begun.done():
            self._begun.set_result(None)
        self._read()  # what came with the end of the handshake

    def _fail(self, error: OSError) -> None:
        """End a handshake that cannot succeed."""
        if not self._begun.done():
            error.__traceback__ = None  # it holds this frame, and the frame this object
            self._error = error
            self._begun.set_result(None)
        if self._clear:
            self._plain.pause_reading()
        else:
            self._plain.close()

    def _read(self) -> None:
        """Hand over what has come, as much as there is room for, and then the end, if it has."""
        if self._is_held or self._has_ended or self._is_lost:
            return
        room, tls, incoming, most_bytes = self._room, self._tls, self._incoming, len(self._room)
        size_bytes, left_records = 0, _RECORDS
        is_behind = is_orderly = False
        try:
            while size_bytes < most_bytes and left_records:
                left_records -= 1
                piece_bytes = cast(int, tls.read(most_bytes - size_bytes, cast(bytearray, room[size_bytes:])))
                if not piece_bytes:  # close_notify
                    self._has_ended = is_orderly = True
                    break
                size_bytes += piece_bytes
                if not incoming.pending and not tls.pending():  # which spares an exception
                    self._has_ended = self._is_cut
                    break
            else:
                is_behind = True
        except ssl.SSLZeroReturnError:  # close_notify, after ours
            self._has_ended = is_orderly = True
        except ssl.SSLWantReadError:
            self._has_ended = self._is_cut
        except ssl.SSLError:
            self._flush()  # the alert that says why
            self._plain.abort()
            return
        if self._outgoing.pending:  # what TLS answers by itself
            self._own_bytes += self._outgoing.pending
            if self._own_bytes > _OWN_BYTES:
                self._plain.abort()
                return
            self._flush()
        if is_behind or self._is_behind:
            self._fall_behind(is_behind)
        if self._has_ended:
            self._plain.pause_reading()
        if size_bytes:
            self._receiver.received(room[:size_bytes].tobytes())
        if self._has_ended and not self._is_lost:
            self._receiver.eof_received(is_orderly=is_orderly)

    def _fall_behind(self, is_behind: bool) -> None:
        """Take note whether there is more to read than was read in this turn."""
        if is_behind != self._is_behind:
            self._is_behind = is_behind
            if is_behind:
                self._plain.pause_reading()
            else:
                self._plain.resume_reading()
        if is_behind:
            self._read_soon()

    def _read_soon(self) -> None:
        """Read in the next turn of the loop."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._read_due)

    def _read_due(self) -> None:
        self._is_due = False
        self._read()

    def _say_end(self) -> None:
        """Send close_notify, once, and wait for no answer."""
        if self._is_ended or self._is_lost:
            return
        # OpenSSL sends it and then looks for the answer: it must find nothing, least of all what nobody has read yet.
        while pending_bytes := self._tls.pending():
            self._receiver.received(self._tls.read(pending_bytes))
        rest = self._incoming.read()
        with contextlib.suppress(ssl.SSLError):  # there is no answer yet
            self._tls.unwrap()
        self._incoming.write(rest)
        self._flush()
        self._is_ended = True

    def _flush(self) -> None:
        """Send what TLS has to say."""
        if self._outgoing.pending and not self._is_ended:
            self._plain.write(self._outgoing.read())


class SecureTransport(_Layer):
    """What one socket receives and sends through TLS, from now on. It is connected and does not block.

    room: where the bytes arrive, encrypted and then not, one piece after the other; transports may share it.
    server_name: whom the certificate of the peer must name; None where the peer is the client.

    Raises:
        OSError: the peer is gone already, on some systems. ValueError: the name cannot be that of a server.
    """

    __slots__ = ()

    async def handshake(self) -> OSError | None:
        """Wait for the end of the handshake. Return why it failed (ssl.SSLError is an OSError). Call it once."""
        self._shake()
        await self._begun
        error, self._error = self._error, None
        return error

    def give_way(self, receiver: Receiver) -> tuple[PlainTransport, bytes] | None:
        """Have `receiver` told by the connection below, where the handshake failed because a client speaks no TLS.

        Return that connection, and what the client has sent; None where it is over.
        """
        if not self._clear or self._is_lost:
            return None
        self._is_lost = True
        self._plain.tell(receiver)
        return self._plain, self._clear

    def pause_reading(self) -> None:
        """Receive nothing for now."""
        self._is_held = True
        self._plain.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        self._is_held = False
        if not self._has_ended and not self._is_lost:
            if not self._is_cut and not self._is_behind:
                self._plain.resume_reading()
            self._read_soon()  # what is here already

    def write(self, data: bytes) -> None:
        """Send bytes, or hold them; drop them when the connection is lost or our side was ended."""
        if self._is_lost or self._is_ended:
            return
        try:
            sent_bytes = self._tls.write(data)
            if sent_bytes < len(data):  # a record at a time
                rest = memoryview(data)
                while sent_bytes < len(data):
                    sent_bytes += self._tls.write(rest[sent_bytes:])
        except ssl.SSLError:
            self.abort()
            return
        self._plain.write(self._outgoing.read())

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are held."""
        return self._plain.get_write_buffer_size()

    def write_eof(self) -> None:
        """End this side after what was written. Nothing is written after it.

        Raises:
            OSError: the peer has reset the connection.
        """
        self._say_end()
        self._plain.write_eof()

    def close(self) -> None:
        """Receive nothing more, and close the socket when what was written, and that it was all, has left."""
        if not self._has_begun:
            self.abort()
            return
        self._say_end()
        self._plain.close()

    def abort(self) -> None:
        """Close the socket without sending what is held."""
        self._plain.abort()
