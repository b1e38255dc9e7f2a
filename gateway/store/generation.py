"""A counter in shared memory, which every change of authority increments. Knows no SQL."""

import mmap
import os

_BYTES = 8
_LAST = 2**64 - 1


class Generation:
    """The counter in `path`, or of this process alone when `path` is None.

    A process that caches authority must read it again when the value changes. `bump` is called after
    the commit of the change, under the writer's lock. A process that finds a change without its `bump` makes up for it
    without the lock. If that loses another `bump`, the count of changes in the database shows it within a second.
    """

    def __init__(self, path: str | None) -> None:
        self._cells: mmap.mmap | bytearray = bytearray(_BYTES)
        self._words = memoryview(self._cells).cast("Q")
        if path is None:
            return
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Written, not only made longer: if a full disk cannot fill the hole, `bump` would kill the process.
            size = os.fstat(descriptor).st_size
            if size < _BYTES:
                os.pwrite(descriptor, bytes(_BYTES - size), size)
            self._cells = mmap.mmap(descriptor, _BYTES)
            self._words = memoryview(self._cells).cast("Q")
        finally:
            os.close(descriptor)

    def value(self) -> int:
        """Return the counter, cheap enough for every request."""
        return self._words[0]

    def bump(self) -> None:
        self._words[0] = (self._words[0] + 1) & _LAST

    def close(self) -> None:
        """Close the file. The last value stays readable."""
        if isinstance(self._cells, mmap.mmap):
            cells = self._cells
            self._cells = bytearray(cells[:_BYTES])
            self._words.release()
            self._words = memoryview(self._cells).cast("Q")
            cells.close()
