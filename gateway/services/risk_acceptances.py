"""Risk acceptances kept, and what they take out of a score. Hot, versioned, audited; a revoked one stays as evidence.

The detection stays in every list with the acceptance's id and adds nothing to the score. While nothing is accepted, a
scan pays a comparison of two integers.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

from gateway.clock import Clock, Ids
from gateway.domain.alerts import Alert, AlertFilter, AlertSource
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.risk_acceptances import (
    DAY_MS,
    MAX_ACCEPTANCES,
    MAX_DAYS,
    AcceptanceScope,
    RiskAcceptance,
    Source,
    accept,
)
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import UntilIn90Days, is_line, line
from gateway.schema import Bounds
from gateway.services.audit import Audit
from gateway.services.audit_trail import AuditTrail, check_version
from gateway.services.budgets import Reason, checked_reason
from gateway.shield.detections import ScanResult
from gateway.shield.scoring import Policy
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store

MAX_AGENT_CHARS = 100
RULE_PATTERN = "^[a-z0-9][a-z0-9._-]{0,99}$"
DIGEST_PATTERN = "^[0-9a-f]{64}$"
_RULE = re.compile(RULE_PATTERN[1:-1])
_DIGEST = re.compile(DIGEST_PATTERN[1:-1])
_Rule = Annotated[str, Bounds(pattern=RULE_PATTERN, says="must be the id of a rule, such as override-prior-orders")]
_Digest = Annotated[
    str, Bounds(pattern=DIGEST_PATTERN, says="must be the SHA-256 of the evidence, 64 lowercase hex digits")
]
_Agent = Annotated[str, line(MAX_AGENT_CHARS)]
_Key = Annotated[str, line(100), "The id or the prefix of one API key."]
_AnyKey = Annotated[bool, "Accept it for every key: anyone may claim the name of the agent."]
_Request = Annotated[str, line(100), "The id of a request, `trf_…` or `req_…`: the answer says its new verdict."]
_Alert = Annotated[str, line(100), "The id of an alert of a scan."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAcceptance:
    """What is to be accepted. finding: `rule` and `digest`, or `alert`, the id of the alert that shows it.

    rule_agent: `rule`, `agent` and `key`, for requests of that agent with that key. A caller names its agent itself, so
    without a key `any_key` must be true. rule: only `rule`.
    """

    scope: AcceptanceScope
    reason: Reason
    until_at: UntilIn90Days = field(metadata={"json_name": "until"})
    rule: _Rule | None = None
    agent: _Agent | None = None
    key: _Key | None = None
    digest: _Digest | None = None
    alert: _Alert | None = None
    any_key: _AnyKey = False
    request: _Request | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAcceptance:
    """What is to change of an acceptance; None leaves a field as it is."""

    reason: Reason | None = None
    until_at: UntilIn90Days | None = field(default=None, metadata={"json_name": "until"})
    version: int | None = None


class RiskAcceptances:
    """The risk acceptances of this gateway. Who may manage them is checked by the edges."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._trail = AuditTrail(audit, "risk_acceptance")
        self._active: tuple[RiskAcceptance, ...] = ()
        self._generation = -1

    def any(self) -> bool:
        """Tell whether anything is accepted now.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        generation = self._store.generation.value()
        if generation != self._generation:
            now_at = self._clock.now_at()
            self._active = self._store.db.read_now(lambda tx: self._store.risk_acceptances.active(tx, now_at=now_at))
            self._generation = generation
        return bool(self._active)

    def apply(self, result: ScanResult, policy: Policy, *, source: Source) -> ScanResult:
        """Return `result` with what is accepted marked, and judged without it. `any` comes first.

        What was found must be placed in its texts.
        """
        if not result.detections or not self._active:
            return result
        return accept(result, self._active, policy, source=source, now_at=self._clock.now_at())

    def accept_for(self, source: Source) -> Callable[[ScanResult, Policy], ScanResult] | None:
        """Return what `apply` does for `source`; None while nothing is accepted.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        return partial(self.apply, source=source) if self.any() else None

    async def page(self, *, limit: int, cursor: str | None = None) -> Page[RiskAcceptance]:
        """Return a part of all acceptances, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        return await self._store.db.read(lambda tx: self._store.risk_acceptances.page(tx, limit=limit, cursor=cursor))

    async def show(self, acceptance_id: str) -> RiskAcceptance:
        """Return one acceptance.

        Raises:
            NotFound: there is none, or it was taken back: from then on it stands in lists and in the audit log alone.
        """
        one = await self._store.db.read(lambda tx: self._find(tx, acceptance_id))
        if one.revoked_at is not None:
            raise NotFound(f"The risk acceptance {one.id} is revoked; the list of all still has it.", param="id")
        return one

    async def create(
        self, principal: Principal, wanted: WantedAcceptance, context: RequestContext, *, rules: Collection[str]
    ) -> RiskAcceptance:
        """Accept a risk. It holds from the next scan on. rules: the ids that a detection may have.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: there are too many, or no such key or alert.
            AuditUnavailable: it was not accepted.
        """
        now_at = self._clock.now_at()
        reason = checked_reason(wanted.reason)
        _check_until(wanted.until_at, now_at)

        def work(tx: AuthorityTransaction) -> RiskAcceptance:
            if len(self._store.risk_acceptances.active(tx, now_at=now_at)) >= MAX_ACCEPTANCES:
                raise Conflict(f"There are {MAX_ACCEPTANCES} risk acceptances in force; revoke some first.")
            rule, digest = self._evidence(tx, wanted, rules)
            made = RiskAcceptance(
                id=self._ids.new("ra"),
                scope=wanted.scope,
                rule=rule,
                agent=_checked_agent(wanted),
                key=self._key(tx, wanted),
                digest=digest,
                reason=reason,
                accepted_at=now_at,
                accepted_by=principal.name,
                until_at=wanted.until_at,
            )
            self._store.risk_acceptances.insert(tx, made)
            self._trail.note(tx, "risk_accepted", principal, context, id=made.id, after=_shown(made))
            return made

        return await self._audit.commit_authority(work)

    async def change(
        self, principal: Principal, acceptance_id: str, wanted: ChangedAcceptance, context: RequestContext
    ) -> RiskAcceptance:
        """Change reason or end of an acceptance that is not revoked. The end is at most 90 days from now.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is none.
            Conflict: it is revoked, or has another version. AuditUnavailable: nothing was changed.
        """
        now_at = self._clock.now_at()
        reason = None if wanted.reason is None else checked_reason(wanted.reason)
        if wanted.until_at is not None:
            _check_until(wanted.until_at, now_at)

        def work(tx: AuthorityTransaction) -> RiskAcceptance:
            before = self._find(tx, acceptance_id)
            check_version(wanted.version, before.version, "risk acceptance")
            if before.revoked_at is not None:
                raise Conflict(f"The risk acceptance {before.id} is revoked; make another one.")
            after = replace(before, reason=reason or before.reason, until_at=wanted.until_at or before.until_at)
            return self._changed(tx, principal, context, before, after, "risk_acceptance_changed")

        return await self._audit.commit_authority(work)

    async def revoke(self, principal: Principal, acceptance_id: str, context: RequestContext) -> RiskAcceptance:
        """Take an acceptance back. Its record stays.

        Raises:
            NotFound: there is none. Conflict: it is revoked already. AuditUnavailable: it still holds.
        """
        now_at = self._clock.now_at()

        def work(tx: AuthorityTransaction) -> RiskAcceptance:
            before = self._find(tx, acceptance_id)
            if before.revoked_at is not None:
                raise Conflict(f"The risk acceptance {before.id} is revoked already.")
            after = replace(before, revoked_at=now_at, revoked_by=principal.name)
            return self._changed(tx, principal, context, before, after, "risk_acceptance_revoked")

        return await self._audit.commit_authority(work)

    def _changed(
        self,
        tx: AuthorityTransaction,
        principal: Principal,
        context: RequestContext,
        before: RiskAcceptance,
        after: RiskAcceptance,
        action: str,
    ) -> RiskAcceptance:
        if after == before:
            return before
        self._store.risk_acceptances.change(tx, after)
        shown = {"before": _shown(before), "after": _shown(after)}
        self._trail.note(tx, action, principal, context, id=before.id, **shown)
        return self._find(tx, before.id)

    def _evidence(self, tx: Transaction, wanted: WantedAcceptance, rules: Collection[str]) -> tuple[str, str | None]:
        """Return rule and digest of what is accepted."""
        if wanted.scope is not AcceptanceScope.FINDING:
            for name in ("digest", "alert"):
                if getattr(wanted, name) is not None:
                    raise InvalidRequest(f"{name} is for the scope finding.", param=name)
            return self._rule(tx, wanted.rule, rules), None
        if wanted.alert is None:
            if wanted.digest is None or _DIGEST.fullmatch(wanted.digest) is None:
                raise InvalidRequest(
                    "digest must be the SHA-256 of the evidence, 64 lowercase hex digits.", param="digest"
                )
            return self._rule(tx, wanted.rule, rules), wanted.digest
        if wanted.rule is not None or wanted.digest is not None:
            raise InvalidRequest("An alert says rule and digest by itself.", param="alert")
        alert = self._store.alerts.by_id(tx, wanted.alert)
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
        """Return the id of a rule that is there; alerts that are not of the shield have rules of their own."""
        if rule is None or _RULE.fullmatch(rule) is None:
            raise InvalidRequest("rule must be the id of a rule, such as override-prior-orders.", param="rule")
        if rule in rules or any(
            alert.source is not AlertSource.SHIELD
            for alert in self._store.alerts.page(tx, AlertFilter(rule=rule)).items
        ):
            return rule
        near = difflib.get_close_matches(rule, rules, n=3, cutoff=0.5)
        hint = f"the nearest are {', '.join(near)}" if near else "`rules list` shows all"
        raise InvalidRequest(f"There is no rule {rule}; {hint}.", param="rule")

    def _key(self, tx: Transaction, wanted: WantedAcceptance) -> str | None:
        is_of_agent = wanted.scope is AcceptanceScope.RULE_AGENT
        if wanted.key is None:
            if is_of_agent and not wanted.any_key:
                raise InvalidRequest(
                    "Anyone may claim the name of an agent: give the key as well, or set any_key to true.",
                    param="any_key",
                )
            if wanted.any_key and not is_of_agent:
                raise InvalidRequest("any_key is for the scope rule_agent.", param="any_key")
            return None
        if not is_of_agent:
            raise InvalidRequest("key is for the scope rule_agent.", param="key")
        if wanted.any_key:
            raise InvalidRequest("any_key is for an agent without a key.", param="any_key")
        record = self._store.keys.by_id(tx, wanted.key)
        records = (record,) if record else self._store.keys.by_prefix(tx, wanted.key)
        if len(records) != 1:
            raise Conflict("key must be the id or the prefix of one API key.", param="key")
        return records[0].lineage or records[0].id

    def _find(self, tx: Transaction, acceptance_id: str) -> RiskAcceptance:
        one = self._store.risk_acceptances.by_id(tx, acceptance_id)
        if one is None:
            raise NotFound("There is no such risk acceptance.")
        return one


def _findings(alert: Alert) -> Sequence[Mapping[str, object]]:
    """Return what the newest request of an alert had in it."""
    found = alert.evidence[-1].get("detections")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else ()


def _check_until(until_at: int, now_at: int) -> None:
    if not now_at < until_at <= now_at + MAX_DAYS * DAY_MS:
        raise InvalidRequest(f"until must be in the future, at most {MAX_DAYS} days from now.", param="until")


def _checked_agent(wanted: WantedAcceptance) -> str | None:
    if wanted.scope is not AcceptanceScope.RULE_AGENT:
        if wanted.agent is not None:
            raise InvalidRequest("agent is for the scope rule_agent.", param="agent")
        return None
    agent = (wanted.agent or "").strip()
    if not 1 <= len(agent) <= MAX_AGENT_CHARS or not is_line(agent):
        raise InvalidRequest(f"agent must be 1 to {MAX_AGENT_CHARS} printable characters.", param="agent")
    return agent


def _shown(one: RiskAcceptance) -> dict[str, object]:
    """Return what the audit log keeps of an acceptance."""
    return {
        "scope": one.scope,
        "rule": one.rule,
        "agent": one.agent,
        "key": one.key,
        "digest": one.digest,
        "reason": one.reason,
        "until": one.until_at,
        "revoked_at": one.revoked_at,
    }
