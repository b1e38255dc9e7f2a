"""Texts hidden by moving letters about: rot13, backwards, leet, slips, letters spaced apart, words run together.

rot13, backwards and slips are looked for only where a signal word stands, a common word so written; the automaton
finds those on its one way through the text. Leet and spaced letters are found by shape, as encodings are.
"""

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

from gateway.shield import typos
from gateway.shield.shapes import BLOCK_CHARS, LEET, SEPARATORS, Ranges, Shapes
from gateway.shield.views import Builder, Decoded, regions
from gateway.shield.vocabulary import Vocabulary

_TOLD_BY = (
    "ignore instruction previous system prompt password reveal secret disregard forget execute delete bypass "
    "override developer unrestricted pretend jailbreak command your this with from everything restrictions "
    "guidelines following prior constraints output sentence write repeat above message initial conversation access "
    "hacked rules cancel foregoing display encode translate before respond answer earlier instead that would please "
    "must about which assistant"
).split()
_LEET = "01345678@$!|+"
_PLAIN = "oleasgtbasilt"
_ONES = frozenset("1!|")
_NO_LEET = dict.fromkeys(map(ord, _LEET))
_TO_PLAIN = str.maketrans(_LEET, _PLAIN)
_TO_PLAIN_BUT_ONES = {code: plain for code, plain in _TO_PLAIN.items() if chr(code) not in _ONES}
_ONES_AS_I = dict.fromkeys(map(ord, _ONES), "i")
_ONES_AS_L = dict.fromkeys(map(ord, _ONES), "l")
_LEET_WORD = re.compile(r"[A-Za-z0-9@$!|+]{1,20}")
_LONGEST_NUMBER = 3
_AROUND_CHARS = 96
# How a word is read is remembered for one text.
_REMEMBERED_WORDS = 1_024
# Splitting is dear and long runs of letters are rare: so many letters of one text are split, no more.
_MOST_RUN_TOGETHER = 4_096
_LONGEST_PLAIN_WORD = 14
# So many letters apart may be the items of a list or the indexes of a table, if they say nothing.
_MOST_SINGLE_LETTERS = 12
_CLOSING = frozenset((",", ".", ";", ":", "!", "?", "-"))
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _classes(*rows: tuple[bytes, bytes]) -> bytes:
    table = bytearray(b"." * 256)
    for chars, kind in rows:
        for char in chars:
            table[char] = kind[0]
    return bytes(table)


_LEET_SHAPES = _classes((_LETTERS, b"a"), (LEET, b"0"))
# One that begins with a character is searched for far sooner than one that may begin with either.
_BESIDE_LETTER = re.compile(b"0(?:(?<=a0)|(?=a))")
_WIDEST_GAP_CHARS = 4
_ALONE = "[0-9A-Za-z@$!]"
_SPACED_RUN = re.compile(
    f"(?<!{_ALONE}){_ALONE}(?:[{re.escape(SEPARATORS.decode())}]{{1,4}}{_ALONE}(?!{_ALONE})){{3,}}".encode()
)
_SPACED_LETTER = re.compile(f"({_ALONE})")
_CODE_CHARS = 24
_CODES = _LETTERS + b"0123456789+/"
_CODE = re.compile(rb"[A-Za-z0-9+/]{24}")
_LEET_LEAST_CHARS = 3
# Of so many words in leet that stand together, more than one in so many tells something.
_MANY_MIXED, _FEW_OF, _NEAR_CHARS = 200, 4, 24
_LEET_WORD_CHARS = 20
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
            found += self._leet(shapes, coded)
        if "spaced" not in chain:
            if shapes.apart:
                found += self._spaced(shapes)
            if shapes.letters:
                found += self._run_together(shapes)
        return found

    def _leet(self, shapes: Shapes, coded: bytes | bytearray) -> list[Decoded]:
        """Write the digits and signs inside words as the letters they look like."""
        text = shapes.text
        builder = Builder("leet")
        words = _mixed_words(shapes)
        if coded:
            words = [(start, end) for start, end in words if not coded[start]]
        plain = lru_cache(_REMEMBERED_WORDS)(self._plain)
        tells = lru_cache(_REMEMBERED_WORDS)(lambda word: self._vocabulary.tells(plain(word).lower(), word.lower()))
        for low, high, spans in self._leet_regions(words, text, tells):
            start, end = spans[0]
            # One word alone with one sign in it is a name or a number.
            if len(spans) == 1 and len(text[start:end].translate(_NO_LEET)) == end - start - 1:
                continue
            told = {word for first, last in spans if tells(word := text[first:last])}
            if not told or (len(told) == 1 and max(map(len, told)) == _LEET_LEAST_CHARS):
                continue
            if len(spans) > 1:
                # Beside words in leet, short ones and short numbers are words too.
                said = _LEET_WORD.sub(lambda found: plain(found[0]), text[low:high])
            else:
                said = text[low:start] + plain(text[start:end]) + text[end:high]
            # Every letter stands where it stood.
            builder.end_piece(low)
            builder.add(said, low, high)
        return builder.done()

    def _leet_regions(
        self, words: Ranges, text: str, tells: Callable[[str], bool]
    ) -> Iterator[tuple[int, int, Ranges]]:
        """Yield regions of words in leet; of noise, where few of many tell anything, only what is near those few."""
        for low, high, spans in regions(words, around=_AROUND_CHARS, length=len(text)):
            if len(spans) > _MANY_MIXED:
                told = [(start, end) for start, end in spans if tells(text[start:end])]
                if len(told) * _FEW_OF < len(spans):
                    yield from regions(told, around=_NEAR_CHARS, length=len(text))
                    continue
            yield low, high, spans

    def _plain(self, word: str) -> str:
        """Read a word in leet. A 1 is an i or an l, whichever makes a word that is known; what ends it stays."""
        bare = word.rstrip("!|+")
        if bare.isalpha() or (bare.isdigit() and len(bare) > _LONGEST_NUMBER):
            return word
        read = _unleet(bare)
        if not _ONES.isdisjoint(bare):
            lower = bare.lower().translate(_TO_PLAIN_BUT_ONES)
            for guess in (read, lower.translate(_ONES_AS_I), lower.translate(_ONES_AS_L)):
                if guess in self._vocabulary.words:
                    read = guess
                    break
        return read + word[len(bare) :]

    def _spaced(self, shapes: Shapes) -> list[Decoded]:
        """Join letters that stand apart."""
        text = shapes.text
        runs = _letters_apart(shapes)
        runs = [(start, end) for start, end in runs if sum(map(str.isalpha, text[start:end])) * 4 >= end - start]
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
        letters = "".join(_SPACED_LETTER.findall(run))
        return len(letters) > _MOST_SINGLE_LETTERS or self._vocabulary.tells(_unleet(letters))

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


def _mixed_words(shapes: Shapes) -> Ranges:
    """Return the spans of words that hold both letters and what may stand for letters."""
    found: Ranges = []
    for begin, after in shapes.mixed:
        for low in range(begin, after, BLOCK_CHARS):
            start, high = max(0, low - _LEET_WORD_CHARS), min(low + BLOCK_CHARS, after)
            kinds = shapes.raw[start : high + _LEET_WORD_CHARS].translate(_LEET_SHAPES)
            for first, last in _both_kinds(kinds):
                first, last = start + first, start + last
                is_new = first < high and (not found or first >= found[-1][1])
                if is_new and not _is_inside(shapes.raw, first, last):
                    found.append((first, last))
    return found


def _both_kinds(kinds: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of words of a few characters that hold both of their kinds."""
    found = _BESIDE_LETTER.search(kinds)
    while found:
        place = found.start()
        first, last = kinds.rfind(b".", 0, place) + 1, kinds.find(b".", place)
        last = len(kinds) if last < 0 else last
        if _LEET_LEAST_CHARS <= last - first <= _LEET_WORD_CHARS:
            yield first, last
        found = _BESIDE_LETTER.search(kinds, last)


def _is_inside(raw: bytes, start: int, end: int) -> bool:
    """Tell whether a word goes on for long on one side, as in a code and never in a sentence."""
    if start and raw[start - 1] in _CODES and _CODE.match(raw, max(0, start - _CODE_CHARS), start):
        return True
    return raw[end : end + 1] in _CODES and _CODE.match(raw, end) is not None


def _unleet(word: str) -> str:
    """Read a word in leet. A 1 is an l after most vowels and l, and before a first vowel; else an i."""
    word = word.lower()
    plain = word.translate(_TO_PLAIN)
    if _ONES.isdisjoint(word):
        return plain
    letters = list(plain)
    for place, char in enumerate(word):
        if char in "1!|":
            before = letters[place - 1] if place else ""
            after = plain[place + 1 : place + 2]
            is_l = before in ("a", "e", "u", "l") or (after in ("a", "e", "o") and before in ("", "c", "p", "f", "b"))
            letters[place] = "l" if is_l or (before == "i" and after in ("", "e", "l", "t")) else "i"
    return "".join(letters)
