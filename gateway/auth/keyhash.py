"""Form, hash and prefix of API keys. Pure: no store, no clock, no randomness of its own."""

import hashlib
import re

from gateway.errors import InvalidApiKey

KEY_RANDOM_BYTES = 20
_FORM = re.compile(r"svc_[0-9a-f]{40}", re.ASCII)
_PREFIX_CHARS = 10
_ANYWHERE = re.compile(r"(svc_[0-9a-f]{6})[0-9a-f]{34}", re.ASCII)


def hash_key(text: str) -> str:
    """Check the form of an API key and return the SHA-256 under which it is stored.

    `text` is ``svc_`` and 40 lowercase hex digits, which are 20 random bytes. The answer is 64 lowercase hex digits.
    Does not look the key up.

    Raises:
        InvalidApiKey: the text has another form. The message never repeats the text.
    """
    if _FORM.fullmatch(text) is None:
        raise InvalidApiKey("The API key is not valid.")
    # SHA-256 and not scrypt: a key is 20 random bytes, so a slow hash protects nothing.
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def make_key(random_bytes: bytes) -> str:
    """Return the API key that 20 random bytes make.

    Raises:
        ValueError: there are not 20 bytes.
    """
    if len(random_bytes) != KEY_RANDOM_BYTES:
        raise ValueError(f"a key is made of {KEY_RANDOM_BYTES} random bytes")
    return "svc_" + random_bytes.hex()


def prefix_of(key: str) -> str:
    """Return ``svc_`` and the first 6 hex digits: what a key is recognized by in lists and logs.

    Raises:
        InvalidApiKey: the text has not the form of a key.
    """
    if _FORM.fullmatch(key) is None:
        raise InvalidApiKey("The API key is not valid.")
    return key[:_PREFIX_CHARS]


def without_keys(text: str) -> str:
    """Return a text that a caller gives as its name, with nothing left but the prefix of a key put there by mistake."""
    return _ANYWHERE.sub(r"\1...", text)
