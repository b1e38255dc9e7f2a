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
_ROUNDING_SECONDS = 1e-6  # so much sooner it is looked again, so that sums of seconds need not be exact
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
    """The admitted calls of one key in the last 60 seconds.

    Until the oldest of them leaves, and the seconds until then are fewer, a call has only to be counted: what else
    there is to tell was found out by the first call after such a moment.
    """

    __slots__ = (
        "_befores", "_begin", "_cell_end_seconds", "_gone", "_left", "_limit", "_reset_seconds", "_times",
        "_until_seconds",
    )  # fmt: skip

    def __init__(self) -> None:
        self._times = array("d")
        self._befores = array("Q")  # of each cell: the calls before it
        self._begin = self._gone = 0
        self._limit = self._left = self._reset_seconds = 0
        self._until_seconds = self._cell_end_seconds = -math.inf

    def admit(self, now_seconds: float, limit: int) -> Admission:
        """Admit the call or not. `now_seconds` is of a clock that never goes back."""
        if now_seconds >= self._until_seconds or limit != self._limit:
            self._look(now_seconds, limit)
        left = self._left - 1
        if left < 0:
            return self._refuse(now_seconds)
        self._left = left
        if now_seconds < self._cell_end_seconds:
            self._times[-1] = now_seconds
        else:
            self._times.append(now_seconds)
            self._befores.append(self._gone + limit - left - 1)
            if limit > EXACT_CALLS:
                self._cell_end_seconds = (now_seconds // _GRID_SECONDS + 1) * _GRID_SECONDS
        return Admission(True, limit, left, self._reset_seconds, 0)

    def is_idle(self, now_seconds: float) -> bool:
        """Tell whether no admitted call is remembered, so that the window may be dropped."""
        self._look(now_seconds, self._limit)
        return self._begin == len(self._times)

    def _refuse(self, now_seconds: float) -> Admission:
        limit, used = self._limit, self._limit - self._left
        wait = self._reset_seconds
        if 0 < limit <= used:
            # After a limit was lowered more are remembered than it allows: the call must wait for several to go.
            last = bisect_left(self._befores, self._gone + used - limit + 1, self._begin + 1) - 1
            wait = _whole(self._times[last] + WINDOW_SECONDS - now_seconds)
        return Admission(False, limit, 0, self._reset_seconds, wait)

    def _look(self, now_seconds: float, limit: int) -> None:
        """Forget what is 60 seconds old, and find out what holds of this limit, and until when."""
        total = self._gone + self._limit - self._left
        self._forget(now_seconds, total)
        if limit != self._limit:
            self._limit, self._cell_end_seconds = limit, -math.inf
        self._left = limit - (total - self._gone)
        oldest_seconds = self._times[self._begin] if total > self._gone else now_seconds
        self._reset_seconds = _whole(oldest_seconds + WINDOW_SECONDS - now_seconds)
        self._until_seconds = oldest_seconds + WINDOW_SECONDS - self._reset_seconds + 1 - _ROUNDING_SECONDS

    def _forget(self, now_seconds: float, total: int) -> None:
        times, begin, end = self._times, self._begin, len(self._times)
        oldest = now_seconds - WINDOW_SECONDS
        if begin == end or times[begin] > oldest:
            return
        while begin < end and times[begin] <= oldest:
            begin += 1
        self._gone = self._befores[begin] if begin < end else total
        if begin == end or (begin > _SLACK and begin * 2 > end):
            del times[:begin]
            del self._befores[:begin]
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
