"""Close the alerts that one request added to, as false positives. Touches no other alert."""

from dataclasses import dataclass, field
from typing import Annotated

from gateway.clock import Clock
from gateway.domain.alerts import ACTIVE, MAX_NOTE_CHARS, Alert, AlertFilter, AlertSource, AlertStatus, move
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import Conflict, NotFound
from gateway.field_types import line
from gateway.schema import check
from gateway.services.audit import Audit
from gateway.services.resource import AuditTrail
from gateway.store.database import Transaction
from gateway.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFalsePositive:
    """Which request was harmless, by `trf_…` or `req_…`, and why."""

    id: str
    note: Annotated[str, line(MAX_NOTE_CHARS), "Why the request is harmless; the resolution of its alerts."]


@dataclass(frozen=True, slots=True)
class MarkedAlerts:
    """The alerts that were closed, after the change."""

    alerts: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class RequestAlert:
    """An alert that a request added to. count: of all requests that did."""

    id: str
    title: str
    rule: str
    status: AlertStatus
    count: int
    agent: str | None
    key_prefix: str | None
    last_seen_at: int = field(metadata={"json_name": "last_seen"})


class FalsePositives:
    """Marks requests as false positives. The edges check who may do so."""

    def __init__(self, *, store: Store, clock: Clock, audit: Audit) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._trail = AuditTrail(audit, "alert")

    async def mark(self, principal: Principal, wanted: MarkFalsePositive, context: RequestContext) -> MarkedAlerts:
        """Close every active alert that the request added to.

        Raises:
            InvalidRequest: the note. NotFound: there is no such request.
            Conflict: the request has no active alert of its own. AuditUnavailable: nothing was changed.
        """
        check(wanted)
        note = wanted.note.strip()
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> MarkedAlerts:
            row = self._store.traffic.find(tx, wanted.id)
            if row is None:
                raise NotFound("There is no such request in the traffic, or no longer.")
            found = alerts_of(self._store, tx, row.request_id)
            active = [alert for alert in found if alert.status in ACTIVE]
            if not active:
                closed = ", ".join(f"{alert.id} is {alert.status.value}" for alert in found)
                why = f"its alert is closed already ({closed})" if found else "the request has no alert of its own"
                raise Conflict(f"Nothing was changed: {why}.")
            marked = []
            for alert in active:
                after = move(alert, AlertStatus.FALSE_POSITIVE, who=principal.name, at=now_at, note=note)
                self._store.alerts.change(tx, after)
                self._trail.note(
                    tx,
                    "alert_false_positive",
                    principal,
                    context,
                    id=alert.id,
                    before={"status": alert.status},
                    after={"status": after.status},
                    details={"note": note, "marked_request": row.request_id},
                )
                marked.append(after)
            return MarkedAlerts(tuple(marked))

        return await self._audit.commit(work)


def alerts_of(store: Store, tx: Transaction, request_id: str) -> tuple[Alert, ...]:
    """Return the alerts that count the detections of a request, newest first."""
    return store.alerts.page(tx, AlertFilter(source=AlertSource.SHIELD, request_id=request_id)).items


def in_short(alert: Alert) -> RequestAlert:
    """Return the view of an alert that a request shows."""
    who = alert.agent, alert.key_prefix
    return RequestAlert(alert.id, alert.title, alert.rule, alert.status, alert.count, *who, alert.last_seen_at)
