"""The door to the wall clock, the monotonic clock, random bytes and ids."""

import os
import time
from typing import Protocol

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _CROCKFORD for b in _CROCKFORD)
_COUNTS = (1 << 20) - 1


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

    def monotonic_seconds(self) -> float:
        """Return seconds that never go back, from an arbitrary start."""
        return time.monotonic()


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
    the order in which one process made them. The first 22 characters stay for a millisecond; the last four count.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_at = -1
        self._begin = 0
        self._text = ""
        self._count = _COUNTS

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        at = self._clock.now_at()
        if at > self._last_at:
            self._last_at = at
            number = int.from_bytes(os.urandom(10), "big")
            self._start(at << 60 | number >> 21)
            self._count = number & _COUNTS >> 1
        elif self._count == _COUNTS:
            self._start(self._begin + 1)
            self._count = 0
        else:
            self._count += 1
        count = self._count
        return f"{prefix}_{self._text}{_PAIRS[count >> 10]}{_PAIRS[count & 1023]}"

    def _start(self, begin: int) -> None:
        """Write what all ids of a while begin with."""
        self._begin = begin
        self._text = "".join([_PAIRS[begin >> shift & 1023] for shift in range(100, -1, -10)])

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        return os.urandom(count)
