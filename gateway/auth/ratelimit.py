"""The answers of a rate window of 60 seconds. `store/rate_windows.py` and `rate_grants.py` hold the windows."""

import math
from dataclasses import dataclass

from gateway.errors import RateLimited

WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer of the window to one call.

    remaining: further calls that the window would admit now. reset_seconds: whole seconds until the oldest call leaves.
    retry_after_seconds: 0 when admitted, else 1 to 60, after which a call is admitted unless another comes first.
    """

    admitted: bool
    limit: int
    remaining: int
    reset_seconds: int
    retry_after_seconds: int


class RateExceeded(RateLimited):
    """The key has used all requests of the last 60 seconds. admission: for the headers of the answer."""

    def __init__(self, admission: Admission) -> None:
        super().__init__(
            f"The API key has used its {admission.limit} requests of the last 60 seconds.",
            retry_after_seconds=admission.retry_after_seconds,
        )
        self.admission = admission


def seconds_left(call_seconds: float, now_seconds: float) -> int:
    """Return the whole seconds until a call leaves the window, 1 to 60."""
    return min(max(math.ceil(call_seconds + WINDOW_SECONDS - now_seconds), 1), int(WINDOW_SECONDS))
