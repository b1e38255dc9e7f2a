"""From a request to its answer: route, caller, rate, scope, handler; every error to its status in the one shape.

One of the three places that turn errors into answers. `handle` never raises.
"""

from gateway.api.credentials import Callers, api_key
from gateway.api.internal import InternalDoor
from gateway.api.responses import Finisher, Headers, error_response, rate_headers, shaped_error, status_of
from gateway.api.routes import Endpoint, routes
from gateway.app import Gateway
from gateway.auth.ratelimit import Admission
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import GatewayError, RateLimited
from gateway.http.messages import HttpError, Request, Response
from gateway.http.router import Router
from gateway.metrics import Cell, Histogram
from gateway.operations.operation import ANONYMOUS, Door
from gateway.services.authentication import RateExceeded

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_INTERNAL = "Something went wrong inside the gateway; the request id finds it in the log."


class Dispatch:
    """Answers every request of the REST edge: `handle`, `refuse` and `body_limit` are what the server asks for."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._ids = gateway.ids
        self._clock = gateway.clock
        self._authentication = gateway.authentication
        self._router: Router[Endpoint] = Router(routes(gateway))
        self._callers = Callers(gateway.settings.trusted_proxies)
        self._internal = InternalDoor(gateway, self._callers)
        self._finisher = Finisher(is_tls=bool(gateway.settings.tls_cert))
        self._counts: dict[tuple[str, str, int], Cell] = {}
        self._times: dict[str, Histogram] = {}

    def body_limit(self, method: str, path: str) -> int:
        """Return how many bytes the body of a request may have."""
        try:
            return self._router.match(method, path).route.handler.body_bytes
        except HttpError:
            return self._gateway.settings.max_body_bytes

    def refuse(self, error: HttpError) -> Response:
        """Render a request that the server refused by itself, in the one error shape."""
        self._gateway.metrics.count("gateway_refused_requests_total", code=error.code)
        request_id = self._ids.new("req")
        return self._finisher.finish(_refusal(error, request_id), request_id)

    async def handle(self, request: Request) -> Response:
        """Answer one request. Every error is an answer; none is raised."""
        request_id = self._ids.new("req")
        endpoint: Endpoint | None = None
        rate: Headers = ()
        try:
            endpoint = self._router.match(request.method, request.path).route.handler
            context = self._callers.context(request, request_id)
            principal = ANONYMOUS
            if endpoint.door is not Door.OPEN:
                principal, admission = await self._enter(endpoint, request, context)
                if admission is not None:
                    rate = _rate(endpoint, admission)
                if principal is not ANONYMOUS and endpoint.needs is not None:
                    self._authentication.require(principal, endpoint.needs, context)
            response = await endpoint.handle(request, principal, context)
        except GatewayError as error:
            if endpoint is not None and isinstance(error, RateExceeded):
                rate = _rate(endpoint, error.admission)
            self._note(error, request_id, endpoint)
            response = error_response(error, request_id=request_id)
        except HttpError as error:
            response = _refusal(error, request_id)
        except Exception as error:
            self._gateway.log.error(
                "internal error", error=error, request_id=request_id, route=endpoint.path if endpoint else None
            )
            response = shaped_error(500, "internal_error", _INTERNAL, param=None, request_id=request_id)
        self._measure(request, endpoint, response.status)
        is_fixed = endpoint is not None and endpoint.has_secret
        accept_encoding = None if is_fixed else request.headers.get("accept-encoding")
        return self._finisher.finish(response, request_id, rate, accept_encoding)

    async def _enter(
        self, endpoint: Endpoint, request: Request, context: RequestContext
    ) -> tuple[Principal, Admission | None]:
        """Return who calls and what the rate window says. Raises what `Authentication` raises."""
        if endpoint.is_internal:
            return self._internal.enter(endpoint.door, request, context), None
        if endpoint.door is Door.LOOPBACK and self._callers.is_local(request):
            return ANONYMOUS, None
        key = api_key(request.headers)
        if endpoint.door is not Door.OPTIONAL:
            principal = await self._authentication.authenticate(key, context)
            return principal, self._authentication.admit(principal, context)
        if key is None:
            return ANONYMOUS, None
        try:
            principal = await self._authentication.authenticate(key, context)
            return principal, self._authentication.admit(principal, context)
        except RateExceeded as error:
            return ANONYMOUS, error.admission
        except GatewayError:
            # A wrong key is told what everybody is told: the answer is no oracle.
            return ANONYMOUS, None

    def _note(self, error: GatewayError, request_id: str, endpoint: Endpoint | None) -> None:
        """Count and log what an operator wants to know of a refusal."""
        status = status_of(error.code)
        if isinstance(error, RateLimited):
            self._gateway.metrics.count("gateway_rate_limited_total")
        elif status in (401, 403):
            self._gateway.metrics.count("gateway_auth_failures_total", code=error.code)
        elif status >= 500:
            self._gateway.log.error(
                error.code,
                error=error.__cause__ or error,
                request_id=request_id,
                route=endpoint.path if endpoint else None,
            )

    def _measure(self, request: Request, endpoint: Endpoint | None, status: int) -> None:
        """Count the answer. A path that no row has is one route, so that nobody can make new ones."""
        route = endpoint.path if endpoint is not None else "unmatched"
        method = request.method if request.method in _METHODS else "other"
        count = self._counts.get((route, method, status))
        if count is None:
            count = self._gateway.metrics.counter(
                "gateway_requests_total", route=route, method=method, status=str(status)
            )
            self._counts[(route, method, status)] = count
        count.add()
        histogram = self._times.get(route)
        if histogram is None:
            histogram = self._times[route] = self._gateway.metrics.histogram("gateway_request_seconds", route=route)
        histogram.observe(self._clock.monotonic_seconds() - request.started_seconds)


def _rate(endpoint: Endpoint, admission: Admission) -> Headers:
    return rate_headers(admission.limit, admission.remaining, admission.reset_seconds, is_openai=endpoint.is_openai)


def _refusal(error: HttpError, request_id: str) -> Response:
    """Render an error of the HTTP island, whose codes are those of the API."""
    headers = error.headers
    if error.status in (429, 503) and not any(name.lower() == "retry-after" for name, _ in headers):
        headers = (*headers, ("retry-after", "1"))
    return shaped_error(
        error.status, error.code, error.message, param=error.param, request_id=request_id, headers=headers
    )
