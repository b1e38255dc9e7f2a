"""Read data: URLs and base64 files: the text of text files, and whether anything stays unread. Pure."""

import binascii
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

_DATA_URL = re.compile(r"\s*data:([^,]*),", re.IGNORECASE)
_TEXT_TYPE = re.compile(r"text/.*|application/(?:.*[+-])?(?:json|xml|yaml|javascript|ecmascript|csv|toml|sql|x-sh).*|")
_PLAIN_LABEL = re.compile(
    "data:(?:image/(?:png|jpe?g|gif|webp)|audio/(?:wav|mp3|mpeg)|application/pdf|text/plain);base64,"
)
_URL_SAFE = str.maketrans("-_", "+/", " \t\r\n=")


@dataclass(frozen=True, slots=True)
class Payload:
    """What a file inside a request holds.

    label: the data: URL up to its comma, which is text of the caller as well; empty when it is one of the usual ones.
    text: the content, when it is text. is_readable: whether `text` is all that a model can see in it.
    """

    label: str
    text: str | None
    is_readable: bool


def read_payload(text: str, *, is_bare: bool = False) -> Payload | None:
    """Read a data: URL, or the base64 of a file without one (`is_bare`).

    None: it is neither, so the string itself is the text.
    """
    found = _DATA_URL.match(text)
    if found is None:
        raw = _base64(text) if is_bare else None
        return None if raw is None else _payload("", "", raw)
    label, body = text[: found.end()], text[found.end() :]
    kind, _, options = found[1].partition(";")
    if any(option.strip().lower() == "base64" for option in options.split(";")):
        raw = _base64(body)
        if raw is None:
            return None
    else:
        raw = unquote_to_bytes(body)
    return _payload("" if _PLAIN_LABEL.fullmatch(label) else label, kind.strip().lower(), raw)


def _base64(text: str) -> bytes | None:
    """Decode base64 in any usual spelling, or return None. Nothing that is not decoded is left over."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # a wrong alphabet, padding or length, or characters beyond ASCII
        pass
    plain = text.translate(_URL_SAFE)
    try:
        return binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
    except ValueError:
        return None


def _payload(label: str, kind: str, raw: bytes) -> Payload:
    is_text_type = _TEXT_TYPE.fullmatch(kind) is not None
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Payload(label, raw.decode("utf-16", "replace"), False)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # Declared as text: read it somehow, but do not claim to have read what the model reads.
        return Payload(label, raw.decode("latin-1") if is_text_type and kind else None, False)
    return Payload(label, text, is_text_type and "\0" not in text)
