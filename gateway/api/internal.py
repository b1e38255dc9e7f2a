"""Admit callers to the internal API: signed-in users or, without RBAC, the local user of this host. Grants nothing.

The checks come in this order, so that a page of another site learns nothing: origin of the request, page that made
it, session, and for changes the CSRF token of that session. The dispatch checks the permissions.

Without RBAC, anyone who reaches the loopback address administers the gateway. A reverse proxy on this host reaches it
for everybody, and a web page reaches it by DNS rebinding. Each leaves a trace: HTTP/1.0, which nginx before 1.29.7 uses
by default; a header about the client; a Host or an Origin that is not this host. The gateway refuses a request with any
such trace. It cannot tell a proxy that leaves no trace from a local user.
"""

from dataclasses import replace
from urllib.parse import urlsplit

from gateway.api.credentials import plain_address
from gateway.app import Gateway
from gateway.auth.csrf import HEADER, is_csrf_token, is_own_page
from gateway.auth.sessions import read_cookie
from gateway.domain.principals import Principal, RequestContext, local
from gateway.errors import AccessDenied, CsrfFailed, GatewayError, NotSignedIn
from gateway.http.messages import Request
from gateway.operations.operation import ANONYMOUS, Door
from gateway.services.refusals import SESSION_REFUSED
from gateway.settings import is_loopback

LOCAL = replace(local("api"), name="local")
"""The principal of local callers while RBAC is off."""

_READING = ("GET", "HEAD")
_PROXY_HEADERS = frozenset(
    "forwarded via x-real-ip cf-connecting-ip true-client-ip x-client-ip x-cluster-client-ip client-ip "
    "fastly-client-ip fly-client-ip x-envoy-external-address x-azure-clientip x-original-forwarded-for cdn-loop".split()
)
_PROXY_PREFIX = "x-forwarded"


class InternalDoor:
    """Admits callers to operations whose door is SESSION, SIGN_IN or PAGE."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._asks_for_user = gateway.settings.rbac_enabled
        self._allowed_hosts = frozenset(name.lower() for name in gateway.settings.allowed_hosts)

    async def enter(self, door: Door, request: Request, context: RequestContext) -> Principal:
        """Return the caller.

        Raises:
            AccessDenied: RBAC is off and the request is not from the local user. NotSignedIn: there is no session.
            CsrfFailed: a page of another site made the request, or the token is missing or wrong.
        """
        token = read_cookie(request.headers.get("cookie"))
        try:
            return await self._enter(door, request, token)
        except GatewayError as error:
            if isinstance(error, NotSignedIn) and token is None:
                raise  # the page only asks whether a user is signed in
            refusals = self._gateway.authentication.refusals
            raise refusals.record(error, context, action=SESSION_REFUSED, resource_type="session") from None

    async def _enter(self, door: Door, request: Request, token: str | None) -> Principal:
        if not self._asks_for_user and not is_own_user(request):
            raise not_own_user("the internal API")
        if door is Door.PAGE:
            return ANONYMOUS  # links on other sites may lead here
        headers = request.headers
        if not is_own_page(
            sec_fetch_site=headers.get("sec-fetch-site"),
            origin=headers.get("origin"),
            host=headers.get("host"),
            allowed_hosts=self._allowed_hosts,
        ):
            raise CsrfFailed("The request was made by a page of another site.")
        if door is Door.SIGN_IN:
            return ANONYMOUS
        await self._gateway.store.authority.follow()
        if not self._asks_for_user:
            return LOCAL
        found = await self._gateway.signin.find(token)
        if request.method not in _READING and not is_csrf_token(headers.get(HEADER), token or ""):
            raise CsrfFailed("Send the session's csrf_token in X-CSRF-Token.", param="X-CSRF-Token")
        return found.user.principal()


def is_own_user(request: Request) -> bool:
    """Tell whether the request has no sign of another host or of a page of another site."""
    headers = request.headers
    origin = headers.get("origin")
    return (
        not request.is_http10
        and is_loopback(plain_address(request.peer))
        and _is_here(f"//{headers.get('host')}")
        and (origin is None or _is_here(origin))
        and not any(name in _PROXY_HEADERS or name.startswith(_PROXY_PREFIX) for name in headers)
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
