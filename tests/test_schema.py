"""Records to and from JSON: what fits, what is refused by its path, and that the schema says the same."""

import contextlib
import gc
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Literal

import pytest

from gateway import schema
from gateway.errors import InvalidRequest

Name = Annotated[str, schema.Bounds(1, 5, pattern="^[a-z]+$")]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Wheel:
    size: int
    colour: Colour = Colour.RED


@dataclass(frozen=True, slots=True)
class Car:
    """A car."""

    name: Annotated[str, schema.Bounds(1, 5), "What it is called."]
    wheels: tuple[Wheel, ...] = ()
    tags: Annotated[list[str], schema.Bounds(high=2)] = field(default_factory=list)
    price: Annotated[float, schema.Bounds(0)] | None = None
    is_sold: bool = False
    kind: Literal["van", "bus"] = "van"
    extra: Mapping[str, object] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    colours: frozenset[Colour] = frozenset()
    built_at: int | None = None
    first_seen_at: int = field(default=0, metadata={"json_name": "first_seen"})
    secret: str = field(default="inner", metadata={"json_name": None})
    plate: Annotated[str, schema.Bounds(pattern="^[A-Z]{2}$")] = "AB"
    anything: object = None
    speed: Annotated[int, schema.Bounds(1, 300)] = 50
    doors: Annotated[dict[Name, int], schema.Bounds(high=2)] = field(default_factory=dict)
    home: Annotated[str, schema.Bounds(1, 9, promise="^[a-z]+$")] = "x"


FULL = {
    "name": "Älfa", "wheels": [{"size": 3, "colour": "blue"}, {"size": 4}], "tags": ["a"], "price": 2, "is_sold": True,
    "kind": "bus", "extra": {"x": [1]}, "sizes": {"l": 1}, "colours": ["red", "blue"], "built_at": "1970-01-01T00:00:01Z",
    "first_seen": "1970-01-01T00:00:00.005Z", "plate": "XY", "anything": {"a": 1}, "speed": 300,
    "doors": {"left": 2}, "home": "Ulm",
}  # fmt: skip


def test_record_is_made_from_json() -> None:
    car = schema.decode(Car, FULL)
    assert car == Car(
        name="Älfa", wheels=(Wheel(3, Colour.BLUE), Wheel(4)), tags=["a"], price=2.0, is_sold=True, kind="bus",
        extra={"x": [1]}, sizes={"l": 1}, colours=frozenset(Colour), built_at=1000, first_seen_at=5, plate="XY",
        anything={"a": 1}, speed=300, doors={"left": 2}, home="Ulm",
    )  # fmt: skip


def test_defaults_stand_in_for_what_is_not_sent() -> None:
    assert schema.decode(Car, {"name": "a"}) == Car(name="a")


def test_record_is_written_with_enums_as_values_and_times_as_text() -> None:
    assert schema.encode(schema.decode(Car, FULL)) == FULL | {
        "wheels": [{"size": 3, "colour": "blue"}, {"size": 4, "colour": "red"}],
        "colours": ["blue", "red"],
        "built_at": "1970-01-01T00:00:01.000Z",
    }


def test_written_enum_is_a_plain_string() -> None:
    assert type(schema.encode(Wheel(1))["colour"]) is str


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"nmae": 1}, "nmae"),
        ({"secret": "x"}, "secret"),
        ({"first_seen_at": 5}, "first_seen_at"),
        ({"x" * 500: 1}, "x" * 64),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "sixsix"}, "name"),
        ({"wheels": {}}, "wheels"),
        ({"wheels": [{"size": 1}, 5]}, "wheels[1]"),
        ({"wheels": [{}]}, "wheels[0].size"),
        ({"wheels": [{"size": 1, "colour": "pink"}]}, "wheels[0].colour"),
        ({"wheels": [{"size": 1, "colour": ["red"]}]}, "wheels[0].colour"),
        ({"wheels": [{"size": 1, "rim": 2}]}, "wheels[0].rim"),
        ({"tags": ["a", "b", "c"]}, "tags"),
        ({"tags": [1]}, "tags[0]"),
        ({"price": "1"}, "price"),
        ({"price": True}, "price"),
        ({"price": -1}, "price"),
        ({"is_sold": 1}, "is_sold"),
        ({"is_sold": "true"}, "is_sold"),
        ({"kind": "car"}, "kind"),
        ({"kind": 1}, "kind"),
        ({"extra": []}, "extra"),
        ({"sizes": {"l": "1"}}, "sizes.l"),
        ({"sizes": {"l": True}}, "sizes.l"),
        ({"colours": "red"}, "colours"),
        ({"built_at": 5}, "built_at"),
        ({"built_at": "today"}, "built_at"),
        ({"plate": "ab"}, "plate"),
        ({"plate": "AB\n"}, "plate"),
        ({"speed": 0}, "speed"),
        ({"speed": 301}, "speed"),
        ({"speed": 1.5}, "speed"),
        ({"speed": 1e300}, "speed"),
        ({"speed": float("inf")}, "speed"),
        ({"speed": "1"}, "speed"),
        ({"doors": {"a": 1, "b": 1, "c": 1}}, "doors"),
        ({"doors": {"": 1}}, "doors"),
        ({"doors": {"Left": 1}}, "doors.Left"),
        ({"doors": {"longest": 1}}, "doors.longest"),
        ({"home": ""}, "home"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_path(change: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        schema.decode(Car, {"name": "a"} | change)
    assert refused.value.param == param
    assert refused.value.message.startswith(param)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    speed = schema.decode(Car, {"name": "a", "speed": 60.0}).speed
    assert speed == 60 and type(speed) is int


def test_missing_field_is_named() -> None:
    with pytest.raises(InvalidRequest, match="name is missing") as refused:
        schema.decode(Car, {})
    assert refused.value.param == "name"


@pytest.mark.parametrize("value", [None, [], "x", 5, True])
def test_only_an_object_makes_a_record(value: object) -> None:
    with pytest.raises(InvalidRequest, match="must be an object") as refused:
        schema.decode(Car, value)
    assert refused.value.param is None


def test_value_at_fault_is_never_repeated() -> None:
    with pytest.raises(InvalidRequest) as refused:
        schema.decode(Car, {"name": "a", "kind": "my-secret"})
    assert "my-secret" not in refused.value.message


def test_schema_says_what_is_read() -> None:
    takes = schema.json_schema(Car)
    properties = takes["properties"]
    assert isinstance(properties, dict)
    assert takes["required"] == ["name"]
    assert takes["additionalProperties"] is False
    assert list(properties) == list(FULL)
    assert properties["name"] == {"type": "string", "minLength": 1, "maxLength": 5, "description": "What it is called."}
    assert properties["kind"] == {"anyOf": [{"type": "string", "enum": ["van", "bus"]}, {"type": "null"}]}
    assert properties["price"] == {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]}
    null = {"type": "null"}
    tags = {"type": "array", "items": {"type": "string"}, "maxItems": 2}
    assert properties["tags"] == {"anyOf": [tags, null]}
    assert properties["plate"] == {"anyOf": [{"type": "string", "pattern": "^[A-Z]{2}$"}, null]}
    assert properties["speed"] == {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 300}, null]}
    assert properties["doors"]["anyOf"][0]["propertyNames"] == {"pattern": "^[a-z]+$", "minLength": 1, "maxLength": 5}


def test_a_promise_is_for_those_who_send_alone() -> None:
    """What is taken beyond it may stand in an answer."""
    taken, given = (schema.json_schema(Car, written=written)["properties"] for written in (False, True))
    assert isinstance(taken, dict) and isinstance(given, dict)
    promised = {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$"}
    assert taken["home"] == {"anyOf": [promised, {"type": "null"}]}
    assert given["home"] == {"type": "string", "minLength": 1, "maxLength": 9}


def test_schema_of_what_is_written_requires_every_field() -> None:
    gives = schema.json_schema(Car, written=True)
    assert gives["required"] == list(FULL)
    properties = gives["properties"]
    assert isinstance(properties, dict)
    assert properties["first_seen"]["format"] == "date-time"


def test_type_without_json_form_is_refused_when_compiled() -> None:
    @dataclass(frozen=True, slots=True)
    class Odd:
        raw: bytes

    with pytest.raises(TypeError, match="no JSON form"):
        schema.decode(Odd, {})
    with pytest.raises(TypeError, match="no dataclass"):
        schema.decode(int, {})


def test_bounds_of_a_union_are_refused_when_compiled() -> None:
    @dataclass(frozen=True, slots=True)
    class Odd:
        percent: Annotated[int | None, schema.Bounds(1, 100)] = None

    with pytest.raises(TypeError, match="of one type"):
        schema.decode(Odd, {})


def read_age(text: str, *, param: str, now_at: int) -> int:
    if not text.isdigit():
        raise InvalidRequest(f"{param} must be digits.", param=param)
    return now_at - int(text)


Age = Annotated[int, schema.Bounds(1, 3), "How long ago.", schema.ByTime(read_age)]


@dataclass(frozen=True, slots=True)
class Span:
    begin: Age
    end: Age | None = None


@dataclass(frozen=True, slots=True)
class Trip:
    span: Span
    name: str = ""
    until_at: Age = field(default=7, metadata={"json_name": "until"})


def test_all_of_a_record_is_read_by_one_time() -> None:
    times = iter([1000, 2000])
    decode = partial(schema.decode, Trip, now=lambda: next(times))
    sent = {"span": {"begin": "10", "end": "20"}, "until": "5"}
    assert decode(sent) == Trip(Span(990, 980), "", 995)
    assert decode(sent) == Trip(Span(1990, 1980), "", 1995)


def test_what_is_not_sent_is_not_read_by_the_time() -> None:
    sent = {"span": {"begin": "1", "end": None}}
    assert schema.decode(Trip, sent, now=lambda: 1000) == Trip(Span(999))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"span": {"begin": "x"}}, "span.begin must be digits."),
        ({"span": {"begin": "1", "end": "x"}}, "span.end must be digits."),
        ({"span": {"begin": 10}}, "span.begin must be a string."),
        ({"span": {"begin": None}}, "span.begin must be a string."),
        ({"until": "12345"}, "until must be 1 to 3 characters."),
        ({"until": 5}, "until must be a string."),
    ],
)
def test_what_cannot_be_read_by_the_time_is_refused_by_its_path(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        schema.decode(Trip, {"span": {"begin": "1"}} | change, now=lambda: 1000)
    assert refused.value.message == message
    assert refused.value.param == message.partition(" ")[0]


class Body(dict[str, object]):
    """Can be looked after."""


@pytest.mark.parametrize("sent", [{"begin": "1", "end": "x"}, {"begin": "1", "end": 1}, {"begin": 1}, {"x": 1}])
def test_a_body_that_is_refused_is_not_left_to_the_collector(sent: dict[str, object]) -> None:
    body = Body(sent)
    is_there = weakref.ref(body)
    gc.disable()
    try:
        with contextlib.suppress(InvalidRequest):
            schema.decode(Span, body, now=lambda: 1000)
        del body
        assert is_there() is None
    finally:
        gc.enable()


def test_what_is_read_by_the_time_is_a_text_to_who_sends_it_and_a_time_to_who_gets_it() -> None:
    text = {"type": "string", "minLength": 1, "maxLength": 3, "description": "How long ago."}
    assert schema.json_schema(Span)["properties"] == {"begin": text, "end": {"anyOf": [text, {"type": "null"}]}}
    assert schema.encode(Span(1000)) == {"begin": "1970-01-01T00:00:01.000Z", "end": None}


_Size = Annotated[str, schema.Bounds(words=("small", "large"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    text: Annotated[str, schema.Bounds(1, 3, pattern="^[^0]*$", says="must be without zeros")]
    sizes: tuple[Annotated[int, schema.Bounds(1, 9)], ...] = ()
    colour: Colour | None = None
    size: _Size | None = None


@pytest.mark.parametrize(
    ("sign", "param"),
    [
        (Sign(text=""), "text"),
        (Sign(text="a0"), "text"),
        (Sign(text="\ud800"), "text"),
        (Sign(text="a", sizes=(1, 10)), "sizes[1]"),
        (Sign(text="a", size="huge"), "size"),
    ],
)
def test_a_record_that_code_made_has_the_bounds_of_one_that_was_read(sign: Sign, param: str) -> None:
    schema.check(Sign(text="abc", sizes=(1, 9), colour=Colour.RED, size="large"))
    with pytest.raises(InvalidRequest) as refused:
        schema.check(sign)
    assert refused.value.param == param
