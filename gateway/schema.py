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
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from math import inf
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gateway.codecs import (
    LEAVES,
    Bad,
    Kind,
    Now,
    Read,
    as_is,
    choice,
    mapping,
    optional,
    or_null,
    sequence,
    time,
)
from gateway.codecs import JsonSchema as JsonSchema
from gateway.errors import InvalidRequest
from gateway.strict_json import write_time

# Half of a surrogate pair comes from a command line: no JSON that is read contains one.
_HALF_PAIR = re.compile("[\ud800-\udfff]")
T = TypeVar("T")


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
            extra = _bounds_schema(kind.takes, mark)
            takes = kind.takes | extra | ({"pattern": mark.promise} if mark.promise else {})
            kind = dataclasses.replace(kind, read=_bounded(kind, mark), takes=takes, gives=kind.gives | extra)
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


def _bounds_schema(takes: JsonSchema, bounds: Bounds) -> JsonSchema:
    low, high = {
        "string": ("minLength", "maxLength"),
        "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
    }.get(str(takes.get("type")), ("minimum", "maximum"))
    words = list(bounds.words) or None
    extra: JsonSchema = {low: bounds.low, high: bounds.high, "pattern": bounds.pattern, "enum": words}
    return {name: value for name, value in extra.items() if value is not None}


def _bounded(kind: Kind, bounds: Bounds) -> Read:
    if "anyOf" in kind.takes:
        raise TypeError("bounds are those of one type: in a union they stand with that one")
    inner = kind.read
    unit = {"string": " characters", "array": " items", "object": " entries"}.get(str(kind.takes.get("type")))
    low, high = (-inf if bounds.low is None else bounds.low), (inf if bounds.high is None else bounds.high)
    form = None if bounds.pattern is None else re.compile(bounds.pattern.removeprefix("^").removesuffix("$"))
    words = ", ".join(bounds.words)
    span = f"at most {bounds.high}" if bounds.low is None else f"{bounds.low} to {bounds.high}"
    reason = f"must be {f'at least {bounds.low}' if bounds.high is None else span}{unit or ''}"

    def read(value: object, now_at: int | None) -> object:
        result: Any = inner(value, now_at)
        if not low <= (len(result) if unit else result) <= high:
            raise Bad(reason)
        if words and result not in bounds.words:
            raise Bad(f"must be one of {words}")
        if form is not None and (form.fullmatch(result) is None or _HALF_PAIR.search(result)):
            raise Bad(bounds.says or f"must have the form {bounds.pattern}")
        return result

    return read


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
    forms = {name: kind.takes if name in required else or_null(kind.takes) for name, (_, kind) in rows.items()}
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
        return optional(_kind(arguments[0], is_time=is_time))
    if origin is Literal:
        return choice({value: value for value in arguments}, as_is)
    if origin in (tuple, list, frozenset):
        return sequence(origin, _kind(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return mapping(_kind(arguments[0]), _kind(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return choice({member.value: member for member in hint}, attrgetter("value"))
    if dataclasses.is_dataclass(hint):
        return _record(cast(Any, hint))
    if hint is int and is_time:
        return time()
    kind = LEAVES.get(hint)
    if kind is None:
        raise TypeError(f"no JSON form for {hint!r}")
    return kind
