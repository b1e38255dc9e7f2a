"""Answer every request of the REST edge: route, caller, rate, scope, handler, and every error in the one shape.

This is one of the three places that turn errors into answers. `handle` never raises.
"""

from dataclasses import dataclass
from functools import partial

from gateway.api.cors import Cors
from gateway.api.credentials import Callers, sole_key
from gateway.api.internal import InternalDoor, is_own_user, not_own_user
from gateway.api.paths import not_served, routed_path
from gateway.api.routes import Endpoint, make_router
from gateway.app import Gateway
from gateway.auth.ratelimit import RateExceeded
from gateway.domain.principals import Caller, Principal, RequestContext
from gateway.errors import GatewayError, Overloaded, RateLimited, Shed, UpstreamUnavailable, status_of
from gateway.http.messages import BodyTooLong, HttpError, Request, Response
from gateway.operations.operation import ANONYMOUS, Door
from gateway.responses import Headers, error_response, finish, rate_headers
from gateway.settings import named

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_INTERNAL = "Something went wrong inside the gateway; the request id finds it in the log."


class Dispatch:
    """Answers every request of the REST edge. The server calls `handle`, `check`, `refuse` and `body_limit`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._router = make_router(gateway)
        self._callers = Callers(gateway.settings.trusted_proxies)
        self._internal = InternalDoor(gateway)
        self._cors = Cors(gateway.settings.cors_origins)
        self._complete = partial(finish, is_tls=bool(gateway.settings.tls_cert))
        self._shed_logged_seconds = -1.0

    def body_limit(self, method: str, path: str) -> int:
        """Return how many bytes the body of a request may have."""
        endpoint = self._endpoint(method, path)
        return endpoint.body_bytes if endpoint else self._gateway.settings.max_body_bytes

    def _endpoint(self, method: str, path: str) -> Endpoint | None:
        try:
            return self._router.match(method, routed_path(path))
        except HttpError:
            return None

    def refuse(self, error: HttpError) -> Response:
        """Return the answer to a request that the server itself refused."""
        self._gateway.metrics.count("gateway_refused_requests_total", code=error.code)
        request = error.request
        if isinstance(error, BodyTooLong) and request is not None:
            endpoint = self._endpoint(request.method, request.path)
            name = named(endpoint.operation.body_setting if endpoint else "max_body_bytes")
            error.message = f"The body is longer than {error.limit_bytes} bytes, the limit that {name} sets."
        request_id = self._gateway.ids.new("req")
        answer = self._complete(error_response(error, request_id=request_id), request_id)
        return answer if request is None else self._cors.complete(answer, request)

    async def check(self, request: Request) -> Response | None:
        """Check a request by its head, before the server reads a large body.

        None: the request is admitted. It then counts against the rate of its key. `handle` checks the key again,
        because it may be revoked while the body arrives.
        """
        call = _Call(self._gateway.ids.new("req"))
        try:
            await self._enter(call, self._find(call, request), request)
        except Exception as error:
            return self._finish(self._failed(error, call), call, request)
        request.call = call
        return None

    async def handle(self, request: Request) -> Response:
        """Answer one request. Every error becomes an answer; none is raised."""
        call: _Call = request.call or _Call(self._gateway.ids.new("req"))
        if (preflight := self._cors.preflight(request)) is not None:
            return self._finish(preflight, call, request)
        try:
            endpoint = self._find(call, request)
            endpoint.in_progress += 1
            try:
                response = await endpoint.handle(request, await self._enter(call, endpoint, request))
            finally:
                endpoint.in_progress -= 1
        except Exception as error:
            response = self._failed(error, call)
        return self._finish(response, call, request)

    def _failed(self, error: Exception, call: "_Call") -> Response:
        """Return the answer for an error. An unexpected one says only that the log has the details."""
        request_id, endpoint = call.request_id, call.endpoint
        if isinstance(error, GatewayError):
            self._note(error, request_id, endpoint)
        elif not isinstance(error, HttpError):
            route = endpoint.path if endpoint else None
            self._gateway.log.error("internal error", error=error, request_id=request_id, route=route)
            error = GatewayError(_INTERNAL)
        return error_response(error, request_id=request_id)

    def _finish(self, response: Response, call: "_Call", request: Request) -> Response:
        """Measure and complete the answer. All unknown paths count as one operation, so a client cannot add names."""
        endpoint, metrics = call.endpoint, self._gateway.metrics
        operation = "unmatched" if endpoint is None else endpoint.operation.name
        method = request.method if request.method in _METHODS else "other"
        metrics.count("gateway_requests_total", operation=operation, method=method, status=str(response.status))
        seconds = self._gateway.clock.monotonic_seconds() - request.started_seconds
        metrics.observe("gateway_request_seconds", seconds, operation=operation)
        may_compress = endpoint is None or not endpoint.operation.has_secret
        asked = request.headers if may_compress else None
        return self._cors.complete(self._complete(response, call.request_id, call.rate, asked=asked), request)

    def _find(self, call: "_Call", request: Request) -> Endpoint:
        """Return the endpoint of a request. Raises Shed if it has too many in progress, or this one waited too long."""
        try:
            endpoint = call.endpoint = self._router.match(request.method, routed_path(request.path))
        except HttpError as error:
            if error.status == 404:
                raise not_served(request.path, self._is_served) from None
            raise
        settings = self._gateway.settings
        waited_seconds = self._gateway.clock.monotonic_seconds() - request.arrived_seconds
        is_full = endpoint.in_progress >= settings.max_requests_in_work
        if endpoint.is_shed and (is_full or waited_seconds > settings.max_wait_seconds):
            raise Shed
        return endpoint

    def _is_served(self, path: str) -> bool:
        try:
            self._router.match("GET", routed_path(path))
        except HttpError as error:
            return error.status == 405
        return True

    async def _enter(self, call: "_Call", endpoint: Endpoint, request: Request) -> Caller:
        """Return the caller. Raises what `Authentication` raises."""
        context = self._callers.context(request, call.request_id)
        door = endpoint.operation.door
        if door is Door.OPEN:
            return Caller(ANONYMOUS, context)
        if door.is_internal:
            principal = await self._internal.enter(door, request, context)
        elif door is Door.LOOPBACK and is_own_user(request):
            principal = ANONYMOUS
        else:
            key = sole_key(request.headers)
            if key is None and door is Door.LOOPBACK and not self._gateway.settings.rbac_enabled:
                raise not_own_user(f"{endpoint.path} without an API key")
            principal = await self._keyed(call, endpoint, key, context)
        caller = Caller(principal, context)
        if principal is not ANONYMOUS and endpoint.operation.needs is not None:
            self._gateway.authentication.require(caller, endpoint.operation.needs)
        return caller

    async def _keyed(self, call: "_Call", endpoint: Endpoint, key: str | None, context: RequestContext) -> Principal:
        """Return the owner of a key, and count the request once against its rate."""
        is_optional = endpoint.operation.door is Door.OPTIONAL
        if key is None and is_optional:
            return ANONYMOUS
        try:
            principal = await self._gateway.authentication.authenticate(key, context)
            if not call.is_counted:
                admission = await self._gateway.authentication.admit(Caller(principal, context))
                call.rate = rate_headers(admission, is_openai=endpoint.operation.is_openai)
                call.is_counted = True
        except GatewayError as error:
            if isinstance(error, RateExceeded):
                call.rate = rate_headers(error.admission, is_openai=endpoint.operation.is_openai)
            if not is_optional or isinstance(error, Overloaded):
                raise  # also when no key can be looked up: the sender of a key needs to know
            return ANONYMOUS  # a wrong key gets the anonymous answer, so that the answer is no oracle
        return principal

    def _note(self, error: GatewayError, request_id: str, endpoint: Endpoint | None) -> None:
        """Count and log a refusal as far as operators need it."""
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
        """Count a shed request, and log one a second: a line for each would add to the overload."""
        self._gateway.metrics.count("gateway_shed_total")
        now_seconds = self._gateway.clock.monotonic_seconds()
        if now_seconds - self._shed_logged_seconds >= 1:
            self._shed_logged_seconds = now_seconds
            self._gateway.log.warning("overloaded", request_id=request_id, route=endpoint.path if endpoint else None)


@dataclass(slots=True)
class _Call:
    """The state of one request. rate: headers about the rate of its key, once the request is counted."""

    request_id: str
    endpoint: Endpoint | None = None
    rate: Headers = ()
    is_counted: bool = False
