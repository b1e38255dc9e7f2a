"""The rows of the audit log on the internal API, and the filters that the public one shares."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.audit import DEFAULT_AUDIT_LIMIT, MAX_AUDIT_LIMIT, AuditEvent, AuditFilter
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.operations.operation import Answer, Door, Operation, choice, cursor, limit, request_id, text, texts, time
from gateway.services.audit_chain import ChainStatus
from gateway.services.audit_export import ExportFormat

EXPORT_FILTERS = (
    text("source", "Which part saw it, such as `api`, `shield`, `mcp` or `cli`."),
    text("action", "What was done, such as `api_key_created`."),
    text("actor", "The name of who did it."),
    text("resource_type", "The kind of thing it was done to."),
    time("since", "At or after: an RFC 3339 time, a date, or an age such as 24h."),
    time("until", "At or before: an RFC 3339 time, a date, or an age such as 24h."),
    texts("exclude_actions", "Actions to leave out, with commas between."),
    text("search", "Found in any case in action, actor, agent, key, address, request id, resource or details."),
    request_id(),
)
AUDIT_FILTERS = (*EXPORT_FILTERS, limit(MAX_AUDIT_LIMIT, DEFAULT_AUDIT_LIMIT), cursor())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportWanted:
    """Which events to export, and how."""

    format: ExportFormat = ExportFormat.JSONL
    source: str | None = None
    action: str | None = None
    actor: str | None = None
    resource_type: str | None = None
    since: int | None = None
    until: int | None = None
    exclude_actions: tuple[str, ...] = ()
    search: str | None = None
    request_id: str | None = None

    def filter(self) -> AuditFilter:
        """Return which events are meant."""
        return AuditFilter(
            source=self.source,
            action=self.action,
            actor=self.actor,
            resource_type=self.resource_type,
            since=self.since,
            until=self.until,
            exclude_actions=self.exclude_actions,
            search=self.search,
            request_id=self.request_id,
        )


async def list_audit(
    gateway: Gateway, who: Principal, wanted: AuditFilter, context: RequestContext
) -> Page[AuditEvent]:
    """Return a page of audit events."""
    return await gateway.audit.page(wanted)


async def show_chain(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> ChainStatus:
    """Return the state of the chain."""
    return await gateway.audit_chain.status()


EXPORT_QUERY = (choice("format", ExportFormat, "`jsonl` (default) or `csv`."), *EXPORT_FILTERS)

AUDIT_OPERATIONS = (
    Operation(
        name="audit.page",
        route=("GET", "/api/audit"),
        door=Door.SESSION,
        needs=Permission.AUDIT_READ,
        answer=Answer.PAGE,
        takes=AuditFilter,
        gives=AuditEvent,
        call=list_audit,
        query=AUDIT_FILTERS,
        summary="List audit events, newest first.",
    ),
    Operation(
        name="audit.chain",
        route=("GET", "/api/audit/chain"),
        door=Door.SESSION,
        needs=Permission.AUDIT_READ,
        gives=ChainStatus,
        call=show_chain,
        summary="Check the audit chain since its newest checkpoint; show its ends and checkpoints.",
    ),
    Operation(
        name="audit.export",
        route=("GET", "/api/audit/export"),
        door=Door.SESSION,
        needs=Permission.AUDIT_READ,
        takes=ExportWanted,
        answer=Answer.BARE,
        query=EXPORT_QUERY,
        summary="Download the audit log as JSON lines or CSV, oldest first, in one stream.",
    ),
)
