"""The answers without an envelope that are not of the OpenAI API: probes, files to download, and the live feed."""

import sys

from gateway import __version__, bundle
from gateway.api.openapi import document
from gateway.app import Gateway
from gateway.auth.sessions import read_cookie
from gateway.domain.principals import Caller
from gateway.domain.report_text import CONTENT_TYPES as REPORT_TYPES
from gateway.domain.reports import ENDINGS, ReportFormat
from gateway.http.messages import Request, Response
from gateway.http.sse import SSE_HEADERS, EventStream, render_event
from gateway.metrics import CONTENT_TYPE
from gateway.offload import ThreadOffload
from gateway.operations.audit import ExportWanted
from gateway.operations.edges import HealthWanted
from gateway.operations.every import DESCRIBED_OPERATIONS
from gateway.operations.incidents import EvidenceOf
from gateway.operations.operation import ANONYMOUS, ById
from gateway.operations.settings import sbom
from gateway.responses import JSON, json_response
from gateway.services.audit_export import CONTENT_TYPES as EXPORT_TYPES
from gateway.services.audit_export import export
from gateway.services.feed import Watcher
from gateway.services.health import HEALTHY
from gateway.store.feed import Item
from gateway.strict_json import write_json, write_time

SERVICE_NAME = "service"
PYTHON = "{}.{}.{}".format(*sys.version_info[:3])
_FINE = (HEALTHY, "not_configured", "unknown")
# A document may load and run nothing. Its style is inline, because the file must be complete by itself.
_DOCUMENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
_FEED_BYTES = 256 * 1024


class PlainEdge:
    """Answers what programs ask for, and what browsers download or watch."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._document = b""
        self._offload = ThreadOffload()

    async def health(self, request: Request, caller: Caller, command: HealthWanted) -> Response:
        """Say that the service answers; say more to a caller with a good key.

        Raises AuditUnavailable: the caller asks whether it is ready, and the database does not answer.
        """
        if command.ready is not None:
            await self._gateway.health.check_ready()
        if caller.principal is ANONYMOUS:
            return json_response({"status": "ok", "name": SERVICE_NAME})
        gateway = self._gateway
        checks = await gateway.health.checks()
        return json_response(
            {
                "status": "ok" if all(state in _FINE for state in checks.values()) else "degraded",
                "name": SERVICE_NAME,
                "version": __version__,
                "build": bundle.build_id(),
                "archive_sha256": bundle.archive_sha256(),
                "checks": checks,
                "uptime_seconds": max(0, gateway.clock.now_at() - gateway.started_at) / 1000,
            }
        )

    async def openapi(self, request: Request, caller: Caller, command: None) -> Response:
        """Return the description of the API, which is made for the first caller."""
        if not self._document:
            settings = self._gateway.settings
            self._document = await self._offload.run(
                lambda operations: write_json(document(operations, settings)), DESCRIBED_OPERATIONS
            )
        return Response(200, JSON, self._document)

    async def sbom(self, request: Request, caller: Caller, command: None) -> Response:
        """Return the bill of materials."""
        return json_response(sbom())

    async def metrics(self, request: Request, caller: Caller, command: None) -> Response:
        """Return the metrics of this process as Prometheus text."""
        metrics, matcher = self._gateway.metrics, self._gateway.shield.matcher
        labels = {"version": __version__, "build": bundle.build_id(), "python": PYTHON, "matcher": matcher}
        metrics.gauge("gateway_build_info", 1, **labels)
        return Response(200, (("content-type", CONTENT_TYPE),), metrics.render().encode())

    async def audit_export(self, request: Request, caller: Caller, wanted: ExportWanted) -> Response:
        """Stream the audit log."""
        pieces = await export(self._gateway.store, self._gateway.audit, caller, wanted, wanted.format)
        name = f"audit-{write_time(self._gateway.clock.now_at())[:10]}.{wanted.format.value}"
        return Response(200, _file_headers(EXPORT_TYPES[wanted.format], "attachment", name), stream=pieces)

    async def report(self, request: Request, caller: Caller, wanted: ById) -> Response:
        """Send the document of one report."""
        made = await self._gateway.reports.document(caller.principal, wanted.id)
        report = made.report
        name = f"{report.type.value}-{write_time(report.until_at)[:10]}.{ENDINGS[report.format]}"
        return Response(200, _file_headers(REPORT_TYPES[report.format], "inline", name), made.document.encode())

    async def evidence(self, request: Request, caller: Caller, wanted: EvidenceOf) -> Response:
        """Send the evidence of one incident."""
        form = ReportFormat(wanted.format)
        document = await self._gateway.evidence.write(caller, wanted.id, form)
        headers = _file_headers(REPORT_TYPES[form], "attachment", f"{wanted.id}.{ENDINGS[form]}")
        return Response(200, headers, document.encode())

    async def feed(self, request: Request, caller: Caller, command: None) -> Response:
        """Stream `hello`, then the `traffic` and `alert` events that the caller may see, until the session ends."""
        token = read_cookie(request.headers.get("cookie")) if caller.principal.kind == "user" else None

        async def is_welcome() -> bool:
            return caller.principal.kind != "user" or await self._gateway.signin.is_live(token)

        stream = EventStream(lambda: self._gateway.feed.leave(watcher), limit_bytes=_FEED_BYTES)
        watcher = Watcher(
            principal=caller.principal,
            send=lambda kind, row: stream.send(render_event(write_json(_shown(row)), kind)),
            end=stream.end,
            is_welcome=is_welcome,
        )
        await self._gateway.feed.join(watcher)
        stream.send(render_event(b"{}", "hello"))
        return Response(200, SSE_HEADERS, stream=stream, ends_with_peer=True)


def _file_headers(content_type: str, disposition: str, name: str) -> tuple[tuple[str, str], ...]:
    return (
        ("content-type", content_type),
        ("content-disposition", f'{disposition}; filename="{name}"'),
        ("content-security-policy", _DOCUMENT_POLICY),
    )


def _shown(item: Item) -> dict[str, object]:
    return {
        name: write_time(value) if isinstance(value, int) and name.endswith("_at") else value
        for name, value in item.items()
    }
