"""The OpenAPI 3.1 document, derived from the rows of `operations` and the records they name. Serves nothing."""

from collections.abc import Sequence
from typing import Any, cast

from gateway import __version__
from gateway.api.reading import IF_MATCH_PATTERN, names_of, path_fields
from gateway.bundle import build_id
from gateway.domain.paging import MOST_COUNTED
from gateway.domain.report_text import CONTENT_TYPES as REPORT_TYPES
from gateway.errors import STATUS_BY_CODE
from gateway.operations.operation import Door, Operation
from gateway.schema import WRITTEN_TIME_PATTERN, JsonSchema, json_schema
from gateway.services.audit_export import CONTENT_TYPES as EXPORT_TYPES
from gateway.settings import Settings
from gateway.strict_json import INT64_HIGH, INT64_LOW

_KEY_CODES = ("missing_api_key", "invalid_api_key", "key_revoked", "key_expired", "insufficient_scope", "rate_limited")
_BODY_CODES = ("invalid_json", "body_too_large", "unsupported_media_type", "request_timeout")
_EVERY_CODE = ("invalid_request", "internal_error")
_SESSION_CODES = ("not_signed_in", "permission_denied", "access_denied", "host_not_allowed")
_SIGN_IN_CODES = ("bad_credentials", "login_throttled", "csrf_failed", "access_denied", "host_not_allowed")
_READING = ("GET", "HEAD")
_ID: JsonSchema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
# What no record describes: the envelope, health, and the bodies of the OpenAI API. Of these the schemas state what the
# gateway reads. It scans the rest and passes it on.
_TEXT: JsonSchema = {"type": "string"}
_NULL: JsonSchema = {"type": "null"}
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_ANY: JsonSchema = {"$ref": "#/components/schemas/Json"}
_TEXT_PARTS = ["text", "input_text", "output_text"]
_REQUEST_ID: JsonSchema = {"type": "string", "pattern": "^req_[0-9A-HJKMNP-TV-Z]{26}$"}


def _closed(**properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object with just these fields."""
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


def _open(required: list[str], **properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object that may have other fields as well."""
    return {"type": "object", "required": required, "properties": properties}


def _object(required: list[str], **properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object whose other fields hold any JSON."""
    return _open(required, **properties) | {"additionalProperties": _ANY}


_ERROR = _closed(
    ok={"const": False},
    error=_closed(
        message=_TEXT,
        type=_TEXT,
        code={"type": "string", "enum": sorted(STATUS_BY_CODE)},
        param={"anyOf": [_TEXT, _NULL]},
        request_id=_REQUEST_ID,
    ),
)
_META = _closed(
    request_id=_REQUEST_ID, timestamp={"type": "string", "format": "date-time", "pattern": WRITTEN_TIME_PATTERN}
)
_PAGE = _closed(
    limit=_COUNT,
    count={"type": "integer", "minimum": 0, "description": "How many items this page has."},
    total={
        "anyOf": [_COUNT, _NULL],
        "description": f"How many match on all pages together; null when more than {MOST_COUNTED} do.",
    },
    next={"anyOf": [_TEXT, _NULL], "description": "Give it back as `cursor` for the next page; null at the end."},
)
_JSON: JsonSchema = {
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
            _object(["type", "text"], type={"enum": _TEXT_PARTS}, text=_TEXT),
            _object(["type", "refusal"], type={"const": "refusal"}, refusal=_TEXT),
            _object(["type"], type={"type": "string", "not": {"enum": [*_TEXT_PARTS, "refusal"]}}),
        ]
    },
}
_MESSAGE: JsonSchema = {
    "anyOf": [
        _object(
            ["role", "content"],
            role={"enum": ["system", "developer", "user", "tool"]},
            content={"anyOf": [_TEXT, _PARTS]},
        ),
        _object(["role"], role={"enum": ["assistant", "function"]}, content={"anyOf": [_TEXT, _PARTS, _NULL]}),
    ]
}
_CHAT_REQUEST: JsonSchema = {
    "description": "The request of the OpenAI API. Fields not listed here are scanned and passed on."
} | _object(
    ["model", "messages"],
    model={"type": "string", "minLength": 1, "maxLength": 256},
    messages={"type": "array", "minItems": 1, "items": _MESSAGE},
    max_tokens={"anyOf": [{"type": "integer", "minimum": INT64_LOW, "maximum": INT64_HIGH}, _NULL]},
    stream={"enum": [False, None], "description": "True is served at the base URL /api/v2."},
)
_MODEL = _open(["id"], id=_TEXT)
# Answers of operations that no record describes.
_REPLIES: dict[str, JsonSchema] = {
    "chat.completions": _open(
        ["choices"], id=_TEXT, model=_TEXT, choices={"type": "array", "items": {"type": "object"}}
    ),
    "models.list": _open(["object", "data"], object={"const": "list"}, data={"type": "array", "items": _MODEL}),
    "models.show": _MODEL,
    "health": _open(
        ["status", "name"],
        status={"type": "string", "enum": ["ok", "degraded"]},
        name=_TEXT,
        version=_TEXT,
        build=_TEXT,
        archive_sha256={"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
        uptime_seconds={"type": "number", "minimum": 0},
        checks={"type": "object", "additionalProperties": _TEXT},
    ),
    "openapi": {"type": "object"},
    "about.sbom": {"type": "object"},
}
_MEDIA_TYPES: dict[str, tuple[str, ...]] = {
    "metrics": ("text/plain",),
    "feed": ("text/event-stream",),
    "audit.export": tuple(sorted({kind.partition(";")[0] for kind in EXPORT_TYPES.values()})),
    "reports.document": tuple(sorted({kind.partition(";")[0] for kind in REPORT_TYPES.values()})),
}
_UNDESCRIBED = ("feed", "audit.export", "reports.document")


def document(operations: Sequence[Operation], settings: Settings) -> dict[str, object]:
    """Return the OpenAPI 3.1 document of `operations`."""
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        method, path = operation.route
        paths.setdefault(path, {})[method.lower()] = _describe(operation, settings)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Security gateway",
            "version": __version__,
            "x-build": build_id(),
            "description": "Scans text for attacks and leaks, and proxies chat completions through the scan. "
            "The base URL /api/v2 serves what /api/v1 does, and streams.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "serviceKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Service-Key",
                    "description": "`x-api-key` and `api-key` are read alike. Two different keys are refused.",
                },
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "svc_ and 40 hex digits"},
                "session": {"type": "apiKey", "in": "cookie", "name": "service_session"},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
            "schemas": {"Error": _ERROR, "Meta": _META, "Page": _PAGE, "Json": _JSON},
        },
    }


def _describe(operation: Operation, settings: Settings) -> dict[str, object]:
    kind = "permission" if operation.door.is_internal else "scope"
    needs = f" Needs the {kind} `{operation.needs}`." if operation.needs else ""
    # A schema would promise that any text of its form is taken; only an earlier answer holds one that is.
    opaque = "".join(f" `{one.name}`: {one.about}" for one in operation.query if one.schema is None)
    described: dict[str, object] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.summary + needs + opaque,
        "tags": [operation.name.split(".")[0]],
        "security": _security(operation, settings),
        "parameters": _parameters(operation),
        "responses": _responses(operation),
    }
    body = _body(operation, settings)
    if body is not None:
        # A row with fields in its path may be sent without a body when the body has no required field.
        is_needed = bool(body.get("required", True)) or not path_fields(operation)
        described["requestBody"] = {"required": is_needed, "content": {"application/json": {"schema": body}}}
    return described


def _security(operation: Operation, settings: Settings) -> list[dict[str, list[str]]]:
    """Return what a row asks for. Without RBAC, the internal API asks for a caller on this host only."""
    if operation.door.is_internal:
        if operation.door is Door.SIGN_IN or not settings.rbac_enabled:
            return []
        return [{"session": []} if operation.route[0] in _READING else {"session": [], "csrf": []}]
    keys: list[dict[str, list[str]]] = [{"serviceKey": []}, {"bearer": []}]
    if operation.door is Door.OPEN:
        return []
    return keys if operation.door is Door.KEY else [*keys, {}]


def _parameters(operation: Operation) -> list[dict[str, object]]:
    """Return what a row takes from its path, from `If-Match` and from its query."""
    given = [("path", name, True, "Its id.", _ID) for name in path_fields(operation)]
    if "version" in names_of(operation):
        about = "The version that is to be changed; any other is refused with 409."
        given.append(("header", "If-Match", False, about, {"type": "string", "pattern": IF_MATCH_PATTERN}))
    given += [("query", one.name, one.is_required, one.about, one.schema) for one in operation.query if one.schema]
    return [
        {"name": name, "in": where, "required": is_required, "description": about, "schema": schema}
        for where, name, is_required, about, schema in given
    ]


def _body(operation: Operation, settings: Settings) -> JsonSchema | None:
    if not _takes_body(operation):
        return None
    if operation.takes is None:
        return _CHAT_REQUEST
    schema: Any = json_schema(operation.takes)
    in_path = path_fields(operation)
    properties = {name: one for name, one in schema["properties"].items() if name not in in_path}
    # Said in words: a text over this may be over the limit of bytes as well, which is another refusal (413).
    for name, setting in (operation.max_chars or {}).items():
        about = properties[name].get("description", "")
        properties[name] = properties[name] | {
            "description": f"{about} At most {getattr(settings, setting)} characters.".lstrip()
        }
    required = [name for name in schema["required"] if name not in in_path]
    kinds = {"anyOf": list(operation.kinds)} if operation.kinds else {}
    return cast(JsonSchema, schema | {"properties": properties, "required": required} | kinds)


def _responses(operation: Operation) -> dict[str, object]:
    """Return the good answer and every error the row may give, the protocol's own as the default."""
    good = _good(operation)
    media_types = _MEDIA_TYPES.get(operation.name, ("application/json",))
    responses: dict[str, object] = {
        str(operation.status): {
            "description": "Done.",
            # What a stream or a document holds, no schema can tell.
            "content": {name: {} if operation.name in _UNDESCRIBED else {"schema": good} for name in media_types},
        }
    }
    codes = _EVERY_CODE + operation.fails + _door_codes(operation)
    if _takes_body(operation):
        codes += _BODY_CODES
    if path_fields(operation):
        codes += ("not_found",)
    if operation.door.is_internal and operation.route[0] in ("POST", "PATCH"):
        codes += ("conflict",)
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(STATUS_BY_CODE[code], []).append(code)
    for status in sorted(by_status):
        responses[str(status)] = _error(f"One of: {', '.join(f'`{code}`' for code in by_status[status])}.")
    responses["default"] = _error("Any other refusal.")
    return responses


def _door_codes(operation: Operation) -> tuple[str, ...]:
    if operation.door is Door.SESSION:
        return _SESSION_CODES if operation.route[0] == "GET" else (*_SESSION_CODES, "csrf_failed")
    if operation.door is Door.SIGN_IN:
        return _SIGN_IN_CODES
    return () if operation.door in (Door.OPEN, Door.OPTIONAL) else _KEY_CODES


def _takes_body(operation: Operation) -> bool:
    """Tell whether a row reads a body: it does if its path and query do not hold every field."""
    if operation.name == "chat.completions":
        return True
    return not operation.query and bool(names_of(operation) - set(path_fields(operation)))


def _error(description: str) -> dict[str, object]:
    return {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def _good(operation: Operation) -> JsonSchema:
    """Return the schema of the good answer, in its envelope if it has one."""
    if operation.gives is None:
        return _REPLIES.get(operation.name, _TEXT)
    inner = operation.schema() if operation.schema else json_schema(operation.gives, written=True)
    meta: JsonSchema = {"$ref": "#/components/schemas/Meta"}
    if not operation.is_list:
        return _closed(ok={"const": True}, data=inner, meta=meta)
    page: JsonSchema = {"$ref": "#/components/schemas/Page"}
    return _closed(ok={"const": True}, data={"type": "array", "items": inner}, meta=meta, page=page)
