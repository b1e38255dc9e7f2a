"""One operation for a request that was harmless: close its alerts, and make an exception so that it passes next time.

An exception is one or more risk acceptances: of the strongest rules of the request, until it would be allowed. Before
that, the preview says what each exception would let through, from the stored findings of 30 days and from the suite.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from gateway.domain.alerts import ACTIVE, Alert, AlertSource, AlertStatus, RequestAlert, dismiss, move
from gateway.domain.harmless import (
    SCOPES,
    ExceptionOption,
    Exemption,
    HarmlessPreview,
    MarkedHarmless,
    MarkHarmless,
    SuiteLoss,
)
from gateway.domain.keys import KeyRecord
from gateway.domain.policies import ShieldPolicy
from gateway.domain.principals import Caller, Permission, Principal
from gateway.domain.risk_acceptances import DAY_MS, MAX_DAYS, NewVerdict, RiskAcceptance, Source
from gateway.domain.traffic import TrafficRow
from gateway.errors import Conflict, NotFound
from gateway.records import project
from gateway.schema import check
from gateway.services.alerts import Alerts, alerts_of
from gateway.services.core import Service
from gateway.services.new_verdicts import NewVerdicts
from gateway.services.resource import check_future
from gateway.services.risk_acceptances import RiskAcceptances
from gateway.services.rules import Rules
from gateway.shield.detections import Detection, Severity, Verdict
from gateway.shield.scoring import Policy, judge
from gateway.shield.suite import load_suite
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

DEFAULT_DAYS = 30
REPORTED = "rule-reported"


@dataclass(slots=True)
class _Subject:
    """A request with its alerts, its key, and what decides about it. caller: None if its key or policy is gone."""

    row: TrafficRow
    alerts: tuple[Alert, ...]
    key: KeyRecord | None
    caller: tuple[Source, ShieldPolicy] | None
    accepted: tuple[RiskAcceptance, ...]


class Harmless(Service):
    """Marks requests as harmless."""

    alerts: Alerts
    acceptances: RiskAcceptances
    new_verdicts: NewVerdicts
    rules: Rules
    # A preview keeps a processor and a reader of the database busy.
    _one_at_a_time: anyio.CapacityLimiter = field(init=False, default_factory=partial(anyio.CapacityLimiter, 1))
    _suite: tuple[str, list[tuple[Detection, ...]]] | None = field(init=False, default=None)

    async def preview(self, principal: Principal, id: str) -> HarmlessPreview:
        """Return what can be done about a request, and what each exception would let through.

        Raises:
            NotFound: there is no such request or alert. Conflict: the shield found nothing in it.
        """
        attacks = await anyio.to_thread.run_sync(self.attacks, limiter=self._one_at_a_time)

        def work(tx: Transaction) -> HarmlessPreview:
            subject = self._subject(tx, id)
            made = {one: self._made(tx, subject, one) for one in SCOPES}
            possible = {one: found for one, found in made.items() if not isinstance(found, str)}
            lets = self.new_verdicts.let_through(tx, possible, subject.accepted, but=subject.row.request_id)
            policy = subject.caller[1].scoring if subject.caller else Policy()
            options = []
            for one, found in made.items():
                covers = self._covers(tx, subject, one)
                if isinstance(found, str):
                    options.append(ExceptionOption(one, found, covers))
                    continue
                rules = tuple(dict.fromkeys(each.rule for each in found))
                verdict = self.new_verdicts.verdict(tx, subject.row, (*subject.accepted, *found), found)
                loss = None if one is Exemption.TEXT else suite_loss(attacks, frozenset(rules), policy)
                options.append(ExceptionOption(one, None, covers, rules, verdict, lets[one], loss))
            may_approve = Permission.RISK_ACCEPTANCES_MANAGE in principal.permissions
            shown = tuple(project(RequestAlert, one) for one in subject.alerts)
            return project(HarmlessPreview, subject.row, alerts=shown, may_approve=may_approve, options=tuple(options))

        async with self._one_at_a_time:
            return await self.store.db.read(work)

    def attacks(self) -> list[tuple[Detection, ...]]:
        """Return what the shield finds in each attack of the suite. Scans it anew after a change of the rules."""
        rules = self.rules.apply()
        if self._suite is None or self._suite[0] != rules:
            cases = [case for case in load_suite() if case.is_attack]
            scanned = [self.rules.shield.scan(case.sent(), case.direction) for case in cases]
            self._suite = rules, [result.detections for result in scanned]
        return self._suite[1]

    async def mark(self, caller: Caller, wanted: MarkHarmless) -> MarkedHarmless:
        """Close the active alerts of a harmless request and make the exception, in one transaction.

        The exception of a user who may not manage risk acceptances is proposed. The audit event of each alert names
        request, alerts and acceptances.

        Raises:
            InvalidRequest: a field; `param` names it. NotFound: there is no such request or alert.
            Conflict: there is nothing to do, or the exception cannot be made. AuditUnavailable: nothing was changed.
        """
        check(wanted)
        now_at = self.clock.now_at()
        check_future(wanted.until_at, now_at, param="until", days=MAX_DAYS)
        is_exception = wanted.exception in SCOPES
        if wanted.until_at is not None and not is_exception:
            raise Conflict(f"until belongs to an exception, and not to {wanted.exception}.", param="until")
        is_proposed = is_exception and Permission.RISK_ACCEPTANCES_MANAGE not in caller.principal.permissions
        given: dict[str, Any] = {
            "reason": wanted.note,
            "accepted_at": now_at,
            "accepted_by": caller.principal.name,
            "until_at": wanted.until_at or now_at + DEFAULT_DAYS * DAY_MS,
        }

        def work(tx: AuthorityTransaction) -> MarkedHarmless:
            subject = self._subject(tx, wanted.id)
            made = self._made(tx, subject, wanted.exception) if is_exception else ()
            if isinstance(made, str):
                raise Conflict(f"Nothing was changed: {made}", param="exception")
            made = tuple(replace(one, id=self.ids.new("ra"), is_proposed=is_proposed, **given) for one in made)
            active = [alert for alert in subject.alerts if alert.status in ACTIVE]
            if not active and wanted.exception is Exemption.NONE:
                raise Conflict(f"Nothing was changed: {_why_closed(subject.alerts)}.")
            closed = tuple(self._closed(alert, subject.row, caller.principal, wanted.note) for alert in active)
            for alert in closed:
                self.store.alerts.change(tx, alert)
            for one in made:
                self.acceptances.add(tx, one)
            report = None
            if wanted.exception is Exemption.REPORT:
                report = self._report(tx, subject.row, wanted.note, caller.principal).id
            verdict = None
            if made and not is_proposed:
                verdict = self.new_verdicts.verdict(tx, subject.row, (*subject.accepted, *made), made)
            says = _says(closed, made, report, is_proposed, verdict)
            ids = tuple(one.id for one in made)
            marked = MarkedHarmless(subject.row.request_id, closed, ids, is_proposed, report, verdict, says)
            rules = list(dict.fromkeys(one.rule for one in made))
            self._append(tx, wanted, active, marked, rules)
            return marked

        return await self.audit.commit_authority(caller, work)

    def _closed(self, alert: Alert, row: TrafficRow, principal: Principal, note: str) -> Alert:
        """Return an alert as a false positive that counts only the texts of this request from now on."""
        texts = {one.get("sha256") for one in _counted(row) or row.detections}
        now_at = self.clock.now_at()
        moved = move(alert, AlertStatus.FALSE_POSITIVE, who=principal.name, at=now_at, note=note)
        return dismiss(moved, row.request_id, texts)

    def _subject(self, tx: Transaction, id: str) -> _Subject:
        """Return the request of an id, with the one alert of an alert's id. Raises NotFound, Conflict."""
        alert = self.alerts.find(tx, id) if id.startswith("alr_") else None
        if alert is not None and (alert.source is not AlertSource.SHIELD or alert.request_id is None):
            raise Conflict(f"The alert {alert.id} is not about a request; close it with its state.")
        row = self.store.traffic.find(tx, alert.request_id if alert and alert.request_id else id)
        if row is None:
            raise NotFound("There is no such request in the traffic, or no longer.", param="id")
        if not row.detections:
            raise Conflict("The shield found nothing in this request, so there is nothing to mark.")
        found = (alert,) if alert else alerts_of(self.store, tx, row.request_id)
        key = self.store.keys.by_id(tx, row.principal_id) if row.key_prefix else None
        active = self.store.risk_acceptances.active(tx, now_at=self.clock.now_at())
        return _Subject(row, found, key, self.new_verdicts.caller(tx, row), active)

    def _made(self, tx: Transaction, subject: _Subject, exception: Exemption) -> tuple[RiskAcceptance, ...] | str:
        """Return the acceptances of an exception, without reason and time; or why it cannot be made."""
        if subject.caller is None:
            return "The key of the request, or its policy, is gone."
        source, key = subject.caller[0], subject.key
        if key is None and exception is not Exemption.TEXT:
            return "No API key sent this request."
        if exception is Exemption.POLICY and source.policy is None:
            return "The key of the request has no policy. Give it one, or accept the rule under Accepted risks."
        if self.new_verdicts.verdict(tx, subject.row, subject.accepted, ()).verdict is Verdict.ALLOW:
            return "The request would pass already."
        of_key = exception in (Exemption.KEY, Exemption.KEY_AGENT)
        base = RiskAcceptance(
            id="",
            scope=SCOPES[exception],
            rule="",
            agent=source.agent if exception is Exemption.KEY_AGENT else None,
            key=source.key if of_key else None,
            policy=source.policy if exception is Exemption.POLICY else None,
            request=subject.row.request_id,
            reason="",
            accepted_at=0,
            accepted_by="",
            until_at=self.clock.now_at() + DAY_MS,
        )
        made: list[RiskAcceptance] = []
        counted = _counted(subject.row)
        if not counted:
            return "Nothing in it counts: its policy masks what was found, or leaves it out."
        left, review_at = sum(int(str(one["score"])) for one in counted), subject.caller[1].scoring.review_at
        for found in counted:
            digest = str(found.get("sha256") or "") if exception is Exemption.TEXT else None
            if digest == "" or (digest and found.get("spread")):
                return f"No single text accounts for the finding of {found['rule']}."
            one = replace(base, id=f"new {len(made)}", rule=str(found["rule"]), digest=digest)
            if all((one.rule, one.digest) != (other.rule, other.digest) for other in made):
                made.append(one)
            verdict = self.new_verdicts.verdict(tx, subject.row, (*subject.accepted, *made), made)
            left -= int(str(found["score"]))
            if verdict.verdict is Verdict.ALLOW or (verdict.verdict is None and left < review_at):
                break
        return tuple(made)

    def _covers(self, tx: Transaction, subject: _Subject, exception: Exemption) -> str:
        key = subject.key.name if subject.key else "-"
        agent = subject.caller[0].agent if subject.caller else "-"
        match exception:
            case Exemption.TEXT:
                return "This text, in any conversation"
            case Exemption.KEY_AGENT:
                return f"The key {key} with the agent {agent}"
            case Exemption.KEY:
                return f"The key {key}"
        id = subject.caller[0].policy if subject.caller else None
        policy = self.store.policies.by_id(tx, id) if id else None
        return f"Every key with the policy {policy.name}" if policy else "Every key with the policy"

    def _report(self, tx: Transaction, row: TrafficRow, note: str, principal: Principal) -> Alert:
        """Raise the alert that asks for a better rule. Reports of the same rule are one alert."""
        rule = str((_counted(row) or row.detections)[0]["rule"])
        return self.alerts.raise_event(
            tx,
            source=AlertSource.SHIELD,
            rule=REPORTED,
            severity=Severity.LOW,
            title=f"Rule reported: {rule}",
            description="The rule flagged a harmless request. Change it, or close this alert.",
            subject=rule,
            occurred_at=self.clock.now_at(),
            evidence=({"request_id": row.request_id, "rule": rule, "note": note, "reported_by": principal.name},),
        )

    def _append(
        self,
        tx: AuthorityTransaction,
        wanted: MarkHarmless,
        before: Sequence[Alert],
        marked: MarkedHarmless,
        rules: Sequence[str],
    ) -> None:
        """Append the event that links request, alerts and exception: on each closed alert, else on the request."""
        details = {
            "note": wanted.note,
            "marked_request": marked.request_id,
            "alerts": [alert.id for alert in marked.alerts],
            "exception": wanted.exception.value,
            "acceptances": list(marked.acceptances),
            "rules": rules,
            "is_proposed": marked.is_proposed,
            "report": marked.report,
        }
        for old, new in zip(before, marked.alerts, strict=True):
            shown = {"before": {"status": old.status.value}, "after": {"status": new.status.value}, "details": details}
            self.audit.append_change(tx, "alert_false_positive", tx.caller, "alert", old.id, **shown)
        if not marked.alerts:
            id = marked.request_id
            self.audit.append_change(tx, "request_harmless", tx.caller, "request", id, details=details)


def suite_loss(attacks: Sequence[tuple[Detection, ...]], rules: frozenset[str], policy: Policy) -> SuiteLoss:
    """Return how many attacks of the suite are found, and how many of them no longer are without `rules`."""
    found = lost = 0
    for detections in attacks:
        if judge(detections, policy).verdict is Verdict.ALLOW:
            continue
        found += 1
        left = [one for one in detections if one.rule not in rules]
        lost += len(left) < len(detections) and judge(left, policy).verdict is Verdict.ALLOW
    return SuiteLoss(found, lost)


def _counted(row: TrafficRow) -> list[Mapping[str, object]]:
    """Return the findings that make the score, the strongest first."""
    found = [one for one in row.detections if one.get("score") and not one.get("accepted")]
    return sorted(found, key=lambda one: -int(str(one["score"])))


def _why_closed(alerts: Sequence[Alert]) -> str:
    if not alerts:
        return "the request has no alert of its own"
    return f"its alert is closed already ({', '.join(f'{alert.id} is {alert.status.value}' for alert in alerts)})"


def _says(
    closed: Sequence[Alert],
    made: Sequence[RiskAcceptance],
    report: str | None,
    is_proposed: bool,
    verdict: NewVerdict | None,
) -> str:
    count = "No alert was open." if not closed else f"{len(closed)} alert{'s' * (len(closed) > 1)} closed."
    said = [count]
    if report:
        said.append(f"The rule is reported in the alert {report}.")
    if is_proposed:
        said.append("The exception is proposed: it holds once a security manager approves it.")
    elif made:
        said.append("The exception holds from now on.")
    return " ".join([*said, *([verdict.says] if verdict else [])])
