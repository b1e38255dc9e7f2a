"""Build answers: the envelope, the one error shape, the headers that every answer has, and compression.

An edge builds an answer with `json_response` or `error_response`, and one place completes it with `finish`. So
no edge can forget the request id or a security header. `finish` changes the answer, so each request needs its own.
"""

import zlib

from gateway.auth.ratelimit import Admission
from gateway.domain.paging import Page
from gateway.errors import GatewayError, error_shape, status_of
from gateway.http.messages import Headers as RequestHeaders
from gateway.http.messages import HttpError, Response
from gateway.strict_json import write_json, write_time

Headers = tuple[tuple[str, str], ...]

_ALWAYS_RETRY = (429, 503)
JSON: Headers = (("content-type", "application/json"),)
_SECURITY: Headers = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
)
_HSTS: Headers = (("strict-transport-security", "max-age=31536000"),)
_COMPRESS_BYTES = 1024


def json_response(value: object, headers: Headers = (), *, status: int = 200) -> Response:
    """Return JSON without an envelope, as OpenAI clients and probes expect."""
    return Response(status, JSON + headers, write_json(value))


def envelope_response(
    data: object, page: Page[object] | None, *, request_id: str, now_at: int, status: int = 200, headers: Headers = ()
) -> Response:
    """Return `{"ok", "data", "meta"}`, with "page" for a list. now_at: Unix milliseconds."""
    listed = page and {"limit": page.limit, "count": len(page.items), "total": page.total, "next": page.next}
    meta = {"request_id": request_id, "timestamp": write_time(now_at)}
    body = {"ok": True, "data": data} | ({"page": listed} if listed else {}) | {"meta": meta}
    return json_response(body, headers, status=status)


def error_response(error: GatewayError | HttpError, *, request_id: str, headers: Headers = ()) -> Response:
    """Return an error in the one shape, with the headers that its status requires."""
    if isinstance(error, HttpError):
        status, wait_seconds, headers = error.status, None, error.headers + headers
    else:
        status, wait_seconds = status_of(error.code), error.retry_after_seconds
    if status == 401 and "www-authenticate" not in dict(headers):
        headers = (*headers, ("www-authenticate", "Bearer"))
    if (status in _ALWAYS_RETRY or wait_seconds is not None) and "retry-after" not in dict(headers):
        headers = (*headers, ("retry-after", str(max(1, wait_seconds or 1))))
    shape = error_shape(status, error.code, error.message, error.param, request_id)
    return json_response(shape, headers, status=status)


def rate_headers(admission: Admission, *, is_openai: bool) -> Headers:
    """Return headers that say what the key has left; for OpenAI clients also under the names they know."""
    limit, remaining, reset = str(admission.limit), str(admission.remaining), str(admission.reset_seconds)
    headers = (("x-ratelimit-limit", limit), ("x-ratelimit-remaining", remaining), ("x-ratelimit-reset", reset))
    if not is_openai:
        return headers
    return (
        *headers,
        ("x-ratelimit-limit-requests", limit),
        ("x-ratelimit-remaining-requests", remaining),
        ("x-ratelimit-reset-requests", f"{reset}s"),  # a duration, as OpenAI writes it
    )


def finish(
    response: Response,
    request_id: str,
    more: Headers = (),
    *,
    is_tls: bool = False,
    asked: RequestHeaders | None = None,
) -> Response:
    """Complete `response` with request id, security headers and `more`, compress it if asked, and return it.

    is_tls: whether clients connect over TLS. asked: the headers of the request; None to leave the body uncompressed,
    since it contains a secret.
    """
    common = _SECURITY + (_HSTS if is_tls else ())
    if any(name == "cache-control" for name, _ in response.headers):
        common = tuple(pair for pair in common if pair[0] != "cache-control")
    ids = (("x-service-request-id", request_id), ("x-request-id", request_id))
    response.headers = response.headers + common + ids + more
    if len(response.body) > _COMPRESS_BYTES and asked is not None and "accept-encoding" in asked:
        response.headers += (("vary", "Accept-Encoding"),)
        if accepts_gzip(asked["accept-encoding"]):
            # Level 1: other requests wait while the body is compressed, and it is sent once.
            response.body = zlib.compress(response.body, 1, 31)
            response.headers += (("content-encoding", "gzip"),)
    return response


def accepts_gzip(accept_encoding: str) -> bool:
    """Tell whether gzip is named with a weight above 0 (RFC 9110 section 12.5.3). ``*`` is not taken as gzip."""
    for part in accept_encoding.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
