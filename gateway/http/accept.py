"""Listen and accept. Survives the end of file descriptors, and shares the load between processes. Knows no HTTP."""

import errno
import mmap
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.http.transport import Sweep

_BACKLOG = 2_048
_ACCEPTS_PER_TURN = 512
_YIELD_SECONDS = 0.002
_RETRY_SECONDS = 0.1
_OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_LISTENER = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})  # another thread has shut it down


class Shares:
    """How many connections each of several processes has that accept from one socket. Make it before you fork them.

    The kernel wakes all processes for a new connection, and the first one takes it: one of four processes had 55 of 64
    connections. So a process that has an eighth more than another lets the other one accept first.
    """

    def __init__(self, processes: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, 8 * processes)).cast("Q")

    def note(self, index: int, count: int) -> None:
        """Publish how many connections the process `index` has."""
        self._counts[index] = count

    def is_ahead(self, index: int) -> bool:
        """Return whether another process has so much fewer connections that it should accept the next one."""
        fewest = min(self._counts)
        return self._counts[index] > fewest + fewest // 8


@dataclass(eq=False, repr=False)
class Acceptor:
    """Accepts connections from listening sockets, each time until none is left.

    take: gets each new socket with the IP address of its peer, and returns whether there is room for another. After
    False, or when the process has run out of file descriptors, the acceptor pauses for `_RETRY_SECONDS`. is_ahead:
    whether other processes should accept the next connection; they get `_YIELD_SECONDS`.
    """

    listeners: Sequence[socket.socket]
    sweep: Sweep
    take: Callable[[socket.socket, str], bool]
    is_ahead: Callable[[], bool] | None = None
    _has_yielded: bool = field(default=False, init=False)
    _cancel_retry: Callable[[], None] | None = field(default=None, init=False)

    def resume(self) -> None:
        """Accept from now on."""
        self._cancel_retry = None
        for listener in self.listeners:
            listener.setblocking(False)
            self.sweep.loop.add_reader(listener.fileno(), self._accept, listener)

    def close(self) -> None:
        """Take what the kernel has already accepted, then close the sockets.

        Closing first would reset connections whose clients are already connected.
        """
        self.is_ahead = None
        for listener in self.listeners:
            self.sweep.loop.remove_reader(listener.fileno())
            while self._accept(listener):
                pass
        if self._cancel_retry is not None:
            self._cancel_retry()
        for listener in self.listeners:
            listener.close()

    def _accept(self, listener: socket.socket) -> bool:
        """Accept for one turn of the loop; return whether more may be waiting."""
        for _ in range(_ACCEPTS_PER_TURN):
            if self.is_ahead is not None and not self._has_yielded and self.is_ahead():
                self._has_yielded = True
                return self._pause(_YIELD_SECONDS)
            self._has_yielded = False
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    return self._pause(_RETRY_SECONDS)
                if error.errno in _NO_LISTENER:
                    return False
                continue  # the peer left first: ECONNABORTED, EPROTO
            accepted.setblocking(False)
            # The address is read now: a connection that was reset has none later, and is answered all the same.
            if not self.take(accepted, _ip_of(address)):
                return self._pause(_RETRY_SECONDS)
        return True

    def _pause(self, wait_seconds: float) -> bool:
        for listener in self.listeners:
            self.sweep.loop.remove_reader(listener.fileno())
        if self._cancel_retry is None:
            self._cancel_retry = self.sweep.loop.call_later(wait_seconds, self.resume).cancel
        return False


def _ip_of(address: object) -> str:
    """Return the IP address of a socket's address: an IPv4 one as such, also if it came over IPv6."""
    if not isinstance(address, tuple):
        return ""
    text = str(address[0])
    return text.removeprefix("::ffff:") if "." in text else text


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` (a name or an address; "::" also takes IPv4) and `port` (0: a free one).

    Raises:
        OSError: this host does not have the address, or the port is taken.
    """
    # As bytes: the IDNA codec is slow to import.
    name = host.encode() if host.isascii() else host
    family, kind, protocol, _, address = socket.getaddrinfo(
        name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host == "::" else 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def adopt(descriptor: int) -> socket.socket:
    """Return the listening TCP socket that another process opened and handed over as a file descriptor.

    Raises:
        OSError: it is not such a socket.
    """
    given = socket.socket(fileno=descriptor)
    if given.family not in (socket.AF_INET, socket.AF_INET6) or given.type != socket.SOCK_STREAM:
        given.detach()
        raise OSError("it is no TCP socket")
    if not given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        given.detach()
        raise OSError("it does not listen")
    given.set_inheritable(False)
    given.setblocking(False)
    return given
