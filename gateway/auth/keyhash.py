"""Format, hash and prefix of API keys. Pure: no store, no clock, no source of randomness."""

import hashlib
import re

from gateway.errors import InvalidApiKey

KEY_RANDOM_BYTES = 20
_FORMAT = re.compile(r"svc_[0-9a-f]{40}", re.ASCII)
_PREFIX_CHARS = 10
_IN_TEXT = re.compile(r"(svc_[0-9a-f]{6})[0-9a-f]{34}", re.ASCII)


def hash_key(text: str) -> str:
    """Check the format of an API key and return the SHA-256 under which the store has it, as 64 hex digits.

    `text` is ``svc_`` and 40 lower-case hex digits, which are 20 random bytes. Does not look the key up.

    Raises:
        InvalidApiKey: the text has another format. The message never repeats the text.
    """
    _check_format(text)
    # SHA-256 and not scrypt: a key is 20 random bytes, so a slow hash protects nothing.
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def make_key(random_bytes: bytes) -> str:
    """Return the API key for `KEY_RANDOM_BYTES` random bytes."""
    return "svc_" + random_bytes.hex()


def prefix_of(key: str) -> str:
    """Return ``svc_`` and the first 6 hex digits, which identify a key in lists and logs. Raises as `hash_key`."""
    _check_format(key)
    return key[:_PREFIX_CHARS]


def without_keys(text: str) -> str:
    """Return `text` with each API key shortened to its prefix, in case a caller sent a key as its name."""
    return _IN_TEXT.sub(r"\1...", text)


def _check_format(key: str) -> None:
    if _FORMAT.fullmatch(key) is None:
        raise InvalidApiKey("The API key is not valid.")
