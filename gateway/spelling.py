"""The known word that somebody meant by a misspelt one. Pure."""

from collections.abc import Iterable
from functools import partial

_TYPING_MISTAKE = 2  # so many letters apart, a word is taken for a misspelt one


def distance(one: str, other: str) -> int:
    """Return how many letters to insert, delete, replace or swap with their neighbour make one word the other."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            least = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                least = min(least, older[j - 2] + 1)
            row.append(least)
    return row[-1]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is nearest to `word` and no more than a typing mistake away, or None."""
    alike = sorted(one for one in known if abs(len(word) - len(one)) <= _TYPING_MISTAKE)
    best = min(alike, key=partial(distance, word), default=None)
    return None if best is None or distance(word, best) > _TYPING_MISTAKE else best


def hint(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" with the nearest word; "" if none is near, or `word` is known itself."""
    meant = nearest(word, known)
    return f" Did you mean {meant}?" if meant and meant != word else ""
