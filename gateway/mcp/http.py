"""MCP over HTTP: HTTP+SSE of 2024-11-05 (/sse, /message) and Streamable HTTP (/mcp) of the later versions.

Theory of operation. A quick message is answered in its request. A tool's call runs in a task of its own. Over HTTP+SSE
its answer goes to the session's stream. Over Streamable HTTP the request waits up to `QUICK_SECONDS` and answers with
JSON; after that it answers with a stream that carries comments until the result is there. When the peer leaves such a
stream, a call without a session is cancelled, since nobody can get its result. A call in a session continues until the
session ends, as those versions require. Everything lives in one process and is bounded.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import parse_qs

import anyio
from anyio.abc import TaskGroup

from gateway.app import Gateway
from gateway.domain.principals import RequestContext
from gateway.errors import AccessDenied, GatewayError, InvalidApiKey, MissingApiKey
from gateway.http.messages import HttpError, Request, Response
from gateway.http.sse import SSE_HEADERS, EventStream, render_event
from gateway.mcp import door, jsonrpc
from gateway.mcp.jsonrpc import Batch, Invalid, Message
from gateway.mcp.server import NAME, SESSION_VERSIONS, McpServer, is_long
from gateway.mcp.sessions import Calls, Session, Sessions
from gateway.mcp.tool import Notify, Tool
from gateway.mcp.tools import TOOLS
from gateway.responses import error_response, finish, json_response
from gateway.services.refusals import KEY_REFUSED

MESSAGE_BYTES = 8 * 1024 * 1024
SESSIONS = 1_024
QUICK_SECONDS = 1.0  # a call that takes longer is answered by a stream
_OTHER_BYTES = 65_536
_ID_BYTES = 20
_ACCOUNT = "\0mcp"  # under which wrong keys are counted; no user has this name
_CHALLENGE = (("www-authenticate", 'Bearer realm="mcp"'),)

Handler = Callable[[Request, RequestContext], Awaitable[Response]]


class HttpMcp:
    """Answers every request of the MCP port. The server calls `handle`, `check`, `refuse` and `body_limit`.

    gateway: returns the current one. tasks: runs the calls. streams: most /sse streams at a time.
    """

    def __init__(
        self,
        gateway: Callable[[], Gateway],
        tasks: TaskGroup,
        *,
        streams: int = SESSIONS,
        tools: tuple[Tool, ...] = TOOLS,
    ) -> None:
        self._gateway = gateway
        self._tools = tools
        self._calls = Calls(tasks)
        self._streams = Sessions(streams)
        self._sessions = Sessions(SESSIONS)
        self._is_stopping = False
        self._routes: Mapping[str, Mapping[str, Handler]] = {
            "/health": {"GET": self._health, "HEAD": self._health},
            "/sse": {"GET": self._open_stream},
            "/message": {"POST": self._message},
            "/mcp": {"POST": self._post, "DELETE": self._delete},
        }

    def stop(self) -> None:
        """End every session and its stream at once. Calls that a request waits for continue."""
        self._is_stopping = True
        self._streams.end_all()

    def body_limit(self, method: str, path: str) -> int:
        """Return the largest body of a request, in bytes."""
        return MESSAGE_BYTES if method == "POST" and path in ("/mcp", "/message") else _OTHER_BYTES

    def refuse(self, error: HttpError) -> Response:
        """Render the refusal of a request that the server did not hand on."""
        gateway = self._gateway()
        gateway.metrics.count("gateway_refused_requests_total", code=error.code)
        request_id = gateway.ids.new("req")
        response = error_response(error, request_id=request_id)
        return finish(response, request_id, (("vary", "Origin"),))

    async def check(self, request: Request) -> Response | None:
        """Check the head of a request before a large body is read. None: it is admitted."""
        context = door.caller_of(request, self._gateway().ids.new("req"))
        try:
            await self._handler(request, context)
        except (HttpError, GatewayError) as error:
            return self._refused(error, request, context)
        return None

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        context = door.caller_of(request, self._gateway().ids.new("req"))
        try:
            handler = await self._handler(request, context)
            response = await handler(request, context)
        except (HttpError, GatewayError) as error:
            return self._refused(error, request, context)
        return finish(response, context.request_id, door.cors_headers(request.headers))

    def _refused(self, error: HttpError | GatewayError, request: Request, context: RequestContext) -> Response:
        gateway, request_id = self._gateway(), context.request_id
        if isinstance(error, MissingApiKey | InvalidApiKey | AccessDenied):
            gateway.metrics.count("gateway_auth_failures_total", code=error.code)
            gateway.authentication.refusals.record(error, context, action=KEY_REFUSED, resource_type="mcp")
        challenge = _CHALLENGE if isinstance(error, MissingApiKey | InvalidApiKey) else ()
        response = error_response(error, request_id=request_id, headers=challenge)
        return finish(response, request_id, door.cors_headers(request.headers))

    async def _handler(self, request: Request, context: RequestContext) -> Handler:
        """Return the handler of a request. Raises HttpError or GatewayError if it is not admitted."""
        door.check_origin(request.headers)
        methods = self._routes.get(request.path)
        if methods is None:
            raise HttpError(404, "not_found", "There is no such path.")
        allowed = ", ".join([*methods, "OPTIONS"])
        if request.method == "OPTIONS":
            return partial(_preflight, allowed)
        if request.path != "/health":
            await self._check_key(request, context)
        handler = methods.get(request.method)
        if handler is None:
            message = "This path does not take this method."
            raise HttpError(405, "method_not_allowed", message, headers=(("allow", allowed),))
        return handler

    async def _check_key(self, request: Request, context: RequestContext) -> None:
        """Admit a request with the key, and throttle wrong keys like passwords; Overloaded if they cannot be counted.

        The right key never waits: all programs of this host share one address, so any of them could lock the assistant
        out. The length of the key protects it.
        """
        gateway = self._gateway()
        try:
            door.check_key(request.headers, gateway.settings.mcp_api_key)
        except InvalidApiKey:
            async with gateway.sign_in_throttle.attempt(_ACCOUNT, context, resource_type="mcp"):
                raise

    async def _health(self, request: Request, context: RequestContext) -> Response:
        return json_response({"status": "ok", "name": NAME})

    # HTTP+SSE.

    async def _open_stream(self, request: Request, context: RequestContext) -> Response:
        session_id = self._new_id()
        stream = EventStream(lambda: self._streams.end(session_id))
        self._streams.add(Session(session_id, McpServer(self._gateway, tools=self._tools), stream))
        stream.send(render_event(f"/message?sessionId={session_id}".encode("ascii"), "endpoint"))
        if self._is_stopping:
            stream.end()
        return Response(200, SSE_HEADERS, stream=stream, ends_with_peer=True)

    async def _message(self, request: Request, context: RequestContext) -> Response:
        message = _parsed(request)
        if isinstance(message, Invalid):
            return door.faulty(message.id, message.reason, message.code)
        session_id = parse_qs(request.query).get("sessionId", [""])[0]
        if not session_id:
            reason = "Invalid request: sessionId is missing; GET /sse tells the address to send to"
            return door.faulty(_id(message), reason)
        session = self._streams.find(session_id)
        call = partial(self._answer, session, message, context, session.notify)
        if is_long(message):
            self._calls.start(call, session.deliver, session)
        else:
            session.deliver(await call())
        return Response(202)

    # Streamable HTTP.

    async def _post(self, request: Request, context: RequestContext) -> Response:
        message = _parsed(request)
        if isinstance(message, Invalid):
            return door.faulty(message.id, message.reason, message.code)
        if door.is_stateless(message, request.headers):
            return await self._post_stateless(request, message, context)
        version = request.headers.get("mcp-protocol-version")
        if version is not None and version not in SESSION_VERSIONS:
            reason = f"Invalid request: MCP-Protocol-Version must be one of {', '.join(SESSION_VERSIONS)}"
            return door.faulty(_id(message), reason)
        if isinstance(message, jsonrpc.Request) and message.method == "initialize":
            return await self._begin(message, context)
        session_id = request.headers.get("mcp-session-id")
        if session_id is None:
            reason = "Invalid request: Mcp-Session-Id is missing; the answer to initialize has it"
            return door.faulty(_id(message), reason)
        session = self._sessions.find(session_id)
        waiting = _Waiting()
        call = partial(self._answer, session, message, context, waiting.notify)
        return await self._call(request, call, session, waiting) if is_long(message) else await call()

    async def _begin(self, message: jsonrpc.Request, context: RequestContext) -> Response:
        """Answer `initialize` with a new session. At the limit, the session that was idle longest ends."""
        session = Session(self._new_id(), McpServer(self._gateway, tools=self._tools))
        response = await self._answer(session, message, context)
        if session.server.version is not None:  # not refused
            self._sessions.end_idle()
            self._sessions.add(session)
            response.headers += (("mcp-session-id", session.id),)
        return response

    async def _post_stateless(self, request: Request, message: Message | Batch, context: RequestContext) -> Response:
        server = McpServer(self._gateway, tools=self._tools)
        if not isinstance(message, jsonrpc.Request):
            return door.answered(await server.answer(message), 400)
        fault = door.mismatch(message, request.headers)
        if fault is not None:
            return door.faulty(message.id, fault.message, fault.code)

        waiting = _Waiting()

        async def call() -> Response:
            reply = await server.handle(message, waiting.notify, context)
            return Response(202) if reply is None else door.answered(server.render(reply), door.status_of(reply))

        return await self._call(request, call, None, waiting) if is_long(message) else await call()

    async def _delete(self, request: Request, context: RequestContext) -> Response:
        session_id = request.headers.get("mcp-session-id")
        if session_id is None:
            return door.faulty(None, "Invalid request: Mcp-Session-Id is missing")
        self._sessions.find(session_id)
        self._sessions.end(session_id)
        return Response(204)

    # Both.

    async def _call(
        self, request: Request, call: Callable[[], Awaitable[Response]], session: Session | None, waiting: "_Waiting"
    ) -> Response:
        """Run a call; answer with JSON if it is quick, else with a stream, as far as the peer accepts them."""
        scope = self._calls.start(call, waiting.answered, session)
        accept = (request.headers.get("accept") or "").lower()
        takes_stream = "text/event-stream" in accept
        seconds = QUICK_SECONDS if "json" in accept or "*/*" in accept else 0.0
        try:
            with anyio.move_on_after(seconds if takes_stream else None):
                await waiting.done.wait()
        except BaseException:  # this server ends
            scope.cancel()
            raise
        if waiting.response is not None:
            return waiting.response
        if session is None:  # a call in a session continues when the peer leaves
            waiting.left = scope.cancel
        return Response(200, SSE_HEADERS, stream=waiting.stream, ends_with_peer=True)

    async def _answer(
        self, session: Session, message: Message | Batch, context: RequestContext, notify: Notify | None = None
    ) -> Response:
        body = await session.server.answer(message, notify, context)
        # The answer to a batch is an array, unless the batch is refused as a whole.
        is_refused = isinstance(message, Batch) and body is not None and body.startswith(b"{")
        return door.answered(body, 400 if is_refused else 200)

    def _new_id(self) -> str:
        return self._gateway().ids.random_bytes(_ID_BYTES).hex()


class _Waiting:
    """A request that waits for a call. Its stream holds all messages, unless one answer is sent in its place.

    left: called when the peer leaves the stream.
    """

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.response: Response | None = None
        self.left: Callable[[], None] = lambda: None
        self.stream = EventStream(lambda: self.left())

    async def notify(self, message: bytes) -> None:
        """Take a message that precedes the answer."""
        self.stream.send(render_event(message))

    def answered(self, response: Response) -> None:
        """Take the answer to the call."""
        self.response = response
        self.done.set()
        if response.body:
            self.stream.send(render_event(response.body))
        self.stream.end()


async def _preflight(allowed: str, request: Request, context: RequestContext) -> Response:
    return Response(204, door.preflight_headers(allowed))


def _parsed(request: Request) -> Message | Batch:
    """Read the message of a request, which must be declared as JSON: a page cannot send JSON without a preflight."""
    media_type = (request.headers.get("content-type") or "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HttpError(415, "unsupported_media_type", "Content-Type must be application/json.")
    if (request.headers.get("content-encoding") or "identity").lower() != "identity":
        raise HttpError(415, "unsupported_media_type", "The body must have no Content-Encoding.")
    return jsonrpc.parse(request.body)


def _id(message: Message | Batch) -> jsonrpc.RequestId | None:
    return message.id if isinstance(message, jsonrpc.Request) else None
