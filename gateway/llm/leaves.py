"""Collect every text of a JSON value. Pure; knows no dialect and no rule.

Theory of operation. A scanner that sees less than the model is worth nothing, so a walk keeps every string and every
key, and where a string holds another form of text (JSON, a URL, a data: URL) the decoded form as well. `joined` makes
one text of them.
"""

import re
from collections.abc import Collection, Mapping
from urllib.parse import unquote_plus

from gateway.domain.policies import UnscannedPart
from gateway.errors import BodyTooLarge
from gateway.llm.base import Leaf, LeafKind, Leaves
from gateway.llm.payloads import read_payload
from gateway.settings import named

SHORT_PAYLOAD_CHARS = 4096
"""Up to here a file that is no text is also read as it stands: words can be valid base64."""
UNESCAPE_LEVELS = 3
UNKNOWN_KEY = "*"

_FIELD, _CONTENT = LeafKind.FIELD, LeafKind.CONTENT
SILENT = frozenset((int, float, bool, type(None)))
"""The types of what says nothing."""
LONGEST_WORD = 24
"""A text as long as this is no word of a dialect; shorter ones are compared."""
_JSON_START = re.compile(r'\s*[\[{"]')
_WEB_START = re.compile(r"\s*https?:", re.IGNORECASE)
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Walk:
    """Collects the leaves of one value.

    words: the keys and values of the dialect, which are no text of anybody. max_chars: bound of all texts together,
    decoded files included, but for `free_chars` of them. max_nodes: bound of strings, numbers, arrays and objects
    together.
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
        """Take every string and unknown key of `value`, whatever its shape.

        Raises:
            BodyTooLarge: a bound was reached.
        """
        self.step()
        self._inside(value, place, kind)

    def fields(
        self, fields: Mapping[str, object], place: str, kind: LeafKind = _FIELD, *, but: Collection[str] = ()
    ) -> None:
        """Take every value and unknown key of an object, but for the fields `but`, which are words of the dialect.

        Raises:
            BodyTooLarge: a bound was reached.
        """
        words = self._words
        self.step(len(fields))
        if words.issuperset(fields) and SILENT.issuperset(map(type, fields.values())):
            return
        for key, item in fields.items():
            if key not in words:
                self._inside(item, self.key(key, place, kind), kind)
                continue
            # What is silent is nothing that anybody says.
            if type(item) is str:
                if (len(item) >= LONGEST_WORD or item not in words) and key not in but:
                    self.text(item, f"{place}.{key}" if place else key, kind)
            elif type(item) not in SILENT and key not in but:
                self._inside(item, f"{place}.{key}" if place else key, kind)

    def step(self, values: int = 1) -> None:
        """Count values towards the bound.

        Raises:
            BodyTooLarge: the bound was reached.
        """
        self._nodes_left -= values
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
        """Take one string, and what it says when read as JSON or as an address.

        Raises:
            BodyTooLarge: the bound of all texts was reached.
        """
        if len(text) >= LONGEST_WORD or text not in self._words:
            self.piece(text, place, kind, view=view)

    def piece(self, text: str, place: str, kind: LeafKind = _CONTENT, *, view: str = "") -> None:
        """Take one string as `text` does, even if it is a word of the dialect: as a piece of a text it says something.

        Raises:
            BodyTooLarge: the bound of all texts was reached.
        """
        if not text:
            return
        left = self._chars_left = self._chars_left - len(text)
        if left < 0:
            raise BodyTooLarge(
                f"The texts together have more than {self._max_chars} characters, the limit that "
                f"{named('max_chat_chars')} sets.",
                param="messages",
            )
        leaf = Leaf(place, text, kind, view)
        (self._content if kind is _CONTENT else self._others).append(leaf)
        if "\\" in text and _JSON_START.match(text):
            self._unescaped(leaf)
        if ("%" in text or "+" in text) and _WEB_START.match(text):
            self._unquoted(leaf)

    def _inside(self, value: object, place: str, kind: LeafKind) -> None:
        """Take a value that was counted."""
        if isinstance(value, str):
            self.text(value, place, kind)
        elif isinstance(value, dict):
            self.fields(value, place, kind)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.collect(item, f"{place}[{index}]", kind)

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
        """Note a part that no scan can read. kind: what it says to be."""
        known = isinstance(kind, str) and kind in self._words
        self._unscanned.append(UnscannedPart(place, str(kind) if known else "other"))

    def _unescaped(self, leaf: Leaf) -> None:
        text, view = leaf.text, leaf.view
        for _ in range(UNESCAPE_LEVELS):
            plain = unescape_json(text)
            if plain == text:
                return
            text, view = plain, f"{view}>json" if view else "json"
            self._others.append(Leaf(leaf.place, text, _aside(leaf.kind), view))

    def _unquoted(self, leaf: Leaf) -> None:
        text, view = leaf.text, leaf.view
        for _ in range(UNESCAPE_LEVELS):
            plain = unquote_plus(text)
            if plain == text:
                return
            text, view = plain, f"{view}>url" if view else "url"
            self._others.append(Leaf(leaf.place, text, _aside(leaf.kind), view))


def _aside(kind: LeafKind) -> LeafKind:
    """Another reading of a content leaf is no neighbour in the conversation."""
    return LeafKind.FIELD if kind is LeafKind.CONTENT else kind


def unescape_json(text: str) -> str:
    """Undo the escapes of JSON strings wherever they stand. The text need not be valid JSON."""
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED[found[2]], text)
    try:
        plain.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs: join them, replace what stays alone
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain
