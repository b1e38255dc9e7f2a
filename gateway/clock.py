"""The door to the wall clock, the monotonic clock, random bytes and ids."""

import os
import time
from typing import Protocol

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _CROCKFORD for b in _CROCKFORD)
_COUNTS = (1 << 20) - 1
_DRAWS = 64


class Clock(Protocol):
    """What time it is, for whoever is told and not allowed to look."""

    def now_at(self) -> int:
        """Return the wall clock in Unix milliseconds. It may jump."""
        ...

    def monotonic_seconds(self) -> float:
        """Return seconds that never go back, from an arbitrary start."""
        ...


class SystemClock:
    """The host's clocks."""

    def now_at(self) -> int:
        """Return the wall clock in Unix milliseconds. It may jump."""
        return time.time_ns() // 1_000_000

    monotonic_seconds = staticmethod(time.monotonic)
    """Return seconds that never go back, from an arbitrary start. Asked ten times in a request."""


class Ids(Protocol):
    """Unique ids and random bytes."""

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        ...


class SystemIds:
    """Monotonic ULIDs (github.com/ulid/spec) from a clock and the system's random source.

    Ids made in the same millisecond, or after the clock went back, continue the last one, so that they always sort in
    the order in which one process made them. The first ten characters are the time, twelve are drawn for each
    1,024 milliseconds, and the last four count from a random number on.
    """

    def __init__(self, clock: Clock) -> None:
        self._now_at = clock.now_at
        self._last_at = -1
        self._high = ""
        self._drawn = ""
        self._time = self._stem = ""
        self._count = self._last = _COUNTS
        self._pool = ""

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        at = self._now_at()
        count = self._count = self._count + 1
        if at > self._last_at or count > self._last:
            count = self._go_on(at)
        return f"{prefix}_{self._stem}{_PAIRS[count & 1023]}"

    def _go_on(self, at: int) -> int:
        """Make the stem of the ids that follow, all but their last two characters, and return what they count from."""
        if at > self._last_at:
            if at >> 10 != self._last_at >> 10:
                self._begin(at)
            self._last_at = at
            self._time = f"{self._high}{_PAIRS[at & 1023]}"
        if self._count > _COUNTS:
            self._drawn = f"{int(self._drawn, 16) + 1:012X}"
            self._count = 0
        self._last = self._count | 1023
        self._stem = f"{self._time}{self._drawn}{_PAIRS[self._count >> 10]}"
        return self._count

    def _begin(self, at: int) -> None:
        """Begin the ids of 1,024 milliseconds. Hex digits are digits of the ULID's alphabet, written in no time."""
        self._high = _PAIRS[at >> 40] + _PAIRS[at >> 30 & 1023] + _PAIRS[at >> 20 & 1023] + _PAIRS[at >> 10 & 1023]
        pool = self._pool or os.urandom(8 * _DRAWS).hex().upper()
        # The first digit stays 0, so that there is room for counting on.
        self._drawn = "0" + pool[:11]
        self._count = (int(pool[11:16], 16) >> 1) + 1
        self._pool = pool[16:]

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        return os.urandom(count)
