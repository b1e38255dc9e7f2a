"""The rows of risk acceptances, and the view of one. The rules are in `services.risk_acceptances`."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.paging import PageQuery
from gateway.domain.principals import Caller, Permission, Scope
from gateway.domain.risk_acceptances import (
    MAX_ACCEPTANCE_LIMIT,
    AcceptanceScope,
    AcceptanceStatus,
    NewVerdict,
    RiskAcceptance,
)
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun, paging, public
from gateway.records import project
from gateway.schema import JsonSchema
from gateway.services.risk_acceptances import ChangedAcceptance, WantedAcceptance
from gateway.store.tables import ACCEPTANCE_SORTS

_TEXT: JsonSchema = {"type": "string"}
_NONE: JsonSchema = {"type": "null"}
_TEXTS = ("rule", "agent", "key", "digest", "alert", "policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceView(RiskAcceptance):
    """A risk acceptance and its present status."""

    status: AcceptanceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAcceptance(AcceptanceView):
    """A new risk acceptance. new_verdict: what the request it was created for would get now."""

    new_verdict: NewVerdict


def _view(gateway: Gateway, one: RiskAcceptance) -> AcceptanceView:
    return project(AcceptanceView, one, status=one.status_at(gateway.clock.now_at()))


async def _create(gateway: Gateway, caller: Caller, command: WantedAcceptance) -> MadeAcceptance:
    one = await gateway.risk_acceptances.create(caller, command, rules=await gateway.rules.rule_ids())
    verdict = await gateway.new_verdicts.after(one, request=command.request, alert=command.alert)
    return project(MadeAcceptance, _view(gateway, one), new_verdict=verdict)


def _of(scope: AcceptanceScope, *texts: str, any_key: bool = False) -> JsonSchema:
    """Return the schema of bodies of one scope, which have these texts and none of the others."""
    properties = dict.fromkeys(_TEXTS, _NONE) | dict.fromkeys(texts, _TEXT)
    needed = (*texts, "any_key") if any_key else texts
    return kind(needed, scope={"const": scope.value}, any_key={"const": any_key}, **properties)


_ACCEPTANCES = Noun(
    "risk_acceptances", AcceptanceView, Permission.RISK_ACCEPTANCES_READ, Permission.RISK_ACCEPTANCES_MANAGE, view=_view
)
_LIST = _ACCEPTANCES.list(
    "List the risk acceptances, newest first.",
    takes=PageQuery,
    query=paging(MAX_ACCEPTANCE_LIMIT, sorts=ACCEPTANCE_SORTS),
)

PUBLIC_OPERATIONS = (
    public(
        _LIST,
        "risk_acceptances.public",
        Scope.SHIELD_READ,
        "List the risk acceptances, newest first: what scores leave out, by whom, why and until when.",
    ),
)

OPERATIONS = (
    _LIST,
    _ACCEPTANCES.create(
        WantedAcceptance,
        "Accept a risk: `scope`, `reason`, `until` (≤ 90 d), `rule`; `agent`, `key`, `policy`, `digest` or `alert`.",
        gives=MadeAcceptance,
        call=_create,
        kinds=(
            _of(AcceptanceScope.RULE, "rule"),
            _of(AcceptanceScope.RULE_KEY, "rule", "key"),
            _of(AcceptanceScope.RULE_POLICY, "rule", "policy"),
            _of(AcceptanceScope.RULE_AGENT, "rule", "agent", "key"),
            _of(AcceptanceScope.RULE_AGENT, "rule", "agent", any_key=True),
            _of(AcceptanceScope.FINDING, "rule", "digest"),
            _of(AcceptanceScope.FINDING, "alert"),
        ),
    ),
    _ACCEPTANCES.show("Show one risk acceptance."),
    _ACCEPTANCES.change(
        ChangedAcceptance, "Change `reason` or `until` of a risk acceptance; `version` or `If-Match` guards."
    ),
    _ACCEPTANCES.row("approve", "POST /{id}/approve", "Approve a proposed risk acceptance.", takes=ById),
    _ACCEPTANCES.row(
        "revoke", "DELETE /{id}", "Revoke a risk acceptance, or decline a proposal. Its record stays.", takes=ById
    ),
)
