"""Collect every text of a JSON value. Pure; knows no dialect and no rule.

A scanner that sees less than the model is worth nothing. So a walk keeps every string and every key, and where a string
holds another form of text (JSON, a URL, a data: URL, a base64 file), the decoded form as well. `joined` makes one text
of them.
"""

import binascii
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_plus, unquote_to_bytes

from gateway.domain.policies import UnscannedPart
from gateway.errors import BodyTooLarge
from gateway.llm.base import Leaf, LeafKind, Leaves
from gateway.settings import named

SHORT_PAYLOAD_CHARS = 4096
"""Up to here a file that is no text is also read as it stands: words can be valid base64."""
UNESCAPE_LEVELS = 3
UNKNOWN_KEY = "*"

_FIELD, _CONTENT = LeafKind.FIELD, LeafKind.CONTENT
_JSON_START = re.compile(r'\s*[\[{"]')
_WEB_START = re.compile(r"\s*https?:", re.IGNORECASE)
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DATA_URL = re.compile(r"\s*data:([^,]*),", re.IGNORECASE)
_TEXT_TYPE = re.compile(r"text/.*|application/(?:.*[+-])?(?:json|xml|yaml|javascript|ecmascript|csv|toml|sql|x-sh).*|")
_PLAIN_LABEL = re.compile(
    "data:(?:image/(?:png|jpe?g|gif|webp)|audio/(?:wav|mp3|mpeg)|application/pdf|text/plain);base64,"
)
_URL_SAFE = str.maketrans("-_", "+/", " \t\r\n=")


class Walk:
    """Collects the leaves of one value.

    words: the keys and values of the dialect, which are nobody's text. max_chars: bound of all texts together, decoded
    files included, but for `free_chars` of them. max_nodes: bound of strings, numbers, arrays and objects together.
    Each method that takes something raises BodyTooLarge when a bound is reached.
    """

    def __init__(self, words: frozenset[str], *, max_chars: int, max_nodes: int, free_chars: int = 0) -> None:
        self._words = words
        self._max_chars = max_chars
        self._chars_left = max_chars + free_chars
        self._max_nodes = self._nodes_left = max_nodes
        self._content: list[Leaf] = []
        self._others: list[Leaf] = []
        self._unscanned: list[UnscannedPart] = []

    def leaves(self) -> Leaves:
        """Return what was collected: content first, so that neighbours in the conversation stay neighbours."""
        return Leaves((*self._content, *self._others), tuple(self._unscanned))

    def collect(self, value: object, place: str, kind: LeafKind = _FIELD) -> None:
        """Take every string and unknown key of `value`, whatever its shape."""
        self.step()
        if isinstance(value, str):
            self.text(value, place, kind)
        elif isinstance(value, dict):
            self.fields(value, place, kind)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.collect(item, f"{place}[{index}]", kind)

    def fields(
        self, fields: Mapping[str, object], place: str, kind: LeafKind = _FIELD, *, but: Collection[str] = ()
    ) -> None:
        """Take every value and unknown key of an object, but for the fields `but`, which are words of the dialect."""
        for key, item in fields.items():
            if key not in but:
                self.collect(item, self.key(key, place, kind), kind)

    def step(self) -> None:
        """Count a value towards the bound."""
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise BodyTooLarge(f"The JSON holds more than {self._max_nodes} values, which is a fixed limit.")

    def key(self, key: str, place: str, kind: LeafKind = _FIELD) -> str:
        """Take a key that is no word of the dialect; return the place of its value."""
        if key in self._words:
            return f"{place}.{key}" if place else key
        place = f"{place}.{UNKNOWN_KEY}" if place else UNKNOWN_KEY
        self.text(key, place, kind)
        return place

    def text(self, text: str, place: str, kind: LeafKind = _FIELD, *, view: str = "") -> None:
        """Take one string that is no word of the dialect, and what it says when read as JSON or as an address."""
        if text not in self._words:
            self.piece(text, place, kind, view=view)

    def piece(self, text: str, place: str, kind: LeafKind = _CONTENT, *, view: str = "") -> None:
        """Take one string as `text` does, even a word of the dialect: as a piece of a text it says something."""
        if not text:
            return
        self._chars_left -= len(text)
        if self._chars_left < 0:
            raise BodyTooLarge(
                f"The texts together have more than {self._max_chars} characters, the limit that "
                f"{named('max_chat_chars')} sets.",
                param="messages",
            )
        leaf = Leaf(place, text, kind, view)
        (self._content if kind is _CONTENT else self._others).append(leaf)
        if "\\" in text and _JSON_START.match(text):
            self._decoded(leaf, "json", unescape_json)
        if ("%" in text or "+" in text) and _WEB_START.match(text):
            self._decoded(leaf, "url", unquote_plus)

    def payload(self, text: str, place: str, *, is_bare: bool = False) -> bool:
        """Take a data: URL, or base64 without one (`is_bare`), by what it holds. Tell whether all of it was read."""
        payload = read_payload(text, is_bare=is_bare)
        if payload is None:
            self.text(text, place)
            return False
        self.text(payload.label, place)
        if payload.text is not None:
            self.text(payload.text, place, view="base64")
        if not payload.is_readable and len(text) <= SHORT_PAYLOAD_CHARS:
            self.text(text, place)
        return payload.is_readable

    def unscanned(self, place: str, kind: object) -> None:
        """Note a part that no scan can read. kind: its own name for its type."""
        known = isinstance(kind, str) and kind in self._words
        self._unscanned.append(UnscannedPart(place, str(kind) if known else "other"))

    def _decoded(self, leaf: Leaf, name: str, decode: Callable[[str], str]) -> None:
        """Take what a leaf says once it is decoded, again and again. That is no neighbour in the conversation."""
        text, view = leaf.text, leaf.view
        kind = _FIELD if leaf.kind is _CONTENT else leaf.kind
        for _ in range(UNESCAPE_LEVELS):
            plain = decode(text)
            if plain == text:
                return
            text, view = plain, f"{view}>{name}" if view else name
            self._others.append(Leaf(leaf.place, text, kind, view))


def unescape_json(text: str) -> str:
    """Undo the escapes of JSON strings wherever they stand. The text need not be valid JSON."""
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED[found[2]], text)
    try:
        plain.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs: join them, replace what stays alone
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


@dataclass(frozen=True, slots=True)
class Payload:
    """What a file inside a request holds.

    label: the data: URL up to its comma, which is text of the caller as well; empty for a usual one. text: the content,
    if it is text. is_readable: whether `text` is all that a model can see in it.
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
    plain = text.translate(_URL_SAFE)
    try:
        return binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
    except ValueError:  # a wrong alphabet or length, or characters beyond ASCII
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
