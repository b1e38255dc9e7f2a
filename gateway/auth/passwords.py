"""Password hashes with scrypt (RFC 7914). Pure: no store, no source of randomness."""

import base64
import hashlib
import hmac

# OWASP's equivalent of N=2^17, r=8, p=1. It needs 32 MiB instead of 128 MiB, for small appliances.
_N, _R, _P = 2**15, 8, 3
_RANDOM_N, _RANDOM_R, _RANDOM_P = 2**8, 8, 1  # for passwords of 20 random bytes, which nobody can guess anyway
_MAX_BYTES = 1024


def hash_password(password: str, salt: bytes) -> str:
    """Return ``scrypt$N$r$p$salt$hash``, salt and hash in base64. `salt` is 16 random bytes."""
    return _hashed(password, salt, _N, _R, _P)


def hash_random_password(password: str, salt: bytes) -> str:
    """Return the fast hash of a password from `make_password`, in the same format."""
    return _hashed(password, salt, _RANDOM_N, _RANDOM_R, _RANDOM_P)


def is_of_random(stored: str) -> bool:
    """Return whether a hash comes from `hash_random_password`, so that checking it is fast."""
    return stored.split("$")[1:4] == [str(_RANDOM_N), str(_RANDOM_R), str(_RANDOM_P)]


def check_password(password: str, stored: str) -> bool:
    """Return in constant time whether `stored` is a hash of `password`."""
    _, n, r, p, salt, expected = stored.split("$")
    derived = _derive(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(derived, base64.b64decode(expected))


def make_password(random20: bytes) -> str:
    """Return a password of 32 letters and digits for 20 random bytes."""
    return base64.b32encode(random20).decode().lower()


def _hashed(password: str, salt: bytes, n: int, r: int, p: int) -> str:
    parts = (salt, _derive(password, salt, n, r, p))
    return "$".join(("scrypt", str(n), str(r), str(p), *(base64.b64encode(part).decode() for part in parts)))


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    raw = password.encode("utf-8", "surrogatepass")[:_MAX_BYTES]
    return hashlib.scrypt(raw, salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)
