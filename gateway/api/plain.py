"""The answers without an envelope that no service makes: health, metrics, and the OpenAPI document."""

from collections.abc import Mapping

from gateway import __version__
from gateway.api.responses import json_response
from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.http.messages import Request, Response
from gateway.metrics import CONTENT_TYPE
from gateway.operations.operation import ANONYMOUS
from gateway.services.health import HEALTHY
from gateway.wire import write_json

SERVICE_NAME = "service"
_FINE = (HEALTHY, "not_configured", "unknown")


class PlainEdge:
    """Answers what probes and tools ask. document: the OpenAPI document, written once."""

    def __init__(self, gateway: Gateway, document: Mapping[str, object]) -> None:
        self._gateway = gateway
        self._document = write_json(document)
        self._started_seconds = gateway.clock.monotonic_seconds()

    async def health(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Say that the service answers; say more to whoever has a good key."""
        answer: dict[str, object] = {"status": "ok", "name": SERVICE_NAME}
        if who is ANONYMOUS:
            return json_response(answer)
        checks = self._gateway.health.checks()
        if not all(state in _FINE for state in checks.values()):
            answer["status"] = "degraded"
        uptime_seconds = self._gateway.clock.monotonic_seconds() - self._started_seconds
        return json_response(
            answer | {"version": __version__, "uptime_seconds": round(uptime_seconds, 3), "checks": checks}
        )

    async def openapi(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Return the description of the API."""
        return Response(200, (("content-type", "application/json"),), self._document)

    async def metrics(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Return the metrics of this process as Prometheus text."""
        return Response(200, (("content-type", CONTENT_TYPE),), self._gateway.metrics.render().encode())
