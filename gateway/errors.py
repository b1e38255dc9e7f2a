"""All error classes, and the API's error table. An error has a code of the table and a message for a person.

Callers see the message, so it never contains a secret, a prompt or a stack trace.
"""

_CODES = {
    400: "invalid_request invalid_json unsupported_value content_policy_violation",
    401: "missing_api_key invalid_api_key not_signed_in bad_credentials",
    403: "insufficient_scope key_revoked key_expired permission_denied csrf_failed access_denied",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    413: "body_too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    417: "expectation_failed",
    421: "host_not_allowed",
    429: "rate_limited budget_exceeded login_throttled",
    431: "headers_too_large",
    500: "internal_error",
    501: "not_implemented",
    502: "upstream_unavailable",
    503: "overloaded shield_unavailable audit_unavailable",
    505: "http_version_not_supported",
}
STATUS_BY_CODE = {code: status for status, codes in _CODES.items() for code in codes.split()}
"""The HTTP status of each error code."""
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def status_of(code: str) -> int:
    """Return the status of an error code; 500 for one that is not in the table."""
    return STATUS_BY_CODE.get(code, 500)


def error_shape(status: int, code: str, message: str, param: str | None, request_id: str) -> dict[str, object]:
    """Return the JSON object of an error, which OpenAI clients also read, with the `type` in the words of their API."""
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    error = {"message": message, "type": kind, "code": code, "param": param, "request_id": request_id}
    return {"ok": False, "error": error}


class GatewayError(Exception):
    """An error whose message may be shown to the caller.

    message: a sentence that says what is wrong and what to do.
    param: the field at fault, as a path such as ``messages[2].content``, or None.
    retry_after_seconds: whole seconds after which the caller may try again, or None.
    """

    code = "internal_error"

    def __init_subclass__(cls, code: str | None = None) -> None:
        """Set the code of the class. Default: the code of its base class."""
        cls.code = code or cls.code

    def __init__(self, message: str, *, param: str | None = None, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_seconds = retry_after_seconds


class InvalidRequest(GatewayError, code="invalid_request"):
    """A field is missing, unknown, of the wrong type or out of range."""


class InvalidJson(InvalidRequest, code="invalid_json"):
    """The body is not the strict JSON of RFC 8259 that the gateway reads."""


class TooManyValues(InvalidJson, code="body_too_large"):
    """The JSON has more values than the gateway reads in a reasonable time."""


class UnsupportedValue(InvalidRequest, code="unsupported_value"):
    """The value is known but not served by this version of the API."""


class ContentPolicyViolation(GatewayError, code="content_policy_violation"):
    """The shield blocked the prompt. Nothing was sent upstream."""


class MissingApiKey(GatewayError, code="missing_api_key"):
    """No API key was sent."""


class InvalidApiKey(GatewayError, code="invalid_api_key"):
    """The API key is malformed or unknown."""


class InsufficientScope(GatewayError, code="insufficient_scope"):
    """The API key is valid but lacks the scope of the operation."""


class KeyRevoked(GatewayError, code="key_revoked"):
    """The API key was revoked."""


class KeyExpired(GatewayError, code="key_expired"):
    """The API key is past its expiry."""


class NotSignedIn(GatewayError, code="not_signed_in"):
    """There is no session, or it has ended."""


class BadCredentials(GatewayError, code="bad_credentials"):
    """Name and password do not match. The message is the same whether or not the user exists."""


class CsrfFailed(GatewayError, code="csrf_failed"):
    """The request comes from another site's page, or lacks the token of its session."""


class LoginThrottled(GatewayError, code="login_throttled"):
    """Too many attempts failed from this address. The gateway did not check the password."""


class PermissionDenied(GatewayError, code="permission_denied"):
    """The role of the caller lacks the permission of the operation."""


class AccessDenied(GatewayError, code="access_denied"):
    """An entry of the access list, or the address of the caller, forbids this."""


class NotFound(GatewayError, code="not_found"):
    """There is no such path or record."""


class Conflict(GatewayError, code="conflict"):
    """The record is not in the state that the change needs."""


class BodyTooLarge(GatewayError, code="body_too_large"):
    """The body is over the limit of this path."""


class UnsupportedMediaType(GatewayError, code="unsupported_media_type"):
    """The gateway does not read this content type or encoding."""


class RateLimited(GatewayError, code="rate_limited"):
    """The key has used its requests of the last 60 seconds."""


class BudgetExceeded(GatewayError, code="budget_exceeded"):
    """A completion could take a budget past its limit. Nothing was sent upstream."""


class UpstreamUnavailable(GatewayError, code="upstream_unavailable"):
    """The upstream is down, too slow, or sent an answer that is not a completion.

    detail: the reason for the operator, without keys; "" if there is none.
    """

    detail = ""


class Overloaded(GatewayError, code="overloaded"):
    """The gateway sheds load. Nothing was done."""


class Shed(Overloaded):
    """The gateway is at capacity, and this request would have waited too long for its turn."""

    def __init__(self) -> None:
        super().__init__("The gateway is overloaded; try again.", retry_after_seconds=1)


class ShieldUnavailable(GatewayError, code="shield_unavailable"):
    """The shield could not scan, so the gateway refused the request."""


class AuditUnavailable(GatewayError, code="audit_unavailable"):
    """The gateway could not write the audit event, so it refused the action."""


class SetupError(GatewayError, code="setup_error"):
    """The gateway cannot start with this setup: settings, data folder, database, rules, archive."""
