"""Requests to the public API from the web pages that the operator names (CORS). Reads headers and lets nobody in.

A page's script sends its key itself. Cookies are never part of it, so `Access-Control-Allow-Credentials` is not sent.
"""

import re
from collections.abc import Sequence

from gateway.http.messages import Request, Response

_PREFIX = "/api/v1/"
_METHODS = "GET, HEAD, POST"
_MAX_AGE_SECONDS = 600
# What a script may send: the headers of the API, and those that OpenAI's client adds in a browser.
_SENT = frozenset(
    "accept api-key authorization content-type idempotency-key openai-beta openai-organization openai-project"
    " traceparent tracestate user-agent x-api-key x-request-id x-service-agent x-service-key".split()
)
_OF_SDK = re.compile(r"x-stainless-[a-z0-9-]{1,40}")
# What a script may read, beyond what every page may.
_READ = (
    "retry-after, x-request-id, x-service-request-id, x-service-shield-verdict, x-service-shield-score,"
    " x-service-shield-action, x-service-overhead-ms, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset,"
    " x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests"
)


class Cors:
    """Tells browsers which pages may use the public API. origins: as browsers send them; none for no page."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)

    def preflight(self, request: Request) -> Response | None:
        """Return the answer to a browser that asks what a page may send; None: the request is something else."""
        headers = request.headers
        if (
            request.method != "OPTIONS"
            or "access-control-request-method" not in headers
            or headers.get("origin") not in self._origins
            or not request.path.startswith(_PREFIX)
        ):
            return None
        asked = (name.strip() for name in (headers.get("access-control-request-headers") or "").lower().split(","))
        may_send = ", ".join(name for name in asked if name in _SENT or _OF_SDK.fullmatch(name))
        return Response(
            204,
            (
                ("access-control-allow-methods", _METHODS),
                ("access-control-allow-headers", may_send),
                ("access-control-max-age", str(_MAX_AGE_SECONDS)),
            ),
        )

    def complete(self, response: Response, request: Request) -> Response:
        """Add to an answer of the public API, good or bad, what lets a named page read it. Return the answer."""
        if self._origins and request.path.startswith(_PREFIX):
            origin = request.headers.get("origin")
            response.lines += "vary: Origin\r\n"
            if origin in self._origins:
                response.lines += f"access-control-allow-origin: {origin}\r\naccess-control-expose-headers: {_READ}\r\n"
        return response
