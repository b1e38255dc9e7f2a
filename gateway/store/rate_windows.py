"""The sliding windows of 60 seconds that all workers of a host share. Memory only; knows no SQL.

Theory of operation. The windows lie in one anonymous mapping, which is made before any workers fork. A key has a slot:
its hash, a ring of cells, and the place of the next cell. A cell is a time and the number of calls admitted at it.
Times come from the monotonic clock, which all processes of a host share. In the order of the ring they never go back.

With a limit of up to `CELLS`, each call has a cell. Above it, the calls of a quarter of a second share one and leave
with the last of them: a call may be admitted that much late, but never too early.

The hash of a key selects a set of slots. A process changes a set under its lock: a record lock (fcntl), which the
kernel takes from a process that dies. Each change is a series of single words whose order lets it stop anywhere. A slot
is free for another key when its last call is a minute old.
"""

import fcntl
import mmap
import os
import tempfile
import time
from bisect import bisect_right
from hashlib import blake2b
from itertools import accumulate

from gateway.auth.ratelimit import WINDOW_SECONDS, Admission, seconds_left
from gateway.clock import Clock
from gateway.errors import SetupError
from gateway.store.database import StoreUnavailable

CELLS = 256
SLOTS = 64
_SETS = 512
_GRID_SECONDS = 0.25
_YIELDS = 200
_NAPS = 1_000
_NAP_SECONDS = 0.0005


class RateWindows:
    """The windows of all keys, for one process or for those that fork after it was made: one thread of each.

    sets: how many sets of `SLOTS` keys there are. Memory is used as keys come into use, at most 4.1 KB for a key.
    """

    def __init__(self, *, sets: int = _SETS) -> None:
        slots = sets * SLOTS
        self._sets = sets
        self._next = slots  # behind the hashes: the next place in each ring
        self._cells = 2 * slots  # behind those: the times of each ring, then its numbers of calls
        self._memory = mmap.mmap(-1, 8 * (2 * slots + slots * CELLS * 2))
        view = memoryview(self._memory)
        self._words = view.cast("Q")
        self._times = view.cast("d")
        self._descriptor = lock_file()

    async def count(self, key_id: str, limit: int, clock: Clock) -> Admission:
        return self.admit(key_id, limit, clock.monotonic_seconds())

    def admit(self, key_id: str, limit: int, now_seconds: float) -> Admission:
        """Admit a call of `key_id` or not: never more than `limit` in any 60 seconds, over all processes.

        Raises:
            StoreUnavailable: too many keys are in use at once, or another process holds the lock too long.
        """
        key = int.from_bytes(blake2b(key_id.encode(), digest_size=8).digest(), "big") | 1  # 0 is an unused slot
        group = (key >> 1) % self._sets
        self._lock(group)
        try:
            return self._admit(self._find(key, group, now_seconds), limit, now_seconds)
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, group)

    def close(self) -> None:
        self._words.release()
        self._times.release()
        os.close(self._descriptor)

    def _lock(self, group: int) -> None:
        for attempt in range(_YIELDS + _NAPS):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, group)
                return
            except BlockingIOError:
                # A holder needs some microseconds, so yield the processor at first; sleep when the holder does not run.
                if attempt < _YIELDS:
                    os.sched_yield()
                else:
                    time.sleep(_NAP_SECONDS)
        raise StoreUnavailable("The rate windows are locked by another process.", retry_after_seconds=1)

    def _find(self, key: int, group: int, now_seconds: float) -> int:
        """Return the slot of a key. A key without a slot takes a free one."""
        first = group * SLOTS
        keys = self._words[first : first + SLOTS].tolist()
        if key in keys:
            return first + keys.index(key)
        for slot, known in enumerate(keys, first):
            if known == 0 or not self._calls(slot, now_seconds)[0]:
                self._words[slot] = key
                return slot
        raise StoreUnavailable("Too many keys are in use at once.", retry_after_seconds=1)

    def _calls(self, slot: int, now_seconds: float) -> tuple[list[float], list[int]]:
        """Return the times of the cells of the last 60 seconds, the oldest first, and the number of calls of each."""
        begin, place = self._cells + slot * CELLS * 2, self._words[self._next + slot]
        times = [*self._times[begin + place : begin + CELLS], *self._times[begin : begin + place]]
        begin += CELLS
        counts = [*self._words[begin + place : begin + CELLS], *self._words[begin : begin + place]]
        first = max(bisect_right(times, now_seconds - WINDOW_SECONDS), counts.count(0))  # 0: a cell never used
        return times[first:], counts[first:]

    def _admit(self, slot: int, limit: int, now_seconds: float) -> Admission:
        times, counts = self._calls(slot, now_seconds)
        used = sum(counts)
        reset = seconds_left(times[0] if times else now_seconds, now_seconds)
        if used >= limit:
            leaving = zip(times, accumulate(counts), strict=True)
            waits = (seconds_left(at, now_seconds) for at, left in leaving if used - left < limit)
            return Admission(False, limit, 0, reset, next(waits, reset))
        begin, place = self._cells + slot * CELLS * 2, self._words[self._next + slot]
        at_seconds = max(now_seconds, times[-1]) if times else now_seconds
        if len(times) == CELLS or (times and limit > CELLS and _grid(times[-1]) == _grid(at_seconds)):
            last = begin + (place - 1) % CELLS
            self._times[last] = at_seconds
            self._words[last + CELLS] += 1
        else:
            self._words[begin + place + CELLS] = 1
            self._times[begin + place] = at_seconds
            self._words[self._next + slot] = (place + 1) % CELLS
        return Admission(True, limit, limit - used - 1, reset, 0)


def _grid(seconds: float) -> int:
    return int(seconds / _GRID_SECONDS)


def lock_file() -> int:
    """Return the descriptor of a nameless file, whose bytes serve as locks. Raises SetupError if there is none."""
    try:
        return os.memfd_create("locks")
    except (AttributeError, OSError):  # not Linux, or not allowed
        pass
    try:
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    except OSError as error:
        raise SetupError(
            f"The gateway needs a file for the locks of its workers ({error.strerror}): let TMPDIR be written."
        ) from error
