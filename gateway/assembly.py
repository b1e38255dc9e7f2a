"""Things put together of parts, each part made when it is first asked for. Knows no part.

Most parts are not asked for before somebody opens a page or a job is due. With modules that are imported for their
parts alone (`from gateway.services import reports`), which the archive runs at their first use, a start does what the
first request needs and no more.
"""

from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any


class Assembly:
    """Parts by name. known: those that are there. rows: how each of the others is made, given the whole.

    A part is made once, whichever thread asks. What the parts are is said by the annotations of a subclass.
    """

    def __init__(self, rows: Mapping[str, Callable[[Any], object]], known: Mapping[str, object]) -> None:
        self._rows = rows
        self._making = RLock()
        self.__dict__.update(known)

    def has(self, name: str) -> bool:
        """Tell whether a part has been made."""
        return name in self.__dict__

    if not TYPE_CHECKING:  # the type checker knows the parts by their annotations, and no others

        def __getattr__(self, name: str) -> object:
            row = self.__dict__.get("_rows", {}).get(name)
            if row is None:
                raise AttributeError(name)
            with self._making:
                if name not in self.__dict__:
                    self.__dict__[name] = row(self)
            return self.__dict__[name]
