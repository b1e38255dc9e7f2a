"""Refusals in the audit log: the first of a kind at once, repetitions in sums, so that a flood fills no disk."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.auth.refusals import Refusal, RefusalCounter, RefusalSum
from gateway.clock import Clock
from gateway.domain.alerts import AlertSource
from gateway.domain.audit import AuditEvent
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import AuditUnavailable, GatewayError
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.shield.detections import Severity
from gateway.store.database import Transaction

KEY_REFUSED = "api_key_refused"
RATE_EXCEEDED = "rate_limit_exceeded"
SESSION_REFUSED = "session_refused"
SIGN_IN_THROTTLED = "sign_in_throttled"
# What kinds too many to tell apart are summed under.
_OTHERS = KEY_REFUSED
MANY_REFUSALS = 20
"""So many refused keys from one address within a window are somebody who tries keys out."""
_GUESSED = ("invalid_api_key", "key_revoked", "key_expired")


@dataclass(frozen=True, slots=True)
class _Raised:
    """An alert that a refusal raises."""

    source: AlertSource
    rule: str
    severity: Severity
    title: str
    description: str


_GUESSES = _Raised(
    AlertSource.AUTH,
    "many-invalid-keys",
    Severity.HIGH,
    "Somebody tries out API keys",
    "Many API keys that are wrong, revoked or expired came from one address within seconds.",
)
_ALERTS: Mapping[str, _Raised] = {
    SIGN_IN_THROTTLED: _Raised(
        AlertSource.AUTH,
        "login-throttled",
        Severity.MEDIUM,
        "Sign-ins failed until they were throttled",
        "One address sent too many wrong passwords, or wrong keys for MCP. Its next attempts have to wait.",
    ),
    "access_denied": _Raised(
        AlertSource.ACCESS,
        "access-denied",
        Severity.MEDIUM,
        "A caller was refused access",
        "A request came from an address or with a key that may not come in.",
    ),
}


class Refusals:
    """What this process refused and has told, or will tell, the audit log.

    alerts: where somebody who tries keys or passwords out, or is on the access list, is told; None tells nobody.
    """

    def __init__(self, *, audit: Audit, clock: Clock, alerts: Alerts | None = None) -> None:
        self._audit = audit
        self._alerts = alerts
        self._clock = clock
        self._counter = RefusalCounter()

    def note(
        self,
        error: GatewayError,
        context: RequestContext | None,
        *,
        action: str,
        resource_type: str,
        principal: Principal | None = None,
        key_prefix: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> GatewayError:
        """Note a refusal and return its error, to be raised."""
        now_seconds = self._clock.monotonic_seconds()
        if now_seconds >= self._counter.due_seconds:
            self.flush()
        refusal = Refusal(
            action=action,
            reason=error.code,
            ip=context.ip if context else None,
            key_prefix=principal.key_prefix if principal else key_prefix,
        )
        if self._counter.add(refusal, now_seconds, context.request_id if context else None):
            raised = _ALERTS.get(action if action == SIGN_IN_THROTTLED else error.code)
            if raised is not None and context is not None:
                self._raise_behind(raised, context.ip or "", context=context, principal=principal)
            self._record_behind(
                self._audit.event(
                    action,
                    source="auth",
                    outcome="refused",
                    reason=refusal.reason,
                    principal=principal or _stranger(resource_type, key_prefix),
                    request=context,
                    resource_type=resource_type,
                    resource_id=principal.id if principal else None,
                    details=details,
                )
            )
        return error

    @property
    def due_seconds(self) -> float:
        """When the window ends, by the monotonic clock; infinite while none is open."""
        return self._counter.due_seconds

    def flush(self) -> None:
        """Record the sum of the refusals that had no event of their own."""
        told = self._counter.take()
        if told is None:
            return
        self._tell_of_guesses(told)
        actions = {one.action: None for one, _, _ in told.repeated} | ({_OTHERS: None} if told.others else {})
        for action in actions:
            refusals = [
                {
                    "reason": one.reason,
                    "ip": one.ip,
                    "key_prefix": one.key_prefix,
                    "count": count,
                    "request_ids": list(ids),
                }
                for one, count, ids in told.repeated
                if one.action == action
            ]
            details: dict[str, object] = {"refusals": refusals, "others": 0}
            if action == _OTHERS:
                details |= {"others": told.others, "others_request_ids": list(told.others_ids)}
            self._record_behind(
                self._audit.event(
                    action,
                    source="auth",
                    outcome="refused",
                    reason="repeated",
                    details=details,
                )
            )

    def _tell_of_guesses(self, told: RefusalSum) -> None:
        """Raise an alert for each address that was refused many keys in the window."""
        counts: dict[str, int] = {}
        for one, count, _ in told.repeated:
            if one.reason in _GUESSED and one.ip is not None:
                counts[one.ip] = counts.get(one.ip, 0) + count
        for ip, count in counts.items():
            if count >= MANY_REFUSALS:
                self._raise_behind(_GUESSES, ip, evidence={"refused": count})

    def _raise_behind(
        self,
        raised: "_Raised",
        ip: str,
        *,
        context: RequestContext | None = None,
        principal: Principal | None = None,
        evidence: Mapping[str, object] | None = None,
    ) -> None:
        alerts, occurred_at = self._alerts, self._clock.now_at()
        if alerts is None:
            return

        def work(tx: Transaction) -> None:
            alerts.raise_event(
                tx,
                source=raised.source,
                rule=raised.rule,
                severity=raised.severity,
                title=raised.title,
                description=raised.description,
                subject=principal.id if principal else ip,
                occurred_at=occurred_at,
                context=context,
                principal=principal,
                evidence=({"ip": ip, **(evidence or {})},),
            )

        alerts.raise_behind(work)

    def _record_behind(self, event: AuditEvent) -> None:
        try:
            self._audit.record_behind(event)
        except AuditUnavailable:
            return  # it is refused either way, and the store logs its own trouble


def _stranger(resource_type: str, key_prefix: str | None) -> Principal:
    is_key = resource_type == "api_key"
    return Principal("key" if is_key else "user", "unknown", "unknown", frozenset(), frozenset(), key_prefix=key_prefix)
