"""The circuit of one provider: closed while it works, open after failures, one probe when the pause is over. Pure.

Five failures in a row open it for 30 seconds. Then one request is let through: if it fails, the next pause is twice as
long, up to five minutes; if it succeeds, all is as at the beginning.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

FAILURES_TO_OPEN = 5
FIRST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 300.0


class ProviderStatus(StrEnum):
    """How a provider is, as this process sees it.

    HEALTHY: the last request succeeded. DEGRADED: it failed, or a probe is due. OPEN: nothing is sent for now.
    DISABLED: by an operator. UNTESTED: nothing was sent since the start or since the last change.
    """

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    OPEN = "open"
    DISABLED = "disabled"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is remembered of a provider. Times are monotonic seconds.

    failures: in a row. open_until_seconds: None while closed. pause_seconds: of the last opening. is_probing: the one
    request of an open circuit is on its way.
    """

    has_answered: bool = False
    failures: int = 0
    open_until_seconds: float | None = None
    pause_seconds: float = 0.0
    is_probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether requests are held back, but for a probe."""
        return self.open_until_seconds is not None

    def may_pass(self, now_seconds: float) -> bool:
        """Tell whether a request may be sent now."""
        if self.open_until_seconds is None:
            return True
        return not self.is_probing and now_seconds >= self.open_until_seconds

    def begun(self) -> "Circuit":
        """Return the circuit after a request that may pass was sent."""
        return replace(self, is_probing=True) if self.is_open else self

    def let_go(self) -> "Circuit":
        """Return the circuit after a request whose outcome says nothing of the provider, or that was given up."""
        return replace(self, is_probing=False)

    def succeeded(self) -> "Circuit":
        """Return the circuit after a good answer."""
        return WORKING

    def failed(self, now_seconds: float) -> "Circuit":
        """Return the circuit after a failure."""
        failures = self.failures + 1
        if self.is_open:
            # A request from before the opening says nothing new; the probe does.
            if not self.is_probing:
                return replace(self, failures=failures)
            pause_seconds = min(self.pause_seconds * 2, LONGEST_PAUSE_SECONDS)
        elif failures >= FAILURES_TO_OPEN:
            pause_seconds = FIRST_PAUSE_SECONDS
        else:
            return Circuit(has_answered=True, failures=failures)
        return Circuit(True, failures, now_seconds + pause_seconds, pause_seconds)

    def status(self, now_seconds: float) -> ProviderStatus:
        """Return what is told of the provider."""
        if self.open_until_seconds is not None:
            return ProviderStatus.OPEN if now_seconds < self.open_until_seconds else ProviderStatus.DEGRADED
        if not self.has_answered:
            return ProviderStatus.UNTESTED
        return ProviderStatus.DEGRADED if self.failures else ProviderStatus.HEALTHY


NEW = Circuit()
"""Of a provider to which nothing was sent."""
WORKING = Circuit(has_answered=True)
"""Of one whose last request succeeded."""
