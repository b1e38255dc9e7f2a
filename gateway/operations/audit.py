"""The rows of the audit log, internal and public."""

from dataclasses import dataclass

from gateway.domain.audit import MAX_AUDIT_LIMIT, AuditEvent, AuditFilter
from gateway.domain.principals import Permission, Scope
from gateway.operations.operation import choice, request_id, text, texts, time
from gateway.operations.rows import Noun, paging, public, row
from gateway.services.audit_chain import ChainStatus
from gateway.services.audit_export import ExportFormat
from gateway.store.audit import SORTS

EXPORT_FILTERS = (
    text("source", "The part of the gateway that recorded it, such as `api`, `shield`, `mcp` or `cli`."),
    text("action", "What was done, such as `api_key_created`."),
    text("actor", "The name of the actor."),
    text("resource_type", "The kind of resource."),
    time("since", "At or after: an RFC 3339 time, a date, or an age such as 24h."),
    time("until", "At or before: an RFC 3339 time, a date, or an age such as 24h."),
    texts("exclude_actions", "Actions to leave out, comma-separated."),
    text("search", "Text, in any case, in action, actor, agent, key, address, request id, resource or details."),
    request_id(),
)
AUDIT_FILTERS = (*EXPORT_FILTERS, *paging(MAX_AUDIT_LIMIT, sorts=SORTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportWanted(AuditFilter):
    """Which events to export, and how."""

    format: ExportFormat = ExportFormat.JSONL


EXPORT_QUERY = (choice("format", ExportFormat, "`jsonl` (default) or `csv`."), *EXPORT_FILTERS)

_AUDIT = Noun("audit", AuditEvent, Permission.AUDIT_READ, Permission.AUDIT_READ)

OPERATIONS = (
    _AUDIT.list("List audit events, newest first.", verb="page", takes=AuditFilter, query=AUDIT_FILTERS),
    _AUDIT.row(
        "chain",
        "GET /chain",
        "Check the audit chain since its newest checkpoint; show its ends and checkpoints.",
        gives=ChainStatus,
        call=lambda gateway, caller, command: gateway.audit_chain.status(),
    ),
    row(
        "audit.export",
        "GET /api/audit/export",
        Permission.AUDIT_READ,
        "Download the audit log as JSON lines or CSV, oldest first, in one stream.",
        takes=ExportWanted,
        query=EXPORT_QUERY,
    ),
)
PUBLIC_OPERATIONS = (public(OPERATIONS[0], "audit.list", Scope.AUDIT_READ),)
