"""A TCP connection without TLS as the transport of one protocol. Makes and resolves nothing, and knows no HTTP.

Theory of operation. asyncio's own transport makes four calls for each piece that comes and has a buffer, a flag and a
check for everything that any protocol may want. Here the loop calls what receives, that hands over the bytes, and what
is written goes to the socket at once; only what the socket does not take is held, and sent when there is room. What is
told to the protocol, and when, is as asyncio tells it.
"""

import socket
import struct
from typing import Protocol

from gateway.http.wakeups import Wakeups

_FULL_BYTES = 65_536
_EMPTIED_BYTES = 16_384
_RESET = struct.pack("ii", 1, 0)  # struct linger: on, for no time
_TCP = (socket.AF_INET, socket.AF_INET6)


class Receiver(Protocol):
    """The protocol: who is told what happens to a connection. The names are asyncio's, but for the first."""

    def received(self, data: bytes) -> None:
        """Take bytes that came."""
        ...

    def eof_received(self, *, is_orderly: bool = True) -> None:
        """Take note that the peer has ended its side. is_orderly: it has said so, where that can be said."""
        ...

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note that the socket is about to be closed. Comes last, and in a turn of the loop of its own."""
        ...

    def pause_writing(self) -> None:
        """Take note that much of what was written is held."""
        ...

    def resume_writing(self) -> None:
        """Take note that little of it is left."""
        ...


class PlainTransport:
    """What one socket receives and sends, from now on. It is connected and does not block.

    wakeups: what watches the sockets of the event loop. room: where the bytes arrive, one piece after the other;
    transports may share it.

    Raises:
        OSError: the peer is gone already, on some systems.
    """

    __slots__ = (
        "_descriptor", "_is_closing", "_is_ended", "_is_full", "_is_lost", "_loop", "_receive", "_receiver", "_room",
        "_send", "_socket", "_unsent", "_wakeups",
    )  # fmt: skip

    def __init__(self, wakeups: Wakeups, plain: socket.socket, receiver: Receiver, room: memoryview) -> None:
        if plain.family in _TCP:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wakeups = wakeups
        self._loop = wakeups.loop
        self._socket = plain
        self._descriptor = plain.fileno()
        self._receive = plain.recv_into
        self._send = plain.send
        self._receiver = receiver
        self._room = room
        self._unsent = bytearray()
        self._is_full = False
        self._is_ended = False
        self._is_closing = False
        self._is_lost = False
        self.resume_reading()

    def tell(self, receiver: Receiver) -> None:
        """Tell another protocol from now on."""
        self._receiver = receiver

    def pause_reading(self) -> None:
        """Receive nothing for now."""
        self._wakeups.unwatch(self._descriptor)

    def resume_reading(self) -> None:
        """Receive again. Not after the peer has ended its side."""
        if not self._is_closing:
            self._wakeups.watch(self._descriptor, self._read)

    def write(self, data: bytes) -> None:
        """Send bytes, or hold them; drop them when the connection is lost."""
        if self._unsent:
            self._unsent += data
        elif not self._is_lost:
            try:
                sent_bytes = self._send(data)
            except (BlockingIOError, InterruptedError):
                sent_bytes = 0
            except OSError as error:
                self._lose(error)
                return
            if sent_bytes == len(data):
                return
            self._unsent += data[sent_bytes:]
            self._loop.add_writer(self._descriptor, self._send_more)
        if len(self._unsent) > _FULL_BYTES and not self._is_full:
            self._is_full = True
            self._receiver.pause_writing()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are held."""
        return len(self._unsent)

    def write_eof(self) -> None:
        """End this side after what was written. Nothing is written after it.

        Raises:
            OSError: the peer has reset the connection.
        """
        self._is_ended = True
        if not self._unsent:
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Receive nothing more, and close the socket when what was written has left."""
        if not self._is_closing:
            self._is_closing = True
            self.pause_reading()
            if not self._unsent:
                self._end(None)

    def abort(self) -> None:
        """Close the socket without sending what is held, nor what the system holds for a peer that does not take it."""
        if self._unsent:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._lose(None)

    def _read(self) -> None:
        try:
            size_bytes = self._receive(self._room)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if size_bytes:
            self._receiver.received(self._room[:size_bytes].tobytes())
        else:
            self.pause_reading()
            self._receiver.eof_received()

    def _send_more(self) -> None:
        try:
            del self._unsent[: self._send(self._unsent)]
            if not self._unsent:
                self._loop.remove_writer(self._descriptor)
                if self._is_closing:
                    self._end(None)
                elif self._is_ended:
                    self._socket.shutdown(socket.SHUT_WR)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if self._is_full and len(self._unsent) <= _EMPTIED_BYTES:
            self._is_full = False
            self._receiver.resume_writing()

    def _lose(self, error: OSError | None) -> None:
        if self._is_lost:
            return
        self._is_closing = True
        self.pause_reading()
        if self._unsent:
            self._unsent.clear()
            self._loop.remove_writer(self._descriptor)
        self._end(error)

    def _end(self, error: OSError | None) -> None:
        self._is_lost = True
        self._loop.call_soon(self._lost, error)

    def _lost(self, error: OSError | None) -> None:
        receiver = self._receiver
        del self._receiver  # which knows this object: a circle that would stay until the collector comes
        try:
            receiver.connection_lost(error)
        finally:
            self._socket.close()
