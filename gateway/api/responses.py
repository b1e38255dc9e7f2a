"""Answers: the envelope, the one error shape, the headers every answer has, compression. Decides nothing else.

What an edge makes (`json_response`, `error_response`) has a status, a body and headers of its own; `finish` adds what
every answer has. So a new edge can forget neither the request id nor a security header. It adds them to the answer
itself, so that an edge makes one for each request, and keeps none.
"""

import zlib
from collections.abc import Mapping
from types import MappingProxyType

from gateway.auth.ratelimit import Admission
from gateway.domain.paging import Page
from gateway.errors import GatewayError
from gateway.http.messages import Headers as RequestHeaders
from gateway.http.messages import Response
from gateway.strict_json import write_json

Headers = tuple[tuple[str, str], ...]

STATUS_BY_CODE: Mapping[str, int] = MappingProxyType(
    {
        "invalid_request": 400,
        "invalid_json": 400,
        "unsupported_value": 400,
        "content_policy_violation": 400,
        "missing_api_key": 401,
        "invalid_api_key": 401,
        "not_signed_in": 401,
        "bad_credentials": 401,
        "insufficient_scope": 403,
        "key_revoked": 403,
        "key_expired": 403,
        "permission_denied": 403,
        "csrf_failed": 403,
        "access_denied": 403,
        "not_found": 404,
        "method_not_allowed": 405,
        "request_timeout": 408,
        "conflict": 409,
        "body_too_large": 413,
        "uri_too_long": 414,
        "unsupported_media_type": 415,
        "expectation_failed": 417,
        "host_not_allowed": 421,
        "rate_limited": 429,
        "budget_exceeded": 429,
        "login_throttled": 429,
        "headers_too_large": 431,
        "internal_error": 500,
        "not_implemented": 501,
        "upstream_unavailable": 502,
        "overloaded": 503,
        "shield_unavailable": 503,
        "audit_unavailable": 503,
        "http_version_not_supported": 505,
    }
)
"""The status of every code an answer may carry."""

_TYPES: Mapping[int, str] = MappingProxyType(
    {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
)
_ALWAYS_RETRY = (429, 503)
JSON: Headers = (("content-type", "application/json"),)
"""The header of an answer that says nothing else by itself."""
_SECURITY: Headers = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
)
_HSTS: Headers = (("strict-transport-security", "max-age=31536000"),)
_COMPRESS_BYTES = 1024


def status_of(code: str) -> int:
    """Return the status of an error code; 500 for one that is not in the table."""
    return STATUS_BY_CODE.get(code, 500)


def error_type(status: int) -> str:
    """Return the `type` of an error in the words of the OpenAI API."""
    return _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


def json_response(value: object, headers: Headers = (), *, status: int = 200) -> Response:
    """Return a bare JSON answer: what OpenAI clients and probes expect."""
    return Response(status, JSON + headers, write_json(value))


def envelope_response(
    data: bytes,
    page: Page[object] | None,
    *,
    request_id: str,
    timestamp: str,
    status: int = 200,
    headers: Headers = (),
) -> Response:
    """Return `{"ok", "data", "meta"}`, with "page" for a list. data: JSON, written already."""
    tail = f',"meta":{{"request_id":"{request_id}","timestamp":"{timestamp}"}}}}'.encode("ascii")
    if page is not None:
        tail = b',"page":' + write_json({"limit": page.limit, "count": len(page.items), "next": page.next}) + tail
    return Response(status, JSON + headers, b'{"ok":true,"data":' + data + tail)


def error_response(error: GatewayError, *, request_id: str, headers: Headers = ()) -> Response:
    """Return an error in the one shape, with the headers its status asks for."""
    status = status_of(error.code)
    if status == 401:
        headers = (*headers, ("www-authenticate", "Bearer"))
    if status in _ALWAYS_RETRY or error.retry_after_seconds is not None:
        headers = (*headers, ("retry-after", str(max(1, error.retry_after_seconds or 1))))
    return shaped_error(status, error.code, error.message, param=error.param, request_id=request_id, headers=headers)


def shaped_error(
    status: int, code: str, message: str, *, param: str | None, request_id: str, headers: Headers = ()
) -> Response:
    """Return the one error shape, which OpenAI clients read as well."""
    error = {
        "message": message,
        "type": error_type(status),
        "code": code,
        "param": param,
        "request_id": request_id,
    }
    return Response(status, JSON + headers, write_json({"ok": False, "error": error}))


def rate_lines(admission: Admission, *, is_openai: bool) -> str:
    """Return the header lines of what the key has left, for OpenAI's clients under their names as well."""
    lines = (
        f"x-ratelimit-limit: {admission.limit}\r\nx-ratelimit-remaining: {admission.remaining}\r\n"
        f"x-ratelimit-reset: {admission.reset_seconds}\r\n"
    )
    if not is_openai:
        return lines
    return (
        f"{lines}x-ratelimit-limit-requests: {admission.limit}\r\n"
        f"x-ratelimit-remaining-requests: {admission.remaining}\r\n"
        f"x-ratelimit-reset-requests: {admission.reset_seconds}s\r\n"  # a duration, as OpenAI writes it
    )


class Finisher:
    """Adds to an answer what every answer has. is_tls: whether clients come over TLS."""

    def __init__(self, *, is_tls: bool) -> None:
        # The second for an answer that says itself how long it may be kept.
        common = _SECURITY + (_HSTS if is_tls else ())
        self._common = _lines(common)
        self._kept = _lines(tuple(pair for pair in common if pair[0] != "cache-control"))

    def finish(
        self, response: Response, request_id: str, rate: str = "", asked: RequestHeaders | None = None
    ) -> Response:
        """Complete `response` with request id, security and rate headers, compress it if that was asked for, return it.

        rate: header lines, see `rate_lines`. asked: the headers of the request; None when the answer must stay as it
        is, since it carries a secret.
        """
        headers, common = response.headers, self._common
        if headers is not JSON and "cache-control" in dict(headers):
            common = self._kept
        response.lines = (
            f"{response.lines}{common}x-service-request-id: {request_id}\r\nx-request-id: {request_id}\r\n{rate}"
        )
        if len(response.body) > _COMPRESS_BYTES and asked is not None:
            _compress(response, asked.get("accept-encoding"))
        return response


def _compress(response: Response, accept_encoding: str | None) -> None:
    """Compress a long answer for who takes gzip, and say so wherever the answer was asked for in some encoding."""
    if accept_encoding is None:
        return
    response.headers = (*response.headers, ("vary", "Accept-Encoding"))
    if accepts_gzip(accept_encoding):
        # Level 1: an answer is compressed while others wait, and is sent once.
        response.body = zlib.compress(response.body, 1, 31)
        response.headers = (*response.headers, ("content-encoding", "gzip"))


def _lines(headers: Headers) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


def accepts_gzip(accept_encoding: str) -> bool:
    """Tell whether gzip is named with a weight above 0 (RFC 9110 section 12.5.3). ``*`` is not taken as gzip."""
    for part in accept_encoding.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
