"""Server-sent events: their bytes, read and written, and the queue of them that one answer carries. Knows no message.

The format is the one of the HTML Standard, section 9.2.
"""

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import anyio

KEEP_ALIVE = b": keep-alive\n\n"
KEEP_ALIVE_SECONDS = 15.0
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_NUDGED_SECONDS = 1.0
WAITING_BYTES = 16 * 1024 * 1024
SSE_HEADERS = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store, no-transform"),
    ("x-accel-buffering", "no"),  # a proxy that collects events would hold them back
)


def render_event(data: bytes, name: str = "message") -> bytes:
    """Return one event. data: UTF-8 of one line, as compact JSON is. name: of the event; none writes the data alone.

    Raises:
        ValueError: the data has a line break.
    """
    if b"\n" in data or b"\r" in data:
        raise ValueError("the data of an event is one line")
    head = b"event: %b\n" % name.encode("ascii") if name else b""
    return b"%bdata: %b\n\n" % (head, data)


class EventTooLong(ValueError):
    """An event is over the limit."""


class EventReader:
    """Reads the data of events from a stream of bytes, as section 9.2.6 says. Names, ids and comments are left out."""

    def __init__(self, most_bytes: int) -> None:
        """most_bytes: of one event."""
        self._most_bytes = most_bytes
        self._unread = b""
        self._lines: list[bytes] = []
        self._size_bytes = 0
        self._is_first = True
        self._is_return = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the data of each event that is complete.

        Raises:
            EventTooLong: an event is over the limit.
        """
        # A carriage return ends a line at once; a line feed that comes behind it later ends no other one.
        data, is_return = data.removeprefix(b"\n") if self._is_return else data, data.endswith(b"\r")
        self._is_return = is_return or (self._is_return and not data)
        *lines, self._unread = _LINE_END.split(self._unread + data)
        found = []
        for line in lines:
            if self._is_first:
                line, self._is_first = line.removeprefix(_BOM), False
            if not line:
                if self._lines:
                    found.append(b"\n".join(self._lines))
                self._lines, self._size_bytes = [], 0
            elif line == b"data" or line.startswith(b"data:"):
                self._lines.append(line[5:].removeprefix(b" "))
                self._size_bytes += len(line)
        if self._size_bytes + len(self._unread) > self._most_bytes:
            raise EventTooLong("an event of the stream is too long")
        return found


@dataclass(eq=False, repr=False)
class EventStream:
    """The stream of one answer: events in the order of `send`, and a comment after a long silence.

    closed: called once, when the answer is over, whichever side ended it. keep_alive_seconds: the longest silence.
    limit_bytes: what may wait for a peer that does not read; beyond it the stream ends and drops the rest.
    """

    closed: Callable[[], None]
    _: KW_ONLY
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS
    limit_bytes: int = WAITING_BYTES
    _waiting: list[bytes] = field(default_factory=list, init=False)
    _waiting_bytes: int = field(default=0, init=False)
    _has_ended: bool = field(default=False, init=False)
    _is_closed: bool = field(default=False, init=False)
    _wake: anyio.Event = field(default_factory=anyio.Event, init=False)

    def send(self, event: bytes) -> None:
        """Queue an event. One for a stream that has ended is dropped."""
        if self._has_ended:
            return
        self._waiting_bytes += len(event)
        if self._waiting_bytes > self.limit_bytes:
            self._waiting.clear()
            self._has_ended = True
        else:
            self._waiting.append(event)
        self._wake.set()

    def end(self) -> None:
        """End the stream after the events that are queued."""
        self._has_ended = True
        self._wake.set()

    def nudge(self) -> None:
        """Send a comment each second: the peer has ended its side, and a peer that is gone answers with a reset."""
        self.keep_alive_seconds = min(self.keep_alive_seconds, _NUDGED_SECONDS)
        self._wake.set()

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> bytes:
        """Return all waiting events, or a comment when there was none for a while."""
        if not self._waiting and not self._has_ended:
            self._wake = anyio.Event()
            with anyio.move_on_after(self.keep_alive_seconds):
                await self._wake.wait()
        if self._waiting:
            piece = b"".join(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            return piece
        if self._has_ended:
            raise StopAsyncIteration
        return KEEP_ALIVE

    async def aclose(self) -> None:
        """Close the stream. The server calls this after the answer, whatever became of it."""
        self._waiting.clear()
        self._has_ended = True
        if not self._is_closed:
            self._is_closed = True
            self.closed()
