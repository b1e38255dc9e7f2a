"""What the OpenAPI document says of the internal API and no row can: sign-in, documents, cookie and token."""

from gateway.api.folding import IF_MATCH_PATTERN, places_of
from gateway.api.signin import Login, NewPassword
from gateway.codecs import WRITTEN_TIME_PATTERN, JsonSchema
from gateway.domain.principals import Permission, Role
from gateway.domain.report_text import CONTENT_TYPES as REPORT_TYPES
from gateway.operations.operation import Door, Operation
from gateway.schema import json_schema
from gateway.services.audit_export import CONTENT_TYPES as EXPORT_TYPES
from gateway.settings import Settings

SESSION_CODES = ("not_signed_in", "permission_denied", "access_denied", "host_not_allowed")
SIGN_IN_CODES = ("bad_credentials", "login_throttled", "csrf_failed", "access_denied", "host_not_allowed")
_READING = ("GET", "HEAD")
_NAME: JsonSchema = {"type": "string"}
_ID: JsonSchema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
_COUNT: JsonSchema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["sessions_ended"],
    "properties": {"sessions_ended": {"type": "integer", "minimum": 0}},
}
_ABOUT: JsonSchema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["user", "permissions", "csrf_token", "expires_at", "is_first_password"],
    "properties": {
        "user": {
            "type": "object",
            "additionalProperties": False,
            "required": ["id", "username", "role"],
            "properties": {"id": _NAME, "username": _NAME, "role": {"type": "string", "enum": list(Role)}},
        },
        "permissions": {"type": "array", "items": {"type": "string", "enum": list(Permission)}},
        "csrf_token": {"type": ["string", "null"]},
        "expires_at": {"anyOf": [{"type": "string", "pattern": WRITTEN_TIME_PATTERN}, {"type": "null"}]},
        "is_first_password": {"type": "boolean"},
    },
}
INTERNAL_BODIES: dict[str, JsonSchema] = {
    "auth.login": json_schema(Login),
    "auth.password": json_schema(NewPassword),
}
# What stands as `data` in the envelope of rows that an edge answers.
INTERNAL_DATA: dict[str, JsonSchema] = {
    "auth.login": _ABOUT,
    "auth.session": _ABOUT,
    "auth.logout": {"type": "object", "additionalProperties": False},
    "auth.password": _COUNT,
    "sessions.end_all": _COUNT,
}
MEDIA_TYPES: dict[str, tuple[str, ...]] = {
    "metrics": ("text/plain",),
    "feed": ("text/event-stream",),
    "audit.export": tuple(sorted({kind.partition(";")[0] for kind in EXPORT_TYPES.values()})),
    "reports.document": tuple(sorted({kind.partition(";")[0] for kind in REPORT_TYPES.values()})),
}
UNDESCRIBED = ("feed", "audit.export", "reports.document")
SCHEMES: dict[str, object] = {
    "session": {"type": "apiKey", "in": "cookie", "name": "service_session"},
    "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
}


def session_security(operation: Operation, settings: Settings) -> list[dict[str, list[str]]]:
    """Return what a row of the internal API asks for. Without RBAC: to be called from this host."""
    if operation.door is Door.SIGN_IN or not settings.rbac_enabled:
        return []
    asked: dict[str, list[str]] = {"session": []}
    if operation.route[0] not in _READING:
        asked["csrf"] = []
    return [asked]


def route_parameters(operation: Operation, names: frozenset[str]) -> list[dict[str, object]]:
    """Return what a row takes from its path and from `If-Match`. names: the fields of what it takes."""
    found: list[dict[str, object]] = [
        {"name": place, "in": "path", "required": True, "description": "Its id.", "schema": _ID}
        for place in places_of(operation)
    ]
    if "version" in names:
        found.append(
            {
                "name": "If-Match",
                "in": "header",
                "required": False,
                "description": "The version that is to be changed; any other is refused with 409.",
                "schema": {"type": "string", "pattern": IF_MATCH_PATTERN},
            }
        )
    return found
