"""The door to the wall clock, the monotonic clock, random bytes and ids."""

import os
import threading
import time

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _CROCKFORD for b in _CROCKFORD)
_COUNTS = 1 << 30  # of the last six characters


class Clock:
    """The host's clocks. Code below the command line gets one, so that a test or a story can set the time.

    now_ns: returns the wall clock in Unix nanoseconds. monotonic_seconds: returns seconds that never go back, from an
    arbitrary start.
    """

    def now_at(self) -> int:
        """Return the wall clock in Unix milliseconds. It may jump."""
        return time.time_ns() // 1_000_000

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
        self._last_at = -1
        self._stem = ""
        self._count = 0

    def new(self, prefix: str) -> str:
        """Return `prefix`, an underscore and a 26-character ULID that sorts by time."""
        at = self._now_ns() // 1_000_000
        with self._lock:
            if at > self._last_at or self._count == _COUNTS - 1:
                self._begin(max(at, self._last_at + 1))
            else:
                self._count += 1
            stem, count = self._stem, self._count
        return f"{prefix}_{stem}{_PAIRS[count >> 20]}{_PAIRS[count >> 10 & 1023]}{_PAIRS[count & 1023]}"

    def _begin(self, at: int) -> None:
        """Draw where the ids of a millisecond begin. Hexadecimal digits are digits of the ULID's alphabet as well."""
        drawn = os.urandom(9)
        time_text = f"{_PAIRS[at >> 40]}{_PAIRS[at >> 30 & 1023]}{_PAIRS[at >> 20 & 1023]}{_PAIRS[at >> 10 & 1023]}"
        self._last_at = at
        self._stem = f"{time_text}{_PAIRS[at & 1023]}{drawn[:5].hex().upper()}"
        self._count = int.from_bytes(drawn[5:]) >> 3  # in the lower half, so that there is room for counting on

    def random_bytes(self, count: int) -> bytes:
        """Return `count` bytes fit for secrets."""
        return os.urandom(count)
