"""The answers without an envelope that no service makes: health, metrics, and the OpenAPI document."""

import sys

from gateway import __version__, bundle
from gateway.api.openapi import document
from gateway.api.responses import JSON, json_response
from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.http.messages import Request, Response
from gateway.metrics import CONTENT_TYPE
from gateway.offload import ThreadOffload
from gateway.operations.every import DESCRIBED_OPERATIONS
from gateway.operations.operation import ANONYMOUS
from gateway.services.health import HEALTHY
from gateway.strict_json import write_json

SERVICE_NAME = "service"
PYTHON = "{}.{}.{}".format(*sys.version_info[:3])
_FINE = (HEALTHY, "not_configured", "unknown")


class PlainEdge:
    """Answers what probes and tools ask for."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._document = b""
        self._offload = ThreadOffload()

    async def health(self, request: Request, who: Principal, context: RequestContext, command: None) -> Response:
        """Say that the service answers; say more to a caller with a good key."""
        if who is ANONYMOUS:
            return json_response({"status": "ok", "name": SERVICE_NAME})
        gateway = self._gateway
        checks = gateway.health.checks()
        return json_response(
            {
                "status": "ok" if all(state in _FINE for state in checks.values()) else "degraded",
                "name": SERVICE_NAME,
                "version": __version__,
                "archive_sha256": bundle.archive_sha256(),
                "checks": checks,
                "uptime_seconds": max(0, gateway.clock.now_at() - gateway.started_at) / 1000,
            }
        )

    async def openapi(self, request: Request, who: Principal, context: RequestContext, command: None) -> Response:
        """Return the description of the API, which is made for the first caller."""
        if not self._document:
            settings = self._gateway.settings
            self._document = await self._offload.run(
                lambda operations: write_json(document(operations, settings)), DESCRIBED_OPERATIONS
            )
        return Response(200, JSON, self._document)

    async def metrics(self, request: Request, who: Principal, context: RequestContext, command: None) -> Response:
        """Return the metrics of this process as Prometheus text."""
        metrics, matcher = self._gateway.metrics, self._gateway.shield.matcher
        metrics.gauge("gateway_build_info", 1, version=__version__, python=PYTHON, matcher=matcher)
        return Response(200, (("content-type", CONTENT_TYPE),), metrics.render().encode())
