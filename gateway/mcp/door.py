"""Who may come in over HTTP: pages and programs of this host, with the key. Pure; knows no path and no message.

A page of another site can make a browser send requests to this host, and a name that changes its address can make them
look like the site's own. So Origin, where there is one, names this host, and Host does always (the server checks it).
"""

import hmac
import re

from gateway.auth.keyhash import without_keys
from gateway.domain.principals import RequestContext
from gateway.http.messages import Headers, HttpError, Request

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LOCAL_ORIGIN = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.ASCII)

_MAY_SEND = (
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, "
    "x-service-key"
)
_MAY_READ = "mcp-session-id, www-authenticate, x-request-id"
_PREFLIGHT_SECONDS = "600"
_USER_AGENT_CHARS = 200

HeaderList = tuple[tuple[str, str], ...]


def caller_of(request: Request, request_id: str) -> RequestContext:
    """Return where a request came from, for the audit."""
    agent = request.headers.get("user-agent")
    user_agent = without_keys(agent)[:_USER_AGENT_CHARS] if agent else None
    return RequestContext(request_id=request_id, ip=request.peer or None, user_agent=user_agent)


def check_origin(headers: Headers) -> None:
    """Let pass what comes from no page, or from a page of this host.

    Raises:
        HttpError: 403, the page is of another site, or of none that it would name.
    """
    origin = headers.get("origin")
    if origin is not None and _LOCAL_ORIGIN.fullmatch(origin) is None:
        raise HttpError(403, "access_denied", "Only pages of this host may call.")


def check_key(headers: Headers, key: str | None) -> None:
    """Let pass who sends `key`: in `X-Service-Key`, else as `Authorization: Bearer`. Nowhere else is looked.

    Raises:
        HttpError: 401, there is no key or another, or None is expected.
    """
    given = headers.get("x-service-key")
    if given is None:
        scheme, _, token = (headers.get("authorization") or "").partition(" ")
        given = token.strip(" ") if scheme.lower() == "bearer" else ""
    if not given:
        raise _no_entry("missing_api_key", "An API key is needed: Authorization: Bearer, or X-Service-Key.")
    if key is None or not hmac.compare_digest(given.encode(), key.encode()):
        raise _no_entry("invalid_api_key", "The API key is not the one of this server.")


def cors_headers(headers: Headers) -> HeaderList:
    """Return what lets a page of this host read an answer. Always says that the answer depends on the origin."""
    origin = headers.get("origin")
    if origin is None or _LOCAL_ORIGIN.fullmatch(origin) is None:
        return (("vary", "Origin"),)
    return (
        ("vary", "Origin"),
        ("access-control-allow-origin", origin),
        ("access-control-expose-headers", _MAY_READ),
    )


def preflight_headers(methods: str) -> HeaderList:
    """Return what a browser wants to know before it sends a request with a key. methods: as in Allow."""
    return (
        ("allow", methods),
        ("access-control-allow-methods", methods),
        ("access-control-allow-headers", _MAY_SEND),
        ("access-control-max-age", _PREFLIGHT_SECONDS),
    )


def _no_entry(code: str, message: str) -> HttpError:
    return HttpError(401, code, message, headers=(("www-authenticate", 'Bearer realm="mcp"'),))
