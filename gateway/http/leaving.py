"""A caller who leaves before its answer is made. Knows no route and opens no socket.

Theory of operation. That a peer has ended its side says little: over TCP somebody who has closed the connection looks
like somebody who has said all and waits for the answer. So where none is made within a second it is sent an interim
answer, which every client of HTTP/1.1 passes over (RFC 9110, section 15.2). The system of one that has closed answers
with a reset, into which another one runs a second later. One of HTTP/1.0 is sent none: of it, only a reset that comes
by itself tells that it is gone.
"""

from typing import Any

from gateway.http.answer import CONTINUE
from gateway.http.messages import Request
from gateway.http.transport import Connection, this_task
from gateway.http.wakeups import cancel_waiting

# Between the end of the peer's side and the interim answers, so that what is made at once comes with none.
_WAIT_SECONDS = 1.0
_INTERIM_ANSWERS = 2  # into the reset that follows the first runs the second


class Leaving:
    """Cancels what answers a request that `may_be_left`, when its caller has. Made by the task that answers.

    request: what is being answered; None for nothing. has_given_up: the task was cancelled, by nobody else. is_silent:
    the caller knows no interim answers.
    """

    __slots__ = ("_connection", "_loop", "_task", "has_given_up", "is_silent", "request")

    def __init__(self, connection: Connection, loop: Any) -> None:
        self.has_given_up = self.is_silent = False
        self.request: Request | None = None
        self._connection = connection
        self._loop = loop
        self._task = this_task()
        connection.on_end = self._note_end

    def look_later(self) -> None:
        """Find out whether the peer, which has ended its side before it was heard, still reads."""
        if self.request is not None:
            self._look_later(self.request, _INTERIM_ANSWERS)

    def _note_end(self) -> None:
        """Take note that the peer has ended its side, or is gone."""
        if self.request is not None and self._connection.is_gone:
            self._give_up(self.request)
        else:
            self.look_later()

    def _look_later(self, request: Request, interim_answers: int) -> None:
        self._loop.call_later(_WAIT_SECONDS, self._look, request, interim_answers)

    def _look(self, request: Request, interim_answers: int) -> None:
        """Find out whether the peer, which has ended its side, still reads."""
        if self.request is not request or not _may_be_left(request):
            return
        if self._connection.is_gone:
            self._give_up(request)
        elif interim_answers and not self.is_silent:
            self._connection.write(CONTINUE)
            self._look_later(request, interim_answers - 1)

    def _give_up(self, request: Request) -> None:
        """Cancel the task once it waits for something that is to come in, as for a model."""
        if self.request is not request or self.has_given_up or not _may_be_left(request):
            return
        self.has_given_up = cancel_waiting(self._task)
        if not self.has_given_up:
            self._loop.call_later(_WAIT_SECONDS, self._give_up, request)


def _may_be_left(request: Request) -> bool:
    return request.may_be_left is not None and request.may_be_left()
