"""Session tokens and their cookie: form, hash, header text. Pure: no store, no clock, no randomness of its own."""

import base64
import hashlib
import re

COOKIE = "service_session"
TOKEN_RANDOM_BYTES = 32
_FORM = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_ATTRIBUTES = "; Path=/; HttpOnly; SameSite=Strict"


def make_token(random32: bytes) -> str:
    """Return the session token of 43 characters that 32 random bytes make.

    Raises:
        ValueError: there are not 32 bytes.
    """
    if len(random32) != TOKEN_RANDOM_BYTES:
        raise ValueError(f"a session token is made of {TOKEN_RANDOM_BYTES} random bytes")
    return base64.urlsafe_b64encode(random32).decode("ascii").rstrip("=")


def hash_token(token: str) -> str | None:
    """Return the SHA-256 under which a session is stored, 64 hex digits; None for a text of another form."""
    if _FORM.fullmatch(token) is None:
        return None
    # SHA-256 and not scrypt: a token is 32 random bytes, so a slow hash protects nothing.
    return hashlib.sha256(token.encode("ascii")).hexdigest()


def read_cookie(header: str | None) -> str | None:
    """Return the session token of a Cookie header, unchecked; None when there is none, or more than one.

    Two cookies of the name mean that somebody else set one of them (a sibling domain, a plain-text page), and nobody
    knows which.
    """
    if header is None:
        return None
    found = [
        value.strip()
        for name, _, value in (part.partition("=") for part in header.split(";"))
        if name.strip() == COOKIE
    ]
    return found[0] if len(found) == 1 else None


def set_cookie(token: str, *, seconds: int, is_secure: bool) -> str:
    """Return the value of the Set-Cookie header that gives `token` to a browser for `seconds`."""
    return f"{COOKIE}={token}; Max-Age={seconds}{_ATTRIBUTES}{'; Secure' if is_secure else ''}"


def clear_cookie(*, is_secure: bool) -> str:
    """Return the value of the Set-Cookie header that takes the token away."""
    return set_cookie("", seconds=0, is_secure=is_secure)
