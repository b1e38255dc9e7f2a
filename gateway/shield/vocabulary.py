"""The words of the rules: which letters are some, and where letters run together are to be cut. Knows no text.

What was hidden by moving letters about can only be found if it says a word that some rule's regex has. So letters that
say none need no other reading.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import product
from string import ascii_lowercase

# Function words that patterns leave optional, or do not name.
_COMMON_WORDS = "a all an and any are as at be by do for from have in is it me my no not now of on or our that the then"
_MORE_WORDS = "these this to us was we what will with you your above before below following must never only tell show"
_LONGEST_WORD = 20
_LONGEST_RUN_TOGETHER = 400
_WORDS = re.compile(r"[a-z]{3,20}")
_REGEX_ESCAPE = re.compile(r"\\[A-Za-z]")
_HEAD = 3


def vocabulary_of(sources: Iterable[str]) -> set[str]:
    """Return the words of regexes, lower case."""
    return {word for source in sources for word in _WORDS.findall(_REGEX_ESCAPE.sub(" ", source))}


class Vocabulary:
    """The words that a hidden text would use, read at the first question."""

    def __init__(self, read: Callable[[], Iterable[str]]) -> None:
        """read: tells the words of the rules; asked once they are needed."""
        self._read = read

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the rules, and function words."""
        words = frozenset(self._read()).union(_COMMON_WORDS.split(), _MORE_WORDS.split())
        return frozenset(word for word in words if len(word) <= _LONGEST_WORD)

    @cached_property
    def _sizes(self) -> dict[str, tuple[int, ...]]:
        """How long the words are that begin with the same three letters."""
        sizes: dict[str, set[int]] = {}
        for word in self.words:
            if len(word) >= _HEAD:
                sizes.setdefault(word[:_HEAD], set()).add(len(word))
        return {head: tuple(sorted(lengths)) for head, lengths in sizes.items()}

    @cached_property
    def _short_sizes(self) -> dict[str, tuple[int, ...]]:
        """How long the words of one or two letters are that the same two letters begin with, or a last one."""
        pairs = map("".join, product(ascii_lowercase, ["", *ascii_lowercase]))
        told = {
            pair: tuple(sorted({size for size in (1, 2) if pair[:size] in self.words and size <= len(pair)}))
            for pair in pairs
        }
        return {pair: lengths for pair, lengths in told.items() if lengths}

    def tells(self, read: str, written: str = "") -> bool:
        """Tell whether letters that are read otherwise than they are written say something so: a word, or part of one.

        read: in lower case. written: as long, in lower case, or empty if none of the words stands there so. What has
        three letters is a word by itself, and says something beside another.
        """
        words, sizes = self.words, self._sizes
        if _HEAD <= len(read) <= _HEAD + 1:
            # What is left of a word at the end of the letters is one if longer ones begin so.
            tail = read[-_HEAD:]
            is_word = tail in words and (len(read) == _HEAD or sizes.get(tail, (0,))[-1] > _HEAD)
            return (read in words and read != written) or (is_word and tail != written[-_HEAD:])
        free = told = 0
        for start in range(len(read) - _HEAD + 1):
            for size in sizes.get(read[start : start + _HEAD], ()):
                end = start + size
                if read[start:end] in words and read[start:end] != written[start:end]:
                    if size > _HEAD or len(read) == _HEAD:
                        return True
                    if start >= free:
                        free, told = end, told + 1
        return told > 1

    def parts(self, letters: str) -> list[int]:
        """Return where to cut letters into known words; nothing if they are one word or mostly no words."""
        letters = letters[:_LONGEST_RUN_TOGETHER]
        words, sizes, short_sizes, length = self.words, self._sizes, self._short_sizes, len(letters)
        # The best score of what ends at a place, and where its last word begins.
        scores, origins = [0] * (length + 1), [-1] * (length + 1)
        for start in range(length):
            score = scores[start]
            if scores[start + 1] <= score and origins[start + 1] < 0:
                scores[start + 1], origins[start + 1] = score, start
            head = letters[start : start + _HEAD]
            for size in short_sizes.get(head[:2], ()) + sizes.get(head, ()):
                end = start + size
                if end <= length and score + size * size >= scores[end] and letters[start:end] in words:
                    scores[end], origins[end] = score + size * size, start
        cuts, known, end = [], 0, length
        while end > 0:
            start = origins[end]
            if letters[start:end] in words:
                known += end - start
                cuts += [start, end]
            end = start
        if known * 10 < len(letters) * 6:
            return []
        return sorted({cut for cut in cuts if 0 < cut < len(letters)})
