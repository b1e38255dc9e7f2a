"""Who calls and from where: the API key of a request, the client's address, the request's context. Checks no key."""

import ipaddress
import re
from collections.abc import Sequence

from gateway.auth.keyhash import hash_key, without_keys
from gateway.domain.principals import RequestContext
from gateway.errors import InvalidApiKey, InvalidRequest
from gateway.http.messages import Headers, Request

_TRACEPARENT = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_USER_AGENT_CHARS = 256
_AGENT_CHARS = 100
_MAPPED = "::ffff:"
_SERVICE_KEY = "x-service-key"
_KEY_HEADERS = (_SERVICE_KEY, "x-api-key", "api-key")
_WITH_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([0-9.]{7,15}))(?::[0-9]{1,5})?")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def api_keys(headers: Headers) -> tuple[str, ...]:
    """Return the different keys that were sent, unchecked. A good request has one, an anonymous one none.

    The only place that reads a key, from these headers alone: `X-Service-Key`, `x-api-key`, `api-key`, and
    `Authorization: Bearer` unless there is an `X-Service-Key`, which takes precedence over it. A header sent twice
    arrives joined by a comma, which no key holds. `Authorization` of another scheme, or without a token, is "" where no
    other header has a key; "" is no key either. An empty `x-api-key` or `api-key` is as if it were not there.
    """
    found = ((name, headers.get(name)) for name in _KEY_HEADERS)
    keys = [key for name, key in found if key or (key is not None and name == _SERVICE_KEY)]
    authorization = headers.get("authorization")
    if authorization is not None and _SERVICE_KEY not in headers:
        scheme, _, token = authorization.partition(" ")
        token = token.strip(" ") if scheme.lower() == "bearer" else ""
        if token or not keys:
            keys.append(token)
    return tuple(dict.fromkeys(keys))


class HeadFacts:
    """What the head of a request says of who calls.

    keys: as sent, see `api_keys`. digest: of a sole key of good form, else "". agent, user_agent, traceparent: for the
    audit, which keeps them, so that of a key that was put there by mistake nothing stays but its prefix.
    is_plain_json: the body is said to be JSON, and nothing else is said of it.
    """

    __slots__ = ("agent", "digest", "is_plain_json", "keys", "traceparent", "user_agent")

    def __init__(self, headers: Headers) -> None:
        user_agent, agent = headers.get("user-agent"), headers.get("x-service-agent")
        self.keys = api_keys(headers)
        try:
            self.digest = hash_key(self.keys[0] if len(self.keys) == 1 else "")
        except InvalidApiKey:
            self.digest = ""
        self.agent = without_keys(agent)[:_AGENT_CHARS] if agent else None
        self.user_agent = without_keys(user_agent)[:_USER_AGENT_CHARS] if user_agent else None
        self.traceparent = traceparent(headers)
        self.is_plain_json = headers.get("content-type") == "application/json" and "content-encoding" not in headers

    def sole_key(self) -> str | None:
        """Return the key as sent, unchecked; None: none was sent.

        Raises:
            InvalidRequest: two different keys were sent, so that it is not said who calls.
        """
        if len(self.keys) > 1:
            names = "X-Service-Key, x-api-key, api-key or Authorization: Bearer"
            raise InvalidRequest(f"Two different API keys were sent; send one, in {names}.", param="X-Service-Key")
        return self.keys[0] if self.keys else None


def facts_of(headers: Headers) -> HeadFacts:
    """Return what a head says, read once for all requests that have the same one."""
    facts: HeadFacts = headers.facts or _read_facts(headers)
    return facts


def _read_facts(headers: Headers) -> HeadFacts:
    facts = headers.facts = HeadFacts(headers)
    return facts


def traceparent(headers: Headers) -> str | None:
    """Return a well-formed W3C `traceparent` of version 00, or None."""
    value = headers.get("traceparent")
    if value is None or (found := _TRACEPARENT.fullmatch(value)) is None:
        return None
    # All zeros mean no trace and no parent (W3C Trace Context, sections 3.2.2.3 and 3.2.2.4).
    return value if found[1].strip("0") and found[2].strip("0") else None


class Callers:
    """Finds out where a request came from. trusted_proxies: networks whose X-Forwarded-For is believed."""

    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._trusted: tuple[Network, ...] = tuple(ipaddress.ip_network(one, strict=False) for one in trusted_proxies)

    def address(self, request: Request) -> str | None:
        """Return the client's address: the peer, or what the trusted proxies before it say. None: no address."""
        return self._client(request) or None

    def _client(self, request: Request) -> str:
        """Return the client's address, or that of the proxy before it when the proxy says nothing that can be read."""
        peer = plain_address(request.peer)
        forwarded = request.headers.get("x-forwarded-for") if self._trusted else None
        if forwarded is None or not self._trusts(peer):
            return peer
        client = peer
        # From the right: each entry was written by the proxy after it, so only what a trusted one wrote counts.
        for entry in reversed(forwarded.split(",")):
            text = _without_port(entry.strip())
            if not _is_address(text):
                return client
            client = text
            if not self._trusts(text):
                break
        return client

    def context(self, request: Request, request_id: str, facts: HeadFacts | None = None) -> RequestContext:
        """Return where the request came from, for the audit. facts: of its head, where they were looked at already."""
        facts = facts or facts_of(request.headers)
        ip = request.peer
        if self._trusted or ":" in ip:
            ip = self._client(request)
        return RequestContext(request_id, ip or None, facts.user_agent, facts.traceparent, facts.agent)

    def is_secure(self, request: Request) -> bool:
        """Tell whether the client came over TLS: to us, or to a trusted proxy that says so."""
        if request.is_tls:
            return True
        return self._trusts(plain_address(request.peer)) and request.headers.get("x-forwarded-proto") == "https"

    def _trusts(self, text: str) -> bool:
        if not _is_address(text):
            return False
        address = ipaddress.ip_address(text)
        return any(address in network for network in self._trusted if network.version == address.version)


def _without_port(text: str) -> str:
    """Return the address of an entry: some proxies write ``192.0.2.1:4711`` and ``[2001:db8::1]:4711``."""
    found = _WITH_PORT.fullmatch(text)
    return plain_address(found[1] or found[2] if found else text)


def plain_address(text: str) -> str:
    """Write an IPv4 address that came over an IPv6 socket as what it is."""
    return text[len(_MAPPED) :] if text.startswith(_MAPPED) and "." in text else text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
