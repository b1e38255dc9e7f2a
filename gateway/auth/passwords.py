"""Hashes of passwords by scrypt (RFC 7914). Pure: no store, no randomness of its own."""

import base64
import hashlib
import hmac

# OWASP's equivalent of N=2^17, r=8, p=1 that needs 32 MiB instead of 128, for small appliances.
_N, _R, _P = 2**15, 8, 3
# For a password that is 20 random bytes, which no slow hash could protect better: nobody guesses it at any speed.
_RANDOM_N, _RANDOM_R, _RANDOM_P = 2**8, 8, 1
_LONGEST_BYTES = 1024


def hash_password(password: str, salt: bytes) -> str:
    """Return ``scrypt$N$r$p$salt$hash``, salt and hash in base64. `salt` is 16 random bytes."""
    return _hashed(password, salt, _N, _R, _P)


def hash_random_password(password: str, salt: bytes) -> str:
    """Do the same for one of `make_password`, in no time."""
    return _hashed(password, salt, _RANDOM_N, _RANDOM_R, _RANDOM_P)


def is_of_random(stored: str) -> bool:
    """Tell whether `hash_random_password` made a hash, so that checking against it takes no time."""
    return stored.split("$")[1:4] == [str(_RANDOM_N), str(_RANDOM_R), str(_RANDOM_P)]


def check_password(password: str, stored: str) -> bool:
    """Tell in constant time whether `password` is the one that was hashed, with the parameters it was hashed with."""
    _, n, r, p, salt, wanted = stored.split("$")
    found = _derive(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(wanted))


def make_password(random20: bytes) -> str:
    """Return a password of 32 characters, easy to copy, from 20 random bytes."""
    return base64.b32encode(random20).decode().lower()


def _hashed(password: str, salt: bytes, n: int, r: int, p: int) -> str:
    return "$".join(("scrypt", str(n), str(r), str(p), _text(salt), _text(_derive(password, salt, n, r, p))))


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    raw = password.encode("utf-8", "surrogatepass")[:_LONGEST_BYTES]
    return hashlib.scrypt(raw, salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
