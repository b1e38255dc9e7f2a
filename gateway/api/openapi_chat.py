"""JSON Schemas of the OpenAI bodies, as far as the gateway looks at them; the rest is scanned and passed on."""

from gateway.schema import JsonSchema
from gateway.strict_json import INT64_HIGH, INT64_LOW

_TEXT: JsonSchema = {"type": "string"}
_NULL: JsonSchema = {"type": "null"}
_ANY: JsonSchema = {"$ref": "#/components/schemas/Json"}
_TEXT_PARTS = ["text", "input_text", "output_text"]

JSON: JsonSchema = {
    "description": "Any JSON value; what is written without a point and an exponent must be an integer of 64 bits.",
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        {"type": "number"},
        {"type": "array", "items": _ANY},
        {"type": "object", "additionalProperties": _ANY},
    ],
}


def _object(required: list[str], properties: JsonSchema) -> JsonSchema:
    """Return an object that may have other fields as well."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": _ANY}


_PARTS: JsonSchema = {
    "type": "array",
    "items": {
        "anyOf": [
            _object(["type", "text"], {"type": {"enum": _TEXT_PARTS}, "text": _TEXT}),
            _object(["type", "refusal"], {"type": {"const": "refusal"}, "refusal": _TEXT}),
            _object(["type"], {"type": {"type": "string", "not": {"enum": [*_TEXT_PARTS, "refusal"]}}}),
        ]
    },
}
_MESSAGE: JsonSchema = {
    "anyOf": [
        _object(
            ["role", "content"],
            {"role": {"enum": ["system", "developer", "user", "tool"]}, "content": {"anyOf": [_TEXT, _PARTS]}},
        ),
        _object(
            ["role"],
            {"role": {"enum": ["assistant", "function"]}, "content": {"anyOf": [_TEXT, _PARTS, _NULL]}},
        ),
    ]
}
CHAT_REQUEST: JsonSchema = {
    "description": "The request of the OpenAI API. Fields not listed here are scanned and passed on.",
} | _object(
    ["model", "messages"],
    {
        "model": {"type": "string", "minLength": 1, "maxLength": 256},
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "max_tokens": {"anyOf": [{"type": "integer", "minimum": INT64_LOW, "maximum": INT64_HIGH}, _NULL]},
        "stream": {"enum": [False, None], "description": "Streaming is not served in v1."},
    },
)
CHAT_REPLY: JsonSchema = {
    "type": "object",
    "required": ["choices"],
    "properties": {"id": _TEXT, "model": _TEXT, "choices": {"type": "array", "items": {"type": "object"}}},
}
MODEL: JsonSchema = {"type": "object", "required": ["id"], "properties": {"id": _TEXT}}
MODELS: JsonSchema = {
    "type": "object",
    "required": ["object", "data"],
    "properties": {
        "object": {"const": "list"},
        "data": {"type": "array", "items": MODEL},
    },
}
