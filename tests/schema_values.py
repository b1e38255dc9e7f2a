"""Values that fit a JSON Schema of the keywords that the OpenAPI document has."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

Schema = Mapping[str, Any]
KEYWORDS = {
    "additionalProperties", "anyOf", "const", "default", "description", "enum", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "pattern",
    "properties", "propertyNames", "required", "type",
}  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ANYTHING = st.none() | st.booleans() | st.integers(-5, 5) | TEXTS


def drawn(schema: Schema, count: int) -> list[Any]:
    """Return some values that fit, the same in each run."""
    found: list[Any] = []

    @settings(max_examples=count)
    @given(values(schema))
    def note(value: Any) -> None:
        found.append(value)

    note()
    return found


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Return what fits a schema of the keywords that the document has."""
    assert set(schema) <= KEYWORDS, f"a test that knows {set(schema) - KEYWORDS} is needed"
    found = _values(schema)
    if "not" in schema:
        pattern = schema["not"]
        return found.filter(lambda value: not fits(value, pattern))
    return found


def _values(schema: Schema) -> st.SearchStrategy[Any]:
    if "anyOf" in schema:
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return st.one_of([values(joined(rest, one)) for one in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object":
            return objects(schema)
        case "array":
            items = values(schema.get("items", {}))
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=min(schema.get("maxItems", 3), 3))
        case "string":
            return strings(schema)
        case "integer":
            whole = st.integers(schema.get("minimum"), schema.get("maximum"))
            return whole.filter(lambda value: value % schema.get("multipleOf", 1) == 0)
        case "number":
            return st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return ANYTHING


def strings(schema: Schema) -> st.SearchStrategy[str]:
    low, high = schema.get("minLength", 0), schema.get("maxLength", 5000)
    if "pattern" not in schema:
        return st.text(st.characters(exclude_categories=["Cs"]), min_size=low, max_size=max(low, min(high, 20)))
    pattern = schema["pattern"]
    if not pattern.endswith("$"):  # what a text must not be: most are something else
        return strings({"minLength": low, "maxLength": high}).filter(lambda text: re.search(pattern, text) is not None)
    return matching(pattern).filter(lambda text: low <= len(text) <= high)


@cache
def matching(pattern: str) -> st.SearchStrategy[str]:
    """Return texts that a pattern with ``^`` and ``$`` fits, made once: a class may be of 140,000 signs."""
    whole = st.from_regex(f"(?:{pattern[1:-1]})", fullmatch=True)
    return whole.filter(lambda text: not any("\ud800" <= sign <= "\udfff" for sign in text))


def objects(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    properties = schema.get("properties", {})
    fields = {name: values(one) for name, one in properties.items()}
    required = {name: fields.pop(name) for name in schema.get("required", ())}
    known = st.fixed_dictionaries(required, optional=fields)
    others = schema.get("additionalProperties", {})
    if others is False or properties:
        return known
    names = values({"type": "string", "minLength": 1, "maxLength": 20} | schema.get("propertyNames", {}))
    return st.dictionaries(names, values(others), max_size=min(schema.get("maxProperties", 3), 3))


def joined(one: Schema, other: Schema) -> Schema:
    """Return the schema of what fits both; where both say a keyword of a field, the second says more."""
    properties = dict(one.get("properties", {}))
    for name, schema in other.get("properties", {}).items():
        properties[name] = joined_field(properties.get(name, {}), schema)
    both = {**one, **other}
    if properties:
        both["properties"] = properties
    if "required" in one or "required" in other:
        both["required"] = [*dict.fromkeys([*one.get("required", ()), *other.get("required", ())])]
    return both


def joined_field(one: Schema, other: Schema) -> Schema:
    if {"const", "enum"} & set(other) or other.get("type") == "null":
        return other
    if "anyOf" in one and "anyOf" not in other:
        kept = [choice for choice in one["anyOf"] if choice.get("type") == other.get("type", choice.get("type"))]
        return {"anyOf": [choice if choice.get("type") == "null" else {**choice, **other} for choice in kept]}
    return {**one, **other}


def fits(value: object, schema: Schema) -> bool:
    assert set(schema) <= {"pattern", "const", "enum"}
    if "pattern" in schema:
        return isinstance(value, str) and re.search(schema["pattern"], value) is not None
    return value == schema["const"] if "const" in schema else value in schema["enum"]
