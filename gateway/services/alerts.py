"""Raise, fold, list and move alerts: one for the same thing within ten minutes, with a rising count. Holds no text.

What a person or the gateway itself does to an alert is in the audit log, and from there in the alert's timeline; a
sighting that is counted on an alert is not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.clock import Clock, Ids
from gateway.domain.alerts import (
    MERGE_WITHIN_MS,
    Alert,
    AlertFilter,
    AlertSource,
    AlertStatus,
    WantedAlert,
    fingerprint,
    fold,
    move,
)
from gateway.domain.audit import AuditEvent
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.schema import check
from gateway.services.audit import Audit
from gateway.services.findings import described
from gateway.services.resource import AuditTrail, check_future, check_version
from gateway.shield.detections import Direction, ScanResult, Severity
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

MOST_NAMED = 64
"""New alerts of agents of one key, within the time in which a sighting adds to the one before."""
MOST_KEYS = 1_024
TITLE_CHARS = 200
DESCRIPTION_CHARS = 1000
ITSELF = "gateway"
"""Who resolved an alert that ended by itself."""
LONGEST_SUPPRESSION_DAYS = 366
TIMELINE_EVENTS = 200
_AGENT_CHARS = 100

AcceptedUntil = Callable[[Transaction, str], int | None]
"""From the id of a risk acceptance to its end in Unix milliseconds, or None when there is none or it was revoked."""


def accepted_until(store: Store) -> AcceptedUntil:
    """Return what tells the end of a kept risk acceptance."""

    def until(tx: Transaction, acceptance_id: str) -> int | None:
        found = store.risk_acceptances.by_id(tx, acceptance_id)
        return None if found is None or found.revoked_at is not None else found.until_at

    return until


@dataclass(frozen=True, slots=True)
class AlertStep:
    """One line of an alert's timeline. note: what its doer said."""

    occurred_at: int
    action: str
    actor: str
    note: str | None
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class AlertCase:
    """One alert with everything that was done about it, oldest first."""

    alert: Alert
    timeline: tuple[AlertStep, ...]


class Alerts:
    """The alerts of this gateway.

    accepted_until: None where there are no risk acceptances.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        audit: Audit,
        accepted_until: AcceptedUntil | None = None,
    ) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._audit = audit
        self._trail = AuditTrail(audit, "alert")
        self._accepted_until = accepted_until
        self._named: dict[str, tuple[int, int]] = {}  # by key: from when its agents' new alerts count, and how many

    def raise_from_scan(
        self,
        tx: Transaction,
        result: ScanResult,
        *,
        principal: Principal,
        context: RequestContext,
        origin: str,
        occurred_at: int,
        direction: Direction,
        told: Sequence[Mapping[str, object]] | None = None,
    ) -> Alert | None:
        """Record in `tx` what a scan found, under its strongest rule, and return the alert that now stands.

        origin: where the text came from, such as ``shield.scan`` or ``chat.inbound``. told: what `described` says of
        its detections, if that is known. None: the scan found nothing.
        The same rule by the same agent with the same key in the same direction within ten minutes adds to the alert
        that is there. Once a key's agents have had `MOST_NAMED` new ones in that time, the alert is the key's: callers
        name their agents themselves.
        """
        if not result.detections:
            return None
        strongest = result.detections[0]
        agent = context.agent[:_AGENT_CHARS] if context.agent else None
        evidence = {
            "request_id": context.request_id,
            "verdict": result.verdict.value,
            "score": result.score,
            "direction": direction,
            "sha256": strongest.sha256,
            "chars": strongest.chars,
            "detections": described(result.detections, direction) if told is None else told,
        }

        def of(who: str) -> str:
            return fingerprint(AlertSource.SHIELD, strongest.rule, f"{who}\0{principal.id}\0{direction}")

        seen = Alert(
            id=self._ids.new("alr"),
            title=f"{strongest.name}: {result.verdict.value}",
            description=strongest.description,
            severity=strongest.severity,
            source=AlertSource.SHIELD,
            rule=strongest.rule,
            fingerprint=of(agent or ""),
            first_seen_at=occurred_at,
            last_seen_at=occurred_at,
            agent=agent,
            key_prefix=principal.key_prefix,
            request_id=context.request_id,
            origin=origin,
            evidence=(evidence,),
        )
        return self.record(tx, seen, key=principal.key_prefix, of_key=of(""))

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
        context: RequestContext | None = None,
        principal: Principal | None = None,
        evidence: Sequence[Mapping[str, object]] = (),
    ) -> Alert:
        """Record in `tx` something that went wrong outside a scan, and return the alert that now stands.

        rule: kebab-case, such as ``provider-down``. subject: what it happened to, such as a provider's id; with source
        and rule it says what two sightings of the same thing are. evidence: JSON objects without secrets.
        """
        agent = context.agent[:_AGENT_CHARS] if context and context.agent else None
        seen = Alert(
            id=self._ids.new("alr"),
            title=title[:TITLE_CHARS],
            description=description[:DESCRIPTION_CHARS],
            severity=severity,
            source=source,
            rule=rule,
            fingerprint=fingerprint(source, rule, subject),
            first_seen_at=occurred_at,
            last_seen_at=occurred_at,
            agent=agent,
            key_prefix=principal.key_prefix if principal else None,
            request_id=context.request_id if context else None,
            origin=source.value,
            evidence=tuple(evidence),
        )
        return self.record(tx, seen)

    def end_event(
        self, tx: Transaction, *, source: AlertSource, rule: str, subject: str, occurred_at: int, resolution: str
    ) -> int:
        """Resolve in `tx` what is active of a thing that is over by itself; return how many alerts that were."""
        over = self._store.alerts.active_of(tx, fingerprint(source, rule, subject))
        for alert in over:
            resolved = move(alert, AlertStatus.RESOLVED, who=ITSELF, at=occurred_at, note=resolution)
            self._store.alerts.change(tx, resolved)
            self._note_itself(tx, "alert_resolved", alert, resolved, note=resolution)
        return len(over)

    def record(self, tx: Transaction, seen: Alert, *, key: str | None = None, of_key: str = "") -> Alert:
        """Fold one sighting of any source into the alerts that are there, and return the alert that now stands.

        key: whose alert it is where its agents have too many; of_key: the fingerprint that it has then.
        """
        latest = self._store.alerts.latest(tx, seen.fingerprint)
        if latest is not None and latest.acceptance is not None:
            latest = replace(latest, suppressed_until_at=self._end_of(tx, latest))
        alert = fold(latest, seen)
        if latest is None or alert.id == seen.id:
            if key and seen.agent and self._has_many(tx, key, seen.last_seen_at):
                return self.record(tx, replace(seen, agent=None, fingerprint=of_key))
            self._store.alerts.insert(tx, alert)
            return alert
        self._store.alerts.change(tx, alert)
        self._store.alerts.saw(tx, alert, seen.request_id)
        if alert.status is not latest.status:
            self._note_itself(tx, "alert_reopened", latest, alert, note="It was seen again.")
        return alert

    def _has_many(self, tx: Transaction, key: str, at: int) -> bool:
        """Return whether the agents of a key have had as many new alerts as they may; else count one more."""
        slot = ("new alerts", key)
        since_at, count = tx.memo.get(slot) or self._named.get(key, (at, 0))
        if not 0 <= at - since_at < MERGE_WITHIN_MS:
            since_at, count = at, 0
        counted = tx.memo[slot] = since_at, min(count + 1, MOST_NAMED)
        # A write may run again before its commit, and must not count twice.
        tx.after_commit(lambda: self._remember(key, counted))
        return count >= MOST_NAMED

    def _remember(self, key: str, counted: tuple[int, int]) -> None:
        if len(self._named) >= MOST_KEYS:
            self._named.clear()
        self._named[key] = counted

    def raise_behind(self, work: Callable[[Transaction], object]) -> None:
        """Have `work`, which raises an alert, done soon: for what is refused anyway, whether it is told or not."""
        try:
            self._store.db.write_behind(work)
        except StoreUnavailable:
            return  # the store logs its own trouble

    async def page(self, wanted: AlertFilter) -> Page[Alert]:
        """List alerts, newest first."""
        return await self._store.db.read(lambda tx: self._store.alerts.page(tx, wanted))

    async def show(self, alert_id: str) -> AlertCase:
        """Return one alert and its timeline.

        Raises:
            NotFound: there is none.
        """

        def work(tx: Transaction) -> AlertCase:
            alert = self._find(tx, alert_id)
            events = self._store.audit.of_alert(tx, alert_id, limit=TIMELINE_EVENTS)
            return AlertCase(alert, _timeline(alert, events))

        return await self._store.db.read(work)

    async def change(self, principal: Principal, alert_id: str, wanted: WantedAlert, context: RequestContext) -> Alert:
        """Move an alert to another state, give it to somebody, or note something about it.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is no such alert.
            Conflict: its state does not lead there, it was changed meanwhile, or no such acceptance holds.
            AuditUnavailable: nothing was changed.
        """
        now_at = self._clock.now_at()
        _check(wanted, now_at)

        def work(tx: Transaction) -> Alert:
            before = self._find(tx, alert_id)
            check_version(wanted.version, before.version, "alert")
            after = self._moved(tx, before, wanted, who=principal.name, now_at=now_at)
            if after != before:
                self._store.alerts.change(tx, after)
            action = f"alert_{after.status.value}" if after.status is not before.status else "alert_changed"
            shown = {"before": _shown(before), "after": _shown(after)}
            details = {"note": wanted.note} if wanted.note else None
            self._trail.note(tx, action, principal, context, id=before.id, details=details, **shown)
            return after

        return await self._audit.commit(work)

    def _moved(self, tx: Transaction, alert: Alert, wanted: WantedAlert, *, who: str, now_at: int) -> Alert:
        after = alert
        if wanted.status is not None and (wanted.status is not alert.status or wanted.status is AlertStatus.SUPPRESSED):
            until_at = wanted.suppressed_until_at
            if wanted.acceptance is not None:
                ends_at = self._accepted_until(tx, wanted.acceptance) if self._accepted_until else None
                if ends_at is None or ends_at <= now_at:
                    raise Conflict("There is no such risk acceptance that holds.", param="acceptance")
                until_at = min(until_at or ends_at, ends_at)
            after = move(
                alert,
                wanted.status,
                who=who,
                at=now_at,
                note=wanted.note,
                until_at=until_at,
                acceptance=wanted.acceptance,
            )
        if wanted.assigned_to is not None and wanted.assigned_to != alert.assigned_to:
            version = after.version if after is not alert else alert.version + 1
            after = replace(after, assigned_to=wanted.assigned_to.strip() or None, version=version)
        return after

    def _find(self, tx: Transaction, alert_id: str) -> Alert:
        alert = self._store.alerts.by_id(tx, alert_id)
        if alert is None:
            raise NotFound("There is no such alert.")
        return alert

    def _end_of(self, tx: Transaction, alert: Alert) -> int | None:
        """Return when the suppression by a risk acceptance ends or has ended: a revoked one holds no longer."""
        ends_at = self._accepted_until(tx, alert.acceptance or "") if self._accepted_until else None
        return min(ends_at or 0, alert.suppressed_until_at or ends_at or 0)

    def _note_itself(self, tx: Transaction, action: str, before: Alert, after: Alert, *, note: str) -> None:
        event = self._audit.event(
            action,
            source=ITSELF,
            resource_type="alert",
            resource_id=after.id,
            before=_shown(before),
            after=_shown(after),
            details={"note": note},
        )
        self._audit.append(tx, event)


def _check(wanted: WantedAlert, now_at: int) -> None:
    """Check the changes of an alert as far as the alert itself does not matter."""
    check(wanted)
    is_suppressing = wanted.status is AlertStatus.SUPPRESSED
    for name in ("suppressed_until", "acceptance"):
        given = wanted.suppressed_until_at if name == "suppressed_until" else wanted.acceptance
        if given is not None and not is_suppressing:
            raise InvalidRequest(f"{name} goes with the status suppressed.", param=name)
    until_at = wanted.suppressed_until_at
    if is_suppressing and until_at is None and wanted.acceptance is None:
        raise InvalidRequest("A suppression needs suppressed_until or an acceptance.", param="suppressed_until")
    check_future(until_at, now_at, param="suppressed_until", days=LONGEST_SUPPRESSION_DAYS)


def _shown(alert: Alert) -> dict[str, object]:
    """Return what the audit log keeps of an alert's state."""
    shown = {
        "status": alert.status,
        "assigned_to": alert.assigned_to,
        "suppressed_until": alert.suppressed_until_at,
        "acceptance": alert.acceptance,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _timeline(alert: Alert, events: Sequence[AuditEvent]) -> tuple[AlertStep, ...]:
    begin = AlertStep(alert.first_seen_at, "alert_raised", ITSELF, alert.description)
    steps = [
        AlertStep(
            event.occurred_at,
            event.action,
            event.actor,
            note if isinstance(note := event.details.get("note"), str) else None,
            event.before,
            event.after,
        )
        for event in events
    ]
    return (begin, *steps)
