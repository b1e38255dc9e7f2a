"""A counter that every process of the host sees at once, moved by each change of authority. Knows no SQL."""

import mmap
import os

_BYTES = 8
_LAST = 2**64 - 1


class Generation:
    """The counter in `path`, or of this process alone when `path` is None.

    What was looked up under one value must be looked up again under another. `bump` is called after the commit of the
    change and while the writer's lock is held. A process that finds a change without its `bump` makes up for it without
    the lock: should another `bump` be lost by that, the count of changes in the database shows it within a second.
    """

    def __init__(self, path: str | None) -> None:
        self._cells: mmap.mmap | bytearray = bytearray(_BYTES)
        self._words = memoryview(self._cells).cast("Q")
        if path is None:
            return
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Written and not only lengthened: a hole that a full disk cannot fill would kill the process at `bump`.
            size = os.fstat(descriptor).st_size
            if size < _BYTES:
                os.pwrite(descriptor, bytes(_BYTES - size), size)
            self._cells = mmap.mmap(descriptor, _BYTES)
            self._words = memoryview(self._cells).cast("Q")
        finally:
            os.close(descriptor)

    def value(self) -> int:
        """Return the counter. Cheap enough for every request."""
        return self._words[0]

    def bump(self) -> None:
        """Move the counter on."""
        self._words[0] = (self._words[0] + 1) & _LAST

    def close(self) -> None:
        """Let go of the file. The last value stays readable."""
        if isinstance(self._cells, mmap.mmap):
            cells = self._cells
            self._cells = bytearray(cells[:_BYTES])
            self._words.release()
            self._words = memoryview(self._cells).cast("Q")
            cells.close()
