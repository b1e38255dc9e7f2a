"""The rows of risk acceptances, internal and public, and what is shown of one. Rules: `services.risk_acceptances`."""

from dataclasses import dataclass, field
from typing import Literal

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.domain.risk_acceptances import AcceptanceScope, RiskAcceptance
from gateway.operations.operation import Answer, ById, Door, Operation, cursor, kind, limit
from gateway.operations.views import project
from gateway.schema import JsonSchema
from gateway.services.new_verdicts import NewVerdict
from gateway.services.risk_acceptances import ChangedAcceptance, WantedAcceptance
from gateway.store.risk_acceptances import MAX_ACCEPTANCE_LIMIT

DEFAULT_LIMIT = 100
_TEXT: JsonSchema = {"type": "string"}
_NONE: JsonSchema = {"type": "null"}
_NO: JsonSchema = {"const": False}
_OF_ANY_KEY = dict.fromkeys(("key", "digest", "alert"), _NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceFilter:
    """Which part of the acceptances to list."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAcceptance(ChangedAcceptance):
    """What is to change of the acceptance `id`."""

    id: str


@dataclass(frozen=True, slots=True)
class AcceptanceView:
    """A risk acceptance as it stands now."""

    id: str
    scope: AcceptanceScope
    rule: str
    agent: str | None
    key: str | None
    digest: str | None
    reason: str
    status: Literal["active", "expired", "revoked"]
    accepted_at: int
    accepted_by: str
    until_at: int = field(metadata={"json_name": "until"})
    revoked_at: int | None
    revoked_by: str | None
    version: int


@dataclass(frozen=True, slots=True)
class MadeAcceptance(AcceptanceView):
    """A risk acceptance that was just made. new_verdict: of the request it was made for."""

    new_verdict: NewVerdict


def view_acceptance(one: RiskAcceptance, now_at: int) -> AcceptanceView:
    """Return what is shown of an acceptance."""
    return project(AcceptanceView, one, status=one.status(now_at))


async def list_acceptances(
    gateway: Gateway, who: Principal, wanted: AcceptanceFilter, context: RequestContext
) -> Page[AcceptanceView]:
    """Return a page of acceptances."""
    page = await gateway.risk_acceptances.page(limit=wanted.limit, cursor=wanted.cursor)
    now_at = gateway.clock.now_at()
    return Page(tuple(view_acceptance(one, now_at) for one in page.items), page.limit, page.next)


async def create_acceptance(
    gateway: Gateway, who: Principal, command: WantedAcceptance, context: RequestContext
) -> MadeAcceptance:
    """Accept a risk, and say what that does."""
    one = await gateway.risk_acceptances.create(who, command, context, rules=await gateway.rules.ids())
    verdict = await gateway.new_verdicts.after(one, request=command.request, alert=command.alert)
    return project(MadeAcceptance, one, status=one.status(gateway.clock.now_at()), new_verdict=verdict)


async def show_acceptance(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> AcceptanceView:
    """Return one acceptance."""
    return view_acceptance(await gateway.risk_acceptances.show(command.id), gateway.clock.now_at())


async def change_acceptance(
    gateway: Gateway, who: Principal, command: PatchAcceptance, context: RequestContext
) -> AcceptanceView:
    """Change an acceptance."""
    one = await gateway.risk_acceptances.change(who, command.id, command, context)
    return view_acceptance(one, gateway.clock.now_at())


async def revoke_acceptance(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> AcceptanceView:
    """Take an acceptance back."""
    return view_acceptance(await gateway.risk_acceptances.revoke(who, command.id, context), gateway.clock.now_at())


def _of(
    scope: AcceptanceScope, texts: tuple[str, ...], others: tuple[str, ...] = (), /, **properties: JsonSchema
) -> JsonSchema:
    """Return the kind of bodies of a scope. It needs these texts, and these others of the properties."""
    return kind((*texts, *others), scope={"const": scope.value}, **dict.fromkeys(texts, _TEXT), **properties)


_PAGE = (limit(MAX_ACCEPTANCE_LIMIT, DEFAULT_LIMIT), cursor())

PUBLIC_ACCEPTANCE_OPERATIONS = (
    Operation(
        name="risk_acceptances.public",
        route=("GET", "/api/v1/risk-acceptances"),
        door=Door.KEY,
        needs=Scope.SHIELD_READ,
        answer=Answer.PAGE,
        takes=AcceptanceFilter,
        gives=AcceptanceView,
        call=list_acceptances,
        query=_PAGE,
        summary="List the risk acceptances, newest first: what is left out of scores, by whom, why and until when.",
    ),
)

ACCEPTANCE_OPERATIONS = (
    Operation(
        name="risk_acceptances.list",
        route=("GET", "/api/risk-acceptances"),
        door=Door.SESSION,
        needs=Permission.RISK_ACCEPTANCES_READ,
        answer=Answer.PAGE,
        takes=AcceptanceFilter,
        gives=AcceptanceView,
        call=list_acceptances,
        query=_PAGE,
        summary="List the risk acceptances, newest first.",
    ),
    Operation(
        name="risk_acceptances.create",
        route=("POST", "/api/risk-acceptances"),
        door=Door.SESSION,
        needs=Permission.RISK_ACCEPTANCES_MANAGE,
        takes=WantedAcceptance,
        gives=MadeAcceptance,
        call=create_acceptance,
        status=201,
        kinds=(
            _of(AcceptanceScope.RULE, ("rule",), agent=_NONE, key=_NONE, digest=_NONE, alert=_NONE, any_key=_NO),
            _of(AcceptanceScope.RULE_AGENT, ("rule", "agent", "key"), digest=_NONE, alert=_NONE, any_key=_NO),
            _of(AcceptanceScope.RULE_AGENT, ("rule", "agent"), ("any_key",), any_key={"const": True}, **_OF_ANY_KEY),
            _of(AcceptanceScope.FINDING, ("rule", "digest"), agent=_NONE, key=_NONE, alert=_NONE, any_key=_NO),
            _of(AcceptanceScope.FINDING, ("alert",), rule=_NONE, agent=_NONE, key=_NONE, digest=_NONE, any_key=_NO),
        ),
        summary="Accept a risk: `scope`, `reason`, `until` (≤ 90 d), `rule`; `agent` with `key`, `digest` or `alert`.",
    ),
    Operation(
        name="risk_acceptances.show",
        route=("GET", "/api/risk-acceptances/{id}"),
        door=Door.SESSION,
        needs=Permission.RISK_ACCEPTANCES_READ,
        takes=ById,
        gives=AcceptanceView,
        call=show_acceptance,
        summary="Show one risk acceptance.",
    ),
    Operation(
        name="risk_acceptances.change",
        route=("PATCH", "/api/risk-acceptances/{id}"),
        door=Door.SESSION,
        needs=Permission.RISK_ACCEPTANCES_MANAGE,
        takes=PatchAcceptance,
        gives=AcceptanceView,
        call=change_acceptance,
        summary="Change `reason` or `until` of a risk acceptance; `version` or `If-Match` guards.",
    ),
    Operation(
        name="risk_acceptances.revoke",
        route=("DELETE", "/api/risk-acceptances/{id}"),
        door=Door.SESSION,
        needs=Permission.RISK_ACCEPTANCES_MANAGE,
        takes=ById,
        gives=AcceptanceView,
        call=revoke_acceptance,
        summary="Revoke a risk acceptance. Its record stays in the list.",
    ),
)
