"""A counter in shared memory, which every change of authority increments. Knows no SQL."""

import mmap
import os

_BYTES = 8


class Generation:
    """The counter in `path`, or of this process alone when `path` is None.

    A process that caches authority must read it again when the value changes. `bump` is called after
    the commit of the change, under the writer's lock. A process that finds a change without its `bump` makes up for it
    without the lock. If that loses another `bump`, the count of changes in the database shows it at the next poll.
    """

    def __init__(self, path: str | None) -> None:
        if path is None:
            cells = mmap.mmap(-1, _BYTES)
        else:
            with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0) as file:
                # Written, not only made longer: if a full disk cannot fill the hole, `bump` would kill the process.
                size = os.fstat(file.fileno()).st_size
                if size < _BYTES:
                    os.pwrite(file.fileno(), bytes(_BYTES - size), size)
                cells = mmap.mmap(file.fileno(), _BYTES)
        self._words = memoryview(cells).cast("Q")

    def value(self) -> int:
        """Return the counter, cheap enough for every request."""
        return self._words[0]

    def bump(self) -> None:
        self._words[0] = (self._words[0] + 1) & (2**64 - 1)
