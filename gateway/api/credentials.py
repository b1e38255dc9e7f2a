"""Read from a request its API key, the address of the client and the context for the audit log. Checks no key."""

import ipaddress
import re
from collections.abc import Sequence

from gateway.auth.keyhash import without_keys
from gateway.domain.principals import RequestContext
from gateway.errors import InvalidRequest
from gateway.http.messages import Headers, Request

_TRACEPARENT = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_USER_AGENT_CHARS = 256
_AGENT_CHARS = 100
_MAPPED = "::ffff:"
_SERVICE_KEY = "x-service-key"
_KEY_HEADERS = (_SERVICE_KEY, "x-api-key", "api-key")
_WITH_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([0-9.]{7,15}))(?::[0-9]{1,5})?")


def sole_key(headers: Headers) -> str | None:
    """Return the key of a request as sent, unchecked, or None when none was sent.

    This is the only function that reads a key. It reads `X-Service-Key`, `x-api-key`, `api-key`, and
    `Authorization: Bearer` unless an `X-Service-Key` takes precedence. A header sent twice arrives joined by a comma,
    which no key contains. `Authorization` with another scheme or without a token counts as the invalid key "" if no
    other header has a key. An empty `x-api-key` or `api-key` is ignored.

    Raises:
        InvalidRequest: two different keys were sent, so the gateway cannot tell which one to use.
    """
    found = ((name, headers.get(name)) for name in _KEY_HEADERS)
    keys = [key for name, key in found if key or (key is not None and name == _SERVICE_KEY)]
    authorization = headers.get("authorization")
    if authorization is not None and _SERVICE_KEY not in headers:
        scheme, _, token = authorization.partition(" ")
        token = token.strip(" ") if scheme.lower() == "bearer" else ""
        if token or not keys:
            keys.append(token)
    if len(set(keys)) > 1:
        names = "X-Service-Key, x-api-key, api-key or Authorization: Bearer"
        raise InvalidRequest(f"Two different API keys were sent; send one, in {names}.", param="X-Service-Key")
    return keys[0] if keys else None


def traceparent(headers: Headers) -> str | None:
    """Return a well-formed W3C `traceparent` of version 00, or None."""
    value = headers.get("traceparent")
    if value is None or (found := _TRACEPARENT.fullmatch(value)) is None:
        return None
    # All zeros mean no trace and no parent (W3C Trace Context, sections 3.2.2.3 and 3.2.2.4).
    return value if found[1].strip("0") and found[2].strip("0") else None


class Callers:
    """Finds the client of a request. trusted_proxies: networks whose X-Forwarded-For the gateway believes."""

    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._trusted = tuple(ipaddress.ip_network(one, strict=False) for one in trusted_proxies)

    def _client(self, request: Request) -> str:
        """Return the address of the client, or of the last proxy whose entry cannot be read."""
        client = plain_address(request.peer)
        if not self._trusted:
            return client
        # From the right: each entry was written by the next proxy, so only entries of trusted proxies count.
        for entry in reversed((request.headers.get("x-forwarded-for") or "").split(",")):
            text = _without_port(entry.strip())
            if not self._trusts(client) or _parsed(text) is None:
                break
            client = text
        return client

    def context(self, request: Request, request_id: str) -> RequestContext:
        """Return where the request came from, for the audit log.

        The log keeps agent and user agent, so an API key sent there by mistake is cut to its prefix.
        """
        headers = request.headers
        agent, user_agent = headers.get("x-service-agent"), headers.get("user-agent")
        return RequestContext(
            request_id,
            self._client(request) or None,
            without_keys(user_agent)[:_USER_AGENT_CHARS] if user_agent else None,
            traceparent(headers),
            without_keys(agent)[:_AGENT_CHARS] if agent else None,
        )

    def is_secure(self, request: Request) -> bool:
        """Tell whether the client uses TLS, to the gateway or to a trusted proxy that says so."""
        if request.is_tls:
            return True
        return self._trusts(plain_address(request.peer)) and request.headers.get("x-forwarded-proto") == "https"

    def _trusts(self, text: str) -> bool:
        address = _parsed(text)
        return address is not None and any(address in network for network in self._trusted)


def _without_port(text: str) -> str:
    """Return the address of an entry. Some proxies add a port: ``192.0.2.1:4711``, ``[2001:db8::1]:4711``."""
    found = _WITH_PORT.fullmatch(text)
    return plain_address(found[1] or found[2] if found else text)


def plain_address(text: str) -> str:
    """Return an IPv4 address that arrived over an IPv6 socket in its plain form."""
    return text[len(_MAPPED) :] if text.startswith(_MAPPED) and "." in text else text


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
