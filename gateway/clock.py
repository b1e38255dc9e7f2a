"""The door to the wall clock, the monotonic clock, random bytes and ids."""

import os
import time
from collections.abc import Iterator
from typing import Protocol

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _CROCKFORD for b in _CROCKFORD)
_TIME_CHARS = 10
_DRAWS = 64


class Clock(Protocol):
    """What time it is, for whoever is told and not allowed to look."""

    def now_at(self) -> int:
        """Return the wall clock in Unix milliseconds. It may jump."""
        ...

    def now_ns(self) -> int:
        """Return the wall clock in Unix nanoseconds."""
        ...

    def monotonic_seconds(self) -> float:
        """Return seconds that never go back, from an arbitrary start."""
        ...


class SystemClock:
    """The host's clocks."""

    def now_at(self) -> int:
        """Return the wall clock in Unix milliseconds. It may jump."""
        return time.time_ns() // 1_000_000

    now_ns = staticmethod(time.time_ns)
    """Return the wall clock in Unix nanoseconds."""

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
        self._now_ns = clock.now_ns
        self._due_ns = 0  # when the stem has to be made again
        self._begun = -1
        self._high = self._drawn = self._middle = self._stem = ""
        self._count = 0
        self._ends: Iterator[str] = iter(())
        self._pool = ""

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        now_ns = self._now_ns()
        if now_ns >= self._due_ns:
            self._go_on(now_ns // 1_000_000)
        end = next(self._ends, None) or self._count_on()
        return f"{prefix}_{self._stem}{end}"

    def _go_on(self, at: int) -> None:
        """Make the stem of the ids of a millisecond: all but their last two characters."""
        self._due_ns = (at + 1) * 1_000_000
        if at >> 10 != self._begun:
            self._begin(at)
        self._stem = f"{self._high}{_PAIRS[at & 1023]}{self._middle}"

    def _begin(self, at: int) -> None:
        """Begin the ids of 1,024 milliseconds. Hex digits are digits of the ULID's alphabet, written in no time."""
        self._begun = at >> 10
        self._high = _PAIRS[at >> 40] + _PAIRS[at >> 30 & 1023] + _PAIRS[at >> 20 & 1023] + _PAIRS[at >> 10 & 1023]
        pool = self._pool or os.urandom(8 * _DRAWS).hex().upper()
        # The first digit stays 0, so that there is room for counting on.
        self._drawn = "0" + pool[:11]
        first = int(pool[11:16], 16) >> 1
        self._count = first >> 10
        self._middle = f"{self._drawn}{_PAIRS[self._count]}"
        self._ends = iter(_PAIRS[first & 1023 :])
        self._pool = pool[16:]

    def _count_on(self) -> str:
        """Begin the next 1,024 ids, and return the end of the first."""
        self._count += 1
        if self._count == len(_PAIRS):
            self._drawn = f"{int(self._drawn, 16) + 1:012X}"
            self._count = 0
        self._middle = f"{self._drawn}{_PAIRS[self._count]}"
        self._stem = f"{self._stem[:_TIME_CHARS]}{self._middle}"
        self._ends = iter(_PAIRS)
        return next(self._ends)

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        return os.urandom(count)
