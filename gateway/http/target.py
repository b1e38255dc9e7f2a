"""The request target and the Host: one canonical path, or a refusal. Pure.

Whatever could be read in two ways by two readers is refused, so that the path which is authorized is the path which is
routed: an encoded backslash or NUL, an escaped escape of a slash, an empty or a dot segment, a fragment, a malformed
escape. An encoded slash stays encoded, as `ENCODED_SLASH`: it is part of its segment.
"""

import re
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import unquote_to_bytes

from gateway.http.messages import HttpError

ENCODED_SLASH = "%2F"
_ENCODED_SLASH = re.compile("%2[fF]")
_PATH = re.compile(r"/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*+")  # RFC 3986 section 3.3
_FORBIDDEN_ESCAPE = re.compile(r"%(?:25(?=2[fF])|5[cC]|[01][0-9A-Fa-f]|7[fF])")
_ABSOLUTE = re.compile(r"(?i:https?)://([^/?#@]+)(/[^#]*)?")
_HOST = re.compile(r"(?:([A-Za-z0-9](?:[A-Za-z0-9._-]{0,253})?)|\[([0-9A-Fa-f:.]{2,45})\])(?::([0-9]{1,5}))?")


def split_target(target: str) -> tuple[str, str]:
    """Return the canonical, percent-decoded path and the raw query of an origin-form target.

    Raises:
        HttpError: 400, the target is of another form or its path has more than one reading.
    """
    path, _, query = target.partition("?")
    if "#" in target or _PATH.fullmatch(path) is None or _FORBIDDEN_ESCAPE.search(path) is not None:
        raise _bad_target()
    decoded = path
    if "%" in path:
        try:
            decoded = ENCODED_SLASH.join(unquote_to_bytes(piece).decode() for piece in _ENCODED_SLASH.split(path))
        except UnicodeDecodeError:
            raise _bad_target() from None
    segments = decoded.split("/")[1:]
    if "." in segments or ".." in segments or "" in segments[:-1]:
        raise _bad_target()
    return decoded, query


def split_absolute(target: str) -> tuple[str, str]:
    """Return host and origin-form target of an absolute-form target (RFC 9112 section 3.2.2).

    Raises:
        HttpError: 400, it is none.
    """
    found = _ABSOLUTE.fullmatch(target)
    if found is None:
        raise _bad_target()
    host, rest = found.groups()
    return host, rest or "/"


def check_host(host: str, allowed_hosts: frozenset[str] | None) -> None:
    """Check the form of a Host value and that it is one of ours. `allowed_hosts` None allows every well-formed one.

    An entry without a port allows the host on every port.

    Raises:
        HttpError: 400 malformed, 421 not ours.
    """
    found = _HOST.fullmatch(host)
    try:
        if found is None or int(found[3] or 0) > 65_535:
            raise AddressValueError
        IPv6Address(found[2] or "::")
    except AddressValueError:
        raise HttpError(400, "invalid_request", "The Host header is malformed.") from None
    if allowed_hosts is None:
        return
    host = host.lower()
    name = (found[1] or f"[{found[2]}]").lower()
    if not {host, name, name.removesuffix("."), name.strip("[]")} & allowed_hosts:
        raise HttpError(421, "host_not_allowed", "This server does not answer for this host.")


def _bad_target() -> HttpError:
    return HttpError(400, "invalid_request", "The request target is malformed or has more than one reading.")
