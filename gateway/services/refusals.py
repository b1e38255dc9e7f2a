"""Refusals in the audit log: the first of a kind at once, repetitions in sums, so that a flood fills no disk."""

from collections.abc import Mapping

from gateway.auth.refusals import Refusal, RefusalCounter
from gateway.clock import Clock
from gateway.domain.audit import AuditEvent
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import AuditUnavailable, GatewayError
from gateway.services.audit import Audit

KEY_REFUSED = "api_key_refused"
RATE_EXCEEDED = "rate_limit_exceeded"
SESSION_REFUSED = "session_refused"
SIGN_IN_THROTTLED = "sign_in_throttled"
# What kinds too many to tell apart are summed under.
_OTHERS = KEY_REFUSED


class Refusals:
    """What this process refused and has told, or will tell, the audit log."""

    def __init__(self, *, audit: Audit, clock: Clock) -> None:
        self._audit = audit
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
        if self._counter.note(refusal, now_seconds):
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
        actions = {one.action: None for one, _ in told.repeated} | ({_OTHERS: None} if told.others else {})
        for action in actions:
            refusals = [
                {"reason": one.reason, "ip": one.ip, "key_prefix": one.key_prefix, "count": count}
                for one, count in told.repeated
                if one.action == action
            ]
            others = told.others if action == _OTHERS else 0
            self._record_behind(
                self._audit.event(
                    action,
                    source="auth",
                    outcome="refused",
                    reason="repeated",
                    details={"refusals": refusals, "others": others},
                )
            )

    def _record_behind(self, event: AuditEvent) -> None:
        try:
            self._audit.record_behind(event)
        except AuditUnavailable:
            return  # it is refused either way, and the store logs its own trouble


def _stranger(resource_type: str, key_prefix: str | None) -> Principal:
    is_key = resource_type == "api_key"
    return Principal("key" if is_key else "user", "unknown", "unknown", frozenset(), frozenset(), key_prefix=key_prefix)
