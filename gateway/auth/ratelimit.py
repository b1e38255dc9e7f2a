"""The exact sliding window of 60 seconds. Pure: the caller passes the time. One object serves one process.

Theory of operation. A window keeps the time of each admitted call, oldest first, and drops calls that are 60 seconds
old. It admits a call while it holds fewer than `limit`, so no interval of 60 seconds ever has more than `limit`.
Rejected calls leave no trace. With a limit above `EXACT_CALLS` the calls of a quarter of a second share one cell and
leave with the last of them: a call may be admitted that much late, but never too early. This bounds the memory.
"""

import math
from collections import deque
from typing import Protocol

from gateway.errors import RateLimited
from gateway.records import record

WINDOW_SECONDS = 60.0
EXACT_CALLS = 1_000
_GRID_SECONDS = 0.25
_SWEEP_KEYS = 256


@record
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


class RateWindow:
    """The admitted calls of one key in the last 60 seconds."""

    __slots__ = ("_cells", "_used")

    def __init__(self) -> None:
        self._cells: deque[tuple[float, int]] = deque()  # time of the last call in a cell, and how many it holds
        self._used = 0

    def admit(self, now_seconds: float, limit: int) -> Admission:
        """Admit the call or not. `now_seconds` comes from a clock that never goes back."""
        self._drop_old(now_seconds)
        cells = self._cells
        if self._used >= limit:
            return self._refuse(now_seconds, limit)
        count = 1
        if limit > EXACT_CALLS and cells and cells[-1][0] // _GRID_SECONDS == now_seconds // _GRID_SECONDS:
            count += cells.pop()[1]
        cells.append((now_seconds, count))
        self._used += 1
        return Admission(True, limit, limit - self._used, seconds_left(cells[0][0], now_seconds), 0)

    def is_idle(self, now_seconds: float) -> bool:
        """Return whether the window holds no call, so that it may be dropped."""
        self._drop_old(now_seconds)
        return not self._cells

    def _drop_old(self, now_seconds: float) -> None:
        cells = self._cells
        while cells and cells[0][0] <= now_seconds - WINDOW_SECONDS:
            self._used -= cells.popleft()[1]

    def _refuse(self, now_seconds: float, limit: int) -> Admission:
        reset_seconds = wait_seconds = seconds_left(self._cells[0][0] if self._cells else now_seconds, now_seconds)
        # After a limit was lowered, several calls may have to leave first.
        surplus = self._used - limit + 1 if limit else 0
        for at_seconds, count in self._cells:
            if surplus <= 0:
                break
            surplus -= count
            wait_seconds = seconds_left(at_seconds, now_seconds)
        return Admission(False, limit, 0, reset_seconds, wait_seconds)


class RateExceeded(RateLimited):
    """The key has used all requests of the last 60 seconds. admission: for the headers of the answer."""

    def __init__(self, admission: Admission) -> None:
        super().__init__(
            f"The API key has used its {admission.limit} requests of the last 60 seconds.",
            retry_after_seconds=admission.retry_after_seconds,
        )
        self.admission = admission


class RateLimiter(Protocol):
    """The windows of all keys, wherever they are stored."""

    def admit(self, key_id: str, limit: int, now_seconds: float) -> Admission:
        """Admit a call of `key_id` or not: never more than `limit` in any 60 seconds."""
        ...


class LocalRateLimiter:
    """The windows of all keys of one process. Windows without a call in the last minute are dropped."""

    def __init__(self) -> None:
        self._windows: dict[str, RateWindow] = {}
        self._sweep_size = _SWEEP_KEYS

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
        self._sweep_size = max(_SWEEP_KEYS, 2 * len(self._windows))


def seconds_left(call_seconds: float, now_seconds: float) -> int:
    """Return the whole seconds until a call leaves the window, 1 to 60."""
    return min(max(math.ceil(call_seconds + WINDOW_SECONDS - now_seconds), 1), int(WINDOW_SECONDS))
