"""The rows of security scans. The rules are in `services.security_scans`."""

from gateway.domain.principals import Permission, Scope
from gateway.domain.security_scans import MAX_SCANS, SecurityScan
from gateway.operations.operation import kind
from gateway.operations.rows import Noun, PageOf20, paging, public
from gateway.services.security_scans import NewSecurityScan

_SCANS = Noun(
    name="security_scans",
    path="/api/security-scans",
    service=lambda gateway: gateway.security_scans,
    gives=SecurityScan,
    reads=Permission.SHIELD_READ,
    manages=Permission.SHIELD_MANAGE,
)

SECURITY_SCAN_OPERATIONS = (
    _SCANS.list("List security scans with what each found, newest first.", takes=PageOf20, query=paging(MAX_SCANS, 20)),
    _SCANS.create(
        NewSecurityScan,
        "Scan prompts, tool descriptions, settings and files: `items` of name, kind and text, or `paths`.",
        verb="run",
        call=lambda gateway, who, command, context: gateway.security_scans.run(who, command, context),
        kinds=(
            kind(("items",), items={"type": "array", "minItems": 1}),
            kind(("paths",), paths={"type": "array", "minItems": 1}),
        ),
        body_setting="max_scan_body_bytes",
        fails=("audit_unavailable",),
    ),
    _SCANS.show("Show one security scan."),
)
PUBLIC_SECURITY_SCANS = (public(SECURITY_SCAN_OPERATIONS[0], "security_scans.public_list", Scope.SHIELD_READ),)
