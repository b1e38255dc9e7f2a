"""Where a provider may lie: the form of its base URL, and which addresses may be connected to. Pure: asks no resolver.

Theory of operation. A name is checked twice: its form when a provider is made, and every address it stands for when a
connection is made, since an answer of the DNS may change between the two. An address inside another form of it (IPv6
with an IPv4 address in it) is judged as what it leads to. Three kinds: open to all, private ones (loopback, the
networks of RFC 1918, 4193 and 6598, and whatever else is not routed) by permission, and those that are never meant:
link-local, which is where clouds put the credentials of a machine, and their other doors to those.
"""

import re
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from gateway.domain.hosts import host_name
from gateway.errors import InvalidRequest

MAX_URL_CHARS = 500
HOST_PROMISE = (
    # No label begins like the names that are refused, or that `allow_private` is needed for.
    "(?!(?:[^/]*\\.)?(?:localhost|metadata|instance-data))"
    "(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,28}[a-z0-9_])?\\.){0,5}"
    "[a-z](?:[a-z0-9_-]{0,28}[a-z0-9_])?"
)
"""Which names of hosts are taken whatever is allowed."""
PORT_PROMISE = ":(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
BASE_URL_PROMISE = f"^https?://{HOST_PROMISE}(?:{PORT_PROMISE})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]{{0,200}})?$"
"""Which base URLs are taken whatever is allowed: the name of a host, perhaps a port, perhaps a path."""
_VISIBLE = re.compile(r"[!-~]+")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*")
# What a resolver reads as an IPv4 address in another notation: 2130706433, 0x7f.1, 0177.0.0.1 (inet_aton).
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_FORBIDDEN_NAMES = frozenset(
    (
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.internal",
        "metadata.azure.com",
        "metadata.tencentyun.com",
        "instance-data",
        "instance-data.ec2.internal",
    )
)
_FORBIDDEN_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "169.254.0.0/16",  # link-local: the metadata of nearly every cloud
        "100.100.100.200/32",  # metadata: Alibaba
        "168.63.129.16/32",  # metadata: Azure
        "192.0.0.192/32",  # metadata: Oracle
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_FORBIDDEN_6 = tuple(
    IPv6Network(text)
    for text in (
        "::/128",
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, long withdrawn
        "fd00:ec2::/32",  # metadata: Amazon
        "fd20:ce::/32",  # metadata: Google
        "ff00::/8",  # multicast
        "64:ff9b:1::/48",  # a translator of the own network: it may lead anywhere
        "2001::/32",  # Teredo
    )
)
# Networks of IPv6 that hold an IPv4 address, and by how many bits it is to be shifted to the right end.
_HOLDING_4 = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # translated (RFC 2765)
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64 (RFC 6052)
    (IPv6Network("2002::/16"), 80),  # 6to4
    (IPv6Network("::/96"), 0),  # compatible, withdrawn
)


class Reach(Enum):
    """What kind of place an address is."""

    OPEN = "open"
    PRIVATE = "private"
    FORBIDDEN = "forbidden"


def read_base_url(text: str, *, allow_private: bool) -> str:
    """Return a base URL in its one form: lower case, no dot at the end of the host, no slash at the end.

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
    """Refuse a host, a name or an address in its one form, that may not be connected to.

    Raises:
        InvalidRequest: `param` says which field is at fault.
    """
    try:
        reach = reach_of(host)
    except ValueError:
        reach = _reach_of_name(host)
    if reach is Reach.FORBIDDEN:
        raise _bad("leads to an address that is never allowed: link-local, cloud metadata, multicast or none at all")
    if reach is Reach.PRIVATE and not allow_private:
        raise _bad("leads to a private address: set allow_private if that is meant")


@lru_cache(4096)  # asked at every request to a provider
def may_connect(address: str) -> bool:
    """Tell whether an IP address may be connected to by a provider without `allow_private`."""
    return _reach(address) is Reach.OPEN


@lru_cache(4096)
def may_connect_privately(address: str) -> bool:
    """Tell whether an IP address may be connected to by a provider with `allow_private`."""
    return _reach(address) is not Reach.FORBIDDEN


def reach_of(text: str) -> Reach:
    """Return what kind of place an IP address is.

    Raises:
        ValueError: it is no IP address.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        if any(address in network for network in _FORBIDDEN_6):
            return Reach.FORBIDDEN
        inner = _inner(address)
        if inner is None:
            return Reach.OPEN if address.is_global else Reach.PRIVATE
        address = inner
    if any(address in network for network in _FORBIDDEN_4):
        return Reach.FORBIDDEN
    return Reach.OPEN if address.is_global else Reach.PRIVATE


def _reach(address: str) -> Reach:
    try:
        return reach_of(address)
    except ValueError:
        return Reach.FORBIDDEN


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address == IPv6Address("::1"):
        return None
    for network, shift in _HOLDING_4:
        if address in network:
            return IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return None


def _reach_of_name(name: str) -> Reach:
    if name in _FORBIDDEN_NAMES or name.endswith(".metadata.google.internal"):
        return Reach.FORBIDDEN
    return Reach.PRIVATE if name == "localhost" or name.endswith(".localhost") else Reach.OPEN


def _read_host(parts: SplitResult) -> str:
    """Return the host in its one form: an address as the standard writes it, or a name."""
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
