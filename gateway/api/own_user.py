"""Decide whether a request comes from a user of this host: one rule for the internal API, the dashboard, `/metrics`.

Theory of operation. Without RBAC, anyone who reaches the loopback address administers the gateway. A reverse proxy on
this host reaches it for everybody, and a web page reaches it by DNS rebinding. Each leaves a trace: HTTP/1.0, which
nginx before 1.29.7 uses by default; a header about the client; a Host or an Origin that is not this host. The gateway
refuses a request with any such trace. It cannot tell a proxy that leaves no trace from a local user.
"""

from urllib.parse import urlsplit

from gateway.api.credentials import plain_address
from gateway.errors import AccessDenied
from gateway.http.messages import Request
from gateway.settings import is_loopback

_PROXY_HEADERS = frozenset(
    "forwarded via x-real-ip cf-connecting-ip true-client-ip x-client-ip x-cluster-client-ip client-ip "
    "fastly-client-ip fly-client-ip x-envoy-external-address x-azure-clientip x-original-forwarded-for cdn-loop".split()
)
_PROXY_PREFIX = "x-forwarded"


def is_own_user(request: Request) -> bool:
    """Tell whether the request has no sign of another host or of a page of another site."""
    headers = request.headers
    origin = headers.get("origin")
    return (
        not request.is_http10
        and is_loopback(plain_address(request.peer))
        and _is_here(f"//{headers.get('host')}")
        and (origin is None or _is_here(origin))
        and not any(name in _PROXY_HEADERS or name.startswith(_PROXY_PREFIX) for name, _ in headers)
    )


def not_own_user(what: str) -> AccessDenied:
    """Return the error for a request that is not from the local user while RBAC is off. what: names its target."""
    return AccessDenied(
        f"Without RBAC_ENABLED=true, {what} answers only direct requests from this host to a loopback address. "
        "To reach it through a proxy or from another host, set RBAC_ENABLED=true."
    )


def _is_here(url: str) -> bool:
    """Tell whether a URL names a loopback host."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return is_loopback(host.removesuffix("."))
