"""One value of a type: how it is read and written, and its JSON Schema. Pure; knows no record and no bounds of its own.

Each reader gets the time, since a few values depend on it: ``90d`` means 90 days from now.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, cast

from gateway.errors import InvalidRequest
from gateway.strict_json import INT64_HIGH, INT64_LOW, TIMESTAMP_PATTERN, read_timestamp, write_time

Now = Callable[[], int]
Read = Callable[[object, int | None], object]
Write = Callable[[Any], object]
JsonSchema = dict[str, object]
_NULL: JsonSchema = {"type": "null"}

WRITTEN_TIME_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"
NAME_CHARS = 64
"""How many characters of an unknown name an error repeats in its path."""


class Bad(Exception):
    """A value does not fit. The path grows on the way up, so that good values cost none."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def under(self, step: str | int) -> "Bad":
        """Add a step in front of the path: a name, or the index of an item."""
        name = step[:NAME_CHARS] if isinstance(step, str) else f"[{step}]"
        self.path = name + ("." if self.path and not self.path.startswith("[") else "") + self.path
        return self


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """One type, compiled.

    read: from a JSON value and the time, Unix milliseconds. takes, gives: the schema of what is read and of what is
    written.
    """

    read: Read
    write: Write
    takes: JsonSchema
    gives: JsonSchema


def as_is(value: object) -> object:
    """Write a value that is JSON already."""
    return value


def read_part(read: Read, value: object, now_at: int | None, step: str | int) -> object:
    """Read a part of a value. step: its name or its index, which an error has in its path."""
    try:
        return read(value, now_at)
    except Bad as bad:
        raise bad.under(step) from None


def _leaf(name: str, phrase: str, *wanted: type) -> Kind:
    """Text, truth value or number. By exact type, since True is an int to Python. name: JSON Schema's."""

    def read(value: object, now_at: int | None) -> object:
        if type(value) not in wanted:
            raise Bad(f"must be {phrase}")
        return value

    return Kind(read, as_is, {"type": name}, {"type": name})


def _read_whole(value: object, now_at: int | None) -> object:
    """Read a whole number. To JSON Schema and to many clients, 60.0 is one as well."""
    if type(value) is float and value.is_integer() and INT64_LOW <= value < INT64_HIGH:
        return int(value)
    if type(value) is not int:
        raise Bad("must be a whole number")
    return value


def time() -> Kind:
    """A time: Unix milliseconds inside, RFC 3339 outside."""

    def read(value: object, now_at: int | None) -> object:
        with suppress(InvalidRequest):
            if type(value) is str:
                return read_timestamp(value, param="")
        raise Bad("must be an RFC 3339 time such as 2026-01-31T12:00:00Z")

    return Kind(
        read,
        write_time,
        {"type": "string", "pattern": TIMESTAMP_PATTERN},
        {"type": "string", "format": "date-time", "pattern": WRITTEN_TIME_PATTERN},
    )


def choice(values: Mapping[object, object], write: Write) -> Kind:
    """One of a few texts. values: from the text in JSON to the value in the record."""

    def read(value: object, now_at: int | None) -> object:
        if not isinstance(value, str) or value not in values:
            raise Bad(f"must be one of {', '.join(str(value) for value in values)}")
        return values[value]

    schema: JsonSchema = {"type": "string", "enum": list(values)}
    return Kind(read, write, schema, schema)


def optional(kind: Kind) -> Kind:
    """A value of the kind, or nothing."""

    def read(value: object, now_at: int | None) -> object:
        return None if value is None else kind.read(value, now_at)

    def write(value: object) -> object:
        return None if value is None else kind.write(value)

    return Kind(read, write, {"anyOf": [kind.takes, _NULL]}, {"anyOf": [kind.gives, _NULL]})


def or_null(takes: JsonSchema) -> JsonSchema:
    """Return a schema that takes null as well. A description stays outside."""
    is_any = not {"type", "anyOf", "enum", "const"} & takes.keys()
    if is_any or _NULL in cast("list[object]", takes.get("anyOf", [])):
        return takes
    about = {name: value for name, value in takes.items() if name == "description"}
    return {"anyOf": [{name: value for name, value in takes.items() if name not in about}, _NULL]} | about


def sequence(origin: type, item: Kind) -> Kind:
    """tuple[X, ...], list[X], or frozenset[X], which is a sorted list outside."""
    is_set = origin is frozenset

    def read(value: object, now_at: int | None) -> object:
        if not isinstance(value, list):
            raise Bad("must be a list")
        return origin([read_part(item.read, one, now_at, index) for index, one in enumerate(value)])

    def write(value: Iterable[Any]) -> object:
        items: list[Any] = [item.write(one) for one in value]
        return sorted(items) if is_set else items

    return Kind(read, write, {"type": "array", "items": item.takes}, {"type": "array", "items": item.gives})


def mapping(name: Kind, item: Kind) -> Kind:
    """dict[str, X] or Mapping[str, X]. name: of the names."""

    def read(value: object, now_at: int | None) -> object:
        if not isinstance(value, dict):
            raise Bad("must be an object")
        for key in value:
            read_part(name.read, key, now_at, key)
        return {key: read_part(item.read, one, now_at, key) for key, one in value.items()}

    def write(value: Mapping[str, object]) -> object:
        return {key: item.write(one) for key, one in value.items()}

    forms = {key: one for key, one in name.takes.items() if key != "type"}
    names: JsonSchema = {"propertyNames": forms} if forms else {}
    takes: JsonSchema = {"type": "object", "additionalProperties": item.takes}
    return Kind(read, write, takes | names, {"type": "object", "additionalProperties": item.gives} | names)


_INT64: JsonSchema = {"type": "integer", "minimum": INT64_LOW, "maximum": INT64_HIGH}
LEAVES: Mapping[object, Kind] = {
    str: _leaf("string", "a string", str),
    bool: _leaf("boolean", "true or false", bool),
    int: Kind(_read_whole, as_is, _INT64, {"type": "integer"}),
    float: _leaf("number", "a number", float, int),
    object: Kind(lambda value, now_at: value, as_is, {}, {}),
    Any: Kind(lambda value, now_at: value, as_is, {}, {}),
}
