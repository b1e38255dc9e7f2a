"""The bytes of an answer: status line, Date, framing and the handler's headers. Pure but for the Date of the second."""

import time
from functools import cache

from gateway.http.messages import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
_OURS = frozenset({"connection", "content-length", "date", "keep-alive", "transfer-encoding"})
_WITHOUT_BODY = frozenset({204, 304})
_KNOWN_FORMS = 256
_CHUNKED = "transfer-encoding: chunked\r\n"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class AnswerWriter:
    """Renders answers. `tick` once a second keeps Date right, and is the only time the clock is asked."""

    def __init__(self) -> None:
        self._forms: dict[tuple[object, ...], str] = {}
        self._date = ""
        self.tick()

    def tick(self) -> None:
        """Take the Date of now into the answers that follow."""
        self._date = http_date(time.gmtime())
        self._forms.clear()

    def render(self, response: Response, *, is_last: bool, is_head: bool = False, is_http10: bool = False) -> bytes:
        """Return head and body of `response`, the head alone when it has a stream or answers HEAD.

        is_last: the connection ends after it. is_http10: a stream is then delimited by the end of the connection.

        Raises:
            ValueError: a status or header that may not be sent, such as a value with a line break.
        """
        status, headers, body = response.status, response.headers, response.body
        if response.stream is not None:
            body, framing = b"", "" if is_http10 else _CHUNKED
        elif status in _WITHOUT_BODY:
            body, framing = b"", ""
        else:
            framing = f"content-length: {len(body)}\r\n"
        form = self._forms.get((status, is_last, headers)) or self._form(status, headers, is_last=is_last)
        head = f"{form}{framing}{response.lines}\r\n".encode("latin-1")
        return head if is_head or not body else head + body

    def _form(self, status: int, headers: tuple[tuple[str, str], ...], *, is_last: bool) -> str:
        """Return a head but for its framing and its `lines`, and keep it: within a second, a server has few of them."""
        if not 200 <= status <= 599:
            raise ValueError("the status of an answer is 200 to 599")
        lines = [f"HTTP/1.1 {status} {_reason(status)}", f"date: {self._date}"]
        for name, value in headers:
            if name.lower() in _OURS or ":" in name or " " in name or not name.isprintable():
                raise ValueError(f"a handler may not send the header {name!r}")
            if not value.isprintable():
                raise ValueError("a header holds a control character")
            lines.append(f"{name}: {value}")
        if is_last:
            lines.append("connection: close")
        if len(self._forms) >= _KNOWN_FORMS:
            self._forms.clear()
        form = self._forms[status, is_last, headers] = "\r\n".join([*lines, ""])
        return form


@cache
def _reason(status: int) -> str:
    if status == 200:
        return "OK"
    from http import HTTPStatus  # slow to import, and the first probes have no use for it

    return next((known.phrase for known in HTTPStatus if known == status), "")


def http_date(at: time.struct_time) -> str:
    """Return a time in UTC as RFC 9110 section 5.6.7 writes it, whatever the locale."""
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"


def render_chunk(piece: bytes) -> bytes:
    """Return one chunk of the chunked coding. `piece` is not empty."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)
