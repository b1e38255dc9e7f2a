"""The exact sliding window of 60 seconds. Pure: told the time, never looks; one object for one process.

Theory of operation. A window remembers when each admitted call came, oldest first, and forgets what is 60 seconds old.
A call is admitted while fewer than `limit` are remembered, so no interval of 60 seconds ever holds more than `limit`.
Rejected calls leave no trace. With a limit above `EXACT_CALLS` the calls of a quarter of a second are one cell and
leave together, with the last of them: a call may be admitted that much late, none is ever too early. So a window takes
at most 16 bytes for each of `EXACT_CALLS` calls, whatever the limit is.
"""

import math
from array import array
from bisect import bisect_left
from typing import Protocol

from gateway.errors import RateLimited
from gateway.records import record

WINDOW_SECONDS = 60.0
EXACT_CALLS = 10_000
_GRID_SECONDS = 0.25
_SLACK = 256


@record
class Admission:
    """What the window said of one call.

    remaining: calls that would be admitted now. reset_seconds: whole seconds until the window frees one, 0 when it is
    empty. retry_after_seconds: 0 when admitted, else 1 to 60: then a call is admitted if nobody else comes first.
    """

    admitted: bool
    limit: int
    remaining: int
    reset_seconds: int
    retry_after_seconds: int


class RateWindow:
    """The admitted calls of one key in the last 60 seconds."""

    __slots__ = ("_begin", "_gone", "_times", "_totals")

    def __init__(self) -> None:
        self._times = array("d")
        self._totals = array("Q")  # of each cell: the calls up to it
        self._begin = 0
        self._gone = 0

    def admit(self, now_seconds: float, limit: int) -> Admission:
        """Admit the call or not. `now_seconds` is of a clock that never goes back."""
        times, totals, begin = self._times, self._totals, self._begin
        if begin < len(times) and times[begin] <= now_seconds - WINDOW_SECONDS:
            self._forget(now_seconds)
            begin = self._begin
        is_empty = begin == len(times)
        gone = self._gone
        total = gone if is_empty else totals[-1]
        used = total - gone
        if used < limit:
            if limit > EXACT_CALLS and not is_empty and times[-1] // _GRID_SECONDS == now_seconds // _GRID_SECONDS:
                times[-1] = now_seconds
                totals[-1] = total + 1
            else:
                times.append(now_seconds)
                totals.append(total + 1)
            reset = math.ceil(times[begin] + WINDOW_SECONDS - now_seconds)
            if not 1 <= reset <= WINDOW_SECONDS:
                reset = _whole(reset)
            return Admission(True, limit, limit - used - 1, reset, 0)
        reset = _whole(times[begin] + WINDOW_SECONDS - now_seconds) if used else int(WINDOW_SECONDS)
        wait = reset
        if 0 < limit <= used:
            # After a limit was lowered more are remembered than it allows: the call must wait for several to go.
            last = bisect_left(totals, total - limit + 1, begin)
            wait = _whole(times[last] + WINDOW_SECONDS - now_seconds)
        return Admission(False, limit, 0, reset, wait)

    def is_idle(self, now_seconds: float) -> bool:
        """Tell whether no admitted call is remembered, so that the window may be dropped."""
        self._forget(now_seconds)
        return self._begin == len(self._times)

    def _forget(self, now_seconds: float) -> None:
        times, begin, end = self._times, self._begin, len(self._times)
        oldest = now_seconds - WINDOW_SECONDS
        if begin == end or times[begin] > oldest:
            return
        while begin < end and times[begin] <= oldest:
            begin += 1
        self._gone = self._totals[begin - 1]
        if begin == end or (begin > _SLACK and begin * 2 > end):
            del times[:begin]
            del self._totals[:begin]
            begin = 0
        self._begin = begin


class RateExceeded(RateLimited):
    """The key has used its requests of the last 60 seconds. admission: for the headers of the answer."""

    def __init__(self, admission: Admission) -> None:
        super().__init__(
            f"The API key has used its {admission.limit} requests of the last 60 seconds.",
            retry_after_seconds=admission.retry_after_seconds,
        )
        self.admission = admission


class RateLimiter(Protocol):
    """The windows of all keys, wherever they are kept."""

    def admit(self, key_id: str, limit: int, now_seconds: float) -> Admission:
        """Admit a call of `key_id` or not: never more than `limit` in any 60 seconds."""
        ...


class LocalRateLimiter:
    """The windows of all keys of one process. Windows without a call of the last minute are dropped."""

    def __init__(self) -> None:
        self._windows: dict[str, RateWindow] = {}
        self._sweep_size = _SLACK

    def admit(self, key_id: str, limit: int, now_seconds: float) -> Admission:
        """Admit a call of `key_id` or not: never more than `limit` in any 60 seconds."""
        window = self._windows.get(key_id)
        if window is None:
            if len(self._windows) >= self._sweep_size:
                self._sweep(now_seconds)
            window = self._windows[key_id] = RateWindow()
        return window.admit(now_seconds, limit)

    def _sweep(self, now_seconds: float) -> None:
        self._windows = {key: window for key, window in self._windows.items() if not window.is_idle(now_seconds)}
        self._sweep_size = max(_SLACK, 2 * len(self._windows))


def _whole(seconds: float) -> int:
    return min(max(math.ceil(seconds), 1), int(WINDOW_SECONDS))
