"""JSON Schemas of what no record describes: the envelope, health, and the OpenAI bodies.

Of an OpenAI body they state what the gateway reads. It scans the rest and passes it on.
"""

from gateway.api.responses import STATUS_BY_CODE
from gateway.codecs import WRITTEN_TIME_PATTERN
from gateway.schema import JsonSchema
from gateway.strict_json import INT64_HIGH, INT64_LOW

TEXT: JsonSchema = {"type": "string"}
_NULL: JsonSchema = {"type": "null"}
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_ANY: JsonSchema = {"$ref": "#/components/schemas/Json"}
_TEXT_PARTS = ["text", "input_text", "output_text"]
_REQUEST_ID: JsonSchema = {"type": "string", "pattern": "^req_[0-9A-HJKMNP-TV-Z]{26}$"}


def closed(**properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object with just these fields."""
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


def _object(required: list[str], properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object that may have other fields as well."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": _ANY}


ERROR = closed(
    ok={"const": False},
    error=closed(
        message=TEXT,
        type=TEXT,
        code={"type": "string", "enum": sorted(STATUS_BY_CODE)},
        param={"anyOf": [TEXT, _NULL]},
        request_id=_REQUEST_ID,
    ),
)
META = closed(
    request_id=_REQUEST_ID, timestamp={"type": "string", "format": "date-time", "pattern": WRITTEN_TIME_PATTERN}
)
PAGE = closed(
    limit=_COUNT,
    count=_COUNT,
    next={"anyOf": [TEXT, _NULL], "description": "Give it back as `cursor` for the next page; null at the end."},
)
HEALTH: JsonSchema = {
    "type": "object",
    "required": ["status", "name"],
    "properties": {
        "status": {"type": "string", "enum": ["ok", "degraded"]},
        "name": TEXT,
        "version": TEXT,
        "archive_sha256": {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
        "uptime_seconds": {"type": "number", "minimum": 0},
        "checks": {"type": "object", "additionalProperties": TEXT},
    },
}
JSON: JsonSchema = {
    "description": "Any JSON value; what is written without a point and an exponent must be an integer of 64 bits.",
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        {"type": "number"},
        {"type": "array", "items": _ANY},
        {"type": "object", "additionalProperties": _ANY},
    ],
}
_PARTS: JsonSchema = {
    "type": "array",
    "items": {
        "anyOf": [
            _object(["type", "text"], {"type": {"enum": _TEXT_PARTS}, "text": TEXT}),
            _object(["type", "refusal"], {"type": {"const": "refusal"}, "refusal": TEXT}),
            _object(["type"], {"type": {"type": "string", "not": {"enum": [*_TEXT_PARTS, "refusal"]}}}),
        ]
    },
}
_MESSAGE: JsonSchema = {
    "anyOf": [
        _object(
            ["role", "content"],
            {"role": {"enum": ["system", "developer", "user", "tool"]}, "content": {"anyOf": [TEXT, _PARTS]}},
        ),
        _object(["role"], {"role": {"enum": ["assistant", "function"]}, "content": {"anyOf": [TEXT, _PARTS, _NULL]}}),
    ]
}
CHAT_REQUEST: JsonSchema = {
    "description": "The request of the OpenAI API. Fields not listed here are scanned and passed on."
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
    "properties": {"id": TEXT, "model": TEXT, "choices": {"type": "array", "items": {"type": "object"}}},
}
MODEL: JsonSchema = {"type": "object", "required": ["id"], "properties": {"id": TEXT}}
MODELS: JsonSchema = {
    "type": "object",
    "required": ["object", "data"],
    "properties": {"object": {"const": "list"}, "data": {"type": "array", "items": MODEL}},
}
