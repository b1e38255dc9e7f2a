"""The rows of risk acceptances, and the view of one. The rules are in `services.risk_acceptances`."""

from dataclasses import dataclass, field
from typing import Literal

from gateway.app import Gateway
from gateway.domain.paging import PageQuery
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.domain.risk_acceptances import MAX_ACCEPTANCE_LIMIT, AcceptanceScope, RiskAcceptance
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun, paging, public
from gateway.records import project
from gateway.schema import JsonSchema
from gateway.services.new_verdicts import NewVerdict
from gateway.services.risk_acceptances import ChangedAcceptance, WantedAcceptance

_TEXT: JsonSchema = {"type": "string"}
_NONE: JsonSchema = {"type": "null"}
_NO: JsonSchema = {"const": False}
_OF_ANY_KEY = dict.fromkeys(("key", "digest", "alert"), _NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceView(RiskAcceptance):
    """A risk acceptance and its present status."""

    until_at: int = field(metadata={"json_name": "until"})
    status: Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAcceptance(AcceptanceView):
    """A new risk acceptance. new_verdict: what the request it was created for would get now."""

    new_verdict: NewVerdict


def _view(gateway: Gateway, one: RiskAcceptance) -> AcceptanceView:
    return project(AcceptanceView, one, status=one.status_at(gateway.clock.now_at()))


async def _create(
    gateway: Gateway, who: Principal, command: WantedAcceptance, context: RequestContext
) -> MadeAcceptance:
    one = await gateway.risk_acceptances.create(who, command, context, rules=await gateway.rules.ids())
    verdict = await gateway.new_verdicts.after(one, request=command.request, alert=command.alert)
    return project(MadeAcceptance, _view(gateway, one), new_verdict=verdict)


def _of(
    scope: AcceptanceScope, texts: tuple[str, ...], others: tuple[str, ...] = (), /, **properties: JsonSchema
) -> JsonSchema:
    """Return the schema of bodies of one scope, which require `texts` and `others`."""
    return kind((*texts, *others), scope={"const": scope.value}, **dict.fromkeys(texts, _TEXT), **properties)


_ACCEPTANCES = Noun(
    "risk_acceptances", AcceptanceView, Permission.RISK_ACCEPTANCES_READ, Permission.RISK_ACCEPTANCES_MANAGE, view=_view
)
_LIST = _ACCEPTANCES.list(
    "List the risk acceptances, newest first.", takes=PageQuery, query=paging(MAX_ACCEPTANCE_LIMIT)
)

PUBLIC_ACCEPTANCE_OPERATIONS = (
    public(
        _LIST,
        "risk_acceptances.public",
        Scope.SHIELD_READ,
        "List the risk acceptances, newest first: what scores leave out, by whom, why and until when.",
    ),
)

ACCEPTANCE_OPERATIONS = (
    _LIST,
    _ACCEPTANCES.create(
        WantedAcceptance,
        "Accept a risk: `scope`, `reason`, `until` (≤ 90 d), `rule`; `agent` with `key`, `digest` or `alert`.",
        gives=MadeAcceptance,
        call=_create,
        kinds=(
            _of(AcceptanceScope.RULE, ("rule",), agent=_NONE, key=_NONE, digest=_NONE, alert=_NONE, any_key=_NO),
            _of(AcceptanceScope.RULE_AGENT, ("rule", "agent", "key"), digest=_NONE, alert=_NONE, any_key=_NO),
            _of(AcceptanceScope.RULE_AGENT, ("rule", "agent"), ("any_key",), any_key={"const": True}, **_OF_ANY_KEY),
            _of(AcceptanceScope.FINDING, ("rule", "digest"), agent=_NONE, key=_NONE, alert=_NONE, any_key=_NO),
            _of(AcceptanceScope.FINDING, ("alert",), rule=_NONE, agent=_NONE, key=_NONE, digest=_NONE, any_key=_NO),
        ),
    ),
    _ACCEPTANCES.show("Show one risk acceptance."),
    _ACCEPTANCES.change(
        ChangedAcceptance, "Change `reason` or `until` of a risk acceptance; `version` or `If-Match` guards."
    ),
    _ACCEPTANCES.row("revoke", "DELETE /{id}", "Revoke a risk acceptance. Its record stays in the list.", takes=ById),
)
