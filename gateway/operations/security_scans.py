"""The rows of security scans. Rules are kept in `services.security_scans`."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.domain.security_scans import SecurityScan
from gateway.operations.operation import Answer, ById, Door, Operation, cursor, kind, limit
from gateway.services.security_scans import NewSecurityScan
from gateway.store.security_scans import MAX_SCANS

DEFAULT_SCANS = 20
_PAGE = (limit(MAX_SCANS, DEFAULT_SCANS), cursor())


@dataclass(frozen=True, slots=True)
class ScansWanted:
    """Which page of runs."""

    limit: int = DEFAULT_SCANS
    cursor: str | None = None


async def list_scans(
    gateway: Gateway, who: Principal, wanted: ScansWanted, context: RequestContext
) -> Page[SecurityScan]:
    """Return a page of runs."""
    return await gateway.security_scans.page(wanted.limit, wanted.cursor)


async def run_scan(gateway: Gateway, who: Principal, command: NewSecurityScan, context: RequestContext) -> SecurityScan:
    """Scan what is named."""
    return await gateway.security_scans.run(who, command, context)


async def show_scan(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> SecurityScan:
    """Return one run."""
    return await gateway.security_scans.show(command.id)


PUBLIC_SECURITY_SCANS = (
    Operation(
        name="security_scans.public_list",
        route=("GET", "/api/v1/security-scans"),
        door=Door.KEY,
        needs=Scope.SHIELD_READ,
        answer=Answer.PAGE,
        takes=ScansWanted,
        gives=SecurityScan,
        call=list_scans,
        query=_PAGE,
        summary="List security scans with what each found, newest first.",
    ),
)

SECURITY_SCAN_OPERATIONS = (
    Operation(
        name="security_scans.list",
        route=("GET", "/api/security-scans"),
        door=Door.SESSION,
        needs=Permission.SHIELD_READ,
        answer=Answer.PAGE,
        takes=ScansWanted,
        gives=SecurityScan,
        call=list_scans,
        query=_PAGE,
        summary="List security scans with what each found, newest first.",
    ),
    Operation(
        name="security_scans.run",
        route=("POST", "/api/security-scans"),
        door=Door.SESSION,
        needs=Permission.SHIELD_MANAGE,
        takes=NewSecurityScan,
        gives=SecurityScan,
        call=run_scan,
        kinds=(
            kind(("items",), items={"type": "array", "minItems": 1}),
            kind(("paths",), paths={"type": "array", "minItems": 1}),
        ),
        status=201,
        body_setting="max_scan_body_bytes",
        fails=("audit_unavailable",),
        summary="Scan prompts, tool descriptions, settings and files: `items` of name, kind and text, or `paths`.",
    ),
    Operation(
        name="security_scans.show",
        route=("GET", "/api/security-scans/{id}"),
        door=Door.SESSION,
        needs=Permission.SHIELD_READ,
        takes=ById,
        gives=SecurityScan,
        call=show_scan,
        summary="Show one security scan.",
    ),
)
