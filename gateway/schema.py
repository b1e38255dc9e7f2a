"""Frozen dataclasses to and from JSON values, and their JSON Schema. Pure; knows no field of any particular record.

A class is compiled once into a `_Kind`: how to read it, how to write it, and the schema of either side. What the type
cannot say stands in `typing.Annotated`: a `Bounds`, and a plain string as the field's description. Three things a
field's own definition says:

- an `int` field whose name ends in ``_at`` is Unix milliseconds inside and RFC 3339 text outside;
- ``field(metadata={"json_name": "timestamp"})`` gives the field another name outside;
- ``field(metadata={"json_name": None})`` keeps the field inside: it is never read nor written.
"""

import dataclasses
import re
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from math import inf
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gateway.errors import InvalidRequest
from gateway.wire import INT64_HIGH, INT64_LOW, TIMESTAMP_PATTERN, read_timestamp, write_time

T = TypeVar("T")
Read = Callable[[object], object]
Write = Callable[[Any], object]
JsonSchema = dict[str, object]

WRITTEN_TIME_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"
_NAME_CHARS = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """What the type of a field cannot say.

    low, high: inclusive; characters of a text, items of a list, or the value of a number.
    words: the only texts there are; for the schema alone, a service says it in its own words.
    pattern: the form of the whole text, with ``^`` and ``$``, in what Python and ECMA-262 both read; `says`, in words.
    promise: the same for the schema of what is read alone: what is always taken, where the description says more.
    names: those of the names in an object.
    """

    low: int | None = None
    high: int | None = None
    pattern: str | None = None
    words: tuple[str, ...] = ()
    promise: str | None = None
    says: str | None = None
    names: "Bounds | None" = None


def decode(cls: type[T], value: object) -> T:
    """Make a `cls` from a JSON value.

    Raises:
        InvalidRequest: a field is unknown, missing, of the wrong type or out of its bounds; `param` is its path, such
            as ``scopes[1]``.
    """
    return decoder(cls)(value)


def encode(record: object) -> dict[str, object]:
    """Return the JSON object of a record: enums as values, tuples as lists, times as RFC 3339."""
    return encoder(type(record))(record)


def decoder(cls: type[T]) -> Callable[[object], T]:
    """Compile what `decode` does for one class."""
    read = _record(cast(Any, cls)).read

    def decode_one(value: object) -> T:
        try:
            return cast(T, read(value))
        except _Bad as bad:
            # No context: the chain of inner refusals says nothing more.
            raise InvalidRequest(f"{bad.path or 'The value'} {bad.reason}.", param=bad.path or None) from None

    return decode_one


def encoder(cls: type[T]) -> Callable[[T], dict[str, object]]:
    """Compile what `encode` does for one class."""
    return cast(Callable[[T], dict[str, object]], _record(cast(Any, cls)).write)


def json_schema(cls: type, *, written: bool = False) -> JsonSchema:
    """Return the JSON Schema (2020-12) of what `decode` reads or, with `written`, of what `encode` returns."""
    kind = _record(cls)
    return kind.gives if written else kind.takes


class _Bad(Exception):
    """A value does not fit. The path grows on the way up, so that good values cost none."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def under(self, name: str) -> "_Bad":
        """Put one step before the path."""
        self.path = name + ("." if self.path and not self.path.startswith("[") else "") + self.path
        return self


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """One type, compiled. write: None when the value is JSON as it is."""

    read: Read
    write: Write | None
    takes: JsonSchema
    gives: JsonSchema


def _leaf(wanted: tuple[type, ...], phrase: str, takes: JsonSchema, gives: JsonSchema) -> _Kind:
    """Text, truth value, number or nothing. By exact type, since True is an int to Python."""

    def read(value: object) -> object:
        if type(value) not in wanted:
            raise _Bad(f"must be {phrase}")
        return value

    return _Kind(read, None, takes, gives)


def _read_whole(value: object) -> object:
    """Read a whole number. To JSON Schema, and to many who write JSON, 60.0 is one as well."""
    if type(value) is float and value.is_integer() and INT64_LOW <= value < INT64_HIGH:
        return int(value)
    if type(value) is not int:
        raise _Bad("must be a whole number")
    return value


def _time() -> _Kind:
    def read(value: object) -> object:
        if type(value) is not str:
            raise _Bad("must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
        try:
            return read_timestamp(value, param="")
        except InvalidRequest:
            raise _Bad("must be an RFC 3339 time such as 2026-01-31T12:00:00Z") from None

    return _Kind(
        read,
        write_time,
        {"type": "string", "pattern": TIMESTAMP_PATTERN},
        {"type": "string", "format": "date-time", "pattern": WRITTEN_TIME_PATTERN},
    )


def _choice(values: Mapping[object, object], write: Write | None) -> _Kind:
    """One of a few texts. values: what stands in JSON, to what stands in the record."""

    def read(value: object) -> object:
        if not isinstance(value, str) or value not in values:
            raise _Bad(f"must be one of {', '.join(str(value) for value in values)}")
        return values[value]

    schema: JsonSchema = {"type": "string", "enum": list(values)}
    return _Kind(read, write, schema, schema)


def _union(kinds: list[_Kind]) -> _Kind:
    """Whatever reads first. A union with None is by far the most common one."""
    some = [kind for kind in kinds if kind.takes != {"type": "null"}]
    has_null = len(some) < len(kinds)

    def read(value: object) -> object:
        if value is None and has_null:
            return None
        bad = _Bad("fits none of its types")
        for kind in some:
            try:
                return kind.read(value)
            except _Bad as one:
                bad = one
        raise bad

    def write_optional(value: object) -> object:
        return None if value is None else inner(value)

    inner = some[0].write or _write_anything
    write: Write | None = write_optional if len(some) == 1 and some[0].write else None
    if len(some) > 1 and any(kind.write for kind in some):
        write = _write_anything
    return _Kind(read, write, {"anyOf": [kind.takes for kind in kinds]}, {"anyOf": [kind.gives for kind in kinds]})


def _write_anything(value: object) -> object:
    """Write a value by what it is, for unions of records."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return encode(value)
    return value.value if isinstance(value, Enum) else value


def _sequence(origin: type, item: _Kind) -> _Kind:
    """tuple[X, ...], list[X], or frozenset[X], which is a sorted list outside."""
    is_set = origin is frozenset

    def read(value: object) -> object:
        if not isinstance(value, list):
            raise _Bad("must be a list")
        items = []
        for index, one in enumerate(value):
            try:
                items.append(item.read(one))
            except _Bad as bad:
                raise bad.under(f"[{index}]") from None
        return origin(items)

    inner = item.write

    def write(value: Iterable[Any]) -> object:
        items: list[Any] = list(value) if inner is None else [inner(one) for one in value]
        return sorted(items) if is_set else items

    return _Kind(read, write, {"type": "array", "items": item.takes}, {"type": "array", "items": item.gives})


def _mapping(item: _Kind) -> _Kind:
    """dict[str, X] or Mapping[str, X]."""
    inner = item.write

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise _Bad("must be an object")
        items = {}
        for name, one in value.items():
            try:
                items[name] = item.read(one)
            except _Bad as bad:
                raise bad.under(name[:_NAME_CHARS]) from None
        return items

    def write(value: Mapping[str, object]) -> object:
        return dict(value) if inner is None else {name: inner(one) for name, one in value.items()}

    takes: JsonSchema = {"type": "object", "additionalProperties": item.takes}
    return _Kind(read, write, takes, {"type": "object", "additionalProperties": item.gives})


def _annotated(kind: _Kind, marks: tuple[object, ...]) -> _Kind:
    """Add bounds and description to a kind."""
    for mark in marks:
        if isinstance(mark, str):
            about: JsonSchema = {"description": mark}
            kind = dataclasses.replace(kind, takes=kind.takes | about, gives=kind.gives | about)
        elif isinstance(mark, Bounds):
            extra = _bounds_schema(kind.takes, mark)
            takes = kind.takes | extra | ({"pattern": mark.promise} if mark.promise else {})
            kind = dataclasses.replace(kind, read=_bounded(kind, mark), takes=takes, gives=kind.gives | extra)
    return kind


def _bounds_schema(takes: JsonSchema, bounds: Bounds) -> JsonSchema:
    low, high = {
        "string": ("minLength", "maxLength"),
        "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
    }.get(str(takes.get("type")), ("minimum", "maximum"))
    extra: JsonSchema = {low: bounds.low, high: bounds.high, "pattern": bounds.pattern}
    extra |= {"enum": list(bounds.words) or None, "propertyNames": bounds.names and _bounds_schema(_TEXT, bounds.names)}
    return {name: value for name, value in extra.items() if value is not None}


def _bounded(kind: _Kind, bounds: Bounds) -> Read:
    inner = kind.read
    unit = {"string": " characters", "array": " items", "object": " entries"}.get(str(kind.takes.get("type")))
    low, high = (-inf if bounds.low is None else bounds.low), (inf if bounds.high is None else bounds.high)
    form = None if bounds.pattern is None else re.compile(bounds.pattern.removeprefix("^").removesuffix("$"))
    read_name = _bounded(_LEAVES[str], bounds.names) if bounds.names else inner
    span = f"at most {bounds.high}" if bounds.low is None else f"{bounds.low} to {bounds.high}"
    reason = f"must be {f'at least {bounds.low}' if bounds.high is None else span}{unit or ''}"

    def read(value: object) -> object:
        result: Any = inner(value)
        if not low <= (len(result) if unit else result) <= high:
            raise _Bad(reason)
        if form is not None and form.fullmatch(result) is None:
            raise _Bad(bounds.says or f"must have the form {bounds.pattern}")
        for name in result if bounds.names else ():
            try:
                read_name(name)
            except _Bad as bad:
                raise bad.under(name[:_NAME_CHARS]) from None
        return result

    return read


@cache
def _record(cls: Any) -> _Kind:
    """Compile a dataclass."""
    if not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls!r} is no dataclass")
    hints = get_type_hints(cls, include_extras=True)
    fields = {
        str(field.metadata.get("json_name", field.name)): field
        for field in dataclasses.fields(cls)
        if field.metadata.get("json_name", field.name) is not None
    }
    kinds = {name: _kind(hints[field.name], is_time=field.name.endswith("_at")) for name, field in fields.items()}
    required = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    closed: JsonSchema = {"type": "object", "additionalProperties": False}
    takes = closed | {"properties": {name: kind.takes for name, kind in kinds.items()}, "required": required}
    gives = closed | {"properties": {name: kind.gives for name, kind in kinds.items()}, "required": list(kinds)}
    return _Kind(
        _record_reader(cls, {name: (fields[name].name, kind.read) for name, kind in kinds.items()}, required),
        _record_writer({name: (fields[name].name, kind.write) for name, kind in kinds.items()}),
        takes,
        gives,
    )


def _record_reader(cls: type[object], rows: Mapping[str, tuple[str, Read]], required: list[str]) -> Read:
    known = ", ".join(rows) or "none"

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise _Bad("must be an object")
        arguments: dict[str, object] = {}
        for name, item in value.items():
            row = rows.get(name)
            if row is None:
                raise _Bad(f"is not a field here; the fields are: {known}", name[:_NAME_CHARS])
            try:
                arguments[row[0]] = row[1](item)
            except _Bad as bad:
                raise bad.under(name) from None
        for name in required:
            if name not in value:
                raise _Bad("is missing", name)
        return cls(**arguments)

    return read


def _record_writer(rows: Mapping[str, tuple[str, Write | None]]) -> Write:
    """Fetch all fields in one call of C code, then convert the few that are not JSON as they are."""
    names = tuple(rows)
    fetch = attrgetter(*(field for field, _ in rows.values())) if len(names) > 1 else None
    converted = tuple((name, write) for name, (_, write) in rows.items() if write is not None)

    def write(record: object) -> dict[str, object]:
        values = fetch(record) if fetch else [getattr(record, field) for field, _ in rows.values()]
        result: dict[str, object] = dict(zip(names, values, strict=True))
        for name, convert in converted:
            result[name] = convert(result[name])
        return result

    return write


def _kind(hint: Any, *, is_time: bool = False) -> _Kind:
    """Compile any type a field may have."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(_kind(arguments[0], is_time=is_time), arguments[1:])
    if origin in (Union, types.UnionType):
        return _union([_kind(argument, is_time=is_time) for argument in arguments])
    if origin is Literal:
        return _choice({value: value for value in arguments}, None)
    if origin in (tuple, list, frozenset):
        return _sequence(origin, _kind(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_kind(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice({member.value: member for member in hint}, attrgetter("value"))
    if dataclasses.is_dataclass(hint):
        return _record(cast(Any, hint))
    if hint is int and is_time:
        return _time()
    kind = _LEAVES.get(hint)
    if kind is None:
        raise TypeError(f"no JSON form for {hint!r}")
    return kind


_TEXT: JsonSchema = {"type": "string"}
_TRUTH: JsonSchema = {"type": "boolean"}
_NULL: JsonSchema = {"type": "null"}
_NUMBER: JsonSchema = {"type": "number"}
_INT64: JsonSchema = {"type": "integer", "minimum": INT64_LOW, "maximum": INT64_HIGH}
_LEAVES: Mapping[object, _Kind] = {
    str: _leaf((str,), "a string", _TEXT, _TEXT),
    bool: _leaf((bool,), "true or false", _TRUTH, _TRUTH),
    int: _Kind(_read_whole, None, _INT64, {"type": "integer"}),
    float: _leaf((float, int), "a number", _NUMBER, _NUMBER),
    type(None): _leaf((type(None),), "null", _NULL, _NULL),
    object: _Kind(lambda value: value, None, {}, {}),
    Any: _Kind(lambda value: value, None, {}, {}),
}
