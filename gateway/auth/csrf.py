"""Protection against cross-site requests: the token of a session, and the origin of a request. Pure.

There are two independent checks. Only a page of this gateway can read the token, which it gets at sign-in. And browsers
name the page that made a request in `Sec-Fetch-Site` and `Origin`, which no page can forge. Other programs send neither
header, and have no cookie that they were not given.
"""

import hashlib
import hmac
from collections.abc import Collection
from urllib.parse import urlsplit

HEADER = "x-csrf-token"
_PURPOSE = b"csrf token of a session, version 1"
_OWN_SITES = ("same-origin", "none")


def csrf_token(session_token: str) -> str:
    """Return the token of a session. It is derived from the session token, so nothing is stored."""
    return hmac.new(session_token.encode("utf-8"), _PURPOSE, hashlib.sha256).hexdigest()


def is_csrf_token(sent: str | None, session_token: str) -> bool:
    """Return in constant time whether `sent` is the token of this session."""
    return hmac.compare_digest((sent or "").encode("utf-8"), csrf_token(session_token).encode("ascii"))


def is_own_page(
    *, sec_fetch_site: str | None, origin: str | None, host: str | None, allowed_hosts: Collection[str] = ()
) -> bool:
    """Return whether a request comes from a page of this gateway, or from no page at all.

    Each header can refuse a request by itself. `same-site` is refused too, because another port or sibling domain is
    another program. allowed_hosts: names (with an unusual port) of a proxy that may send another Host.
    """
    # Sec-Fetch-Site first: browsers set it and a page's script cannot forge it. Origin is the fallback for browsers
    # from before 2023 (https://words.filippo.io/csrf/).
    if sec_fetch_site is not None and sec_fetch_site not in _OWN_SITES:
        return False
    return origin is None or _is_own_origin(origin, host, allowed_hosts)


def _is_own_origin(origin: str, host: str | None, allowed_hosts: Collection[str]) -> bool:
    """Compare an Origin with the Host, but not the scheme: TLS may end at a proxy."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query or parts.fragment:
        return False
    default = ":443" if parts.scheme == "https" else ":80"
    authority = parts.netloc.lower().removesuffix(default)
    return authority in allowed_hosts or (host is not None and authority == host.lower().removesuffix(default))
