"""Texts hidden by moving letters about: rot13, backwards, leet, slips, letters spaced apart, words run together.

Theory of operation. rot13, backwards and slips are looked for only where a signal word stands, a common word so
written; the automaton finds those on its one way through the text. Leet, spaced letters and words run together are
found by their shape, and read where they say a word of the vocabulary.
"""

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from gateway.shield import words
from gateway.shield.leet import Leet
from gateway.shield.shapes import DIGITS, LETTERS, Shapes, kinds_of, matches, runs
from gateway.shield.views import Builder, Decoded, regions

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
_LEAST_RUN_TOGETHER, _LONGEST_RUN_TOGETHER = 20, 400
_LONGEST_PLAIN_WORD = 14
# So many letters apart may be the items of a list or the indexes of a table, if they say nothing.
_MOST_SINGLE_LETTERS = 12
_CLOSING = frozenset((",", ".", ";", ":", "!", "?", "-"))
_SEPARATORS = " \t\n\r._-*|/,+~:;'\"=<>()[]{}"
_ALONE = "[0-9A-Za-z@$!]"
_SPACED_RUN = re.compile(f"(?<!{_ALONE}){_ALONE}(?:[{re.escape(_SEPARATORS)}]{{1,4}}{_ALONE}(?!{_ALONE})){{3,}}")
_SPACED_LETTER = re.compile(_ALONE)
_ALONE_KINDS = kinds_of(a=LETTERS + DIGITS + b"@$!", s=_SEPARATORS.encode())
_LETTER_KINDS = kinds_of(a=LETTERS)
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
    return tuple(sorted(_ROTATED | _BACKWARDS | words.signals()))


class Disguises:
    """Reads texts whose letters were moved about."""

    def __init__(self, vocabulary: Callable[[], Iterable[str]]) -> None:
        """vocabulary: returns the words of the rules, which a hidden text would use."""
        self._vocabulary = words.Vocabulary(vocabulary)
        self._leet = Leet(self._vocabulary)

    def readings(self, shapes: Shapes, signals: frozenset[str], chain: tuple[str, ...]) -> list[Decoded]:
        """Return the disguised readings of a text. signals: those found in it. chain: how it was read so far."""
        text = shapes.text
        found: list[Decoded] = []
        if signals & _ROTATED and "rot13" not in chain:
            found.append(_straight("rot13", rot13(text)))
        if signals & _BACKWARDS and "reversed" not in chain:
            found.append(replace(_straight("reversed", text[::-1]), is_reversed=True))
            found.append(_straight("reversed", _words_backwards(text)))
        if signals - _ROTATED - _BACKWARDS and "typos" not in chain:
            found += words.corrected(text, self._vocabulary.words)
        if "leet" not in chain:
            found += self._leet.read(shapes)
        if "spaced" not in chain:
            found += self._spaced(shapes)
            found += self._run_together(shapes)
        return found

    def _spaced(self, shapes: Shapes) -> list[Decoded]:
        """Join letters that stand apart."""
        text = shapes.text
        kinds = b"s" + shapes.raw.translate(_ALONE_KINDS)
        if b"sasas" not in kinds and b"sassas" not in kinds:
            return []
        spans = [run.span() for run in matches(_SPACED_RUN, text) if _is_of_letters(run[0])]
        if not spans:
            return []
        builder = Builder("spaced")
        for low, high, near in regions(spans, around=_AROUND_CHARS, length=len(text)):
            if not any(self._says_something(text[start:end]) for start, end in near):
                continue
            builder.end_piece(low)
            done = low
            for start, end in near:
                between = text[done:start]
                # A sign after a word stands beside it, not apart as the letters do.
                builder.add(between.lstrip() if between.strip() in _CLOSING else between, done, start)
                self._join(builder, text, start, end)
                done = end
            builder.add(text[done:high], done, high)
        return builder.done()

    def _says_something(self, run: str) -> bool:
        """Tell whether letters that stand apart are so many that they may hide anything, or say a word."""
        letters = "".join(_SPACED_LETTER.findall(run))
        return len(letters) > _MOST_SINGLE_LETTERS or self._leet.says_word(letters)

    def _join(self, builder: Builder, text: str, start: int, end: int) -> None:
        """Add the words that the letters of a run make. It begins and ends with a letter."""
        letters = [found.start() for found in _SPACED_LETTER.finditer(text, start, end)]
        gaps = [text[one + 1 : other] for one, other in zip(letters, letters[1:], strict=False)]
        # Letters of a word stand apart by the commonest gap; any other gap ends a word, and may hold a sign.
        joint = Counter(gaps).most_common(1)[0][0]
        # Where words are told apart, only what is too long for one is words run together.
        least = _LONGEST_PLAIN_WORD if len(set(gaps)) > 1 else 4
        first = 0
        for last, gap in enumerate(gaps, 1):
            if gap != joint:
                self._add_words(builder, text, letters[first:last], least)
                sign = gap.replace(joint, "").strip() or ("." if joint == "." and gap.count(".") > 1 else "")
                place = letters[last]
                builder.add("'" if sign[:1] == "'" else f"{sign} ", place - 1, place)
                first = last
        self._add_words(builder, text, letters[first:], least)

    def _run_together(self, shapes: Shapes) -> list[Decoded]:
        """Split long runs of letters into words."""
        if not shapes.tokens:
            return []
        builder, left = Builder("joined"), _MOST_RUN_TOGETHER
        for low, high in runs(shapes.raw, _LETTER_KINDS, _LEAST_RUN_TOGETHER):
            for start in range(low, min(high, low + left), _LONGEST_RUN_TOGETHER):
                end = min(start + _LONGEST_RUN_TOGETHER, high)
                if cuts := self._vocabulary.cuts(shapes.text[start:end].lower()):
                    builder.end_piece(start)
                    for one, other in zip((0, *cuts), (*cuts, end - start), strict=True):
                        builder.add(shapes.text[start + one : start + other] + " ", start + one, start + other)
            left -= high - low
            if left < 0:
                break
        return builder.done()

    def _add_words(self, builder: Builder, text: str, places: list[int], least: int) -> None:
        """Add letters as words if they are words run together and more than `least`, else as they are."""
        letters = "".join([text[place] for place in places])
        cuts = self._vocabulary.cuts(letters.lower()) if len(letters) > least else []
        for low, high in zip((0, *cuts), (*cuts, len(places)), strict=True):
            builder.add(" " if low else "", places[low], places[low])
            builder.add(letters[low:high], places[low], places[high - 1] + 1)


def _straight(name: str, said: str) -> Decoded:
    """Return a reading in which every letter, or at least every word, stands where it stood."""
    return Decoded(name, said, (0,), (0,), (len(said),))


def _words_backwards(text: str) -> str:
    """Turn every word round; signs before it end up behind it."""
    parts = _BETWEEN_WORDS.split(text)
    parts[::2] = [word[::-1] for word in parts[::2]]
    return _SIGNS_BEFORE.sub(r"\2\1", "".join(parts))


def _is_of_letters(run: str) -> bool:
    """Tell whether a quarter of a run is letters."""
    return sum(map(str.isalpha, run)) * 4 >= len(run)
