"""The one form of a text that rules are written for, with offsets back to the text as sent. Decodes nothing.

Theory of operation. `Normalizer.normalize` gives lower case, one blank for each run of white space, no invisible
character, and one plain letter for every look-alike. A table says what each character becomes; characters are added to
it as texts bring them. Offsets are needed only where something matched: two lists, made at the first question, hold
where the normalized text and the text as sent run apart.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator

from gateway.shield.lookalikes import LETTERS

_REMEMBERED_CHARS = 8_192
LONGEST_FOLD_CHARS = 4
# A long text is read in pieces, so that another thread never waits for long.
_PIECE_CHARS = 65_536
# Replacing more characters one by one takes longer than a table.
_MANY_CHANGED = 48
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

# Offsets in a changed text where it comes from another place of the text it was made from, and those places.
_Offsets = tuple[list[int], list[int]]


def is_itself(char: str) -> bool:
    """Tell whether a character is an ideograph or a syllable, which folds to itself."""
    return _is_within(ord(char), _THEMSELVES)


def _is_within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


class View:
    """A normalized text and the way back to the text it was made from.

    text: the normalized text. source: the text as given; positions lead into it. others: its characters beyond ASCII,
    each once.
    """

    __slots__ = ("_folds", "_steps", "_wide", "others", "source", "text")

    def __init__(self, source: str, wide: str, folds: "_Folds", others: frozenset[str]) -> None:
        """wide: the folded text before its blanks are squeezed."""
        self.text = _squeezed(wide)
        self.source = source
        self.others = others
        self._wide = wide
        self._folds = folds
        self._steps: list[_Offsets] | None = None

    @property
    def is_even(self) -> bool:
        """Tell whether the text is ASCII and no character but white space was left out."""
        return not self.others and len(self._wide) == len(self.source)

    def position(self, offset: int) -> int:
        """Return where in `source` the normalized character at `offset` comes from."""
        if self._steps is None:
            self._steps = [*self._squeezed_blanks(), *self._uneven_chars()]
        for changed, origins in self._steps:
            step = bisect_right(changed, offset) - 1
            offset = origins[step] + offset - changed[step]
        return offset

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the half-open span in `source` of a non-empty span of the normalized text."""
        return self.position(start), self.position(end - 1) + 1

    def _squeezed_blanks(self) -> Iterator[_Offsets]:
        if len(self.text) != len(self._wide):
            changed, origins, gone = [0], [0], 0
            for run in _RUN_OF_BLANKS.finditer(self._wide):
                start, end = run.span()
                gone += end - start - 1
                changed.append(end - gone)
                origins.append(end)
            yield changed, origins

    def _uneven_chars(self) -> Iterator[_Offsets]:
        uneven = {char: len(self._folds[ord(char)]) for char in self.others if len(self._folds[ord(char)]) != 1}
        if uneven or len(self._wide) != len(self.source):
            uneven.update(dict.fromkeys(map(chr, _CONTROLS), 0))
            changed, origins, more = [0], [0], 0
            for place, char in enumerate(self.source):
                if char in uneven:
                    size = uneven[char]
                    changed += range(place + more, place + more + size + 1)
                    origins += (*[place] * size, place + 1)
                    more += size - 1
            yield changed, origins


class Normalizer:
    """Makes normalized views. Remembers how single characters fold; holds nothing of any text."""

    __slots__ = ("_folds",)

    def __init__(self) -> None:
        self._folds = _Folds()

    def normalize(self, text: str) -> View:
        """Return the normalized view of any `str`, lone surrogates included. Never raises."""
        pieces = [self._fold(piece) for piece in _pieces(text)]
        others: frozenset[str] = frozenset().union(*[others for _, others in pieces])
        return View(text, "".join([wide for wide, _ in pieces]), self._folds, others)

    def _fold(self, text: str) -> tuple[str, frozenset[str]]:
        """Return a text with its characters folded, and those beyond ASCII that it had."""
        folds, raw = self._folds, text.encode("utf-8", "surrogatepass")
        wide = raw.translate(_LOWER, _CONTROLS).decode("utf-8", "surrogatepass")
        others = frozenset(raw.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
        changed = [char for char in others if folds[ord(char)] != char]
        if len(changed) > _MANY_CHANGED:
            return wide.translate(folds), others
        for char in changed:
            wide = wide.replace(char, folds[ord(char)])
        return wide, others

    def fold_char(self, char: str) -> str:
        """Return what one character is in the normalized text: itself, another, several or none."""
        return self._folds[ord(char)]


def _pieces(text: str) -> Iterator[str]:
    return (text[begin : begin + _PIECE_CHARS] for begin in range(0, len(text), _PIECE_CHARS))


def _squeezed(wide: str) -> str:
    """Make one blank of each run of blanks."""
    text = ""
    for piece in _pieces(wide):
        squeezed = _RUN_OF_BLANKS.sub(" ", piece)
        # Blanks that meet between two pieces are one.
        text += squeezed[1:] if text.endswith(" ") and squeezed.startswith(" ") else squeezed
    return text


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


_ASCII = bytes(range(128))
_CONTROLS = bytes(code for code in _ASCII if not _folded(chr(code)))
_LOWER = bytes(ord(_folded(chr(code)) or "\0") if code < 128 else code for code in range(256))
