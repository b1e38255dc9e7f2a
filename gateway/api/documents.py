"""Send the audit log and reports as files, under a content security policy of their own."""

from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.report_text import CONTENT_TYPES as REPORT_TYPES
from gateway.domain.reports import ENDINGS
from gateway.http.messages import Request, Response
from gateway.operations.audit import ExportWanted
from gateway.operations.operation import ById
from gateway.services.audit_export import CONTENT_TYPES
from gateway.strict_json import write_time

# A document may load and run nothing. Its style is inline, because the file must be complete by itself.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"


class DocumentEdge:
    """Sends documents."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def audit_export(
        self, request: Request, who: Principal, context: RequestContext, wanted: ExportWanted
    ) -> Response:
        """Stream the audit log."""
        pieces = await self._gateway.audit_export.begin(who, wanted, wanted.format, context)
        day = write_time(self._gateway.clock.now_at())[:10]
        headers = (
            ("content-type", CONTENT_TYPES[wanted.format]),
            ("content-disposition", f'attachment; filename="audit-{day}.{wanted.format.value}"'),
            ("content-security-policy", POLICY),
        )
        return Response(200, headers, stream=pieces)

    async def report(self, request: Request, who: Principal, context: RequestContext, wanted: ById) -> Response:
        """Send the document of one report."""
        made = await self._gateway.reports.document(who, wanted.id)
        report = made.report
        name = f"{report.type.value}-{write_time(report.until_at)[:10]}.{ENDINGS[report.format]}"
        headers = (
            ("content-type", REPORT_TYPES[report.format]),
            ("content-disposition", f'inline; filename="{name}"'),
            ("content-security-policy", POLICY),
        )
        return Response(200, headers, made.document.encode())
