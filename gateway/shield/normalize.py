"""The one form of a text that rules are written for, with offsets back to the text as sent. Decodes nothing.

Theory of operation. `Normalizer.normalize` gives lower case, one blank for each run of white space, no invisible
character, and one plain letter for every look-alike. A table says what each character becomes; characters are added to
it as texts bring them. Offsets are needed only where something matched: two lists, made at the first question, hold
where the normalized text and the text as sent run apart.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Set

from gateway.shield.lookalikes import LETTERS

_REMEMBERED_CHARS = 8_192
LONGEST_FOLD_CHARS = 4
# A long text is folded in pieces, so that another thread never waits for long.
_PIECE_CHARS = 65_536
_NONE: frozenset[str] = frozenset()
_RUN_OF_BLANKS = re.compile("   *")
# Marks that decorate any letter. Those of one script (Hebrew points, Indic vowels) carry its words and stay.
_MARKS = ((0x0300, 0x036F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F), (0x0483, 0x0489))
# Shown as nothing, but not of the category Cf.
_UNSEEN = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)
# Ideographs and syllables fold to themselves.
_THEMSELVES = ((0x3041, 0x3096), (0x30A1, 0x30FA), (0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0x20000, 0x3FFFF))
# First code point of a block of 26 letters in order: tags are apart, they run through all of ASCII.
_ALPHABETS = (0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6, 0x249C)
_BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2800"
_LOOKALIKES = {char: plain for plain, chars in LETTERS for char in chars}


def is_itself(char: str) -> bool:
    """Tell whether a character is an ideograph or a syllable, which folds to itself."""
    return _is_within(ord(char), _THEMSELVES)


def _is_within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


class _Offsets:
    """Leads offsets in a changed text back to the text it was made from.

    Text from offset ``changed[n]`` on comes, character by character, from offset ``origins[n]`` on.
    """

    def __init__(self) -> None:
        self._changed = [0]
        self._origins = [0]

    def add(self, changed: Iterable[int], origins: Iterable[int]) -> None:
        self._changed += changed
        self._origins += origins

    def origin(self, offset: int) -> int:
        step = bisect_right(self._changed, offset) - 1
        return self._origins[step] + offset - self._changed[step]


class View:
    """A normalized text and the way back to the text it was made from.

    text: the normalized text. source: the text as given; positions lead into it. others: its characters beyond ASCII,
    each once. is_even: whether no character but white space became none or several.
    """

    __slots__ = ("_folds", "_of_blanks", "_of_chars", "_uneven", "_wide", "is_even", "others", "source", "text")

    def __init__(self, source: str, wide: str, folds: "_Folds", others: frozenset[str], uneven: Set[str]) -> None:
        """wide: the folded text before its blanks are squeezed. uneven: what became no character or several."""
        self.text = _squeezed(wide)
        self.source = source
        self.others = others
        self.is_even = not uneven
        self._wide = wide
        self._folds = folds
        self._uneven = uneven
        self._of_blanks: _Offsets | None = None
        self._of_chars: _Offsets | None = None

    def position(self, offset: int) -> int:
        """Return where in `source` the normalized character at `offset` comes from."""
        if len(self.text) != len(self._wide):
            self._of_blanks = self._of_blanks or self._squeezed_blanks()
            offset = self._of_blanks.origin(offset)
        if self._uneven:
            self._of_chars = self._of_chars or self._uneven_chars()
            offset = self._of_chars.origin(offset)
        return offset

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the half-open span in `source` of a non-empty span of the normalized text."""
        return self.position(start), self.position(end - 1) + 1

    def _squeezed_blanks(self) -> _Offsets:
        offsets, gone = _Offsets(), 0
        for run in _RUN_OF_BLANKS.finditer(self._wide):
            gone += run.end() - run.start() - 1
            offsets.add((run.end() - gone,), (run.end(),))
        return offsets

    def _uneven_chars(self) -> _Offsets:
        offsets, more = _Offsets(), 0
        for found in re.finditer(f"[{''.join(map(re.escape, self._uneven))}]", self.source):
            place, size = found.start(), len(self._folds[ord(found[0])])
            offsets.add(range(place + more, place + more + size + 1), (*[place] * size, place + 1))
            more += size - 1
        return offsets


class Normalizer:
    """Makes normalized views. Remembers how single characters fold; holds nothing of any text."""

    __slots__ = ("_folds",)

    def __init__(self) -> None:
        self._folds = _Folds()

    def normalize(self, text: str) -> View:
        """Return the normalized view of any `str`, lone surrogates included. Never raises."""
        folds = self._folds
        pieces = [text[begin : begin + _PIECE_CHARS] for begin in range(0, len(text), _PIECE_CHARS)]
        wide = "".join([piece.translate(folds) for piece in pieces])
        if text.isascii() and len(wide) == len(text):
            return View(text, wide, folds, _NONE, _NONE)
        chars = set(text)
        others = frozenset(char for char in chars if char > "\x7f")
        return View(text, wide, folds, others, {char for char in chars if len(folds[ord(char)]) != 1})

    def fold_char(self, char: str) -> str:
        """Return what one character is in the normalized text: itself, another, several or none."""
        return self._folds[ord(char)]


class _Folds(dict[int, str]):
    """What each character becomes, by its code point, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _REMEMBERED_CHARS:
            self.clear()
        folded = self[code] = _folded(chr(code))
        return folded


def _folded(char: str) -> str:
    """Return what a character becomes."""
    code = ord(char)
    if _is_within(code, _THEMSELVES):
        return char
    if 0xE0020 <= code <= 0xE007E:
        return _folded(chr(code - 0xE0000))
    category = unicodedata.category(char)
    if category in ("Zs", "Zl", "Zp") or char in _BLANKS:
        return " "
    if category in ("Cf", "Cc") or _is_within(code, _UNSEEN) or _is_within(code, _MARKS):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char))
    for first in _ALPHABETS:
        if first <= code < first + 26:
            return chr(ord("a") + code - first)
    return char.lower() if code < 128 else _letter(char)


def _letter(char: str) -> str:
    """Fold by look, else by compatibility, case and marks; what would grow too long stays as it is."""
    plain = _LOOKALIKES.get(char)
    if plain is not None:
        return plain
    parts = []
    for part in unicodedata.normalize("NFKC", char).casefold():
        bases = unicodedata.normalize("NFKD", part)
        base = bases[0] if all(_is_within(ord(mark), _MARKS) for mark in bases[1:]) else part
        if not _is_within(ord(base), _MARKS):
            base = _LOOKALIKES.get(base, base)
            parts.append(_folded(base) if base.isascii() and len(base) == 1 else base)
    folded = " ".join("".join(parts).split(" "))
    return folded if 0 < len(folded) <= LONGEST_FOLD_CHARS else char


def _squeezed(text: str) -> str:
    """Make one blank of each run of blanks."""
    while "  " in text:
        text = text.replace("  ", " ")
    return text
