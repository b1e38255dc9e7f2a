"""Sessions that span several HTTP requests, and the calls that run in them. Knows no header and no path."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from gateway.errors import NotFound, Overloaded
from gateway.http.messages import Response
from gateway.http.sse import EventStream, render_event
from gateway.mcp.server import McpServer

CALLS = 256
SESSION_CALLS = 64
_BUSY = "Too much runs at once; try again."


@dataclass(slots=True, eq=False)
class Session:
    """One peer's session. stream: where its answers go; unused if they go to its requests."""

    id: str
    server: McpServer
    stream: EventStream = field(default_factory=lambda: EventStream(lambda: None))
    calls: set[anyio.CancelScope] = field(default_factory=set)

    def deliver(self, response: Response) -> None:
        """Send the body of an answer on the stream."""
        if response.body:
            self.stream.send(render_event(response.body))

    async def notify(self, message: bytes) -> None:
        """Send a message that precedes an answer on the stream."""
        self.stream.send(render_event(message))

    def close(self) -> None:
        """End the stream and cancel the running calls."""
        self.stream.end()
        for scope in self.calls:
            scope.cancel()


class Sessions:
    """At most `limit` sessions by id, in the order of their last use."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_id: dict[str, Session] = {}

    def add(self, session: Session) -> None:
        """Keep a session.

        Raises:
            Overloaded: there are too many.
        """
        if len(self._by_id) >= self._limit:
            raise Overloaded(_BUSY, retry_after_seconds=1)
        self._by_id[session.id] = session

    def find(self, session_id: str) -> Session:
        """Return a session and mark it as the last used.

        Raises:
            NotFound: it has ended or never existed.
        """
        session = self._by_id.pop(session_id, None)
        if session is None:
            raise NotFound("There is no such session; begin a new one.")
        self._by_id[session_id] = session
        return session

    def end(self, session_id: str) -> None:
        """End a session, if it is still there."""
        session = self._by_id.pop(session_id, None)
        if session is not None:
            session.close()

    def end_idle(self) -> None:
        """At the limit, end the least recently used session without a running call."""
        if len(self._by_id) >= self._limit:
            idle = next((session.id for session in self._by_id.values() if not session.calls), None)
            if idle is not None:
                self.end(idle)

    def end_all(self) -> None:
        """End every session."""
        for session_id in tuple(self._by_id):
            self.end(session_id)


class Calls:
    """Runs calls in `tasks`, apart from their requests and within a limit."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._count = 0

    def start(
        self, call: Callable[[], Awaitable[Response]], answered: Callable[[Response], None], session: Session | None
    ) -> anyio.CancelScope:
        """Start a call and return the scope that cancels it. The end of its session cancels it too.

        answered: gets the answer.

        Raises:
            Overloaded: too many run already.
        """
        if self._count >= CALLS or (session is not None and len(session.calls) >= SESSION_CALLS):
            raise Overloaded(_BUSY, retry_after_seconds=1)
        scope = anyio.CancelScope()
        running = set[anyio.CancelScope]() if session is None else session.calls

        async def run() -> None:
            response = Response(202)
            try:
                with scope:
                    response = await call()
            finally:
                self._count -= 1
                running.discard(scope)
                answered(response)

        self._count += 1
        running.add(scope)
        self._tasks.start_soon(run)
        return scope
