"""The sliding windows of 60 seconds that all workers of a host share. Memory only; knows no SQL.

Theory of operation. The windows lie in one anonymous mapping, which is made before any workers fork. A key has a slot:
an entry in a directory and a ring of cells. A cell is the time of an admitted call and the number of calls up to it, so
that the calls of the last minute are one subtraction. Times come from the monotonic clock, which all processes of a
host share. The time of a cell never goes back.

With a limit of up to `CELLS`, each call has a cell. Above it, the calls of a quarter of a second share one and leave
with the last of them: a call may be admitted that much late, but never too early.

The hash of a key selects a set of slots. A process changes a set under its lock: a record lock (fcntl), which the
kernel takes from a process that dies. Each change is a series of single words whose order lets it stop anywhere; a
killed worker leaves at most one call too many. A slot is free for another key when its last call is a minute old.
"""

import fcntl
import mmap
import os
import tempfile
import time
from hashlib import blake2b

from gateway.auth.ratelimit import WINDOW_SECONDS, Admission, seconds_left
from gateway.clock import Clock
from gateway.errors import SetupError
from gateway.store.database import StoreUnavailable

CELLS = 256
SLOTS = 64
_SETS = 512
_ENTRY_WORDS = 4
_KEY, _BASE, _BEGIN, _END = range(4)  # the words of an entry: the hash of the key, then the ring
_CELL_WORDS = 2
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
        self._cells = slots * _ENTRY_WORDS
        self._memory = mmap.mmap(-1, 8 * (self._cells + slots * CELLS * _CELL_WORDS))
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
        words = self._words
        free = -1
        for slot in range(group * SLOTS, (group + 1) * SLOTS):
            entry = slot * _ENTRY_WORDS
            if words[entry + _KEY] == key:
                return slot
            if free < 0 and self._forget(slot, now_seconds)[1] == words[entry + _END]:
                free = slot
            if words[entry + _KEY] == 0:
                break  # slots are taken in their order, so no later one was ever used
        if free < 0:
            raise StoreUnavailable("Too many keys are in use at once.", retry_after_seconds=1)
        # All cells of the last key have expired, and the ring goes on where they end.
        words[free * _ENTRY_WORDS + _KEY] = key
        return free

    def _forget(self, slot: int, now_seconds: float) -> tuple[int, int]:
        """Drop the cells that are 60 seconds old. Return the calls before the first cell left, and its number.

        The sum is written before the number: if a process dies between them, the next drops the same cells again.
        """
        words, times = self._words, self._times
        entry = slot * _ENTRY_WORDS
        base, begin, end = words[entry + _BASE], words[entry + _BEGIN], words[entry + _END]
        ring = self._cells + slot * CELLS * _CELL_WORDS
        oldest = now_seconds - WINDOW_SECONDS
        was = begin
        while begin < end:
            cell = ring + begin % CELLS * _CELL_WORDS
            if times[cell] > oldest:
                break
            base = words[cell + 1]
            begin += 1
        if begin != was:
            words[entry + _BASE] = base
            words[entry + _BEGIN] = begin
        return base, begin

    def _admit(self, slot: int, limit: int, now_seconds: float) -> Admission:
        words, times = self._words, self._times
        base, begin = self._forget(slot, now_seconds)
        entry = slot * _ENTRY_WORDS
        end = words[entry + _END]
        ring = self._cells + slot * CELLS * _CELL_WORDS
        last = ring + (end - 1) % CELLS * _CELL_WORDS
        total = words[last + 1] if begin < end else base
        used = total - base
        if used >= limit:
            return self._refuse(ring, begin, end, base + used - limit, limit=limit, now_seconds=now_seconds)
        at_seconds = max(now_seconds, times[last]) if begin < end else now_seconds
        if begin < end and (end - begin == CELLS or (limit > CELLS and _grid(times[last]) == _grid(at_seconds))):
            times[last] = at_seconds
            words[last + 1] = total + 1
        else:
            cell = ring + end % CELLS * _CELL_WORDS
            times[cell] = at_seconds
            words[cell + 1] = total + 1
            words[entry + _END] = end + 1
        first_seconds = times[ring + begin % CELLS * _CELL_WORDS]
        return Admission(True, limit, limit - used - 1, seconds_left(first_seconds, now_seconds), 0)

    def _refuse(self, ring: int, begin: int, end: int, surplus: int, *, limit: int, now_seconds: float) -> Admission:
        """Refuse a call. surplus: the sum up to which calls must leave before one is admitted."""
        words, times = self._words, self._times
        reset = wait = int(WINDOW_SECONDS)
        for number in range(begin, end):
            cell = ring + number % CELLS * _CELL_WORDS
            seconds = seconds_left(times[cell], now_seconds)
            if number == begin:
                reset = seconds
            if words[cell + 1] > surplus:
                wait = seconds
                break
        return Admission(False, limit, 0, reset, wait if limit else reset)


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
