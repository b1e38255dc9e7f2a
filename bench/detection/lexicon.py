"""Reads the words by what they mean to the statistical model, and makes the regular forms of the English ones."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.shield.linear import words_of
from gateway.shield.normalize import Normalizer

LEXICON = Path(__file__).with_name("lexicon.txt")
_LINE = re.compile(r"(\w+) ([a-z]{2}): (.+)")
_SHORT_CHARS = 4


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Classes of words. names: of the classes. numbers: class of a word."""

    names: tuple[str, ...]
    numbers: dict[str, int]

    def words(self, number: int) -> list[str]:
        """Return the words of one class in the order of the alphabet."""
        return sorted(word for word, other in self.numbers.items() if other == number)


def read_lexicon(path: Path = LEXICON) -> Lexicon:
    """Read a lexicon.

    Raises:
        ValueError: a line is not of the form the file itself tells.
    """
    lines = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            found = _LINE.fullmatch(line)
            if found is None:
                raise ValueError(f"line {number} of the lexicon is not CLASS LANGUAGE: WORDS")
            lines.append((found[1], found[2], _seen(found[3])))
    names = list(dict.fromkeys(name for name, _, _ in lines))
    numbers: dict[str, int] = {}
    # What is written out goes before what is made of other words, and English before the others.
    for made in (False, True):
        for name, language, words in lines:
            for word in words:
                if language == "en":
                    for form in forms_of(word) if made else (word,):
                        numbers.setdefault(form, names.index(name))
    for name, _, words in lines:
        for word in words:
            numbers.setdefault(word, names.index(name))
    return Lexicon(tuple(names), numbers)


def _seen(words: str) -> list[str]:
    """Return words as the model sees them; of a word that it cuts, the longest part."""
    normalizer = Normalizer()
    return [max(words_of(normalizer.normalize(word).text), key=len).decode() for word in words.split()]


def forms_of(word: str) -> Iterator[str]:
    """Yield the regular forms of an English word, were it a noun or a verb; not all of them are words."""
    yield word
    if len(word) < _SHORT_CHARS or (word.endswith(("ly", "ous", "ed", "ing")) and not word.endswith("ply")):
        yield word + "s"
    elif word.endswith("e"):
        yield from (word + "s", word + "d", word[:-1] + "ing")
    elif word.endswith("y") and word[-2] not in "aeou":
        yield from (word[:-1] + "ies", word[:-1] + "ied", word + "ing")
    elif word.endswith(("s", "sh", "ch", "x")):
        yield from (word + "es", word + "ed", word + "ing")
    else:
        yield from (word + "s", word + "ed", word + "ing")
        if word[-2] in "aeiou" and word[-3] not in "aeiou":
            yield from (word + word[-1] + "ed", word + word[-1] + "ing")
