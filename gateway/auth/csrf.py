"""Whether a browser's request was made by our own page: the token of a session, and where the request came from. Pure.

Two walls, each enough by itself. A page of another site cannot read the token, which a session's own page gets at
sign-in. And browsers say in `Sec-Fetch-Site` and `Origin`, which no page can forge, whose page asked. What is not a
browser sends neither, and has no cookie that it was not given.
"""

import hashlib
import hmac
from collections.abc import Collection
from urllib.parse import urlsplit

HEADER = "x-csrf-token"
_PURPOSE = b"csrf token of a session, version 1"
_OWN_SITES = ("same-origin", "none")


def csrf_token(session_token: str) -> str:
    """Return the token that belongs to a session: nothing is stored, and no other session has the same."""
    return hmac.new(session_token.encode("utf-8"), _PURPOSE, hashlib.sha256).hexdigest()


def is_csrf_token(sent: str | None, session_token: str) -> bool:
    """Tell in constant time whether `sent` is the token of this session."""
    return hmac.compare_digest((sent or "").encode("utf-8"), csrf_token(session_token).encode("ascii"))


def is_own_page(
    *, sec_fetch_site: str | None, origin: str | None, host: str | None, allowed_hosts: Collection[str] = ()
) -> bool:
    """Tell whether a request may come from our own page, or from no page at all.

    Each header refuses by itself. `same-site` is refused too: another port or sibling name is another program.
    allowed_hosts: names (and ports, other than the usual) of a proxy before us, which may send another Host.
    """
    # Sec-Fetch-Site first: browsers set it and a page's script cannot forge it. Origin is the fallback for browsers
    # from before 2023 (https://words.filippo.io/csrf/).
    if sec_fetch_site is not None and sec_fetch_site not in _OWN_SITES:
        return False
    if origin is None:
        return True
    return _is_ours(origin, host, allowed_hosts)


def _is_ours(origin: str, host: str | None, allowed_hosts: Collection[str]) -> bool:
    """Compare an Origin with the Host. The scheme is not compared: TLS may end at a proxy before us."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query or parts.fragment:
        return False
    default = ":443" if parts.scheme == "https" else ":80"
    authority = parts.netloc.lower().removesuffix(default)
    if host is not None and authority == host.lower().removesuffix(default):
        return True
    return authority in allowed_hosts
