"""All error classes. Each has a code of the API's error table and a message for a person; none knows HTTP.

Callers see the message, so it never contains a secret, a prompt or a stack trace.
"""


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
