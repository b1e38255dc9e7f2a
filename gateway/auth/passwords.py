"""Password hashes with scrypt (RFC 7914). Pure: no store, no source of randomness."""

import base64
import hashlib
import hmac

# N, r and p. OWASP's equivalent of N=2^17, r=8, p=1; it needs 32 MiB instead of 128 MiB, for small appliances.
_COSTS = (2**15, 8, 3)
_RANDOM_COSTS = (2**8, 8, 1)  # for passwords of 20 random bytes, which nobody can guess anyway
_MAX_BYTES = 1024


def hash_password(password: str, salt: bytes, *, is_random: bool = False) -> str:
    """Return ``scrypt$N$r$p$salt$hash``, salt and hash in base64. `salt` is 16 random bytes.

    is_random: make the fast hash of a password from `make_password`.
    """
    costs = _RANDOM_COSTS if is_random else _COSTS
    parts = (salt, _derive(password, salt, *costs))
    return "$".join(("scrypt", *map(str, costs), *(base64.b64encode(part).decode() for part in parts)))


def is_of_random(stored: str) -> bool:
    """Return whether a hash is that of a random password, so that checking it is fast."""
    return stored.split("$")[1:4] == [*map(str, _RANDOM_COSTS)]


def check_password(password: str, stored: str) -> bool:
    """Return in constant time whether `stored` is a hash of `password`."""
    _, n, r, p, salt, expected = stored.split("$")
    derived = _derive(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(derived, base64.b64decode(expected))


def make_password(random20: bytes) -> str:
    """Return a password of 32 letters and digits for 20 random bytes."""
    return base64.b32encode(random20).decode().lower()


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    raw = password.encode("utf-8", "surrogatepass")[:_MAX_BYTES]
    return hashlib.scrypt(raw, salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)
