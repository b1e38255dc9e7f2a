"""Raise, fold and list alerts: one for the same thing within ten minutes, with a rising count. Never holds a text."""

from collections.abc import Mapping, Sequence

from gateway.clock import Ids
from gateway.domain.alerts import Alert, AlertFilter, AlertSource, AlertStatus, fingerprint, fold, move
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext
from gateway.shield.detections import Detection, ScanResult, Severity
from gateway.store.database import Transaction
from gateway.store.store import Store

EVIDENCE_DETECTIONS = 20
TITLE_CHARS = 200
DESCRIPTION_CHARS = 1000
ITSELF = "gateway"
"""Who resolved an alert that ended by itself."""
_AGENT_CHARS = 100


class Alerts:
    """The alerts of this gateway."""

    def __init__(self, *, store: Store, ids: Ids) -> None:
        self._store = store
        self._ids = ids

    def raise_from_scan(
        self,
        tx: Transaction,
        result: ScanResult,
        *,
        principal: Principal,
        context: RequestContext,
        origin: str,
        occurred_at: int,
        text_sha256: str,
        text_chars: int,
    ) -> Alert | None:
        """Record in `tx` what a scan found, under its strongest rule, and return the alert that now stands.

        origin: where the text came from, such as ``shield.scan`` or ``chat.inbound``. None: the scan found nothing.
        The same rule by the same agent, else the same key, within ten minutes adds to the alert that is there.
        """
        if not result.detections:
            return None
        strongest = result.detections[0]
        agent = context.agent[:_AGENT_CHARS] if context.agent else None
        who = agent or principal.key_prefix or principal.id
        seen = Alert(
            id=self._ids.new("alr"),
            title=f"{strongest.name}: {result.verdict.value}",
            description=strongest.description,
            severity=strongest.severity,
            source=AlertSource.SHIELD,
            rule=strongest.rule,
            fingerprint=fingerprint(AlertSource.SHIELD, strongest.rule, who),
            first_seen_at=occurred_at,
            last_seen_at=occurred_at,
            agent=agent,
            key_prefix=principal.key_prefix,
            request_id=context.request_id,
            origin=origin,
            evidence=(
                {
                    "request_id": context.request_id,
                    "verdict": result.verdict.value,
                    "score": result.score,
                    "sha256": text_sha256,
                    "chars": text_chars,
                    "detections": described(result.detections),
                },
            ),
        )
        return self.record(tx, seen)

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
            self._store.alerts.update(tx, resolved)
        return len(over)

    def record(self, tx: Transaction, seen: Alert) -> Alert:
        """Fold one sighting of any source into the alerts that are there, and return the alert that now stands."""
        alert = fold(self._store.alerts.latest(tx, seen.fingerprint), seen)
        if alert.id == seen.id:
            self._store.alerts.insert(tx, alert)
        else:
            self._store.alerts.update(tx, alert)
        return alert

    async def page(self, wanted: AlertFilter) -> Page[Alert]:
        """List alerts, newest first."""
        return await self._store.db.read(lambda tx: self._store.alerts.page(tx, wanted))


def described(detections: tuple[Detection, ...]) -> list[Mapping[str, object]]:
    """Say of the strongest detections what may be kept: rule, place and count, never what was matched."""
    return [
        {
            "rule": detection.rule,
            "severity": detection.severity.value,
            "category": detection.category,
            "score": detection.score,
            "count": detection.count,
            "start": detection.start,
            "end": detection.end,
            "view": detection.view,
        }
        | ({"place": detection.place} if detection.place else {})
        for detection in detections[:EVIDENCE_DETECTIONS]
    ]
