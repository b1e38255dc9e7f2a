"""Read the body of a chat, call the chat service, and add the shield's headers. Decides nothing."""

from gateway.api.paths import V2, model_id
from gateway.api.reading import LARGE_BYTES, read_body
from gateway.app import Gateway
from gateway.domain.principals import Caller, Permission, Principal, Scope
from gateway.errors import GatewayError, NotFound, PermissionDenied, error_shape, status_of
from gateway.http.messages import Request, Response
from gateway.http.sse import KEEP_ALIVE, SSE_HEADERS, render_event
from gateway.llm.base import ChatRequest, UpstreamFault, UpstreamRefused
from gateway.log import Log
from gateway.offload import ThreadOffload
from gateway.responses import JSON, Headers, error_response, json_response
from gateway.services.chat import PromptBlocked
from gateway.services.chat_record import ShieldSummary
from gateway.services.chat_stream import ChatStream
from gateway.services.trials import TriedAs
from gateway.spelling import hint
from gateway.strict_json import write_json


class ChatEdge:
    """Answers the routes of the OpenAI API."""

    def __init__(self, gateway: Gateway) -> None:
        self._chat = gateway.chat
        self._gateway = gateway
        self._offload = ThreadOffload(wait_seconds=gateway.settings.max_wait_seconds)

    async def complete(self, request: Request, caller: Caller, command: None) -> Response:
        """Complete a chat. Query parameters of other vendors' clients, such as `api-version`, are ignored."""
        return await self._completed(request, caller, may_stream=request.path.startswith(V2))

    async def try_out(self, request: Request, caller: Caller, command: TriedAs) -> Response:
        """Complete a chat that a user tries, of which only costs and an audit event are recorded."""
        gateway = self._gateway
        if command.policy is not None and Permission.POLICIES_MANAGE not in caller.principal.permissions:
            # It would let out what the policies that others set do not.
            raise PermissionDenied("Your role may chat under the policy of a key only.", param="policy")
        tried = await gateway.trials.principal(caller.principal, command, Scope.CHAT_COMPLETIONS)
        as_tried = Caller(tried, caller.context)
        if tried.kind == "key":
            gateway.access.check_caller(as_tried)
            await gateway.authentication.admit(as_tried)
        return await self._completed(request, as_tried, may_stream=True, tried_by=caller.principal)

    async def _completed(
        self, request: Request, caller: Caller, *, may_stream: bool, tried_by: Principal | None = None
    ) -> Response:
        request.may_be_left = self._chat.may_be_left

        def read(request: Request) -> ChatRequest:
            return self._chat.dialect.read(read_body(request), request.body, may_stream=may_stream)

        try:
            prompt = await self._offload.run(read, request) if len(request.body) > LARGE_BYTES else read(request)
            if prompt.prompt.is_streamed:
                request.may_be_left = lambda: True  # what was made of the completion is counted
                stream = await self._chat.stream(caller, prompt, tried_by=tried_by)
                headers = SSE_HEADERS + stream.headers + _shield_headers(stream.summary())
                events = _Events(stream, caller.context.request_id, self._gateway.log)
                return Response(200, headers, stream=events, ends_with_peer=True, is_endless=False)
            answer = await self._chat.complete(caller, prompt, tried_by=tried_by)
        except PromptBlocked as error:
            refused = error_response(error, request_id=caller.context.request_id)
            refused.headers += _shield_headers(error.shield)
            return refused
        except UpstreamRefused as error:
            return _refused(error, caller.context.request_id)
        except UpstreamFault as error:
            # OpenAI's clients repeat a 502 twice; an answer that took too long would be made and paid again.
            no_retry = (("x-should-retry", "false"),) if error.is_late else ()
            return error_response(error, request_id=caller.context.request_id, headers=no_retry)
        reply = answer.reply
        body = write_json(reply.body) if reply.raw is None else reply.raw
        return Response(200, JSON + reply.headers + _shield_headers(answer.shield), body)

    async def models(self, request: Request, caller: Caller, command: None) -> Response:
        """List the models that the caller may use."""
        return json_response({"object": "list", "data": await self._chat.models(caller.principal)})

    async def model(self, request: Request, caller: Caller, command: None) -> Response:
        """Show one of the models that the caller may use."""
        wanted = model_id(request.path)
        models = {str(model["id"]): model for model in await self._chat.models(caller.principal)}
        if wanted in models:
            return json_response(models[wanted])
        near = hint(wanted, models) or " GET /api/v1/models lists those it may use."
        raise NotFound(f"There is no such model for this key.{near}", param="model")


class _Events:
    """The bytes of a streamed chat: its chunks as server-sent events."""

    def __init__(self, stream: ChatStream, request_id: str, log: Log) -> None:
        self._stream = stream
        self._request_id = request_id
        self._log = log
        self._is_over = False
        self.nudge = stream.nudge
        self.aclose = stream.aclose

    def __aiter__(self) -> "_Events":
        return self

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        try:
            chunk = await anext(self._stream)
        except StopAsyncIteration:
            self._is_over = True
            return render_event(b"[DONE]", "")
        except GatewayError as error:
            self._is_over = True
            reason = error.detail if isinstance(error, UpstreamFault) else None
            self._log.error(error.code, error=error.__cause__ or error, request_id=self._request_id, reason=reason)
            shape = error_shape(status_of(error.code), error.code, error.message, error.param, self._request_id)
            return render_event(write_json(shape), "")
        return KEEP_ALIVE if chunk is None else render_event(write_json(chunk), "")


def _shield_headers(shield: ShieldSummary) -> Headers:
    headers = (
        ("x-service-shield-verdict", str(shield.verdict)),
        ("x-service-shield-score", str(shield.score)),
        ("x-service-overhead-ms", f"{shield.overhead_ms:.3f}"),
    )
    return headers if shield.action == "none" else (*headers, ("x-service-shield-action", shield.action))


def _refused(error: UpstreamRefused, request_id: str) -> Response:
    """Pass on the upstream's status, in the one error shape."""
    wait_seconds = error.retry_after_seconds
    headers: Headers = () if wait_seconds is None else (("retry-after", str(wait_seconds)),)
    shape = error_shape(error.status, error.code, error.message, error.param, request_id)
    return json_response(shape, headers, status=error.status)
