"""The door to the wall clock, the monotonic clock, random bytes and ids."""

import os
import time
from typing import Protocol

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _CROCKFORD for b in _CROCKFORD)


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
    the order in which one process made them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        at = self._clock.now_at()
        if at <= self._last >> 80:
            value = self._last + 1
        else:
            value = at << 80 | int.from_bytes(os.urandom(10), "big") >> 1
        self._last = value
        p, mask = _PAIRS, 1023
        return (
            f"{prefix}_{p[value >> 120 & mask]}{p[value >> 110 & mask]}{p[value >> 100 & mask]}{p[value >> 90 & mask]}"
            f"{p[value >> 80 & mask]}{p[value >> 70 & mask]}{p[value >> 60 & mask]}{p[value >> 50 & mask]}"
            f"{p[value >> 40 & mask]}{p[value >> 30 & mask]}{p[value >> 20 & mask]}{p[value >> 10 & mask]}"
            f"{p[value & mask]}"
        )

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        return os.urandom(count)
