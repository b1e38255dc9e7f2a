"""The one form of a text that rules are written for, with offsets back to the text as sent. Decodes nothing.

Theory of operation. `Normalizer.normalize` gives lower case, one blank for each run of white space, no invisible
character, and one plain letter for every look-alike. Most texts are ASCII: for them it is one `bytes.translate`, and
the squeezing of blanks where two stand together. For the rest only the distinct characters are asked, one by one and
remembered, and replaced in C. Positions are needed only
where something may match. The first few are found by the word that stands there and how often it stood before; for
more, a map from the normalized text to the text as sent is made: a list of the places where the two run apart.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.shield.lookalikes import LETTERS

_BLANKS = b"\t\n\v\f\r\x1c\x1d\x1e\x1f "
_LOWER = bytes(
    ord(chr(byte).lower()) if 65 <= byte <= 90 else 32 if byte in _BLANKS else 0 if byte < 32 or byte == 127 else byte
    for byte in range(256)
)
_ASCII = bytes(range(128))
# What is taken out of any text.
_CONTROLS = "".join(chr(code) for code in range(128) if not _LOWER[code])
_REMEMBERED_CHARS = 8192
_NONE: frozenset[str] = frozenset()
_NOTHING: Mapping[str, str] = {}
LONGEST_FOLD_CHARS = 4
# A long text is normalized in pieces, so that another thread never waits for long.
_PIECE_CHARS = 262_144
_MANY_REPLACED = 24
# Two that are written out are searched for far sooner than a repeat of one.
_RUN_OF_BLANKS = re.compile("   *")
# So many positions are asked of a text of at most so many characters before a map of its blanks is made. A word is
# looked for from the last one on, if it does not stand more often between, by as much of it as is read before and
# behind the position.
_FEW_POSITIONS = 12
_LONGEST_UNMAPPED = 65_536
_FEW_BEFORE = 40
_BEFORE_CHARS, _BEHIND_CHARS = 64, 16
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
# Ideographs and syllables fold to themselves; asking Unicode's tables about each would only cost time.
_THEMSELVES = ((0x3041, 0x3096), (0x30A1, 0x30FA), (0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0x20000, 0x3FFFF))
_PLAIN = re.compile("[\\0-\x7f{}]+".format("".join(f"{chr(low)}-{chr(high)}" for low, high in _THEMSELVES)))
# With more bytes than this beyond one a character it is found first which characters may fold.
_MANY_OTHERS_BYTES = 512
# First code point of a block of 26 letters in order: tags are apart, they run through all of ASCII.
_ALPHABETS = (0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6, 0x249C)


def is_itself(char: str) -> bool:
    """Tell whether a character is an ideograph or a syllable, which folds to itself."""
    return _is_within(ord(char), _THEMSELVES)


def _is_within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


class View:
    """A normalized text and the way back to the text it was made from.

    text: the normalized text. source: the text as given; positions lead into it. others: its characters beyond ASCII,
    each once; ideographs and syllables may be left out. is_even: whether no character but white space became none or
    several.
    """

    __slots__ = (
        "_asked", "_at", "_from", "_last", "_long_at", "_long_from", "_longs", "_wide", "is_even", "others", "source",
        "text",
    )  # fmt: skip
    # Made with the two lists that tell of the same places.
    _from: list[int]
    _long_from: list[int]

    def __init__(
        self, text: str, source: str, wide: Sequence[str] | None = None, longs: dict[str, str] | None = None
    ) -> None:
        """Keep what positions are found by.

        wide: pieces of the text before its blanks were squeezed; None when its length never changed. longs: what
        characters of `source` became that are none there or several.
        """
        self.text = text
        self.source = source
        self.others: frozenset[str] = _NONE
        self._wide = wide
        self._longs: Mapping[str, str] = longs or _NOTHING
        self.is_even = not longs
        if wide is None:
            return
        self._asked = 0
        # Where the blank before the word that was looked for last stands in both texts.
        self._last = 0, 0
        self._at: list[int] | None = None
        self._long_at: list[int] | None = None

    def position(self, offset: int) -> int:
        """Return where in `source` the normalized character at `offset` comes from."""
        if self._wide is None:
            return offset
        place = self._widened(offset, self._wide)
        if not self._longs:
            return place
        if self._long_at is None:
            self._long_at, self._long_from = _longs_map(self.source, self._longs)
        step = bisect_right(self._long_at, place) - 1
        return self._long_from[step] + place - self._long_at[step]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the half-open span in `source` of a non-empty span of the normalized text."""
        if self._wide is None:
            return start, end
        return self.position(start), self.position(end - 1) + 1

    def _widened(self, offset: int, wide: Sequence[str]) -> int:
        """Return where the character at an offset stood before the blanks were squeezed: the first of a run."""
        if self._at is None:
            self._asked += 1
            if self._asked <= _FEW_POSITIONS and len(self.text) <= _LONGEST_UNMAPPED:
                place = self._sought(offset, _joined(wide))
                if place is not None:
                    return place
            self._at, self._from = _blanks_map(_joined(wide))
        step = bisect_right(self._at, offset) - 1
        return self._from[step] + offset - self._at[step]

    def _sought(self, offset: int, wide: str) -> int | None:
        """Return the same by the word that stands there, a blank before it; None where that is not soon told.

        A word with a blank before it stands in both texts as often and in the same order.
        """
        text = self.text
        if text[offset] == " ":
            before = self._sought(offset - 1, wide) if offset else -1
            return None if before is None else before + 1
        begin = text.rfind(" ", max(0, offset - _BEFORE_CHARS), offset)
        if begin < 0:
            return offset if offset <= _BEFORE_CHARS else None
        end = text.find(" ", offset, offset + _BEHIND_CHARS)
        word = text[begin : offset + _BEHIND_CHARS if end < 0 else end]
        known, place = self._last
        if begin < known:
            known = place = 0
        count = text.count(word, known, begin)
        if count > _FEW_BEFORE:
            return None
        place = wide.find(word, place)
        for _ in range(count):
            place = wide.find(word, place + 1)
        self._last = begin, place
        return place + offset - begin


class Normalizer:
    """Makes normalized views. Remembers how single characters fold; holds nothing of any text."""

    __slots__ = ("_lookalikes", "_remembered")

    def __init__(self) -> None:
        self._lookalikes = {char: plain for plain, chars in LETTERS for char in chars}
        self._remembered: dict[str, str] = {}

    def normalize(self, text: str) -> View:
        """Return the normalized view of any `str`, lone surrogates included. Never raises."""
        if len(text) <= _PIECE_CHARS:
            if text.isascii():
                wide = text.encode("ascii").translate(_LOWER).decode("ascii")
                if "\0" not in wide:
                    squeezed = _RUN_OF_BLANKS.sub(" ", wide)
                    return View(wide, text) if len(squeezed) == len(wide) else View(squeezed, text, [wide])
            wide, folded, longs, others = self._fold(text)
            return _view(text, folded, [wide], longs, others)
        pieces = [text[begin : begin + _PIECE_CHARS] for begin in range(0, len(text), _PIECE_CHARS)]
        return _joined_view(text, list(map(self._fold, pieces)))

    def _fold(self, text: str) -> "_Folded":
        raw = text.encode("utf-8", "surrogatepass")
        longs: dict[str, str] = {}
        others: set[str] = set()
        has_many = len(raw) - len(text) > _MANY_OTHERS_BYTES
        if len(raw) == len(text):
            wide = raw.translate(_LOWER).decode("ascii")
        else:
            lower = raw.translate(_LOWER)
            if has_many:
                others.update("".join(_PLAIN.split(text)))
            else:
                others.update(lower.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
            wide, longs = self._fold_others(lower, others)
        if "\0" in wide:
            longs.update(dict.fromkeys(_CONTROLS, ""))
            wide = wide.replace("\0", "")
        return _Folded(wide, _squeeze(wide), longs, others)

    def _fold_others(self, lower: bytes, others: set[str]) -> tuple[str, dict[str, str]]:
        """Fold what is not ASCII; return the text, and what became none or several characters."""
        singles, longs = self._folds(others)
        text = lower.decode("utf-8", "surrogatepass")
        if singles:
            text = _replaced(text, singles)
        return _replaced(text, longs) if longs else text, longs

    def _folds(self, others: set[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return which characters become another one, and which become none or several."""
        known = self._remembered
        singles: dict[str, str] = {}
        longs: dict[str, str] = {}
        for char in others:
            plain = known.get(char) or self.fold_char(char)
            if plain != char:
                (singles if len(plain) == 1 else longs)[char] = plain
        return singles, longs

    def fold_char(self, char: str) -> str:
        """Return what one character is in the normalized text: itself, another, several or none."""
        known = self._remembered.get(char)
        if known is None:
            known = self._ask(char)
            if len(self._remembered) >= _REMEMBERED_CHARS:
                self._remembered = {}
            self._remembered[char] = known
        return known

    def _ask(self, char: str) -> str:
        code = ord(char)
        if code < 128:
            return chr(_LOWER[code]) if _LOWER[code] else ""
        if _is_within(code, _THEMSELVES):
            return char
        if 0xE0020 <= code <= 0xE007E:
            return self._ask(chr(code - 0xE0000))
        category = unicodedata.category(char)
        if category == "Cf" or category == "Cc" or _is_within(code, _UNSEEN) or _is_within(code, _MARKS):
            return " " if code == 0x85 else ""
        if category in ("Zs", "Zl", "Zp") or code == 0x2800:
            return " "
        if category == "Nd":
            return str(unicodedata.decimal(char))
        for first in _ALPHABETS:
            if first <= code < first + 26:
                return chr(ord("a") + code - first)
        return self._letter(char)

    def _letter(self, char: str) -> str:
        """Fold by look, else by compatibility, case and marks; what would grow too long stays as it is."""
        plain = self._lookalikes.get(char)
        if plain is not None:
            return plain
        parts = []
        for part in unicodedata.normalize("NFKC", char).casefold():
            bases = unicodedata.normalize("NFKD", part)
            base = bases[0] if all(_is_within(ord(mark), _MARKS) for mark in bases[1:]) else part
            if _is_within(ord(base), _MARKS):
                continue
            base = self._lookalikes.get(base, base)
            parts.append(chr(_LOWER[ord(base)]) if base.isascii() and len(base) == 1 else base)
        folded = " ".join("".join(parts).split(" "))
        return folded if 0 < len(folded) <= LONGEST_FOLD_CHARS else char


class _Folded(NamedTuple):
    """A piece of text: folded, then its blanks squeezed, what became none or several, and what is not ASCII."""

    wide: str
    folded: str
    longs: dict[str, str]
    others: set[str]


def _view(text: str, folded: str, wide: Sequence[str], longs: dict[str, str], others: Collection[str]) -> View:
    """Return the view of a folded text. wide, longs: as of `View`. others: the text's characters beyond ASCII."""
    # Pieces are as long as the text: a normalized one that is not has lost or won characters.
    is_straight = not longs and len(folded) == len(text)
    view = View(folded, text) if is_straight else View(folded, text, wide, longs)
    view.others = frozenset(others)
    return view


def _joined_view(text: str, pieces: list[_Folded]) -> View:
    """Put a view together from the pieces of a text."""
    longs: dict[str, str] = {}
    folded: list[str] = []
    for piece in pieces:
        longs.update(piece.longs)
        # Blanks that meet at an edge are one.
        is_met = bool(folded) and folded[-1].endswith(" ") and piece.folded.startswith(" ")
        if piece.folded[is_met:]:
            folded.append(piece.folded[is_met:])
    others = set().union(*(piece.others for piece in pieces))
    return _view(text, _joined(folded), [piece.wide for piece in pieces], longs, others)


def _replaced(text: str, by: Mapping[str, str]) -> str:
    if len(by) > _MANY_REPLACED:
        return text.translate({ord(char): plain for char, plain in by.items()})
    for char, plain in by.items():
        text = text.replace(char, plain)
    return text


def _blanks_map(wide: str) -> tuple[list[int], list[int]]:
    """List where straight runs begin in a text whose blanks were squeezed, and where each begins in the text before."""
    at, origin, gone = [0], [0], 0
    for start, end in _runs_of_blanks(wide):
        gone += end - start - 1
        at.append(end - gone)
        origin.append(end)
    return at, origin


def _longs_map(source: str, longs: Mapping[str, str]) -> tuple[list[int], list[int]]:
    """List the same for a text in which some characters became none or several."""
    at, origin, more = [0], [0], 0
    for place, char in _places_of(longs, source):
        size = len(longs[char])
        at += range(place + more, place + more + size + 1)
        origin += [place] * size
        origin.append(place + 1)
        more += size - 1
    return at, origin


def _places_of(chars: Collection[str], text: str) -> list[tuple[int, str]]:
    """List where some characters stand in a text, in order."""
    if len(chars) > _MANY_REPLACED:
        held = re.compile(f"[{''.join(map(re.escape, chars))}]")
        pieces = range(0, len(text), _PIECE_CHARS)
        return [
            (found.start(), found[0])
            for begin in pieces
            for found in held.finditer(text, begin, min(begin + _PIECE_CHARS, len(text)))
        ]
    places = []
    for char in chars:
        place = text.find(char)
        while place >= 0:
            places.append((place, char))
            place = text.find(char, place + 1)
    return sorted(places)


def _joined(pieces: Iterable[str]) -> str:
    """Join the pieces of a text one by one, so that another thread never waits for long."""
    whole = ""
    for piece in pieces:
        whole += piece
    return whole


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield spans that make up a text, none of which ends within a run of blanks."""
    begin = 0
    while begin < len(text):
        end = min(begin + _PIECE_CHARS, len(text))
        while end < len(text) and text[end - 1] == " ":
            end += 1
        yield begin, end
        begin = end


def _runs_of_blanks(text: str) -> Iterator[tuple[int, int]]:
    for begin, end in _pieces(text):
        for run in _RUN_OF_BLANKS.finditer(text, begin, end):
            yield run.span()


def _squeeze(text: str) -> str:
    """Make one blank of each run of blanks."""
    return _RUN_OF_BLANKS.sub(" ", text)
