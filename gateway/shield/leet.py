"""Words in leet: digits and signs inside them are written as the letters they look like.

Theory of operation. Each word that mixes letters with digits or signs is read in plain letters. Where such a reading is
in the vocabulary, all words around it are read so. Of the mixed words in noise (codes, identifiers) hardly any is
known, and only what stands near a known one is read.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from gateway.shield.shapes import LETTERS, Ranges, Shapes, kinds_of, matches
from gateway.shield.views import Builder, Decoded, regions
from gateway.shield.words import Vocabulary

# A 1 and what looks like it is an i or an l.
_PLAIN = str.maketrans("01345678@$!|+", "o1easgtbas11t")
_MOST_ONES = 3
_KINDS = kinds_of(a=LETTERS, d=b"0134578@$!|+", n=b"269")
_NOT_OF_LETTERS = re.compile(rb"\.a*+[dn][adn]*+")
_WORD = re.compile(r"[A-Za-z0-9@$!|+]+")
_LEAST_CHARS, _MOST_CHARS = 3, 20
_LONGEST_NUMBER = 3
# A long word is known if it begins with a known one of so many letters.
_BEGINNINGS = (5, 6, 7)
_AROUND_CHARS, _AROUND_IN_NOISE_CHARS = 96, 24
# What a word says is remembered for one text.
_REMEMBERED_WORDS = 4_096
_MANY_WORDS, _KNOWN_OF = 200, 4


class Leet:
    """Reads words in leet."""

    __slots__ = ("_vocabulary",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        """vocabulary: what a hidden text would use."""
        self._vocabulary = vocabulary

    def read(self, shapes: Shapes) -> list[Decoded]:
        """Write the digits and signs inside words as the letters they look like, near words that say something so."""
        text = shapes.text
        mixed = _mixed_words(shapes.raw)
        if not mixed:
            return []
        known_by = lru_cache(_REMEMBERED_WORDS)(self._known)
        plain_by = lru_cache(_REMEMBERED_WORDS)(self._plain)
        known = [(start, end) for start, end in mixed if known_by(text[start:end])]
        is_noise = len(mixed) > max(_MANY_WORDS, _KNOWN_OF * len(known))
        around, short = (_AROUND_IN_NOISE_CHARS, _LEAST_CHARS + 1) if is_noise else (_AROUND_CHARS, _LEAST_CHARS)
        builder = Builder("leet")
        for low, high, spans in regions(known, around=around, length=len(text)):
            word, *others = {text[start:end] for start, end in spans}
            # A word among none of its kind may be a name or a number.
            is_name = len(spans) == 1 and sum(not char.isalpha() for char in word) == 1
            if others or (len(word) > short and not is_name):
                # Every letter stands where it stood.
                builder.end_piece(low)
                builder.add(_WORD.sub(lambda found: plain_by(found[0]), text[low:high]), low, high)
        return builder.done()

    def says_word(self, letters: str) -> bool:
        """Tell whether a word stands in a few letters, or in what they say in leet."""
        return any(self._vocabulary.says_word(plain) for plain in _readings(letters))

    def _known(self, word: str) -> str:
        """Return a reading of a word that is in the vocabulary, or begins with a word that is; else an empty text."""
        words, written = self._vocabulary.words, word.lower()
        for plain in _readings(written.rstrip("!|+")):
            if plain in words and plain != written:
                return plain
            if any(plain[:size] in words and plain[:size] != written[:size] for size in _BEGINNINGS):
                return plain
        return ""

    def _plain(self, word: str) -> str:
        """Return a word in plain letters; what is no word stays."""
        bare = word.rstrip("!|+")
        if bare.isalpha() or len(word) > _MOST_CHARS or (bare.isdigit() and len(bare) > _LONGEST_NUMBER):
            return word
        return (self._known(word) or next(_readings(bare))) + word[len(bare) :]


def _readings(word: str) -> Iterator[str]:
    """Yield what a word may say in plain letters."""
    plain = word.lower().translate(_PLAIN)
    ones = plain.count("1")
    if ones > _MOST_ONES:
        yield from (plain.replace("1", letter) for letter in "il")
        return
    for letters in product("il", repeat=ones):
        yield plain.replace("1", "{}").format(*letters)


def _mixed_words(raw: bytes) -> Ranges:
    """Return the spans of words that hold letters and what may stand for letters."""
    kinds = b"." + raw.translate(_KINDS)
    if b"ada" not in kinds and b"daa" not in kinds:
        return []
    words = (found for found in matches(_NOT_OF_LETTERS, kinds) if b"a" in found[0] and b"d" in found[0])
    spans = [(found.start(), found.end() - 1) for found in words]
    return [(start, end) for start, end in spans if _LEAST_CHARS <= end - start <= _MOST_CHARS]
