"""Risk acceptances, and how they change a score. A revoked one stays as evidence.

An accepted detection stays in every list, with the acceptance's id, and adds nothing to the score.
"""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

from gateway.domain.alerts import Alert, AlertFilter, AlertSource
from gateway.domain.principals import Caller
from gateway.domain.risk_acceptances import (
    MAX_ACCEPTANCES,
    MAX_DAYS,
    MAX_PROPOSED,
    AcceptanceScope,
    RiskAcceptance,
    Source,
    accept,
)
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import UntilIn90Days, line
from gateway.schema import Bounds, check
from gateway.services.budgets import Reason
from gateway.services.resource import Resource, check_future, find_key, patched
from gateway.shield.detections import ScanResult
from gateway.shield.scoring import Policy
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

Accept = Callable[[ScanResult, Policy], ScanResult]
"""Marks the accepted detections of a result, and scores it without them."""
MAX_AGENT_CHARS = 100
RULE_PATTERN = "^(?:local:|detector:)?[a-z0-9][a-z0-9._-]{0,99}$"
DIGEST_PATTERN = "^[0-9a-f]{64}$"
_Rule = Annotated[str, Bounds(pattern=RULE_PATTERN, says="must be the id of a rule, such as override-prior-orders")]
_Digest = Annotated[
    str, Bounds(pattern=DIGEST_PATTERN, says="must be the SHA-256 of the evidence, 64 lowercase hex digits")
]
_Request = Annotated[str, line(100), "The id of a request, `trf_…` or `req_…`: the answer says its new verdict."]
_SCOPES = {
    "digest": (AcceptanceScope.FINDING,),
    "alert": (AcceptanceScope.FINDING,),
    "agent": (AcceptanceScope.RULE_AGENT,),
    "any_key": (AcceptanceScope.RULE_AGENT,),
    "key": (AcceptanceScope.RULE_AGENT, AcceptanceScope.RULE_KEY),
    "policy": (AcceptanceScope.RULE_POLICY,),
}
"""The fields that belong to some scopes only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAcceptance:
    """A risk to accept. Each scope has its own fields.

    finding: `rule` and `digest`, or only `alert`, the id of the alert that shows the finding. rule: only `rule`.
    rule_agent: `rule`, `agent` and `key`, for requests of that agent with that key. A caller names its agent itself, so
    without a key `any_key` must be true. rule_key: `rule` and `key`. rule_policy: `rule` and `policy`, for its keys.
    """

    scope: AcceptanceScope
    reason: Reason
    until_at: UntilIn90Days = field(metadata={"json_name": "until"})
    rule: _Rule | None = None
    agent: Annotated[str, line(MAX_AGENT_CHARS)] | None = None
    key: Annotated[str, line(100), "The id or the prefix of one API key."] | None = None
    digest: _Digest | None = None
    alert: Annotated[str, line(100), "The id of an alert of a scan."] | None = None
    policy: Annotated[str, line(100), "The id or the name of a policy."] | None = None
    any_key: Annotated[bool, "Accept it for every key: anyone may claim the name of the agent."] = False
    request: _Request | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAcceptance:
    """Changes of an acceptance; None leaves a field as it is."""

    reason: Reason | None = None
    until_at: UntilIn90Days | None = field(default=None, metadata={"json_name": "until"})
    version: int | None = None


class RiskAcceptances(Resource[RiskAcceptance]):
    """The risk acceptances of this gateway."""

    noun, nouns = "risk acceptance", "risk acceptances"
    audited = ("scope", "rule", "agent", "key", "policy", "digest", "request", "reason", "revoked_at", "proposed_by")

    def accept_for(self, source: Source) -> Accept | None:
        """Return what scores a result of `source` without its accepted detections, None while nothing is accepted.

        Every detection must have its offsets in the text. Raises StoreUnavailable: no acceptances were read yet.
        """
        return partial(self._accept, source) if self.store.authority.now.acceptances else None

    def _accept(self, source: Source, result: ScanResult, policy: Policy) -> ScanResult:
        if not result.detections:
            return result
        return accept(result, self.store.authority.now.acceptances, policy, source=source, now_at=self.clock.now_at())

    async def show(self, name: str) -> RiskAcceptance:
        """Return one acceptance. Raises NotFound for a revoked one, which only the list and the audit log have."""
        one = await super().show(name)
        if one.revoked_at is not None:
            raise NotFound(f"The risk acceptance {one.id} is revoked; the list of all still has it.", param="id")
        return one

    async def create(self, caller: Caller, new: WantedAcceptance, *, rules: Collection[str] = ()) -> RiskAcceptance:
        """Accept a risk from the next scan on. Raises what `Resource.create` raises.

        rules: the ids that a detection may have.
        """
        check(new)
        _check_scope(new)
        check_future(new.until_at, self.clock.now_at(), param="until", days=MAX_DAYS)

        def work(tx: AuthorityTransaction) -> RiskAcceptance:
            rule, digest = self._evidence(tx, new, rules)
            key = None if new.key is None else find_key(self.store, tx, new.key, param="key")
            policy = None if new.policy is None else self.store.policies.find(tx, new.policy)
            if new.policy is not None and policy is None:
                raise Conflict("policy must be the id or the name of a policy.", param="policy")
            made = RiskAcceptance(
                id=self.ids.new("ra"),
                scope=new.scope,
                rule=rule,
                agent=new.agent.strip() if new.agent else None,
                key=(key.lineage or key.id) if key else None,
                policy=policy.id if policy else None,
                digest=digest,
                reason=new.reason.strip(),
                accepted_at=self.clock.now_at(),
                accepted_by=caller.principal.name,
                until_at=new.until_at,
            )
            self.add(tx, made)
            self.audit.append_change(tx, "risk_accepted", caller, self.resource_type, made.id, after=self._shown(made))
            return made

        return await self.audit.commit_authority(caller, work)

    def add(self, tx: AuthorityTransaction, made: RiskAcceptance) -> None:
        """Store an acceptance; the caller appends the audit event.

        Raises Conflict: there are too many, or the same is proposed already.
        """
        now_at = self.clock.now_at()
        if made.is_proposed:
            proposed = self.store.risk_acceptances.active(tx, now_at=now_at, is_proposed=True)
            if any(_covers_same(one, made) for one in proposed):
                raise Conflict("Nothing was changed: the same exception is proposed already.", param="exception")
            if len(proposed) >= MAX_PROPOSED:
                raise Conflict(f"{MAX_PROPOSED} exceptions wait for an approval; ask a security manager to decide.")
        elif len(self.store.risk_acceptances.active(tx, now_at=now_at)) >= MAX_ACCEPTANCES:
            raise Conflict(f"There are {MAX_ACCEPTANCES} risk acceptances in force; revoke some first.")
        self.store.risk_acceptances.insert(tx, made)

    async def approve(self, caller: Caller, name: str) -> RiskAcceptance:
        """Put a proposed acceptance in force.

        Raises:
            NotFound: there is none. Conflict: it is not proposed, or no longer. AuditUnavailable: nothing was changed.
        """
        now_at = self.clock.now_at()

        def approved(before: RiskAcceptance) -> RiskAcceptance:
            if (status := before.status_at(now_at)) != "proposed":
                raise Conflict(f"The risk acceptance {before.id} is {status}; only a proposed one can be approved.")
            return replace(
                before,
                is_proposed=False,
                proposed_by=before.accepted_by,
                accepted_at=now_at,
                accepted_by=caller.principal.name,
            )

        return await self.audit.commit_authority(
            caller, lambda tx: self._update(tx, name, None, approved, action="approved")
        )

    async def revoke(self, caller: Caller, name: str) -> RiskAcceptance:
        """Revoke an acceptance, or decline a proposed one. Its record stays.

        Raises:
            NotFound: there is none. Conflict: it is revoked already. AuditUnavailable: it still holds.
        """

        def revoked(before: RiskAcceptance) -> RiskAcceptance:
            if before.revoked_at is not None:
                raise Conflict(f"The risk acceptance {before.id} is revoked already.")
            return replace(before, revoked_at=self.clock.now_at(), revoked_by=caller.principal.name)

        def work(tx: AuthorityTransaction) -> RiskAcceptance:
            action = "declined" if self.find(tx, name).is_proposed else "revoked"
            return self._update(tx, name, None, revoked, action=action)

        return await self.audit.commit_authority(caller, work)

    def _changed(self, tx: AuthorityTransaction, before: RiskAcceptance, changes: ChangedAcceptance) -> RiskAcceptance:
        check_future(changes.until_at, self.clock.now_at(), param="until", days=MAX_DAYS)
        if before.revoked_at is not None:
            raise Conflict(f"The risk acceptance {before.id} is revoked; make another one.")
        return patched(before, changes, reason=(changes.reason or before.reason).strip())

    def _shown(self, record: RiskAcceptance) -> dict[str, object]:
        return super()._shown(record) | {"until": record.until_at}

    def _evidence(self, tx: Transaction, wanted: WantedAcceptance, rules: Collection[str]) -> tuple[str, str | None]:
        """Return rule and digest of the accepted findings, from the fields or from the alert."""
        if wanted.alert is None:
            return self._rule(tx, wanted.rule, rules), wanted.digest
        alert = self.store.alerts.by_id(tx, wanted.alert)
        if alert is None or alert.source is not AlertSource.SHIELD or not alert.evidence:
            raise Conflict("alert must be the id of an alert of a scan.", param="alert")
        found = next((one for one in _findings(alert) if one.get("rule") == alert.rule), {})
        digest = found.get("sha256")
        if found.get("spread") or not isinstance(digest, str):
            raise Conflict(
                "No single text accounts for this finding: accept its rule for the agent with its key.", param="alert"
            )
        return alert.rule, digest

    def _rule(self, tx: Transaction, rule: str | None, rules: Collection[str]) -> str:
        """Return the id of a rule that exists. Alerts that do not come from the shield have rules of their own."""
        if rule is None:
            raise InvalidRequest("rule must be the id of a rule, such as override-prior-orders.", param="rule")
        alerts = self.store.alerts.page(tx, AlertFilter(rule=rule)).items
        if rule in rules or any(alert.source is not AlertSource.SHIELD for alert in alerts):
            return rule
        near = difflib.get_close_matches(rule, rules, n=3, cutoff=0.5)
        hint = f"the nearest are {', '.join(near)}" if near else "`rules list` shows all"
        raise InvalidRequest(f"There is no rule {rule}; {hint}.", param="rule")


def _covers_same(one: RiskAcceptance, other: RiskAcceptance) -> bool:
    fields = ("scope", "rule", "agent", "key", "policy", "digest")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def _findings(alert: Alert) -> Sequence[Mapping[str, object]]:
    """Return the findings of the newest request of an alert."""
    found = alert.evidence[-1].get("detections")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else ()


def _check_scope(wanted: WantedAcceptance) -> None:
    """Refuse fields that do not belong to the scope, and a scope without its fields."""
    for name, scopes in _SCOPES.items():
        if wanted.scope not in scopes and getattr(wanted, name) not in (None, False):
            raise InvalidRequest(f"{name} is for the scope {' or '.join(scopes)}.", param=name)
    for name in ("key", "policy", "agent"):
        if wanted.scope.value == f"rule_{name}" and not (getattr(wanted, name) or "").strip():
            raise InvalidRequest(f"{name} is missing.", param=name)
    if wanted.scope is AcceptanceScope.RULE_AGENT:
        if wanted.any_key and wanted.key is not None:
            raise InvalidRequest("any_key is for an agent without a key.", param="any_key")
        if not wanted.any_key and wanted.key is None:
            why = "Anyone may claim the name of an agent: give the key as well, or set any_key to true."
            raise InvalidRequest(why, param="any_key")
    if wanted.scope is AcceptanceScope.FINDING:
        if wanted.alert is None and wanted.digest is None:
            raise InvalidRequest("digest must be the SHA-256 of the evidence, 64 lowercase hex digits.", param="digest")
        if wanted.alert is not None and (wanted.rule is not None or wanted.digest is not None):
            raise InvalidRequest("An alert says rule and digest by itself.", param="alert")
