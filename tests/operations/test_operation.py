"""Parameters read what their schema allows and refuse the rest by name."""

import re
from enum import StrEnum
from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.operations import operation


class Colour(StrEnum):
    RED = "red"


PARAMETERS = {
    "text": operation.text("text", ""),
    "texts": operation.texts("texts", ""),
    "enum": operation.choice("enum", Colour, ""),
    "words": operation.choice("words", ("a", "b"), ""),
    "limit": operation.integer("limit", "", 1, 500, 100),
    "time": operation.time("time", ""),
    "cursor": operation.cursor(),
}


@pytest.mark.parametrize(
    ("name", "sent", "value"),
    [
        ("text", "ü" * 200, "ü" * 200),
        ("texts", "a", ("a",)),
        ("texts", "a,b:c", ("a", "b:c")),
        ("enum", "red", Colour.RED),
        ("words", "b", "b"),
        ("limit", "500", 500),
        ("time", "1m", 40_000),
        ("cursor", "abc", "abc"),
    ],
)
def test_parameter_is_read(name: str, sent: str, value: object) -> None:
    assert PARAMETERS[name].read(sent, 100_000) == value
    assert fits(PARAMETERS[name].schema, sent)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("text", ""),
        ("text", "x" * 201),
        ("text", "a\0b"),
        ("texts", ""),
        ("texts", "a,"),
        ("texts", "a,,b"),
        ("texts", "a b"),
        ("texts", "a, b"),
        ("texts", "x" * 201),
        ("enum", "RED"),
        ("words", "c"),
        ("limit", "0"),
        ("limit", "501"),
        ("time", "soon"),
    ],
)
def test_parameter_of_another_form_is_refused_by_name(name: str, sent: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        PARAMETERS[name].read(sent, 100_000)
    assert refused.value.param == name
    assert PARAMETERS[name].schema is None or not fits(PARAMETERS[name].schema, sent)


def fits(schema: Any, sent: str) -> bool:
    """Tell what a JSON Schema validator would say of the text, as far as the schemas here go."""
    if schema is None:
        return True
    if schema["type"] == "integer":
        return sent.isdigit() and schema["minimum"] <= int(sent) <= schema["maximum"]
    return (
        schema.get("minLength", 0) <= len(sent) <= schema.get("maxLength", 10**6)
        and re.search(schema.get("pattern", ""), sent) is not None
        and sent in schema.get("enum", [sent])
    )
