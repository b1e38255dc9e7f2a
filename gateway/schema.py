"""Frozen dataclasses to and from JSON values, and their JSON Schema. Pure; knows no field of any particular record.

A class is compiled once into a `Kind`: how to read it, how to write it, and the schema of either side. What the type
cannot say stands in `typing.Annotated`: a `Bounds`, a `ByTime`, and a plain string as the field's description. A
field that may be left out may be null as well, which says the same. Three things a field's own definition says:

- an `int` field whose name ends in ``_at`` is Unix milliseconds inside and RFC 3339 text outside;
- ``field(metadata={"json_name": "timestamp"})`` gives the field another name outside;
- ``field(metadata={"json_name": None})`` keeps the field inside: it is never read nor written.
"""

import dataclasses
import re
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache
from math import inf
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gateway.errors import InvalidRequest
from gateway.strict_json import INT64_HIGH, INT64_LOW, TIMESTAMP_PATTERN, read_timestamp, write_time

T = TypeVar("T")
Now = Callable[[], int]
Read = Callable[[object, int | None], object]
Write = Callable[[Any], object]
JsonSchema = dict[str, object]
_NULL: JsonSchema = {"type": "null"}

WRITTEN_TIME_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"
NAME_CHARS = 64
"""How many characters of an unknown name an error repeats in its path."""
# Half of a surrogate pair comes from a command line: no JSON that is read contains one.
_HALF_PAIR = re.compile("[\ud800-\udfff]")


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


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """What the type of a field cannot say.

    low, high: inclusive; characters of a text, items of a list, or the value of a number.
    words: the only allowed texts.
    pattern: the form of the whole text, with ``^`` and ``$``, in what Python and ECMA-262 both read; `says`, in words.
    promise: a pattern for the input schema alone: a form that is always accepted, if the description allows more.
    """

    low: int | None = None
    high: int | None = None
    pattern: str | None = None
    words: tuple[str, ...] = ()
    promise: str | None = None
    says: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ByTime:
    """Makes an `int` field, Unix milliseconds, of a text whose meaning depends on the clock. Bounds are the text's.

    read: such as `strict_json.read_time`: from the text, `param` and `now_at` to the time; raises InvalidRequest.
    """

    read: Callable[..., int]


def decode(cls: type[T], value: object, *, now: Now | None = None) -> T:
    """Make a `cls` from a JSON value. now: the clock, Unix milliseconds, for a class with a `ByTime`.

    Raises:
        InvalidRequest: a field is unknown, missing, of the wrong type or out of its bounds; `param` is its path, such
            as ``scopes[1]``.
    """
    try:
        return cast(T, _record(cast(Any, cls)).read(value, now and now()))  # one time for the whole record
    except Bad as bad:
        # No context: the chain of inner refusals says nothing more.
        raise InvalidRequest(f"{bad.path or 'The value'} {bad.reason}.", param=bad.path or None) from None


def encode(record: object) -> dict[str, object]:
    """Return the JSON object of a record: enums as values, tuples as lists, times as RFC 3339."""
    return cast("dict[str, object]", _record(cast(Any, type(record))).write(record))


def check(record: object) -> None:
    """Check the bounds of a record that code made without `decode`. A field that has its default value is good.

    Whether a time lies ahead is for a service to check.

    Raises:
        InvalidRequest: a field is out of its bounds; `param` is its path.
    """
    for name, (field, kind) in _fields(cast(Any, type(record))).items():
        value = getattr(record, field.name)
        if value == field.default:
            continue
        try:
            kind.read(kind.write(value), 0)  # written times are absolute
        except Bad as bad:
            path = bad.under(name).path
            raise InvalidRequest(f"{path} {bad.reason}.", param=path) from None
        except OverflowError:  # from `datetime`, for a time that it cannot represent
            raise InvalidRequest(f"{name} must be a time before the year 10000.", param=name) from None


def json_schema(cls: type, *, written: bool = False) -> JsonSchema:
    """Return the JSON Schema (2020-12) of what `decode` reads or, with `written`, of what `encode` returns."""
    kind = _record(cls)
    return kind.gives if written else kind.takes


def _annotated(hint: Any, marks: tuple[object, ...], *, is_time: bool) -> Kind:
    by_time = next((mark for mark in marks if isinstance(mark, ByTime)), None)
    kind = _kind(hint if by_time is None else str, is_time=is_time)
    for mark in marks:
        if isinstance(mark, str):
            about: JsonSchema = {"description": mark}
            kind = dataclasses.replace(kind, takes=kind.takes | about, gives=kind.gives | about)
        elif isinstance(mark, Bounds):
            kind = _bounded(kind, mark)
    if by_time is not None:
        kind = dataclasses.replace(kind, read=_reader_by_time(kind.read, by_time.read), write=write_time)
    return kind


def _reader_by_time(inner: Read, read_text: Callable[..., int]) -> Read:
    def read(value: object, now_at: int | None) -> object:
        if now_at is None:
            raise TypeError("a value that depends on the time was read without a clock")
        text = inner(value, now_at)
        try:
            return read_text(text, param="", now_at=now_at)
        except InvalidRequest as error:
            raise Bad(error.message.strip(" .")) from None

    return read


def _bounded(kind: Kind, bounds: Bounds) -> Kind:
    if "anyOf" in kind.takes:
        raise TypeError("bounds are those of one type: in a union they stand with that one")
    low_name, high_name, unit = {
        "string": ("minLength", "maxLength", " characters"),
        "array": ("minItems", "maxItems", " items"),
        "object": ("minProperties", "maxProperties", " entries"),
    }.get(str(kind.takes.get("type")), ("minimum", "maximum", ""))
    wanted = {low_name: bounds.low, high_name: bounds.high, "pattern": bounds.pattern, "enum": [*bounds.words] or None}
    extra = {name: value for name, value in wanted.items() if value is not None}
    low, high = (-inf if bounds.low is None else bounds.low), (inf if bounds.high is None else bounds.high)
    form = None if bounds.pattern is None else re.compile(bounds.pattern.removeprefix("^").removesuffix("$"))
    words = ", ".join(bounds.words)
    span = f"at most {bounds.high}" if bounds.low is None else f"{bounds.low} to {bounds.high}"
    reason = f"must be {f'at least {bounds.low}' if bounds.high is None else span}{unit}"

    def read(value: object, now_at: int | None) -> object:
        result: Any = kind.read(value, now_at)
        if not low <= (len(result) if unit else result) <= high:
            raise Bad(reason)
        if words and result not in bounds.words:
            raise Bad(f"must be one of {words}")
        if form is not None and (form.fullmatch(result) is None or _HALF_PAIR.search(result)):
            raise Bad(bounds.says or f"must have the form {bounds.pattern}")
        return result

    takes = kind.takes | extra | ({"pattern": bounds.promise} if bounds.promise else {})
    return dataclasses.replace(kind, read=read, takes=takes, gives=kind.gives | extra)


@cache
def _fields(cls: Any) -> dict[str, tuple[dataclasses.Field[Any], Kind]]:
    """Compile the fields of a dataclass, by their names outside."""
    if not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls!r} is no dataclass")
    hints = get_type_hints(cls, include_extras=True)
    return {
        str(name): (field, _kind(hints[field.name], is_time=field.name.endswith("_at")))
        for field in dataclasses.fields(cls)
        if (name := field.metadata.get("json_name", field.name)) is not None
    }


@cache
def _record(cls: Any) -> Kind:
    rows = _fields(cls)
    missing = dataclasses.MISSING
    required = [name for name, (field, _) in rows.items() if field.default is field.default_factory is missing]
    closed: JsonSchema = {"type": "object", "additionalProperties": False}
    forms = {name: kind.takes if name in required else _or_null(kind.takes) for name, (_, kind) in rows.items()}
    takes = closed | {"properties": forms, "required": required}
    gives = closed | {"properties": {name: kind.gives for name, (_, kind) in rows.items()}, "required": list(rows)}
    known = ", ".join(rows) or "none"

    def read(value: object, now_at: int | None) -> object:
        if not isinstance(value, dict):
            raise Bad("must be an object")
        arguments: dict[str, object] = {}
        for name, item in value.items():
            if name not in rows:
                raise Bad(f"is not a field here; the fields are: {known}").under(name)
            field, kind = rows[name]
            try:
                arguments[field.name] = kind.read(item, now_at)
            except Bad as bad:
                if item is not None or name in required:  # else null says the same as leaving it out
                    raise bad.under(name) from None
        for name in required:
            if name not in value:
                raise Bad("is missing", name)
        return cls(**arguments)

    def write(record: object) -> object:
        return {name: kind.write(getattr(record, field.name)) for name, (field, kind) in rows.items()}

    return Kind(read, write, takes, gives)


def _kind(hint: Any, *, is_time: bool = False) -> Kind:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:], is_time=is_time)
    if origin in (Union, types.UnionType) and arguments[1:] == (type(None),):
        return _optional(_kind(arguments[0], is_time=is_time))
    if origin is Literal:
        return _choice({value: value for value in arguments}, _as_is)
    if origin in (tuple, list, frozenset):
        return _sequence(origin, _kind(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_kind(arguments[0]), _kind(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice({member.value: member for member in hint}, attrgetter("value"))
    if dataclasses.is_dataclass(hint):
        return _record(cast(Any, hint))
    if hint is int and is_time:
        return _TIME
    kind = _LEAVES.get(hint)
    if kind is None:
        raise TypeError(f"no JSON form for {hint!r}")
    return kind


def _as_is(value: object) -> object:
    """Write a value that is JSON already."""
    return value


def _read_part(read: Read, value: object, now_at: int | None, step: str | int) -> object:
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

    return Kind(read, _as_is, {"type": name}, {"type": name})


def _read_whole(value: object, now_at: int | None) -> object:
    """Read a whole number. To JSON Schema and to many clients, 60.0 is one as well."""
    if type(value) is float and value.is_integer() and INT64_LOW <= value < INT64_HIGH:
        return int(value)
    if type(value) is not int:
        raise Bad("must be a whole number")
    return value


def _read_time(value: object, now_at: int | None) -> object:
    with suppress(InvalidRequest):
        if type(value) is str:
            return read_timestamp(value, param="")
    raise Bad("must be an RFC 3339 time such as 2026-01-31T12:00:00Z")


def _choice(values: Mapping[object, object], write: Write) -> Kind:
    """One of a few texts. values: from the text in JSON to the value in the record."""

    def read(value: object, now_at: int | None) -> object:
        if not isinstance(value, str) or value not in values:
            raise Bad(f"must be one of {', '.join(str(value) for value in values)}")
        return values[value]

    schema: JsonSchema = {"type": "string", "enum": list(values)}
    return Kind(read, write, schema, schema)


def _optional(kind: Kind) -> Kind:
    """A value of the kind, or nothing."""

    def read(value: object, now_at: int | None) -> object:
        return None if value is None else kind.read(value, now_at)

    def write(value: object) -> object:
        return None if value is None else kind.write(value)

    return Kind(read, write, {"anyOf": [kind.takes, _NULL]}, {"anyOf": [kind.gives, _NULL]})


def _or_null(takes: JsonSchema) -> JsonSchema:
    """Return a schema that takes null as well. A description stays outside."""
    is_any = not {"type", "anyOf", "enum", "const"} & takes.keys()
    if is_any or _NULL in cast("list[object]", takes.get("anyOf", [])):
        return takes
    about = {name: value for name, value in takes.items() if name == "description"}
    return {"anyOf": [{name: value for name, value in takes.items() if name not in about}, _NULL]} | about


def _sequence(origin: type, item: Kind) -> Kind:
    """tuple[X, ...], list[X], or frozenset[X], which is a sorted list outside."""
    is_set = origin is frozenset

    def read(value: object, now_at: int | None) -> object:
        if not isinstance(value, list):
            raise Bad("must be a list")
        return origin([_read_part(item.read, one, now_at, index) for index, one in enumerate(value)])

    def write(value: Iterable[Any]) -> object:
        items: list[Any] = [item.write(one) for one in value]
        return sorted(items) if is_set else items

    return Kind(read, write, {"type": "array", "items": item.takes}, {"type": "array", "items": item.gives})


def _mapping(name: Kind, item: Kind) -> Kind:
    """dict[str, X] or Mapping[str, X]. name: of the names."""

    def read(value: object, now_at: int | None) -> object:
        if not isinstance(value, dict):
            raise Bad("must be an object")
        for key in value:
            _read_part(name.read, key, now_at, key)
        return {key: _read_part(item.read, one, now_at, key) for key, one in value.items()}

    def write(value: Mapping[str, object]) -> object:
        return {key: item.write(one) for key, one in value.items()}

    forms = {key: one for key, one in name.takes.items() if key != "type"}
    names: JsonSchema = {"propertyNames": forms} if forms else {}
    takes: JsonSchema = {"type": "object", "additionalProperties": item.takes}
    return Kind(read, write, takes | names, {"type": "object", "additionalProperties": item.gives} | names)


_TIME = Kind(
    _read_time,
    write_time,
    {"type": "string", "pattern": TIMESTAMP_PATTERN},
    {"type": "string", "format": "date-time", "pattern": WRITTEN_TIME_PATTERN},
)
"""A time: Unix milliseconds inside, RFC 3339 outside."""
_INT64: JsonSchema = {"type": "integer", "minimum": INT64_LOW, "maximum": INT64_HIGH}
_LEAVES: Mapping[object, Kind] = {
    str: _leaf("string", "a string", str),
    bool: _leaf("boolean", "true or false", bool),
    int: Kind(_read_whole, _as_is, _INT64, {"type": "integer"}),
    float: _leaf("number", "a number", float, int),
    object: Kind(lambda value, now_at: value, _as_is, {}, {}),
    Any: Kind(lambda value, now_at: value, _as_is, {}, {}),
}
