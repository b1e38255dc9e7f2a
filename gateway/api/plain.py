"""The answers without an envelope that no service makes: health, metrics, and the OpenAPI document."""

import sys
from collections.abc import Callable, Mapping

from gateway import __version__, bundle
from gateway.api.responses import JSON
from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.http.messages import Request, Response
from gateway.metrics import CONTENT_TYPE
from gateway.offload import ThreadOffload
from gateway.operations.operation import ANONYMOUS
from gateway.services.health import HEALTHY
from gateway.strict_json import write_json

SERVICE_NAME = "service"
PYTHON = "{}.{}.{}".format(*sys.version_info[:3])
_FINE = (HEALTHY, "not_configured", "unknown")


class PlainEdge:
    """Answers what probes and tools ask. document: makes the OpenAPI document, for whoever asks first."""

    def __init__(self, gateway: Gateway, document: Callable[[], Mapping[str, object]]) -> None:
        self._gateway = gateway
        self._now_at = gateway.clock.now_at
        self._make_document = document
        self._document = b""
        self._aside = ThreadOffload()
        self._alive = write_json({"status": "ok", "name": SERVICE_NAME})
        self._checks: Mapping[str, str] = {}
        self._told = b""

    async def health(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Say that the service answers; say more to whoever has a good key."""
        if who is ANONYMOUS:
            return Response(200, JSON, self._alive)
        checks = self._gateway.health.checks()
        if checks != self._checks:
            self._checks, self._told = dict(checks), self._tell(checks)
        uptime_seconds = max(0, self._now_at() - self._gateway.started_at) / 1000
        return Response(200, JSON, b'%b,"uptime_seconds":%.3f}' % (self._told, uptime_seconds))

    def _tell(self, checks: Mapping[str, str]) -> bytes:
        """Return all but the end of what is told as long as the checks say the same."""
        is_fine = all(state in _FINE for state in checks.values())
        answer = {
            "status": "ok" if is_fine else "degraded",
            "name": SERVICE_NAME,
            "version": __version__,
            "archive_sha256": bundle.archive_sha256(),  # the archive is read when somebody asks, and not at the start
            "checks": checks,
        }
        return write_json(answer)[:-1]

    async def openapi(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Return the description of the API."""
        if not self._document:
            self._document = await self._aside.run(lambda make: write_json(make()), self._make_document)
        return Response(200, (("content-type", "application/json"),), self._document)

    async def metrics(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Return the metrics of this process as Prometheus text."""
        metrics, matcher = self._gateway.metrics, self._gateway.shield.matcher
        metrics.gauge("gateway_build_info", 1, version=__version__, python=PYTHON, matcher=matcher)
        return Response(200, (("content-type", CONTENT_TYPE),), metrics.render().encode())
