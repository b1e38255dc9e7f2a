"""A caller who leaves before its answer is made. Knows no route and opens no socket.

Theory of operation. That a peer has ended its side says little: over TCP somebody who has closed the connection looks
like somebody who has said all and waits for the answer. So it is sent an interim answer, which every client of HTTP/1.1
passes over. The system of one that has closed answers with a reset, into which another one runs a second later.
"""

from typing import Any

from gateway.http.answer import CONTINUE
from gateway.http.messages import Request
from gateway.http.transport import Connection, this_task
from gateway.http.wakeups import cancel_waiting

_AGAIN_SECONDS = 1.0


class Leaving:
    """Cancels what answers a request that `may_be_left`, when its caller has. Made by the task that answers.

    request: which one is being answered now. has_given_up: the task was cancelled, by nobody else.
    """

    __slots__ = ("_connection", "_loop", "_task", "has_given_up", "request")

    def __init__(self, connection: Connection, loop: Any) -> None:
        self.request: Request | None = None
        self.has_given_up = False
        self._connection = connection
        self._loop = loop
        self._task = this_task()
        connection.on_end = self._look

    def _look(self) -> None:
        """Find out whether the peer, which has ended its side or is gone, still reads."""
        request = self.request
        if request is None or not request.may_be_left:
            return
        if self._connection.is_gone:
            self._give_up(request)
        else:
            self._connection.write(CONTINUE)
            self._loop.call_later(_AGAIN_SECONDS, self._ask_again, request)

    def _ask_again(self, request: Request) -> None:
        if self.request is request:
            self._connection.write(CONTINUE)

    def _give_up(self, request: Request) -> None:
        """Cancel the task once it waits for something that is to come in, as for a model."""
        if self.request is not request or self.has_given_up:
            return
        self.has_given_up = cancel_waiting(self._task)
        if not self.has_given_up:
            self._loop.call_later(_AGAIN_SECONDS, self._give_up, request)
