"""Decide between a secret and its look-alike once a pattern has matched: form, checksum, entropy, placeholder. Pure.

`VALIDATORS` maps the names that rules use to checks `f(value, argument) -> bool`; the argument is empty when the
rule gives none. check_digits.py and national_numbers.py hold those of numbers.
"""

import base64
import binascii
import hashlib
import ipaddress
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from operator import sub

from gateway.shield.check_digits import Check
from gateway.shield.national_numbers import NUMBERS

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_RUNS = (
    "abcdefghijklmnopqrstuvwxyz0123456789 zyxwvutsrqponmlkjihgfedcba 012345678901234567890 98765432109876543210 "
    "qwertyuiop"
)
_RUN_CHARS = 10
# From a character to the same one, to the next, and from the last digit or letter to the first.
_STEPS = frozenset((0, 1, -9, -25))
_MARKERS = (
    "example", "xxxx", "your", "placeholder", "changeme", "change_me", "change-me", "dummy", "redacted", "insert",
    "replace", "sample", "****", "...", "fixme", "todo", "####", "notreal", "not_real", "not-real", "<", ">", "${",
    "{{", "}}", "$(", "%(", "#{", "\u2026", "mysecret", "my_secret", "my-secret", "goes-here", "goes_here",
    "publishable", "%2a%2a%2a%2a", "%3c", "%3e",
)  # fmt: skip
_AGAIN = re.compile(r"([^=])\1\1\1\1\1\1\1|\.\.$")
_LONG_PASSWORD_CHARS = 20
# Tokens whose last characters are a checksum.
_CHECKED = re.compile(r"(?:gh[opsur]|npm)_[A-Za-z0-9]{36}")
# What stands where a password would, in code, in forms and in prose.
_NO_PASSWORDS = frozenset(
    "password passwd passphrase secret token none null nil true false undefined string str text varchar required "
    "optional default prompt hidden input value empty blank reset forgot change user username login bytes any object "
    "boolean integer number field label type name file disabled enabled invalid incorrect expired wrong missing "
    "protected encrypted hashed masked environment variable options config self credentials test demo foo bar baz "
    "asdf qwerty hashedpassword supersecret not_a_real_password pass pwd pw passw "
    "passwort kennwort contraseña contrasena motdepasse senha parola wachtwoord hasło haslo heslo lösenord losenord "
    "adgangskode passord salasana jelszó jelszo lozinka şifre sifre пароль гасло 密码 密碼 口令 パスワード "
    "비밀번호 anonymous foobar admin root guest code cram-md5 digest-md5 anonymous@ scram-sha-1 scram-sha-256".split()
)
_NO_PASSWORD = re.compile(
    r"(?:my|your|the|new|old|fake|some|hashed|super|very|plain|clear|text|this|is|a|[-_ .]){0,6}"
    r"(?:pass(?:word|wd|phrase)?|secret|pwd|token|key|hash)[-_ .]?(?:here|field|hash|\d)?"
)
# A reference to a value instead of a value: variables, calls, attributes, subscripts, links to a secret store.
_REFERENCE = re.compile(
    r"[$%@&{(!*]|[~.]{0,2}/[\w.-]{1,60}/|[A-Z]:\\|[\w.]{1,60}\(|[a-zA-Z_][\w.]{0,60}\["
    r"|[a-z_][A-Za-z_]{0,40}\d?(?:\.|->|::)[A-Za-z_]{3,60}\d?(?:$|[\[(.,;)])"
    r"|[A-Za-z_]\w{0,40}\.[A-Z_]{4,60}$|\d{9,12}\.\d{1,12}$|\d{4}-\d\d-\d\d[T ]"
    r"|[a-z][a-z0-9+.-]{1,20}://|(?:https?|file|s3|vault|arn|op|ref|env|secretsmanager|ssm)[:+]"
    r"|projects/[\w-]{1,40}/secrets/|secret/data/"
    # The key of a cache: a system or a program before a hash.
    r"|(?:[A-Za-z]{1,12}-)?(?i:linux|windows|macos|ubuntu|darwin|npm|yarn|pnpm|node|cargo|gradle|pip|maven)-"
)
# A name in code: of a password's kind or field, or of three words and more.
_NAME = re.compile(
    r"(?i:(?=\D{0,80}passw(?:or)?d)[a-z]{1,30}(?:[-_][a-z]{1,30}){1,6})|[a-z]{1,30}(?:_[a-z0-9]{1,30}){2,8}"
)
# Words of scripts that need no blanks: what stands there is a sentence and no password.
_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_FILE = re.compile(
    r"[\w./=-]{1,300}\.(?:gz|zip|tgz|tar|json|parquet|csv|png|jpe?g|pdf|txt|log|sql|bak|html|xml|ya?ml|py|js)"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_SEAM = re.compile(
    r"[-_. /:,+=]|(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z]{2})(?=(?:API|AWS|DB|HTTP|IP|JSON|SDK|SQL|SSL|TLS|URL|XML)[A-Z])"
)
_WORD = re.compile(
    r"(?i:s3|ec2|x509|k8s|i18n|l10n|md5|sha\d{1,3}|base64|utf8|oauth2|http2|ipv[46])[A-Za-z]{0,20}"
    r"|[A-Z]{0,4}[a-z]{1,40}\d{0,5}|[A-Z]{1,40}\d{0,5}|[vx]?\d{0,10}"
)
_LEAST_WORD_CHARS = 2.5
_SEED_CHARS = range(3, 9)
# Words that prose cannot do without and that the word list of BIP 39 does not have.
_FUNCTION_WORDS = frozenset("the and was are for with from his her they not but were has had have been which".split())


def entropy_of(value: str) -> float:
    """Measure the Shannon entropy of the characters of `value`, in bits per character."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum([share * math.log2(share) for share in shares])


def entropy(value: str, argument: str) -> bool:
    """Say whether `value` has at least `argument` bits per character; 3 when none is given."""
    return entropy_of(value) >= float(argument or 3)


def _is_marked(folded: str) -> bool:
    return any(map(folded.__contains__, _MARKERS))


def not_example(value: str, _argument: str) -> bool:
    """Say whether `value` is free of marks of an example, and is not few characters again and again."""
    folded = value.lower()
    if _is_marked(folded) or _AGAIN.search(folded):
        return False
    body = folded[-max(len(folded) * 2 // 3, 8) :]
    return len(set(body)) >= min(6, max(3, len(body) // 3)) and not _is_ordered(value)


def _is_ordered(value: str) -> bool:
    """Tell whether half of the characters are the one before again or the next in order."""
    steps = map(sub, map(ord, value[1:]), map(ord, value))
    return 2 * sum(step in _STEPS for step in steps) > len(value)


def not_placeholder(value: str, _argument: str) -> bool:
    """Say whether `value` could be real: `not_example`, and no run of the alphabet, the digits or the keyboard."""
    folded = value.lower()
    runs = (folded[at : at + _RUN_CHARS] in _RUNS for at in range(len(folded) - _RUN_CHARS + 1))
    return not_example(value, "") and not any(runs)


def not_wordy(value: str, _argument: str) -> bool:
    """Say whether `value` is more than words and short numbers joined, which is what names in code are."""
    count = chars = place = 0
    for seam in chain(_SEAM.finditer(value), (None,)):
        end = seam.start() if seam else len(value)
        if end > place:
            if not _WORD.fullmatch(value, place, end):
                return True
            count, chars = count + 1, chars + end - place
        place = seam.end() if seam else end
    return chars < _LEAST_WORD_CHARS * count


def not_uuid(value: str, _argument: str) -> bool:
    """Say whether `value` is something else than a UUID (RFC 9562), which is an identifier before it is a secret."""
    return not _UUID.fullmatch(value)


def secret(value: str, argument: str) -> bool:
    """Say whether `value` looks made by a random generator: letters and digits, enough entropy, no name, no reference.

    `argument`: fewest bits per character; 3 when none is given.
    """
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    is_mixed = not has_digit and value != value.lower() and value != value.upper()
    return (
        has_letter
        and (has_digit or (is_mixed and entropy(value, "3.7")))
        and entropy(value, argument)
        and not _REFERENCE.match(value)
        and not ("." in value and _FILE.fullmatch(value))
        and not_wordy(value, "")
        and not_placeholder(value, "")
        and (not _CHECKED.fullmatch(value) or checksum62(value, ""))
    )


def password(value: str, argument: str) -> bool:
    """Say whether `value` could be a password a person chose: no placeholder, reference, type or form word.

    `argument`: ``strict`` asks for a digit or a sign besides letters as well, for places where prose may stand.
    """
    text = value.strip("'\"`")
    folded = text.lower()
    if _CJK.search(text) or folded in _RUNS:
        return False
    if len(text) < 4 or folded.strip(" .,:;!?()[]") in _NO_PASSWORDS or len(set(folded)) < 3 or _REFERENCE.match(text):
        return False
    if len(text) >= _LONG_PASSWORD_CHARS and _is_ordered(text):
        return False
    if _is_marked(folded) or _NO_PASSWORD.fullmatch(folded) or _NAME.fullmatch(text):
        return False
    return argument != "strict" or bool(re.search(r"[0-9!@#$%^&*?+=~]", text)) and not re.fullmatch(r"[\d.,:]*", text)


def checksum62(value: str, _argument: str) -> bool:
    """Check the last six characters of a GitHub or npm token: the CRC-32 of the rest in base 62 (GitHub blog, 2021)."""
    body, check = value.rpartition("_")[2][:-6], value[-6:]
    number = zlib.crc32(body.encode("ascii", "replace"))
    written = ""
    for _ in range(6):
        number, place = divmod(number, 62)
        written = _BASE62[place] + written
    return written == check


def decode_base64(text: str) -> bytes:
    """Decode base64 of either alphabet, padded or not, cut anywhere; empty when it is none."""
    joined = text.strip().replace("-", "+").replace("_", "/").rstrip("=")
    joined = joined[: len(joined) - (len(joined) % 4 == 1)]
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def jwt(value: str, _argument: str) -> bool:
    """Check that a token has a JSON header with `alg` or `enc`, then an object or five parts (RFC 7519, RFC 7516)."""
    parts = value.split(".")
    try:
        header = json.loads(decode_base64(parts[0]))
    except (ValueError, RecursionError):
        return False
    is_header = isinstance(header, dict) and ("alg" in header or "enc" in header)
    return is_header and (len(parts) == 5 or (len(parts) > 1 and decode_base64(parts[1])[:1] == b"{"))


def holds_base64(value: str, argument: str) -> bool:
    """Say whether `value` is base64 of a text that holds `argument`."""
    return argument.encode() in decode_base64(value)


def basic_credentials(value: str, _argument: str) -> bool:
    """Say whether `value` is base64 of a printable `user:password` (RFC 7617) that is no placeholder."""
    text = decode_base64(value).decode("utf-8", "replace")
    _user, colon, word = text.partition(":")
    fits = bool(colon) and text.isprintable() and "\ufffd" not in text and not text.startswith("{")
    return fits and password(word, "")


def ip(value: str, _argument: str) -> bool:
    """Say whether `value` is an address of a host: not loopback, unspecified, multicast, a mask or for documents."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    documents = value.startswith(("192.0.2.", "198.51.100.", "203.0.113.", "2001:db8", "255."))
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or documents)


def phone(value: str, _argument: str) -> bool:
    """Say whether `value` has as many digits as a phone number (ITU-T E.164) and more than three different ones."""
    digits = [char for char in re.split("[xe]", value)[0] if char.isdigit()]
    return 7 <= len(digits) <= 15 and len(set(digits)) > 3


def base58check(value: str, argument: str) -> bool:
    """Check a base 58 text of `argument` bytes: the last four are the double SHA-256 of the rest (Bitcoin)."""
    number = 0
    for char in value:
        if char not in _BASE58:
            return False
        number = number * 58 + _BASE58.index(char)
    zeros = len(value) - len(value.lstrip("1"))
    raw = b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
    check = hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4]
    return len(raw) == int(argument or 25) and raw[-4:] == check


def bech32(value: str, _argument: str) -> bool:
    """Check the six last characters of a bech32 or bech32m text (BIP 173, BIP 350)."""
    prefix, _one, data = value.lower().rpartition("1")
    if not prefix or any(char not in _BECH32 for char in data):
        return False
    state = 1
    spread = [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]
    for place in spread + [_BECH32.index(char) for char in data]:
        top, state = state >> 25, (state & 0x1FFFFFF) << 5 ^ place
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            state ^= generator if top >> bit & 1 else 0
    return state in (1, 0x2BC830A3)


def seed_phrase(value: str, _argument: str) -> bool:
    """Check the count and the lengths of the words of a wallet's recovery phrase (BIP 39); few of them repeat."""
    words = re.findall(r"[a-z]{1,12}", value.lower())
    fits = len(words) in (12, 15, 18, 21, 24) and all(len(word) in _SEED_CHARS for word in words)
    return fits and len(set(words)) >= len(words) - 2 and not _FUNCTION_WORDS & set(words)


# A rule names a check as its function here, with a hyphen.
VALIDATORS: Mapping[str, Check] = {
    **NUMBERS,
    "github-checksum": checksum62,
    "npm-checksum": checksum62,
} | {
    check.__name__.replace("_", "-"): check
    for check in (entropy, not_example, not_placeholder, not_wordy, not_uuid, secret, password, jwt, holds_base64)
    + (basic_credentials, ip, phone, base58check, bech32, seed_phrase)
}
