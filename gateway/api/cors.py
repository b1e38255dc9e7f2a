"""Let web pages of origins that the operator names use the public API (CORS). Reads headers and admits nobody.

The script of a page sends its own API key. Cookies are never used, so `Access-Control-Allow-Credentials` is not sent.
"""

import re
from collections.abc import Sequence

from gateway.http.messages import Request, Response

_PREFIX = "/api/v1/"
_METHODS = "GET, HEAD, POST"
_MAX_AGE_SECONDS = 600
# Headers that a script may send: those of the API, and those that the OpenAI client adds in a browser.
_SENT = frozenset(
    "accept api-key authorization content-type idempotency-key openai-beta openai-organization openai-project"
    " traceparent tracestate user-agent x-api-key x-request-id x-service-agent x-service-key".split()
)
_OF_SDK = re.compile(r"x-stainless-[a-z0-9-]{1,40}")
# Headers that a script may read, beyond those that browsers always allow.
_READ = (
    "retry-after, x-request-id, x-service-request-id, x-service-shield-verdict, x-service-shield-score,"
    " x-service-shield-action, x-service-overhead-ms, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset,"
    " x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests"
)


class Cors:
    """Tells browsers which pages may use the public API. origins: as browsers send them; empty for none."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)

    def preflight(self, request: Request) -> Response | None:
        """Return the answer to a preflight request, or None if the request is something else."""
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
        """Add the headers that let an allowed page read an answer of the public API. Return the answer."""
        if self._origins and request.path.startswith(_PREFIX):
            origin = request.headers.get("origin")
            response.headers += (("vary", "Origin"),)
            if origin in self._origins and origin is not None:
                allow = (("access-control-allow-origin", origin), ("access-control-expose-headers", _READ))
                response.headers += allow
        return response
