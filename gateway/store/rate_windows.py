"""The exact sliding windows of 60 seconds that all workers of a host share. Memory only; knows no SQL.

Theory of operation. One anonymous mapping is made before the workers are forked. It holds a directory, whose entry says
which key has a slot and which of its cells count, and for every slot a ring of cells. A cell is the time of an admitted
call and the number of calls admitted up to then, so that the calls of the last minute are one subtraction. Times are of
the monotonic clock, which all processes of a host share; a cell's time never goes back.

A key with a limit of up to `CELLS` has a cell for each call. Above, the calls of one quarter of a second share a cell
and leave the window together, with the last of them: a call may be admitted that much late, none is ever too early.

A key lives in the set of slots that its hash names, and everything about a set is done under the lock of that set: a
record lock (fcntl), which the kernel takes from a process that dies. Each change is a chain of single words in such an
order that it may end anywhere: what a killed worker leaves counts a call too much at worst. A slot is given to another
key when its last call is a minute old.
"""

import fcntl
import math
import mmap
import os
import time
from hashlib import blake2b

from gateway.auth.ratelimit import WINDOW_SECONDS, Admission
from gateway.errors import SetupError
from gateway.store.database import StoreUnavailable

CELLS = 256
WAYS = 64
_SETS = 128
_ENTRY_WORDS = 8
_FIRST, _SECOND, _BASE, _BEGIN, _END = range(5)  # the words of an entry: the key's hash, then the ring
_CELL_WORDS = 2
_GRID_SECONDS = 0.25
_YIELDS = 200
_NAPS = 1_000
_NAP_SECONDS = 0.0005


class RateWindows:
    """A `RateLimiter` for processes that are forked after it was made. In each process, for one thread.

    sets: how many sets of `WAYS` keys there are. It takes memory as keys come into use, at most 4.1 KB a key.
    """

    def __init__(self, *, sets: int = _SETS) -> None:
        slots = sets * WAYS
        self._sets = sets
        self._cells = slots * _ENTRY_WORDS
        self._memory = mmap.mmap(-1, 8 * (self._cells + slots * CELLS * _CELL_WORDS))
        view = memoryview(self._memory)
        self._words = view.cast("Q")
        self._times = view.cast("d")
        self._descriptor = lock_file()
        self._known: dict[str, tuple[int, int, int, int]] = {}

    def admit(self, key_id: str, limit: int, now_seconds: float) -> Admission:
        """Admit a call of `key_id` or not: never more than `limit` in any 60 seconds, over all processes.

        Raises:
            StoreUnavailable: too many keys are in use at once, or another process does not let go of the lock.
        """
        first, second, group, slot = self._known.get(key_id) or self._hash(key_id)
        self._lock(group)
        try:
            words = self._words
            entry = slot * _ENTRY_WORDS
            if words[entry + _FIRST] != first or words[entry + _SECOND] != second:
                slot = self._find(first, second, group, now_seconds)
                self._known[key_id] = first, second, group, slot
            return self._admit(slot, limit, now_seconds)
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, group)

    def close(self) -> None:
        """Let go of the memory in this process."""
        self._words.release()
        self._times.release()
        os.close(self._descriptor)

    def _hash(self, key_id: str) -> tuple[int, int, int, int]:
        """Return the two words that stand for the key, its set, and the slot to look at first."""
        if len(self._known) >= 2 * self._sets * WAYS:
            self._known.clear()
        digest = blake2b(key_id.encode(), digest_size=16).digest()
        first, second = int.from_bytes(digest[:8], "big") | 1, int.from_bytes(digest[8:], "big")
        group = second % self._sets
        return first, second, group, group * WAYS

    def _lock(self, group: int) -> None:
        for attempt in range(_YIELDS + _NAPS):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, group)
                return
            except BlockingIOError:
                # It is held for some microseconds, so a turn of the processor is enough; a nap, if the holder has none.
                if attempt < _YIELDS:
                    os.sched_yield()
                else:
                    time.sleep(_NAP_SECONDS)
        raise StoreUnavailable("The rate windows are locked by another process.", retry_after_seconds=1)

    def _find(self, first: int, second: int, group: int, now_seconds: float) -> int:
        """Return the slot of a key, taking one that is free if it has none."""
        words = self._words
        free = -1
        for slot in range(group * WAYS, (group + 1) * WAYS):
            entry = slot * _ENTRY_WORDS
            if words[entry + _FIRST] == first and words[entry + _SECOND] == second:
                return slot
            if free < 0 and self._forget(slot, now_seconds)[1] == words[entry + _END]:
                free = slot
            if words[entry + _FIRST] == 0:
                break  # never used, and slots are taken in their order: none behind it was
        if free < 0:
            raise StoreUnavailable("Too many keys are in use at once.", retry_after_seconds=1)
        # The ring goes on where the last key's ended: all it holds is forgotten.
        words[free * _ENTRY_WORDS + _SECOND] = second
        words[free * _ENTRY_WORDS + _FIRST] = first
        return free

    def _forget(self, slot: int, now_seconds: float) -> tuple[int, int]:
        """Drop the cells that are 60 seconds old; return the calls before the first cell that counts, and its number.

        The sum is written before the number: if only the first is, the next one drops the same cells again.
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
        frees_seconds = times[ring + begin % CELLS * _CELL_WORDS] + WINDOW_SECONDS - now_seconds
        return Admission(True, limit, limit - used - 1, _whole(frees_seconds), 0)

    def _refuse(self, ring: int, begin: int, end: int, surplus: int, *, limit: int, now_seconds: float) -> Admission:
        """Refuse a call. surplus: the sum that the calls which must leave first go up to."""
        words, times = self._words, self._times
        reset = wait = int(WINDOW_SECONDS)
        for number in range(begin, end):
            cell = ring + number % CELLS * _CELL_WORDS
            seconds = _whole(times[cell] + WINDOW_SECONDS - now_seconds)
            if number == begin:
                reset = seconds
            if words[cell + 1] > surplus:
                wait = seconds
                break
        return Admission(False, limit, 0, reset, wait if limit else reset)


def _grid(seconds: float) -> int:
    return int(seconds / _GRID_SECONDS)


def _whole(seconds: float) -> int:
    return min(max(math.ceil(seconds), 1), int(WINDOW_SECONDS))


def lock_file() -> int:
    """Return a descriptor of a file without a name, whose bytes are locks.

    Raises:
        SetupError: this host allows no such file.
    """
    try:
        return os.memfd_create("locks")
    except (AttributeError, OSError):  # not Linux, or not allowed
        pass
    try:
        import tempfile  # slow to import, and one process alone does without

        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    except OSError as error:
        raise SetupError(
            f"Several workers need a file for their locks ({error.strerror}): use one worker, or let TMPDIR be written."
        ) from error
