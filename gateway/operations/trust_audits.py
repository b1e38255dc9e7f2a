"""The rows of posture and trust audits. Rules are kept in `services.trust_audits`."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.posture import TrustAudit
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.operations.operation import Answer, ById, Door, Operation, cursor, limit, time
from gateway.services.trust_audits import PostureView
from gateway.store.trust_audits import MAX_RUNS

DEFAULT_RUNS = 20


@dataclass(frozen=True, slots=True)
class RunsWanted:
    """Which page of runs."""

    limit: int = DEFAULT_RUNS
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryWanted:
    """Since when the points of the scores are shown; a day if not said."""

    since: int | None = None


async def show_posture(gateway: Gateway, who: Principal, wanted: HistoryWanted, context: RequestContext) -> PostureView:
    """Return both scores."""
    return await gateway.trust_audits.view(wanted.since)


async def list_runs(gateway: Gateway, who: Principal, wanted: RunsWanted, context: RequestContext) -> Page[TrustAudit]:
    """Return a page of runs."""
    return await gateway.trust_audits.page(wanted.limit, wanted.cursor)


async def start_run(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> TrustAudit:
    """Run every check."""
    return await gateway.trust_audits.run(who, context)


async def show_run(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> TrustAudit:
    """Return one run."""
    return await gateway.trust_audits.show(command.id)


_PAGE = (limit(MAX_RUNS, DEFAULT_RUNS), cursor())

PUBLIC_TRUST_AUDITS = (
    Operation(
        name="trust_audits.public_list",
        route=("GET", "/api/v1/trust-audits"),
        door=Door.KEY,
        needs=Scope.SHIELD_READ,
        answer=Answer.PAGE,
        takes=RunsWanted,
        gives=TrustAudit,
        call=list_runs,
        query=_PAGE,
        summary="List trust audits with every check, newest first.",
    ),
)

TRUST_AUDIT_OPERATIONS = (
    Operation(
        name="posture.show",
        route=("GET", "/api/posture"),
        door=Door.SESSION,
        needs=Permission.POSTURE_READ,
        takes=HistoryWanted,
        gives=PostureView,
        call=show_posture,
        query=(time("since", "Points since: an RFC 3339 time, a date, or an age such as 7d (24h)."),),
        summary="Show posture and threat score, their parts, the newest trust audit and the course of both.",
    ),
    Operation(
        name="trust_audits.list",
        route=("GET", "/api/trust-audits"),
        door=Door.SESSION,
        needs=Permission.POSTURE_READ,
        answer=Answer.PAGE,
        takes=RunsWanted,
        gives=TrustAudit,
        call=list_runs,
        query=_PAGE,
        summary="List trust audits with every check, newest first.",
    ),
    Operation(
        name="trust_audits.run",
        route=("POST", "/api/trust-audits"),
        door=Door.SESSION,
        needs=Permission.POSTURE_MANAGE,
        gives=TrustAudit,
        call=start_run,
        status=201,
        fails=("audit_unavailable",),
        summary="Run every check of the trust audit and keep the result.",
    ),
    Operation(
        name="trust_audits.show",
        route=("GET", "/api/trust-audits/{id}"),
        door=Door.SESSION,
        needs=Permission.POSTURE_READ,
        takes=ById,
        gives=TrustAudit,
        call=show_run,
        summary="Show one trust audit.",
    ),
)
