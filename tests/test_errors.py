"""Every kind of error keeps its code: callers and clients tell errors apart by nothing else."""

from gateway import errors

CODES = {
    "AccessDenied": "access_denied",
    "AuditUnavailable": "audit_unavailable",
    "BadCredentials": "bad_credentials",
    "BodyTooLarge": "body_too_large",
    "BudgetExceeded": "budget_exceeded",
    "Conflict": "conflict",
    "ContentPolicyViolation": "content_policy_violation",
    "CsrfFailed": "csrf_failed",
    "GatewayError": "internal_error",
    "InsufficientScope": "insufficient_scope",
    "InvalidApiKey": "invalid_api_key",
    "InvalidJson": "invalid_json",
    "InvalidRequest": "invalid_request",
    "KeyExpired": "key_expired",
    "KeyRevoked": "key_revoked",
    "LoginThrottled": "login_throttled",
    "MissingApiKey": "missing_api_key",
    "NotFound": "not_found",
    "NotSignedIn": "not_signed_in",
    "Overloaded": "overloaded",
    "PermissionDenied": "permission_denied",
    "RateLimited": "rate_limited",
    "SetupError": "setup_error",
    "Shed": "overloaded",
    "ShieldUnavailable": "shield_unavailable",
    "TooManyValues": "body_too_large",
    "UnsupportedMediaType": "unsupported_media_type",
    "UnsupportedValue": "unsupported_value",
    "UpstreamUnavailable": "upstream_unavailable",
}


def test_each_kind_of_error_has_its_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert {kind.__name__: kind.code for kind in kinds} == CODES
