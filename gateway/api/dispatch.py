"""From a request to its answer: route, caller, rate, scope, handler; every error to its status in the one shape.

One of the three places that turn errors into answers. `handle` never raises.
"""

from gateway.api import internal
from gateway.api.cors import Cors
from gateway.api.credentials import Callers, facts_of
from gateway.api.own_user import is_own_user, not_own_user
from gateway.api.paths import not_served, routed_path
from gateway.api.responses import Finisher, error_response, rate_lines, shaped_error, status_of
from gateway.api.routes import Endpoint, make_router
from gateway.app import Gateway
from gateway.auth.ratelimit import RateExceeded
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import GatewayError, Overloaded, RateLimited, Shed, UpstreamUnavailable
from gateway.http.messages import BodyTooLong, HttpError, Request, Response
from gateway.metrics import Cell, Histogram
from gateway.operations.operation import ANONYMOUS, Door
from gateway.settings import named

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_INTERNAL = "Something went wrong inside the gateway; the request id finds it in the log."


class Dispatch:
    """Answers every request of the REST edge: `handle`, `check`, `refuse` and `body_limit` are what the server asks."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._new_id = gateway.ids.new
        self._monotonic_seconds = gateway.clock.monotonic_seconds
        self._router = make_router(gateway)
        self._callers = Callers(gateway.settings.trusted_proxies)
        self._cors = Cors(gateway.settings.cors_origins)
        self._finisher = Finisher(is_tls=bool(gateway.settings.tls_cert))
        self._most_in_work = gateway.settings.max_requests_in_work
        self._longest_wait_seconds = gateway.settings.max_wait_seconds
        self._shed_noted_seconds = -1.0
        # No cached property: those make each use of any other field slower.
        self._internal: internal.InternalDoor | None = None
        self._measures = _Measures(gateway)

    def load_prompts(self) -> None:
        """Load what the first prompt would wait for."""
        self._router.match("POST", "/api/v1/shield/scan")

    def body_limit(self, method: str, path: str) -> int:
        """Return how many bytes the body of a request may have."""
        endpoint = self._endpoint(method, path)
        return endpoint.body_bytes if endpoint else self._gateway.settings.max_body_bytes

    def _endpoint(self, method: str, path: str) -> Endpoint | None:
        try:
            return self._router.match(method, routed_path(path)).route.handler
        except HttpError:
            return None

    def refuse(self, error: HttpError) -> Response:
        """Render a request that the server refused by itself, in the one error shape."""
        self._gateway.metrics.count("gateway_refused_requests_total", code=error.code)
        request = error.request
        if isinstance(error, BodyTooLong) and request is not None:
            endpoint = self._endpoint(request.method, request.path)
            name = named(endpoint.body_setting if endpoint else "max_body_bytes")
            error.message = f"The body is longer than {error.limit_bytes} bytes, the limit that {name} sets."
        request_id = self._new_id("req")
        answer = self._finisher.finish(_refusal(error, request_id), request_id)
        return answer if request is None else self._cors.complete(answer, request)

    async def check(self, request: Request) -> Response | None:
        """Look whether a request may come in, by its head: before a large body of it is read.

        None: it may. It is then counted against the rate of its key, and `handle` looks at the key once more, since
        that may be revoked while the body arrives.
        """
        call = _Call(self._new_id("req"))
        try:
            await self._enter(call, self._find(call, request, self._monotonic_seconds()), request)
        except Exception as error:
            return self._finish(self._failed(error, call), call, request)
        request.call = call
        return None

    async def handle(self, request: Request) -> Response:
        """Answer one request. Every error is an answer; none is raised."""
        call: _Call = request.call or _Call(self._new_id("req"))
        if (preflight := self._cors.preflight(request)) is not None:
            return self._finish(preflight, call, request)
        now_seconds = self._monotonic_seconds()
        try:
            endpoint = self._find(call, request, now_seconds)
            endpoint.in_work += 1
            try:
                known = self._recognize(call, endpoint, request, now_seconds)
                principal, context = known or await self._enter(call, endpoint, request)
                response = await endpoint.handle(request, principal, context)
            finally:
                endpoint.in_work -= 1
        except Exception as error:
            response = self._failed(error, call)
        return self._finish(response, call, request)

    def _failed(self, error: Exception, call: "_Call") -> Response:
        """Return the answer for an error. What is none of ours says nothing but where to look."""
        request_id, endpoint = call.request_id, call.endpoint
        if isinstance(error, GatewayError):
            if endpoint is not None and isinstance(error, RateExceeded):
                call.rate = rate_lines(error.admission, is_openai=endpoint.is_openai)
            self._note(error, request_id, endpoint)
            return error_response(error, request_id=request_id)
        if isinstance(error, HttpError):
            return _refusal(error, request_id)
        self._gateway.log.error(
            "internal error", error=error, request_id=request_id, route=endpoint.path if endpoint else None
        )
        return shaped_error(500, "internal_error", _INTERNAL, param=None, request_id=request_id)

    def _finish(self, response: Response, call: "_Call", request: Request) -> Response:
        """Count the answer and complete it. A path that no row has is one operation: nobody can make new ones."""
        endpoint = call.endpoint
        operation = "unmatched" if endpoint is None else endpoint.name
        count, histogram = self._measures[operation, request.method, response.status]
        count.value += 1
        histogram.observe(self._monotonic_seconds() - request.started_seconds)
        has_secret = endpoint is not None and endpoint.has_secret
        asked = None if has_secret else request.headers
        return self._cors.complete(self._finisher.finish(response, call.request_id, call.rate, asked), request)

    def _find(self, call: "_Call", request: Request, now_seconds: float) -> Endpoint:
        """Return what answers. now_seconds: looked at before the route is looked for, since the first request of a path
        may load what answers it, which is no waiting.

        Raises:
            HttpError: nothing does. Shed: it has too much to do, or took too long to come to this request.
        """
        try:
            endpoint = call.endpoint = self._router.match(request.method, routed_path(request.path)).route.handler
        except HttpError as error:
            if error.status == 404:
                raise not_served(request.path, self._is_served) from None
            raise
        if endpoint.is_shed and (
            endpoint.in_work >= self._most_in_work or now_seconds - request.arrived_seconds > self._longest_wait_seconds
        ):
            raise Shed
        return endpoint

    def _is_served(self, path: str) -> bool:
        try:
            self._router.match("GET", routed_path(path))
        except HttpError as error:
            return error.status == 405
        return True

    def _recognize(
        self, call: "_Call", endpoint: Endpoint, request: Request, now_seconds: float
    ) -> tuple[Principal, RequestContext] | None:
        """Return who calls, if it is one who is known, and count the request; None: `_enter` has to look.

        Raises:
            RateExceeded: the window of the key is full.
        """
        if not endpoint.is_for_keys:
            return None
        facts = facts_of(request.headers)
        principal = self._gateway.authentication.recognized(facts.digest, now_seconds)
        if principal is None or not (endpoint.scope is None or endpoint.scope in principal.scopes):
            return None
        context = self._callers.context(request, call.request_id, facts)
        return self._count(call, endpoint, principal, context, now_seconds), context

    def _count(
        self,
        call: "_Call",
        endpoint: Endpoint,
        principal: Principal,
        context: RequestContext,
        now_seconds: float | None = None,
    ) -> Principal:
        """Count the request against the rate of its key, once, and return who calls.

        Raises:
            RateExceeded: the window is full, at a door where a key is needed.
        """
        if call.is_counted:
            return principal
        try:
            admission = self._gateway.authentication.admit(principal, context, now_seconds)
        except RateExceeded as error:
            if endpoint.door is not Door.OPTIONAL:
                raise
            call.rate = rate_lines(error.admission, is_openai=endpoint.is_openai)
            return ANONYMOUS
        call.rate = rate_lines(admission, is_openai=endpoint.is_openai)
        call.is_counted = True
        return principal

    async def _enter(self, call: "_Call", endpoint: Endpoint, request: Request) -> tuple[Principal, RequestContext]:
        """Return who calls. Raises what `Authentication` raises."""
        context = self._callers.context(request, call.request_id)
        door = endpoint.door
        if door is Door.OPEN:
            return ANONYMOUS, context
        if endpoint.is_internal:
            if self._internal is None:
                self._internal = internal.InternalDoor(self._gateway)
            principal = self._internal.enter(door, request, context)
        elif door is Door.LOOPBACK and is_own_user(request):
            principal = ANONYMOUS
        else:
            key = facts_of(request.headers).sole_key()
            if key is None and door is Door.LOOPBACK and not self._gateway.settings.rbac_enabled:
                raise not_own_user(f"{endpoint.path} without an API key")
            principal = await self._keyed(call, endpoint, key, context)
        if principal is not ANONYMOUS and endpoint.needs is not None:
            self._gateway.authentication.require(principal, endpoint.needs, context)
        return principal, context

    async def _keyed(self, call: "_Call", endpoint: Endpoint, key: str | None, context: RequestContext) -> Principal:
        """Return whose key it is, and count the request against its rate, once."""
        is_optional = endpoint.door is Door.OPTIONAL
        if key is None and is_optional:
            return ANONYMOUS
        try:
            principal = await self._gateway.authentication.authenticate(key, context)
        except GatewayError as error:
            if not is_optional or isinstance(error, Overloaded):
                raise  # also when no key can be looked up: whoever sends one wants to know
            return ANONYMOUS  # a wrong key is told what everybody is told: the answer is no oracle
        return self._count(call, endpoint, principal, context)

    def _note(self, error: GatewayError, request_id: str, endpoint: Endpoint | None) -> None:
        """Count and log what an operator wants to know of a refusal."""
        status = status_of(error.code)
        if isinstance(error, RateLimited):
            self._gateway.metrics.count("gateway_rate_limited_total")
        elif status in (401, 403):
            self._gateway.metrics.count("gateway_auth_failures_total", code=error.code)
        elif isinstance(error, Shed):
            self._note_overload(request_id, endpoint)
        elif status >= 500:
            self._gateway.log.error(
                error.code,
                error=error.__cause__ or error,
                request_id=request_id,
                route=endpoint.path if endpoint else None,
                **({"reason": error.detail} if isinstance(error, UpstreamUnavailable) and error.detail else {}),
            )

    def _note_overload(self, request_id: str, endpoint: Endpoint | None) -> None:
        """Count what is shed, and log it once a second: a line for each would make things worse."""
        self._gateway.metrics.count("gateway_shed_total")
        now_seconds = self._monotonic_seconds()
        if now_seconds - self._shed_noted_seconds >= 1:
            self._shed_noted_seconds = now_seconds
            self._gateway.log.warning("overloaded", request_id=request_id, route=endpoint.path if endpoint else None)


class _Measures(dict[tuple[str, str, int], tuple[Cell, Histogram]]):
    """What counts the answers of an operation, a method and a status."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self._gateway = gateway

    def __missing__(self, key: tuple[str, str, int]) -> tuple[Cell, Histogram]:
        operation, method, status = key
        known = method if method in _METHODS else "other"
        metrics = self._gateway.metrics
        count = metrics.counter("gateway_requests_total", operation=operation, method=known, status=str(status))
        measured = count, metrics.histogram("gateway_request_seconds", operation=operation)
        if known == method:
            self[key] = measured
        return measured


class _Call:
    """What is known of a request on its way. rate: the header lines about its key's rate, once it is counted."""

    __slots__ = ("endpoint", "is_counted", "rate", "request_id")

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.endpoint: Endpoint | None = None
        self.rate = ""
        self.is_counted = False


def _refusal(error: HttpError, request_id: str) -> Response:
    """Render an error of the HTTP island, whose codes are those of the API."""
    headers = error.headers
    if error.status in (429, 503) and not any(name.lower() == "retry-after" for name, _ in headers):
        headers = (*headers, ("retry-after", "1"))
    return shaped_error(
        error.status, error.code, error.message, param=error.param, request_id=request_id, headers=headers
    )
