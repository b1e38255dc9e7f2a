"""A board on which the workers of a host publish their counts, so that each can report the sum. Knows no metric.

Theory of operation. One anonymous mapping, made before the workers fork, has a slot for each process that may run. A
slot has two halves and a word that selects one. A process writes the other half and then changes the word in one store,
so that a reader finds the old state or the new one, never a mixture, wherever the writer is killed. A record lock holds
a slot; the kernel releases it when the process ends. The next holder goes on from the state that it finds there, so
that no count is lost or counted twice.
"""

import fcntl
import mmap
import os

from gateway.store.rate_windows import lock_file

_HALF_BYTES = 256 * 1024
_WORD_BYTES = 8


class MetricBoard:
    """Slots for `processes` at once. Make it before the fork, then use it in one thread of each process."""

    def __init__(self, processes: int) -> None:
        self._count = processes
        self._memory = mmap.mmap(-1, processes * (_WORD_BYTES + 2 * _HALF_BYTES))
        self._view = memoryview(self._memory)
        self._words = self._view[: processes * _WORD_BYTES].cast("Q")
        self._descriptor = lock_file()
        self._own = -1

    def claim(self) -> bytes:
        """Take a free slot for the life of this process and return what its last holder published, or b""."""
        for slot in range(self._count):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            except OSError:
                continue
            self._own = slot
            return self._read(slot)
        return b""  # more processes than slots: this one is left out of the sums

    def close(self) -> None:
        self._words.release()
        self._view.release()
        os.close(self._descriptor)

    def publish(self, state: bytes) -> bool:
        """Publish `state` in place of the last. Return false when there is no slot, or too little room in it."""
        if self._own < 0 or len(state) > _HALF_BYTES:
            return False
        half = 1 - (self._words[self._own] & 1)
        begin = self._begin(self._own, half)
        self._view[begin : begin + len(state)] = state
        self._words[self._own] = len(state) << 1 | half
        return True

    def others(self) -> list[bytes]:
        """Return the states of all other slots, of processes that run and of those that have ended."""
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
