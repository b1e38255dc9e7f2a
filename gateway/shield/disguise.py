"""Texts hidden by moving letters about: rot13, backwards, leet, slips, letters spaced apart, words run together.

rot13, backwards and slips are looked for only where a signal word stands, a common word so written; the automaton
finds those on its one way through the text. Leet and spaced letters are found by shape, as encodings are.
"""

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate

from gateway.shield import typos
from gateway.shield.leet import Leet, unleet
from gateway.shield.shapes import LETTERS, SEPARATORS, Ranges, Shapes
from gateway.shield.views import Builder, Decoded, regions
from gateway.shield.vocabulary import Vocabulary

_TOLD_BY = (
    "ignore instruction previous system prompt password reveal secret disregard forget execute delete bypass "
    "override developer unrestricted pretend jailbreak command your this with from everything restrictions "
    "guidelines following prior constraints output sentence write repeat above message initial conversation access "
    "hacked rules cancel foregoing display encode translate before respond answer earlier instead that would please "
    "must about which assistant"
).split()
_AROUND_CHARS = 96
# Splitting is dear and long runs of letters are rare: so many letters of one text are split, no more.
_MOST_RUN_TOGETHER = 4_096
_LONGEST_PLAIN_WORD = 14
# So many letters apart may be the items of a list or the indexes of a table, if they say nothing.
_MOST_SINGLE_LETTERS = 12
_CLOSING = frozenset((",", ".", ";", ":", "!", "?", "-"))
_WIDEST_GAP_CHARS = 4
_ALONE = "[0-9A-Za-z@$!]"
_SPACED_RUN = re.compile(
    f"(?<!{_ALONE}){_ALONE}(?:[{re.escape(SEPARATORS.decode())}]{{1,4}}{_ALONE}(?!{_ALONE})){{3,}}".encode()
)
_SPACED_LETTER = re.compile(f"({_ALONE})")
_LETTER_RUN = re.compile(rb"[A-Za-z]{20,400}")
_BETWEEN_WORDS = re.compile(r"(\W+)")
_SIGNS_BEFORE = re.compile(r"(?<!\S)([^\w\s]+)(\w+)")


def rot13(text: str) -> str:
    """Move every ASCII letter by 13; twice is the text itself."""
    return codecs.encode(text, "rot13")


# The names of the views.
DISGUISES = frozenset(("rot13", "reversed", "leet", "spaced", "joined", "typos"))
_ROTATED = frozenset(rot13(word) for word in _TOLD_BY)
_BACKWARDS = frozenset(word[::-1] for word in _TOLD_BY)


def signals() -> tuple[str, ...]:
    """Return words that tell that a text may be disguised, in lower case, for the automaton to look for."""
    return tuple(sorted(_ROTATED | _BACKWARDS | typos.signals()))


class Disguises:
    """Reads texts whose letters were moved about."""

    def __init__(self, vocabulary: Callable[[], Iterable[str]]) -> None:
        """vocabulary: tells the words of the rules, which a hidden text would use; asked once they are needed."""
        self._vocabulary = Vocabulary(vocabulary)
        self._leet = Leet(self._vocabulary)

    def readings(
        self, shapes: Shapes, signals: frozenset[str], chain: tuple[str, ...], coded: bytes | bytearray = b""
    ) -> list[Decoded]:
        """Return the disguised readings of a text. signals: those found in it. chain: how it was read so far.

        coded: for each character whether it is a part of a code that was read, which is no leet; empty when none is.
        """
        text = shapes.text
        found: list[Decoded] = []
        if signals:
            if signals & _ROTATED and "rot13" not in chain:
                found.append(_straight("rot13", rot13(text)))
            if signals & _BACKWARDS and "reversed" not in chain:
                found.append(replace(_straight("reversed", text[::-1]), is_reversed=True))
                found.append(_straight("reversed", _words_backwards(text)))
            if signals - _ROTATED - _BACKWARDS and "typos" not in chain:
                found += typos.corrected(text, self._vocabulary.words)
        if shapes.mixed and "leet" not in chain:
            found += self._leet.read(shapes, coded)
        if "spaced" not in chain:
            if shapes.apart:
                found += self._spaced(shapes)
            if shapes.letters:
                found += self._run_together(shapes)
        return found

    def _spaced(self, shapes: Shapes) -> list[Decoded]:
        """Join letters that stand apart."""
        text = shapes.text
        runs = [(start, end) for start, end in _letters_apart(shapes) if _is_of_letters(shapes.raw[start:end])]
        builder = Builder("spaced")
        for low, high, spans in regions(runs, around=_AROUND_CHARS, length=len(text)):
            if not any(self._says_something(text[start:end]) for start, end in spans):
                continue
            builder.end_piece(low)
            done = low
            for start, end in spans:
                between = text[done:start]
                # A sign after a word stands beside it, not apart as the letters do.
                builder.add(between.lstrip() if between.strip() in _CLOSING else between, done, start)
                self._join(builder, text, start, end)
                done = end
            builder.add(text[done:high], done, high)
        return builder.done()

    def _says_something(self, run: str) -> bool:
        """Tell whether letters that stand apart are so many that they may hide anything, or say a word."""
        if len(run) > _MOST_SINGLE_LETTERS * (1 + _WIDEST_GAP_CHARS):
            return True
        letters = "".join(_SPACED_LETTER.findall(run))
        return len(letters) > _MOST_SINGLE_LETTERS or self._vocabulary.tells(unleet(letters))

    def _join(self, builder: Builder, text: str, start: int, end: int) -> None:
        parts = _SPACED_LETTER.split(text[start:end])
        # A run begins and ends with a letter.
        places = list(accumulate(map(len, parts), initial=start))
        letters, gaps = places[1:-1:2], parts[2:-1:2]
        # Letters of a word stand apart by the commonest gap; any other gap ends a word, and may hold a sign.
        joint = Counter(gaps).most_common(1)[0][0]
        # Where words are told apart, only what is too long for one is words run together.
        least = _LONGEST_PLAIN_WORD if len(set(gaps)) > 1 else 4
        first = 0
        for last, gap in enumerate(gaps, 1):
            if gap != joint:
                self._split(builder, text, letters[first:last], least)
                sign = gap.replace(joint, "").strip() or ("." if joint == "." and gap.count(".") > 1 else "")
                place = letters[last]
                builder.add("'" if sign[:1] == "'" else f"{sign} ", place - 1, place)
                first = last
        self._split(builder, text, letters[first:], least)

    def _run_together(self, shapes: Shapes) -> list[Decoded]:
        """Split long runs of letters into words."""
        text = shapes.text
        builder = Builder("joined")
        left = _MOST_RUN_TOGETHER
        done = 0
        for place in shapes.letters:
            run = _LETTER_RUN.match(shapes.raw, max(place, done))
            while run:
                start, end = run.span()
                left -= end - start
                if left < 0:
                    return builder.done()
                cuts = self._vocabulary.parts(text[start:end].lower())
                if cuts:
                    builder.end_piece(start)
                    for low, high in zip((0, *cuts), (*cuts, end - start), strict=True):
                        builder.add(text[start + low : start + high], start + low, start + high)
                        builder.add(" ", start + high, start + high)
                done = end
                run = _LETTER_RUN.match(shapes.raw, done)
        return builder.done()

    def _split(self, builder: Builder, text: str, places: list[int], least: int) -> None:
        """Add letters as words if they are words run together and more than `least`, else as they are."""
        letters = "".join([text[place] for place in places])
        cuts = self._vocabulary.parts(letters.lower()) if len(letters) > least else []
        if not cuts:
            builder.add(letters, places[0], places[-1] + 1)
            return
        for low, high in zip((0, *cuts), (*cuts, len(places)), strict=True):
            if low:
                builder.add(" ", places[low], places[low])
            builder.add(letters[low:high], places[low], places[high - 1] + 1)


def _straight(name: str, said: str) -> Decoded:
    """Return a reading in which every letter, or at least every word, stands where it stood."""
    return Decoded(name, said, (0,), (0,), (len(said),))


def _words_backwards(text: str) -> str:
    """Turn every word round; signs before it end up behind it."""
    parts = _BETWEEN_WORDS.split(text)
    parts[::2] = [word[::-1] for word in parts[::2]]
    return _SIGNS_BEFORE.sub(r"\2\1", "".join(parts))


def _is_of_letters(run: bytes) -> bool:
    """Tell whether a quarter of a run is letters."""
    return (len(run) - len(run.translate(None, LETTERS))) * 4 >= len(run)


def _letters_apart(shapes: Shapes) -> Ranges:
    """Return the spans of at least four single letters that stand apart."""
    found: Ranges = []
    end = 0
    for spot in shapes.apart:
        if spot < end:
            continue
        near = max(end, spot - _WIDEST_GAP_CHARS - 1)
        # First whether there is one right here: a search that fails would go on to the end of the text.
        if _SPACED_RUN.search(shapes.raw, near, spot + 4 * _WIDEST_GAP_CHARS):
            run = _SPACED_RUN.search(shapes.raw, near)
            if run:
                found.append(run.span())
                end = run.end()
    return found
