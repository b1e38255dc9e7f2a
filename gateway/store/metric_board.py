"""Where the workers of a host put what they have counted, so that each can tell the sum. Memory only; knows no metric.

Theory of operation. One anonymous mapping, made before the workers are forked, has a slot for each process that may
run, and each slot two halves. A process writes the half that does not count and then turns the slot's word, in one
store, so that whoever reads finds the old or the new and never a mixture, wherever the writer is killed. A slot is held
by a record lock that the kernel takes back at the end of the process. The next one to hold it goes on from what it
finds there: nothing that was put up is forgotten or counted twice.
"""

import fcntl
import mmap
import os

from gateway.store.rate_windows import lock_file

_HALF_BYTES = 256 * 1024
_WORD_BYTES = 8


class MetricBoard:
    """Slots for `processes` at once. Make it before forking; then use it in one thread of each process."""

    def __init__(self, processes: int) -> None:
        self._count = processes
        self._memory = mmap.mmap(-1, processes * (_WORD_BYTES + 2 * _HALF_BYTES))
        self._view = memoryview(self._memory)
        self._words = self._view[: processes * _WORD_BYTES].cast("Q")
        self._descriptor = lock_file()
        self._own = -1

    def claim(self) -> bytes:
        """Take a free slot for the life of this process; return what its last holder put up, or b""."""
        for slot in range(self._count):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            except OSError:
                continue
            self._own = slot
            return self._read(slot)
        return b""  # more processes than were foreseen: this one counts for itself

    def close(self) -> None:
        """Let go of the memory in this process."""
        self._words.release()
        self._view.release()
        os.close(self._descriptor)

    def publish(self, state: bytes) -> bool:
        """Put up `state` in place of the last. Says no when there is no slot or too little room."""
        if self._own < 0 or len(state) > _HALF_BYTES:
            return False
        half = 1 - (self._words[self._own] & 1)
        begin = self._begin(self._own, half)
        self._view[begin : begin + len(state)] = state
        self._words[self._own] = len(state) << 1 | half
        return True

    def others(self) -> list[bytes]:
        """Return what every other slot holds, of processes that run and of those that have ended."""
        found = [self._read(slot) for slot in range(self._count) if slot != self._own]
        return [state for state in found if state]

    def _read(self, slot: int) -> bytes:
        while True:
            word = self._words[slot]
            begin = self._begin(slot, word & 1)
            state = bytes(self._view[begin : begin + (word >> 1)])
            if word == self._words[slot]:
                return state

    def _begin(self, slot: int, half: int) -> int:
        return self._count * _WORD_BYTES + (2 * slot + half) * _HALF_BYTES
