"""Refused requests in the audit log, and the alerts about them.

The first refusal of each kind in a window of 10 seconds gets its own event. Repetitions are counted, and one event per
action sums them up at the end of the window. A window has at most `AT_ONCE` events of its own and counts at most
`KINDS` kinds, so that a flood of wrong keys cannot fill memory or disk.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any, Literal

from gateway.domain.alerts import AlertSource
from gateway.domain.principals import Caller, Principal, RequestContext
from gateway.errors import GatewayError, RateLimited
from gateway.services.alerts import Alerts
from gateway.services.core import Service
from gateway.shield.detections import Severity

KEY_REFUSED = "api_key_refused"
RATE_EXCEEDED = "rate_limit_exceeded"
SESSION_REFUSED = "session_refused"
SIGN_IN_THROTTLED = "sign_in_throttled"
WINDOW_SECONDS = 10.0
AT_ONCE = 8
KINDS = 64
NAMED = 20
"""The most requests of one kind that a sum names."""
MANY_REFUSALS = 20
"""If one address sends this many refused keys within a window, somebody is trying keys out."""
_GUESSED = ("invalid_api_key", "key_revoked", "key_expired")

GUESSES: Mapping[str, Any] = {
    "source": AlertSource.AUTH,
    "rule": "many-invalid-keys",
    "severity": Severity.HIGH,
    "title": "Somebody tries out API keys",
    "description": "Many API keys that are wrong, revoked or expired came from one address within seconds.",
}
_ALERTS: Mapping[str, Mapping[str, Any]] = {
    SIGN_IN_THROTTLED: {
        "source": AlertSource.AUTH,
        "rule": "login-throttled",
        "severity": Severity.MEDIUM,
        "title": "Sign-ins failed until they were throttled",
        "description": "One address sent too many wrong passwords, or wrong keys for MCP. "
        "Its next attempts have to wait.",
    },
    "access_denied": {
        "source": AlertSource.ACCESS,
        "rule": "access-denied",
        "severity": Severity.MEDIUM,
        "title": "A caller was refused access",
        "description": "A request came from an address or with a key that may not come in.",
    },
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """The kind of a refusal. action: of the audit event. reason: the code of the error."""

    action: str
    reason: str
    ip: str | None
    key_prefix: str | None


@dataclass(slots=True)
class _Repetitions:
    """Refusals without an event of their own. request_ids: of the first ones."""

    count: int = 0
    request_ids: list[str] = field(default_factory=list)


class Refusals(Service):
    """The refusals of this process.

    due_seconds: when the window ends, by the monotonic clock; infinite while none is open.
    """

    alerts: Alerts
    due_seconds: float = field(default=inf, init=False)
    _window: dict[_Kind | None, _Repetitions] = field(default_factory=dict, init=False)  # None: all beyond `KINDS`

    def record(
        self,
        error: GatewayError,
        context: RequestContext | None,
        *,
        action: str = "",
        resource_type: str = "",
        principal: Principal | None = None,
        key_prefix: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> GatewayError:
        """Record or count a refusal, and return its error for the caller to raise.

        action, resource_type: by default those of a refused key, or of a user's session.
        """
        is_of_key = principal is None or principal.kind == "key"
        refused = RATE_EXCEEDED if isinstance(error, RateLimited) else KEY_REFUSED if is_of_key else SESSION_REFUSED
        action, resource_type = action or refused, resource_type or ("api_key" if is_of_key else "session")
        prefix = principal.key_prefix if principal else key_prefix
        kind = _Kind(action, error.code, context.ip if context else None, prefix)
        if not self._is_first(kind, context.request_id if context else None):
            return error
        alert = _ALERTS.get(action if action == SIGN_IN_THROTTLED else error.code)
        who = principal or stranger("key" if resource_type == "api_key" else "user", key_prefix)
        if alert is not None and context is not None:
            ip = context.ip or ""
            self._raise_behind(alert, ip, principal.id if principal else ip, Caller(who, context))
        event = self.audit.event(
            action,
            source="auth",
            outcome="refused",
            reason=error.code,
            principal=who,
            request=context,
            resource_type=resource_type,
            resource_id=principal.id if principal else None,
            details=details,
        )
        self.audit.record_behind(event)
        return error

    def flush(self) -> None:
        """Close the window and record the sums of its repetitions."""
        window, self._window, self.due_seconds = self._window, {}, inf
        others = window.pop(None, _Repetitions())
        repeated = {kind: one for kind, one in window.items() if kind is not None and one.count}
        self._raise_guesses(repeated)
        for action in dict.fromkeys([*(kind.action for kind in repeated), *([KEY_REFUSED] if others.count else [])]):
            found = [asdict(kind) | asdict(one) for kind, one in repeated.items()]
            refusals = [one for one in found if one.pop("action") == action]
            details: dict[str, object] = {"refusals": refusals, "others": 0}
            if action == KEY_REFUSED:
                details |= {"others": others.count, "others_request_ids": others.request_ids}
            self.audit.record_behind(
                self.audit.event(action, source="auth", outcome="refused", reason="repeated", details=details)
            )

    def _is_first(self, kind: _Kind, request_id: str | None) -> bool:
        """Count a refusal. Return whether it is one of the first kinds of a window, which get their own events."""
        now_seconds = self.clock.monotonic_seconds()
        if now_seconds >= self.due_seconds:
            self.flush()
        if not self._window:
            self.due_seconds = now_seconds + WINDOW_SECONDS
        is_known = kind in self._window
        if not is_known and len(self._window) < AT_ONCE:
            self._window[kind] = _Repetitions()
            return True
        key = kind if is_known or len(self._window) < KINDS else None
        one = self._window.setdefault(key, _Repetitions())
        one.count += 1
        if request_id is not None and len(one.request_ids) < NAMED:
            one.request_ids.append(request_id)
        return False

    def _raise_guesses(self, repeated: Mapping[_Kind, _Repetitions]) -> None:
        """Raise an alert for each address that sent many refused keys in the window."""
        counts: dict[str, int] = {}
        for kind, one in repeated.items():
            if kind.reason in _GUESSED and kind.ip is not None:
                counts[kind.ip] = counts.get(kind.ip, 0) + one.count
        for ip, count in counts.items():
            if count >= MANY_REFUSALS:
                self._raise_behind(GUESSES, ip, ip, refused=count)

    def _raise_behind(
        self, alert: Mapping[str, Any], ip: str, subject: str, caller: Caller | None = None, **evidence: object
    ) -> None:
        what = {**alert, "subject": subject, "caller": caller, "evidence": ({"ip": ip, **evidence},)}
        what["occurred_at"] = self.clock.now_at()
        self.alerts.raise_behind(lambda tx: self.alerts.raise_event(tx, **what))


def stranger(kind: Literal["key", "user"], key_prefix: str | None = None) -> Principal:
    """Return the principal of a caller who is not known."""
    return Principal(kind, "unknown", "unknown", frozenset(), frozenset(), key_prefix=key_prefix)
