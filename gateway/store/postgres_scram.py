"""The login at a PostgreSQL server: SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, without I/O.

Source: RFC 5802 and 7677; RFC 5929 for the binding to the TLS connection; RFC 4013 for passwords beyond ASCII.
"""

import base64
import hashlib
import hmac
import re
import stringprep
import unicodedata

from gateway.errors import SetupError

_CHALLENGE = re.compile(rb"r=([!-+\--~]+),s=([A-Za-z0-9+/]+=*),i=([1-9][0-9]{0,6})(?:,.*)?")
_ROUNDS = range(4096, 1_000_001)
# The hash of a certificate's signature, by the content of its OID: sha*WithRSAEncryption and ecdsa-with-SHA*.
_RSA, _ECDSA = bytes.fromhex("2a864886f70d0101"), bytes.fromhex("2a8648ce3d04")
_SIGNATURES = {_RSA + b"\4": "sha256", _RSA + b"\5": "sha256", _ECDSA + b"\1": "sha256"}  # MD5 and SHA-1: RFC 5929
_SIGNATURES |= {_RSA + bytes([11 + i]): f"sha{bits}" for i, bits in enumerate((256, 384, 512, 224))}
_SIGNATURES |= {_ECDSA + bytes([3, 1 + i]): f"sha{bits}" for i, bits in enumerate((224, 256, 384, 512))}
_FORBIDDEN = (
    *(stringprep.in_table_a1, stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3),
    *(stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7),
    *(stringprep.in_table_c8, stringprep.in_table_c9),
)


class Scram:
    """The client's side of SCRAM-SHA-256 and, with `binding`, of SCRAM-SHA-256-PLUS.

    nonce: printable ASCII without a comma, random. user: PostgreSQL has it from the first message and wants none here.
    binding: the hash of the server's certificate (tls-server-end-point).
    is_proved: whether the server has shown that it knows the password.
    """

    def __init__(self, password: str, nonce: str, *, user: str = "", binding: bytes | None = None) -> None:
        self._password, self._bare = prepare_password(password), f"n={user},r={nonce}".encode()
        self._nonce, self._binding = nonce.encode(), binding
        self._header = b"y,," if binding else b"n,,"
        self._signature: bytes | None = None
        self._answer = self._first
        self.is_proved = False

    def answer(self, step: int, body: bytes) -> bytes:
        """Return the answer to an authentication message: 10, 11 and 12, each once and in this order. 12 has none: b"".

        Raises:
            SetupError: the server asks for another login, or does not know the password.
            ValueError: the message is none of SCRAM, or out of turn.
        """
        turns = {10: self._first, 11: self._final, 12: self._verify}
        if turns[step] != self._answer:
            raise ValueError("a step of the login out of turn")
        return self._answer(body)

    def _first(self, body: bytes) -> bytes:
        offered = body.split(b"\0")
        name = b"SCRAM-SHA-256"
        if self._binding and name + b"-PLUS" in offered:
            name, self._header = name + b"-PLUS", b"p=tls-server-end-point,,"
        elif name not in offered:
            raise refused("asks for a login that the gateway does not know")
        self._answer = self._final
        first = self._header + self._bare
        return name + b"\0" + len(first).to_bytes(4, "big") + first

    def _final(self, body: bytes) -> bytes:
        found = _CHALLENGE.fullmatch(body)
        if not found or not found[1].startswith(self._nonce) or found[1] == self._nonce:
            raise ValueError("a challenge of the login that is malformed or not for this login")
        if int(found[3]) not in _ROUNDS:
            raise refused(f"asks for {int(found[3])} rounds of hashing, not {_ROUNDS[0]} to {_ROUNDS[-1]}")
        salted = hashlib.pbkdf2_hmac("sha256", self._password, base64.b64decode(found[2]), int(found[3]))
        bound = self._header + (self._binding or b"" if self._header[:1] == b"p" else b"")
        bare = b"c=" + base64.b64encode(bound) + b",r=" + found[1]
        signed = b",".join((self._bare, body, bare))
        key = hmac.digest(salted, b"Client Key", "sha256")
        mask = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = bytes(one ^ other for one, other in zip(key, mask, strict=True))
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        self._answer = self._verify
        return bare + b",p=" + base64.b64encode(proof)

    def _verify(self, body: bytes) -> bytes:
        if self._signature is None or not hmac.compare_digest(body, b"v=" + base64.b64encode(self._signature)):
            raise refused("does not know the password, so it may be another server")
        self._signature = None
        self.is_proved = True
        return b""


def prepare_password(password: str) -> bytes:
    """Return a password as SASLprep (RFC 4013) has it or, as PostgreSQL does, unchanged where that forbids it."""
    if password.isascii():
        return password.encode()
    kept = (" " if stringprep.in_table_c12(one) else one for one in password if not stringprep.in_table_b1(one))
    text = unicodedata.normalize("NFKC", "".join(kept))
    is_forbidden = not text or any(table(one) for one in text for table in _FORBIDDEN)
    if any(map(stringprep.in_table_d1, text)):  # from right to left: all of it, and from end to end
        ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
        is_forbidden |= not ends or any(map(stringprep.in_table_d2, text))
    return (password if is_forbidden else text).encode()


def channel_binding(certificate: bytes) -> bytes | None:
    """Return the tls-server-end-point of a certificate in DER, or None where its signature has no such hash."""
    try:
        begin, _ = _der(certificate, 0)
        _, end = _der(certificate, begin)  # what is signed
        begin, _ = _der(certificate, end)  # the algorithm
        name = _SIGNATURES.get(certificate[slice(*_der(certificate, begin))])
    except IndexError:
        return None
    return hashlib.new(name, certificate).digest() if name else None


def _der(data: bytes, at: int) -> tuple[int, int]:
    """Return where the content of the element at `at` begins and ends."""
    size, begin = data[at + 1], at + 2
    if size & 0x80:
        begin += size & 0x7F
        size = int.from_bytes(data[at + 2 : begin], "big")
    return begin, begin + size


def refused(what: str) -> SetupError:
    """Return the error of a server that asks for no login that the gateway accepts."""
    advice = "Set scram-sha-256 there, as password_encryption and in pg_hba.conf, and then the password again."
    return SetupError(f"The database server {what}. {advice}", param="database_url")
