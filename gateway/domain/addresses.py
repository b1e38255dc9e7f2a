"""The form of a provider's base URL, and the addresses that the gateway may connect to. Pure: uses no resolver.

Theory of operation. The gateway checks the form of a host name when a provider is saved. It checks every address of the
name when it connects, because a DNS answer may change in between. An IPv4 address inside an IPv6 address counts as
itself. There are three kinds of addresses:

- open: allowed for every provider;
- private: loopback, the networks of RFC 1918, 4193 and 6598, and other networks that are not routed. `allow_private`
  allows them;
- forbidden: link-local, where clouds publish the credentials of a machine, other metadata addresses, and addresses that
  name no host.
"""

import re
from collections.abc import Callable
from enum import Enum
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from gateway.domain.hosts import host_name
from gateway.errors import InvalidRequest

MAX_URL_CHARS = 500
HOST_PROMISE = (
    # No label begins like a forbidden name, or like one that needs `allow_private`.
    "(?!(?:[^/]*\\.)?(?:localhost|metadata|instance-data))"
    "(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,28}[a-z0-9_])?\\.){0,5}"
    "[a-z](?:[a-z0-9_-]{0,28}[a-z0-9_])?"
)
"""The pattern of the host names that are valid even without `allow_private`."""
PORT_PROMISE = ":(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
BASE_URL_PROMISE = f"^https?://{HOST_PROMISE}(?:{PORT_PROMISE})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]{{0,200}})?$"
"""The pattern of the base URLs that are valid even without `allow_private`."""
_VISIBLE = re.compile(r"[!-~]+")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*")
# A resolver reads this as an IPv4 address in another notation: 2130706433, 0x7f.1, 0177.0.0.1 (inet_aton).
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_FORBIDDEN_NAMES = frozenset(
    "metadata metadata.google.internal metadata.goog metadata.azure.internal metadata.azure.com "
    "metadata.tencentyun.com instance-data instance-data.ec2.internal".split()
)
_FORBIDDEN = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "100.100.100.200/32",  # metadata: Alibaba
        "168.63.129.16/32",  # metadata: Azure
        "192.0.0.192/32",  # metadata: Oracle
        "240.0.0.0/4",  # reserved, and broadcast
        "fec0::/10",  # site-local, deprecated
        "fd00:ec2::/32",  # metadata: Amazon
        "fd20:ce::/32",  # metadata: Google
        "64:ff9b:1::/48",  # local-use translation: it may lead to any address
        "2001::/32",  # Teredo
    )
)
# IPv6 networks that embed an IPv4 address, and the number of bits to the right of it.
_EMBEDDING_4 = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # translated (RFC 2765)
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64 (RFC 6052)
    (IPv6Network("2002::/16"), 80),  # 6to4
    (IPv6Network("::/96"), 0),  # compatible, deprecated
)


class Reach(Enum):
    """The kind of an address: see the head of the module."""

    OPEN = "open"
    PRIVATE = "private"
    FORBIDDEN = "forbidden"


def read_base_url(text: str, *, allow_private: bool) -> str:
    """Return the canonical form of a base URL: lower-case host without a trailing dot, no trailing slash.

    Raises:
        InvalidRequest: `param` is ``base_url``; the message never repeats the URL, which may hold a password.
    """
    if len(text) > MAX_URL_CHARS or not _VISIBLE.fullmatch(text) or any(sign in text for sign in '\\"<>^`{|}'):
        raise _bad(f"must be a URL of at most {MAX_URL_CHARS} visible ASCII characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _bad("is no URL") from None
    if parts.scheme not in ("http", "https"):
        raise _bad("must begin with http:// or https://")
    if "@" in parts.netloc:
        raise _bad("must not hold a user or password: a key goes into api_key")
    if "?" in text or "#" in text:
        raise _bad("must end with its path: no query and no fragment")
    if port == 0 or not _PATH.fullmatch(parts.path):
        raise _bad("has a port or a path that cannot be used")
    host = _read_host(parts)
    check_host(host, allow_private=allow_private)
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def check_host(host: str, *, allow_private: bool) -> None:
    """Raise InvalidRequest for a host that the gateway may not connect to: a name or an address in canonical form."""
    try:
        reach = reach_of(host)
    except ValueError:  # a name
        reach = Reach.PRIVATE if host.rpartition(".")[2] == "localhost" else Reach.OPEN
        if host in _FORBIDDEN_NAMES or host.endswith(".metadata.google.internal"):
            reach = Reach.FORBIDDEN
    if reach is Reach.FORBIDDEN:
        raise _bad("leads to an address that is never allowed: link-local, cloud metadata, multicast or none at all")
    if reach is Reach.PRIVATE and not allow_private:
        raise _bad("leads to a private address: set allow_private if that is meant")


@cache
def address_check(*, allow_private: bool) -> Callable[[str], bool]:
    """Return what decides about an address: always the same function, since connections are shared by it."""
    allowed = {Reach.OPEN, Reach.PRIVATE} if allow_private else {Reach.OPEN}

    def may_connect(address: str) -> bool:
        try:
            return reach_of(address) in allowed
        except ValueError:
            return False

    return may_connect


def reach_of(text: str) -> Reach:
    """Return the kind of an IP address. Raises ValueError if the text is none."""
    address = ip_address(text.partition("%")[0])
    if _is_forbidden(address):
        return Reach.FORBIDDEN
    embedded = _embedded(address) if isinstance(address, IPv6Address) else None
    if embedded is not None and _is_forbidden(embedded):
        return Reach.FORBIDDEN
    return Reach.OPEN if (embedded or address).is_global else Reach.PRIVATE


def _is_forbidden(address: IPv4Address | IPv6Address) -> bool:
    # Link-local addresses hold the metadata of nearly every cloud.
    is_special = address.is_link_local or address.is_multicast or address.is_unspecified
    return is_special or any(address in network for network in _FORBIDDEN)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    shifts = () if address == IPv6Address("::1") else (shift for network, shift in _EMBEDDING_4 if address in network)
    return next((IPv4Address((int(address) >> shift) & 0xFFFFFFFF) for shift in shifts), None)


def _read_host(parts: SplitResult) -> str:
    """Return the canonical host: an address in standard notation, or a name."""
    host = parts.hostname or ""
    if "%" in host:
        raise _bad("has a host that cannot be used")
    if "[" in parts.netloc:
        try:
            return str(IPv6Address(host))
        except ValueError:
            raise _bad("has a host that is no IPv6 address") from None
    host = host.rstrip(".")
    if _NUMERIC.fullmatch(host.rpartition(".")[2]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise _bad("has an IPv4 address in an unusual notation: write four decimal numbers") from None
    name = host_name(host)
    if name is None:
        raise _bad("has no host, or one that is no name")
    return name


def _bad(reason: str) -> InvalidRequest:
    return InvalidRequest(f"base_url {reason}.", param="base_url")
