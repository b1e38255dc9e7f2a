"""Listening, and accepting: every connection that waits, surviving the end of file descriptors, with an empty queue."""

import errno
import mmap
import socket
from collections.abc import Callable, Sequence

from gateway.http.transport import Sweep

_BACKLOG = 2_048
_YIELD_SECONDS = 0.002
_MOST_YIELDS = 50
_OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_LISTENER = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})  # somebody has shut it down


class Shares:
    """How many connections each of several processes has that accept from one socket. Make it before they are forked.

    The kernel wakes all of them for a connection, and whoever is first takes it: without this, one of four processes
    had 55 of 64 connections. An eighth more than another has is no matter: where many come at once, to take one at a
    time made the last of 64 wait for a tenth of a second, since between two there is a turn of the loop. Nobody waits
    for one that hangs: who took no connection in a tenth of a second in which it should have has no say until it does.
    """

    def __init__(self, places: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, 8 * places)).cast("Q")
        self._yields = [(0, 0)] * places  # with how many connections each was waited for, and how often

    def note(self, place: int, count: int) -> None:
        """Tell how many connections the process at `place` has."""
        self._counts[place] = count

    def is_ahead(self, place: int) -> bool:
        """Tell whether another process has so much fewer connections that it should have the next. For each, once."""
        own, is_ahead = self._counts[place], False
        for other, count in enumerate(self._counts):
            if own > count + count // 8:
                seen, yields = self._yields[other]
                yields = yields + 1 if seen == count else 1
                self._yields[other] = count, yields
                is_ahead |= yields <= _MOST_YIELDS
        return is_ahead


class Acceptor:
    """Takes connections from listening sockets, each time until none is left.

    take: gets each new socket with the IP address of its peer, and says whether there is room for another. After
    False, or when the process has run out of file descriptors, nothing is accepted until `note_room`, or until
    `retry_seconds` have passed. is_ahead: whether other processes should have the next connection; they get
    `_YIELD_SECONDS` to take it.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        sweep: Sweep,
        *,
        take: Callable[[socket.socket, str], bool],
        retry_seconds: float,
        accepts_per_turn: int = 512,
        is_ahead: Callable[[], bool] | None = None,
    ) -> None:
        self._listeners = listeners
        self._take = take
        self._retry_seconds = retry_seconds
        self._accepts_per_turn = accepts_per_turn
        self._is_ahead = is_ahead
        self._has_yielded = False
        self._loop = sweep.loop
        self._cancel_retry: Callable[[], None] | None = None
        self._is_full = False

    def resume(self) -> None:
        """Accept from now on."""
        self._cancel_retry = None
        self._is_full = False
        for listener in self._listeners:
            listener.setblocking(False)
            self._loop.add_reader(listener.fileno(), self._accept, listener)

    def note_room(self) -> None:
        """Accept again if there was no room: a connection has ended."""
        if self._is_full and self._cancel_retry is not None:
            self._cancel_retry()
            self.resume()

    def close(self) -> None:
        """Take what the kernel has already accepted for us, then close the sockets.

        Closing first would reset those connections, whose clients believe to be connected.
        """
        self._is_ahead = None
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())
            while self._accept(listener):
                pass
        if self._cancel_retry is not None:
            self._cancel_retry()
        self._is_full = False
        for listener in self._listeners:
            listener.close()

    def _accept(self, listener: socket.socket) -> bool:
        """Accept for one turn of the loop; say whether more may be waiting."""
        for _ in range(self._accepts_per_turn):
            if self._is_ahead is not None and not self._has_yielded and self._is_ahead():
                self._has_yielded = True
                return self._pause(_YIELD_SECONDS)
            self._has_yielded = False
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    return self._wait_for_room()
                if error.errno in _NO_LISTENER:
                    return False
                continue  # the peer left before we came: ECONNABORTED, EPROTO
            accepted.setblocking(False)
            # The address is told now: whoever has reset the connection has none any more, and is answered all the same.
            if not self._take(accepted, _ip_of(address)):
                return self._wait_for_room()
        return True

    def _wait_for_room(self) -> bool:
        self._is_full = True
        return self._pause(self._retry_seconds)

    def _pause(self, wait_seconds: float) -> bool:
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())
        if self._cancel_retry is None:
            self._cancel_retry = self._loop.call_later(wait_seconds, self.resume).cancel
        return False


def _ip_of(address: object) -> str:
    """Return the IP address of a socket's address: an IPv4 one as such, also if it came over IPv6."""
    if not isinstance(address, tuple):
        return ""
    text = str(address[0])
    return text.removeprefix("::ffff:") if "." in text else text


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` (a name or an address; "::" takes IPv4 as well) and `port` (0: any).

    Raises:
        OSError: the address is not ours, or the port is taken.
    """
    # As bytes, since the codec for names that are none is slow to import.
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
        OSError: it is none.
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
