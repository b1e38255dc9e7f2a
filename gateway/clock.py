"""The door to the wall clock, the monotonic clock, random bytes and ids."""

import os
import threading
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
        self._lock = threading.Lock()
        self._due_ns = 0  # when the stem has to be made again
        self._begun = -1
        self._high = self._drawn = self._middle = ""
        self._count = 0
        # The stem and what ends it are one word, so that no thread puts the one of before before the other of now.
        self._row: tuple[str, Iterator[str]] = "", iter(())
        self._pool = ""

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        now_ns = self._now_ns()
        if now_ns >= self._due_ns:
            self._go_on(now_ns // 1_000_000)
        stem, ends = self._row
        end = next(ends, None)
        if end is None:
            stem, end = self._count_on()
        return f"{prefix}_{stem}{end}"

    def _go_on(self, at: int) -> None:
        """Make the stem of the ids of a millisecond: all but their last two characters."""
        due_ns = (at + 1) * 1_000_000
        with self._lock:
            if due_ns <= self._due_ns:
                return  # another thread did, or was further
            ends = self._row[1]
            if at >> 10 != self._begun:
                ends = self._begin(at)
            self._row = f"{self._high}{_PAIRS[at & 1023]}{self._middle}", ends
            self._due_ns = due_ns

    def _begin(self, at: int) -> Iterator[str]:
        """Begin the ids of 1,024 milliseconds. Hex digits are digits of the ULID's alphabet, written in no time."""
        self._begun = at >> 10
        self._high = _PAIRS[at >> 40] + _PAIRS[at >> 30 & 1023] + _PAIRS[at >> 20 & 1023] + _PAIRS[at >> 10 & 1023]
        pool = self._pool or os.urandom(8 * _DRAWS).hex().upper()
        # The first digit stays 0, so that there is room for counting on.
        self._drawn = "0" + pool[:11]
        first = int(pool[11:16], 16) >> 1
        self._count = first >> 10
        self._middle = f"{self._drawn}{_PAIRS[self._count]}"
        self._pool = pool[16:]
        return iter(_PAIRS[first & 1023 :])

    def _count_on(self) -> tuple[str, str]:
        """Begin the next 1,024 ids, and return the stem and the end of the first."""
        with self._lock:
            stem, ends = self._row
            end = next(ends, None)
            if end is None:  # else another thread counted on
                self._count += 1
                if self._count == len(_PAIRS):
                    self._drawn = f"{int(self._drawn, 16) + 1:012X}"
                    self._count = 0
                self._middle = f"{self._drawn}{_PAIRS[self._count]}"
                stem, ends = self._row = f"{stem[:_TIME_CHARS]}{self._middle}", iter(_PAIRS)
                end = next(ends)
            return stem, end

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        return os.urandom(count)
