"""The rows of posture and trust audits. The rules are in `services.trust_audits`."""

from dataclasses import dataclass

from gateway.domain.posture import MAX_RUNS, TrustAudit
from gateway.domain.principals import Permission, Scope
from gateway.operations.operation import time
from gateway.operations.rows import Noun, PageOf20, paging, public, row
from gateway.services.trust_audits import PostureView


@dataclass(frozen=True, slots=True)
class HistoryWanted:
    """The start of the history of both scores; one day back by default."""

    since: int | None = None


_AUDITS = Noun(
    name="trust_audits",
    path="/api/trust-audits",
    service=lambda gateway: gateway.trust_audits,
    gives=TrustAudit,
    reads=Permission.POSTURE_READ,
    manages=Permission.POSTURE_MANAGE,
)
_LIST = _AUDITS.list("List trust audits with every check, newest first.", takes=PageOf20, query=paging(MAX_RUNS, 20))

PUBLIC_TRUST_AUDITS = (public(_LIST, "trust_audits.public_list", Scope.SHIELD_READ),)

TRUST_AUDIT_OPERATIONS = (
    row(
        "posture.show",
        "GET /api/posture",
        Permission.POSTURE_READ,
        "Show posture and threat score, their parts, the newest trust audit and the course of both.",
        takes=HistoryWanted,
        gives=PostureView,
        call=lambda gateway, who, wanted, context: gateway.trust_audits.view(wanted.since),
        query=(time("since", "Points since: an RFC 3339 time, a date, or an age such as 7d (24h)."),),
    ),
    _LIST,
    _AUDITS.row(
        "run",
        "POST",
        "Run every check of the trust audit and keep the result.",
        call=lambda gateway, who, command, context: gateway.trust_audits.run(who, context),
        status=201,
        fails=("audit_unavailable",),
    ),
    _AUDITS.show("Show one trust audit."),
)
