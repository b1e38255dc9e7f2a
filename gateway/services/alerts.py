"""Raise, fold, list and move alerts. Sightings of the same thing within ten minutes are one alert with a count.

An alert holds no text. What a person or the gateway does to an alert is in the audit log, and from there in the
timeline of the alert; further sightings are only counted.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gateway.domain.alerts import (
    INCIDENT_WITHIN_MS,
    MERGE_WITHIN_MS,
    Alert,
    AlertCase,
    AlertFilter,
    AlertSource,
    AlertStatus,
    AlertStep,
    RequestAlert,
    WantedAlert,
    fingerprint,
    fold,
    move,
)
from gateway.domain.principals import Caller
from gateway.errors import Conflict, InvalidRequest
from gateway.records import project
from gateway.schema import check
from gateway.services.findings import described
from gateway.services.resource import Resource, check_future, check_version
from gateway.shield.detections import Direction, ScanResult, Severity
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

MOST_NAMED = 64
"""The most new alerts of the agents of one key within ten minutes. Further ones count on one alert of the key."""
TITLE_CHARS = 200
DESCRIPTION_CHARS = 1000
ITSELF = "gateway"
"""The actor of what the gateway does by itself."""
LONGEST_SUPPRESSION_DAYS = 366
TIMELINE_EVENTS = 200
_AGENT_CHARS = 100


class Alerts(Resource[Alert]):
    """The alerts of this gateway. Nobody creates or removes one by a call."""

    noun, nouns = "alert", "alerts"

    def raise_from_scan(
        self,
        tx: Transaction,
        result: ScanResult,
        *,
        caller: Caller,
        origin: str,
        occurred_at: int,
        direction: Direction,
    ) -> Alert | None:
        """Record in `tx` what a scan found, under its strongest rule, and return the alert that now stands.

        origin: where the text came from, such as ``shield.scan`` or ``chat.inbound``. None: the scan found nothing.
        The same rule, agent, key and direction within ten minutes count on the existing alert. After `MOST_NAMED` new
        alerts of a key's agents in that time, the alert is the key's, because callers choose the names of agents.
        """
        if not result.detections:
            return None
        strongest = result.detections[0]
        evidence = {
            "request_id": caller.context.request_id,
            "verdict": result.verdict.value,
            "score": result.score,
            "direction": direction,
            "sha256": strongest.sha256,
            "chars": strongest.chars,
            "detections": described(result.detections, direction),
        }

        def subject(agent: str) -> str:
            return f"{agent}\0{caller.principal.id}\0{direction}"

        return self.raise_event(
            tx,
            source=AlertSource.SHIELD,
            rule=strongest.rule,
            severity=strongest.severity,
            title=f"{strongest.name}: {result.verdict.value}",
            description=strongest.description,
            subject=subject((caller.context.agent or "")[:_AGENT_CHARS]),
            occurred_at=occurred_at,
            caller=caller,
            evidence=(evidence,),
            origin=origin,
            key_subject=subject(""),
        )

    def raise_event(
        self,
        tx: Transaction,
        *,
        source: AlertSource,
        rule: str,
        severity: Severity,
        title: str,
        description: str,
        subject: str,
        occurred_at: int,
        caller: Caller | None = None,
        evidence: Sequence[Mapping[str, object]] = (),
        origin: str | None = None,
        key_subject: str | None = None,
    ) -> Alert:
        """Record in `tx` something that went wrong, and return the alert that now stands.

        rule: kebab-case, such as ``provider-down``. subject: what it happened to, such as a provider's id. Sightings
        with the same source, rule and subject are of the same thing. evidence: JSON objects without secrets. origin: by
        default the source. key_subject: replaces the subject when the agents of the key have too many alerts.
        """
        seen = Alert(
            id=self.ids.new("alr"),
            title=title[:TITLE_CHARS],
            description=description[:DESCRIPTION_CHARS],
            severity=severity,
            source=source,
            rule=rule,
            fingerprint=fingerprint(source, rule, subject),
            first_seen_at=occurred_at,
            last_seen_at=occurred_at,
            agent=(caller.context.agent or "")[:_AGENT_CHARS] or None if caller else None,
            key_prefix=caller.principal.key_prefix if caller else None,
            request_id=caller.context.request_id if caller else None,
            origin=origin or source.value,
            evidence=tuple(evidence),
        )
        return self.record(tx, seen, None if key_subject is None else fingerprint(source, rule, key_subject))

    def end_event(
        self, tx: Transaction, *, source: AlertSource, rule: str, subject: str, occurred_at: int, resolution: str
    ) -> int:
        """Resolve in `tx` the active alerts of something that is over by itself; return how many there were."""
        over = self.store.alerts.active_of(tx, fingerprint(source, rule, subject))
        for alert in over:
            resolved = move(alert, AlertStatus.RESOLVED, who=ITSELF, at=occurred_at, note=resolution)
            self.store.alerts.change(tx, resolved)
            self._append_move(tx, "resolved", alert, resolved, note=resolution)
        return len(over)

    def raise_or_end(
        self,
        tx: Transaction,
        is_wrong: bool,
        *,
        source: AlertSource,
        rule: str,
        subject: str,
        occurred_at: int,
        resolution: str,
        **described: Any,
    ) -> None:
        """Raise an event while it lasts, or end it. described: the other arguments of `raise_event`."""
        thing: dict[str, Any] = {"source": source, "rule": rule, "subject": subject, "occurred_at": occurred_at}
        if is_wrong:
            self.raise_event(tx, **thing, **described)
        else:
            self.end_event(tx, **thing, resolution=resolution)

    def record(self, tx: Transaction, seen: Alert, of_key: str | None = None) -> Alert:
        """Fold one sighting of any source into the existing alerts, and return the alert that now stands.

        of_key: the fingerprint of the alert that it becomes when the agents of its key have too many.
        """
        latest = self.store.alerts.latest(tx, seen.fingerprint)
        if latest is not None and latest.acceptance is not None:
            # A suppression by a risk acceptance ends with the acceptance; a revoked one has ended.
            ends_at, until_at = self._accepted_until(tx, latest.acceptance), latest.suppressed_until_at
            latest = replace(latest, suppressed_until_at=min(ends_at or 0, until_at or ends_at or 0))
        alert = fold(latest, seen)
        if latest is None or alert.id == seen.id:
            if of_key and seen.agent and seen.key_prefix:
                since_at = seen.last_seen_at - MERGE_WITHIN_MS
                if self.store.alerts.count_named(tx, seen.key_prefix, since=since_at, most=MOST_NAMED) >= MOST_NAMED:
                    return self.record(tx, replace(seen, agent=None, fingerprint=of_key))
            alert = replace(alert, incident=self._incident(tx, alert))
            self.store.alerts.insert(tx, alert)
            return alert
        self.store.alerts.change(tx, alert)
        self.store.alerts.add_sighting(tx, alert, seen.request_id)
        if alert.status is not latest.status:
            self._append_move(tx, "reopened", latest, alert, note="It was seen again.")
        return alert

    def _incident(self, tx: Transaction, alert: Alert) -> str:
        """Return the incident of a new alert: the active one of its agent and key within an hour, or a new one."""
        if alert.agent or alert.key_prefix:
            latest = self.store.alerts.latest_of_who(tx, alert, since_at=alert.last_seen_at - INCIDENT_WITHIN_MS)
            if latest is not None:
                return latest.incident
        return self.ids.new("inc")

    def raise_behind(self, work: Callable[[Transaction], object]) -> None:
        """Queue `work`, which raises an alert about a refusal. The refusal stands even if the queue is full."""
        with suppress(StoreUnavailable):  # the store logs the fault
            self.store.db.write_behind(work)

    async def show(self, alert_id: str) -> AlertCase:
        """Return one alert and its timeline. Raises NotFound."""

        def work(tx: Transaction) -> AlertCase:
            alert = self.find(tx, alert_id)
            return project(AlertCase, alert, timeline=self.timeline(tx, (alert,)))

        return await self.store.db.read(work)

    def timeline(self, tx: Transaction, alerts: Sequence[Alert]) -> tuple[AlertStep, ...]:
        """Return what happened to alerts, oldest first."""
        steps = []
        for alert in alerts:
            steps.append(AlertStep(alert.first_seen_at, "alert_raised", ITSELF, alert.description))
            for event in self.store.audit.of_alert(tx, alert.id, limit=TIMELINE_EVENTS):
                note = event.details.get("note")
                note = note if isinstance(note, str) else None
                steps.append(AlertStep(event.occurred_at, event.action, event.actor, note, event.before, event.after))
        return tuple(sorted(steps, key=lambda step: step.occurred_at))

    async def change(self, caller: Caller, alert_id: str, wanted: WantedAlert) -> Alert:
        """Move an alert to another state, assign it, or add a note.

        Raises:
            InvalidRequest: a field; `param` names it. NotFound: there is no such alert.
            Conflict: its state does not allow the new one, another version, or no such acceptance is valid.
            AuditUnavailable: nothing was changed.
        """
        self.check(wanted)

        def work(tx: Transaction) -> Alert:
            before = self.find(tx, alert_id)
            check_version(wanted.version, before.version, "alert")
            return self.change_in(tx, caller, before, wanted)

        return await self.audit.commit(work)

    def check(self, wanted: WantedAlert) -> None:
        """Check the changes of an alert as far as the alert itself does not matter. Raises InvalidRequest."""
        check(wanted)
        until_at, acceptance = wanted.suppressed_until_at, wanted.acceptance
        if wanted.status is not AlertStatus.SUPPRESSED:
            for name, given in (("suppressed_until", until_at), ("acceptance", acceptance)):
                if given is not None:
                    raise InvalidRequest(f"{name} goes with the status suppressed.", param=name)
        elif until_at is None and acceptance is None:
            raise InvalidRequest("A suppression needs suppressed_until or an acceptance.", param="suppressed_until")
        now_at = self.clock.now_at()
        check_future(until_at, now_at, param="suppressed_until", days=LONGEST_SUPPRESSION_DAYS)

    def change_in(self, tx: Transaction, caller: Caller, before: Alert, wanted: WantedAlert) -> Alert:
        """Change an alert in `tx` and append its event. Raises Conflict."""
        after = self._moved(tx, before, wanted, who=caller.principal.name, now_at=self.clock.now_at())
        if after != before:
            self.store.alerts.change(tx, after)
        action = after.status.value if after.status is not before.status else "changed"
        self._append_move(tx, action, before, after, caller, note=wanted.note)
        return after

    def _moved(self, tx: Transaction, alert: Alert, wanted: WantedAlert, *, who: str, now_at: int) -> Alert:
        after, status = alert, wanted.status
        if status is not None and (status is not alert.status or status is AlertStatus.SUPPRESSED):
            until_at, acceptance = wanted.suppressed_until_at, wanted.acceptance
            if acceptance is not None:
                ends_at = self._accepted_until(tx, acceptance)
                if ends_at is None or ends_at <= now_at:
                    raise Conflict("There is no such risk acceptance that holds.", param="acceptance")
                until_at = min(until_at or ends_at, ends_at)
            after = move(alert, status, who=who, at=now_at, note=wanted.note, until_at=until_at, acceptance=acceptance)
        if wanted.assigned_to is not None and wanted.assigned_to != alert.assigned_to:
            after = replace(after, assigned_to=wanted.assigned_to.strip() or None, version=alert.version + 1)
        return after

    def _accepted_until(self, tx: Transaction, acceptance_id: str) -> int | None:
        """Return when a risk acceptance ends, or None if there is none or it was revoked."""
        found = self.store.risk_acceptances.by_id(tx, acceptance_id)
        return None if found is None or found.is_proposed or found.revoked_at is not None else found.until_at

    def _append_move(
        self,
        tx: Transaction,
        action: str,
        before: Alert,
        after: Alert,
        caller: Caller | None = None,
        *,
        note: str | None,
    ) -> None:
        """Append the audit event of a change. caller: None for the gateway itself."""
        details = {"note": note} if note else None
        shown = {"before": self._shown(before), "after": self._shown(after), "details": details}
        self.audit.append_change(tx, f"alert_{action}", caller, "alert", after.id, **shown)

    def _shown(self, record: Alert) -> dict[str, object]:
        shown = {
            "status": record.status,
            "assigned_to": record.assigned_to,
            "suppressed_until": record.suppressed_until_at,
            "acceptance": record.acceptance,
        }
        return {name: value for name, value in shown.items() if value is not None}


def request_alerts(store: Store, tx: Transaction, request_id: str) -> tuple[RequestAlert, ...]:
    """Return the alerts that count the detections of a request, newest first."""
    return tuple(project(RequestAlert, one) for one in alerts_of(store, tx, request_id))


def alerts_of(store: Store, tx: Transaction, request_id: str) -> tuple[Alert, ...]:
    """Return the alerts of scans that count a request, newest first."""
    return store.alerts.page(tx, AlertFilter(source=AlertSource.SHIELD, request_id=request_id)).items
