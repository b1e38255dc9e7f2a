"""The door to the wall clock, the monotonic clock, random bytes and ids."""

import os
import threading
import time

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _CROCKFORD for b in _CROCKFORD)
_RANDOM_BITS = 80


class Clock:
    """The host's clocks. Code below the command line gets one, so that a test or a story can set the time.

    now_ns: returns the wall clock in Unix nanoseconds. monotonic_seconds: returns seconds that never go back, from an
    arbitrary start.
    """

    def now_at(self) -> int:
        """Return the wall clock in Unix milliseconds. It may jump."""
        return self.now_ns() // 1_000_000

    now_ns = staticmethod(time.time_ns)
    monotonic_seconds = staticmethod(time.monotonic)


class Ids:
    """Unique ids and random bytes: monotonic ULIDs (github.com/ulid/spec) from a clock and the system's random source.

    Each millisecond begins at a random number. Further ids of the same millisecond, or after the clock went back, count
    on from the last one, so that the ids of one process always sort in the order in which it made them.
    """

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.now_ns
        self._lock = threading.Lock()
        self._last = 0

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        at = self._now_ns() // 1_000_000
        with self._lock:
            if at > self._last >> _RANDOM_BITS:
                # In the lower half, so that there is room for counting on.
                self._last = at << _RANDOM_BITS | int.from_bytes(self.random_bytes(_RANDOM_BITS // 8)) >> 1
            else:
                self._last += 1
            value = self._last
        return ulid(prefix, value)

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        return os.urandom(count)


def ulid(prefix: str, value: int) -> str:
    """Return `prefix`, an underscore and a ULID. value: Unix milliseconds in 48 bits, then 80 other bits."""
    return f"{prefix}_" + "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])
