"""Build WHERE clauses from filters: fixed conditions, named parameters, and bounds that every database can hold."""

from collections.abc import Iterable

from gateway.domain.paging import MAX_INTEGER
from gateway.errors import InvalidRequest

_ESCAPE = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
_MAX_TEXT_CHARS = 1000
OCCURRED = {"since": "occurred_at >= :since", "until": "occurred_at <= :until"}


class Where:
    """Conditions that must all hold. A parameter that is None leaves its condition out."""

    def __init__(self) -> None:
        self.params: dict[str, object] = {}
        self._conditions: list[str] = []

    def add(self, condition: str, **params: object) -> None:
        """Add a condition from our own text, with the parameters that it names, unless one of them is None.

        Raises:
            InvalidRequest: a parameter is out of bounds; `param` is its name.
        """
        if any(value is None for value in params.values()):
            return
        for name, value in params.items():
            self.params[name] = _checked(name, value)
        self._conditions.append(condition)

    def match(self, wanted: object, *columns: str, **conditions: str) -> "Where":
        """Add conditions on fields of a filter: those that equal their columns, and others by the field's name."""
        for name, condition in ({one: f"{one} = :{one}" for one in columns} | conditions).items():
            self.add(condition, **{name: getattr(wanted, name)})
        return self

    def exclude(self, column: str, values: Iterable[str]) -> None:
        for number, value in enumerate(values):
            self.add(f"{column} <> :{column}_{number}", **{f"{column}_{number}": value})

    def sql(self) -> str:
        return " WHERE " + " AND ".join(self._conditions) if self._conditions else ""


def like(text: str | None) -> str | None:
    """Return the LIKE pattern, for ``ESCAPE '\\'``, that finds `text` anywhere. No character is a wildcard."""
    return None if text is None else f"%{text.translate(_ESCAPE)}%"


def found_in(columns: Iterable[str]) -> str:
    """Return the condition that one of some columns matches the LIKE pattern `:search`, whatever the case of ASCII."""
    return "(" + " OR ".join(f"lower({name}) LIKE lower(:search) ESCAPE '\\'" for name in columns) + ")"


def rank_of(column: str, values: Iterable[str]) -> str:
    """Return the expression for the place of a column's value among all its values, -1 for any other."""
    places = " ".join(f"WHEN '{value}' THEN {place}" for place, value in enumerate(values))
    return f"CASE {column} {places} ELSE -1 END"


def check_limit(limit: int, highest: int) -> int:
    """Return `limit`. Raises InvalidRequest if it is not 1 to `highest`."""
    if not 1 <= limit <= highest:
        raise InvalidRequest(f"limit must be 1 to {highest}.", param="limit")
    return limit


def _checked(name: str, value: object) -> object:
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise InvalidRequest(f"{name} is out of range.", param=name)
    if isinstance(value, str) and (len(value) > _MAX_TEXT_CHARS or "\0" in value):
        raise InvalidRequest(f"{name} is too long or holds a null character.", param=name)
    return value
