"""The circuit breaker of one provider. Pure.

Five failures in a row open the circuit for 30 seconds. Then one request probes the provider: a failure doubles the
pause, up to five minutes; a success closes the circuit.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

FAILURES_TO_OPEN = 5
FIRST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 300.0


class ProviderStatus(StrEnum):
    """The state of a provider in this process.

    HEALTHY: the last request succeeded. DEGRADED: it failed, or a probe is due. OPEN: no requests for now. DISABLED: by
    an operator. UNTESTED: no request since the start or the last change.
    """

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    OPEN = "open"
    DISABLED = "disabled"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True)
class Circuit:
    """The recent failures of a provider. Times are monotonic seconds.

    failures: in a row. open_until_seconds: None while closed. is_probing: whether a probe is under way.
    """

    has_answered: bool = False
    failures: int = 0
    open_until_seconds: float | None = None
    pause_seconds: float = 0.0
    is_probing: bool = False

    @property
    def is_open(self) -> bool:
        return self.open_until_seconds is not None

    def may_pass(self, now_seconds: float) -> bool:
        if self.open_until_seconds is None:
            return True
        return not self.is_probing and now_seconds >= self.open_until_seconds

    def begun(self) -> "Circuit":
        """Return the circuit after a permitted request was sent."""
        return replace(self, is_probing=True) if self.is_open else self

    def cancelled(self) -> "Circuit":
        """Return the circuit after a request that was cancelled or says nothing about the provider."""
        return replace(self, is_probing=False)

    def failed(self, now_seconds: float) -> "Circuit":
        failures = self.failures + 1
        if self.is_open:
            # Only the probe counts, not requests from before the opening.
            if not self.is_probing:
                return replace(self, failures=failures)
            pause_seconds = min(self.pause_seconds * 2, LONGEST_PAUSE_SECONDS)
        elif failures >= FAILURES_TO_OPEN:
            pause_seconds = FIRST_PAUSE_SECONDS
        else:
            return Circuit(has_answered=True, failures=failures)
        return Circuit(True, failures, now_seconds + pause_seconds, pause_seconds)

    def status(self, now_seconds: float) -> ProviderStatus:
        if self.open_until_seconds is not None:
            return ProviderStatus.OPEN if now_seconds < self.open_until_seconds else ProviderStatus.DEGRADED
        if not self.has_answered:
            return ProviderStatus.UNTESTED
        return ProviderStatus.DEGRADED if self.failures else ProviderStatus.HEALTHY
