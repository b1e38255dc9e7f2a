"""The bytes of an answer: status line, Date, framing and the handler's headers. Pure but for the Date of the second."""

import time
from http import HTTPStatus

from gateway.http.messages import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_OURS = frozenset({"connection", "content-length", "date", "keep-alive", "transfer-encoding"})
_WITHOUT_BODY = frozenset({204, 304})
_KNOWN_NAMES = 256
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class AnswerWriter:
    """Renders answers. `tick` once a second keeps Date right, and is the only time the clock is asked."""

    def __init__(self) -> None:
        self._starts: dict[int, str] = {}
        self._names: dict[str, str] = {}
        self._date = ""
        self.tick()

    def tick(self) -> None:
        """Take the Date of now into the answers that follow."""
        self._date = http_date(time.gmtime())
        self._starts.clear()

    def render(self, response: Response, *, is_last: bool, is_head: bool = False, is_http10: bool = False) -> bytes:
        """Return head and body of `response`, the head alone when it has a stream or answers HEAD.

        is_last: the connection ends after it. is_http10: a stream is then delimited by the end of the connection.

        Raises:
            ValueError: a status or header that may not be sent, such as a value with a line break.
        """
        status = response.status
        start = self._starts.get(status)
        if start is None:
            if not 200 <= status <= 599:
                raise ValueError("the status of an answer is 200 to 599")
            start = f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\ndate: {self._date}"
            self._starts[status] = start
        parts = [start]
        names = self._names
        for name, value in response.headers:
            parts.append(names.get(name) or self._name(name))
            if not value.isprintable():
                raise ValueError("a header holds a control character")
            parts.append(value)
        body = response.body
        if response.stream is not None:
            if not is_http10:
                parts.append("\r\ntransfer-encoding: chunked")
            body = b""
        elif status in _WITHOUT_BODY:
            body = b""
        else:
            parts.append(f"\r\ncontent-length: {len(body)}")
        parts.append("\r\nconnection: close\r\n\r\n" if is_last else "\r\n\r\n")
        head = "".join(parts).encode("latin-1")
        return head if is_head or not body else head + body

    def _name(self, name: str) -> str:
        """Return what stands before the value of a header, and keep it: a server has few names."""
        if name.lower() in _OURS or ":" in name or " " in name or not name.isprintable():
            raise ValueError(f"a handler may not send the header {name!r}")
        if len(self._names) >= _KNOWN_NAMES:
            self._names.clear()
        self._names[name] = f"\r\n{name}: "
        return self._names[name]


def http_date(at: time.struct_time) -> str:
    """Return a time in UTC as RFC 9110 section 5.6.7 writes it, whatever the locale."""
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"


def render_chunk(piece: bytes) -> bytes:
    """Return one chunk of the chunked coding. `piece` is not empty."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)
