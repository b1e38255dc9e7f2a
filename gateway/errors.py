"""The one tree of errors. Each carries a code of the API's error table and a sentence for a person; none knows HTTP.

A message never repeats a secret, a prompt or a stack: it is shown to whoever called.
"""


class GatewayError(Exception):
    """Something the caller can be told.

    message: a sentence that says what is wrong and what to do.
    param: the field at fault, as a path such as ``messages[2].content``, or None.
    retry_after_seconds: whole seconds after which trying again makes sense, or None.
    """

    code = "internal_error"

    def __init__(self, message: str, *, param: str | None = None, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_seconds = retry_after_seconds


class InvalidRequest(GatewayError):
    """A field is missing, unknown, of the wrong type or out of range."""

    code = "invalid_request"


class InvalidJson(InvalidRequest):
    """The body is not the strict JSON of RFC 8259 that the gateway reads."""

    code = "invalid_json"


class TooManyValues(InvalidJson):
    """The JSON holds more values than would be read in a reasonable time."""

    code = "body_too_large"


class UnsupportedValue(InvalidRequest):
    """The value is known but not served by this version of the API."""

    code = "unsupported_value"


class ContentPolicyViolation(GatewayError):
    """The shield blocked the prompt. Nothing was sent upstream."""

    code = "content_policy_violation"


class MissingApiKey(GatewayError):
    """No API key was sent."""

    code = "missing_api_key"


class InvalidApiKey(GatewayError):
    """The API key has another form or is not known."""

    code = "invalid_api_key"


class InsufficientScope(GatewayError):
    """The API key is good but lacks the scope of the operation."""

    code = "insufficient_scope"


class KeyRevoked(GatewayError):
    """The API key was revoked."""

    code = "key_revoked"


class KeyExpired(GatewayError):
    """The API key is past its expiry."""

    code = "key_expired"


class NotSignedIn(GatewayError):
    """There is no session, or it is over."""

    code = "not_signed_in"


class BadCredentials(GatewayError):
    """Name and password do not belong together. Says the same whether or not there is such a user."""

    code = "bad_credentials"


class CsrfFailed(GatewayError):
    """The request was made by another site's page, or without the token of its session."""

    code = "csrf_failed"


class LoginThrottled(GatewayError):
    """Too many attempts failed from this address. A password was not looked at."""

    code = "login_throttled"


class PermissionDenied(GatewayError):
    """The role of the caller lacks the permission of the operation."""

    code = "permission_denied"


class AccessDenied(GatewayError):
    """An entry of the access list, or the address of the caller, forbids this."""

    code = "access_denied"


class NotFound(GatewayError):
    """There is no such path or record."""

    code = "not_found"


class Conflict(GatewayError):
    """The record is in another state than the change needs."""

    code = "conflict"


class BodyTooLarge(GatewayError):
    """The body is over the limit of this path."""

    code = "body_too_large"


class UnsupportedMediaType(GatewayError):
    """The body's type or encoding is not one the gateway reads."""

    code = "unsupported_media_type"


class RateLimited(GatewayError):
    """The key has used its requests of the last 60 seconds."""

    code = "rate_limited"


class BudgetExceeded(GatewayError):
    """A completion could take a budget past its limit. Nothing was sent upstream."""

    code = "budget_exceeded"


class UpstreamUnavailable(GatewayError):
    """The model gateway is down, late, or answered something that is no completion.

    detail: the reason, for the operator and without keys; "" when there is none to tell.
    """

    code = "upstream_unavailable"
    detail = ""


class Overloaded(GatewayError):
    """The gateway sheds load. Nothing was done."""

    code = "overloaded"


class Shed(Overloaded):
    """There is more to do than can be done, and this would have waited too long for its turn."""

    def __init__(self) -> None:
        super().__init__("The gateway has more to do than it can; try again.", retry_after_seconds=1)


class ShieldUnavailable(GatewayError):
    """The shield could not scan, so nothing was let through."""

    code = "shield_unavailable"


class AuditUnavailable(GatewayError):
    """The audit event could not be written, so the action was refused."""

    code = "audit_unavailable"


class SetupError(GatewayError):
    """The program cannot start as it is set up: settings, data folder, database, rules, archive."""

    code = "setup_error"
