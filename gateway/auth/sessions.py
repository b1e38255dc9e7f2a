"""Session tokens and their cookie: format, hash, header text. Pure: no store, no clock, no source of randomness."""

import base64
import hashlib
import re

COOKIE = "service_session"
TOKEN_RANDOM_BYTES = 32
_FORMAT = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_ATTRIBUTES = "; Path=/; HttpOnly; SameSite=Strict"


def make_token(random32: bytes) -> str:
    """Return the session token (43 characters) for `TOKEN_RANDOM_BYTES` random bytes."""
    return base64.urlsafe_b64encode(random32).decode("ascii").rstrip("=")


def hash_token(token: str) -> str | None:
    """Return the SHA-256 under which the store has a session, as 64 hex digits; None for a text of another format."""
    if _FORMAT.fullmatch(token) is None:
        return None
    # SHA-256 and not scrypt: a token is 32 random bytes, so a slow hash protects nothing.
    return hashlib.sha256(token.encode("ascii")).hexdigest()


def read_cookie(header: str | None) -> str | None:
    """Return the unchecked session token of a Cookie header; None without one, or with more than one.

    With two cookies of this name, another site has set one of them (a sibling domain, or a page over plain HTTP), and
    the gateway cannot know which.
    """
    pairs = (part.partition("=") for part in (header or "").split(";"))
    tokens = [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
    return tokens[0] if len(tokens) == 1 else None


def set_cookie(token: str, *, seconds: int, is_secure: bool) -> str:
    """Return the Set-Cookie value that stores `token` in the browser for `seconds`."""
    return f"{COOKIE}={token}; Max-Age={seconds}{_ATTRIBUTES}{'; Secure' if is_secure else ''}"


def clear_cookie(*, is_secure: bool) -> str:
    """Return the Set-Cookie value that removes the token."""
    return set_cookie("", seconds=0, is_secure=is_secure)
