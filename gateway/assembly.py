"""Things put together of parts, each part made when it is first asked for. Knows no part.

Most parts are not asked for before somebody opens a page or a job is due. With modules that are imported for their
parts alone (`from gateway.services import reports`), which the archive runs at their first use, a start does what the
first request needs and no more.
"""

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any


class _Part:
    """Stands in the class for a part: what is asked for when an object does not have it yet.

    A `__getattr__` would do the same, and make each use of each part, which are many in a request, three times as slow.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, whole: "Assembly", kind: type) -> object:
        return whole._make(self._name)


class Assembly:
    """Parts by name. known: those that are there. rows: how each of the others is made, given the whole.

    A part is made once, whichever thread asks. What the parts are is said by the annotations of a subclass.
    """

    def __init__(self, rows: Mapping[str, Callable[[Any], object]], known: Mapping[str, object]) -> None:
        self._rows = rows
        self._making = RLock()
        self._made = set(known)
        for name, part in known.items():
            setattr(self, name, part)
        kind = type(self)
        for name in rows:
            if name not in kind.__dict__:
                setattr(kind, name, _Part(name))

    def has(self, name: str) -> bool:
        """Tell whether a part has been made."""
        return name in self._made

    def _make(self, name: str) -> object:
        """Make a part, unless another thread just did."""
        row = self._rows.get(name)
        if row is None:
            raise AttributeError(name)
        with self._making:
            if name not in self._made:
                setattr(self, name, row(self))
                self._made.add(name)
        part: object = getattr(self, name)
        return part
