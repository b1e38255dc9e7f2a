"""The rows of the checks of the gateway and of what agents load: posture, trust audits, security scans."""

from gateway.domain.posture import MAX_RUNS, TrustAudit
from gateway.domain.principals import Permission, Scope
from gateway.domain.security_scans import MAX_SCANS, SecurityScan
from gateway.operations.operation import Since, kind, time
from gateway.operations.rows import Noun, PageOf20, paging, public, row
from gateway.services.security_scans import NewSecurityScan
from gateway.services.trust_audits import PostureView
from gateway.store.tables import SCAN_SORTS

_AUDITS = Noun("trust_audits", TrustAudit, Permission.POSTURE_READ, Permission.POSTURE_MANAGE)
_PAGE = paging(MAX_SCANS, 20, SCAN_SORTS)
_SCANS = Noun("security_scans", SecurityScan, Permission.SHIELD_READ, Permission.SHIELD_MANAGE)

TRUST_AUDIT_OPERATIONS = (
    row(
        "posture.show",
        "GET /api/posture",
        Permission.POSTURE_READ,
        "Show posture and threat score, their parts, their history, and the newest trust audit.",
        takes=Since,
        gives=PostureView,
        call=lambda gateway, caller, wanted: gateway.trust_audits.view(wanted.since),
        query=(time("since", "Points since: an RFC 3339 time, a date, or an age such as 7d (24h)."),),
    ),
    _AUDITS.list("List trust audits with every check, newest first.", takes=PageOf20, query=paging(MAX_RUNS, 20)),
    _AUDITS.row(
        "run",
        "POST",
        "Run every check of the trust audit and store the result.",
        status=201,
        fails=("audit_unavailable",),
    ),
    _AUDITS.show("Show one trust audit."),
)
SECURITY_SCAN_OPERATIONS = (
    _SCANS.list("List security scans with what each found, newest first.", takes=PageOf20, query=_PAGE),
    _SCANS.create(
        NewSecurityScan,
        "Scan prompts, tool descriptions, settings and files: `items` of name, kind and text, or `paths`.",
        verb="run",
        method="run",
        kinds=(
            kind(("items",), items={"type": "array", "minItems": 1}),
            kind(("paths",), paths={"type": "array", "minItems": 1}),
        ),
        body_setting="max_scan_body_bytes",
        fails=("audit_unavailable",),
    ),
    _SCANS.show("Show one security scan."),
)
OPERATIONS = TRUST_AUDIT_OPERATIONS + SECURITY_SCAN_OPERATIONS
PUBLIC_OPERATIONS = (
    public(TRUST_AUDIT_OPERATIONS[1], "trust_audits.public_list", Scope.SHIELD_READ),
    public(SECURITY_SCAN_OPERATIONS[0], "security_scans.public_list", Scope.SHIELD_READ),
)
