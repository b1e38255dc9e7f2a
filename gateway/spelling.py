"""The word that somebody meant: how far two words are apart, and which known one is nearest. Pure."""

from collections.abc import Iterable

TYPING_MISTAKE = 2  # so many letters apart, a word is taken for a misspelt one


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


def nearest(word: str, known: Iterable[str], *, most: int = TYPING_MISTAKE) -> str | None:
    """Return the known word that is at most `most` letters away from `word` and nearest to it, or None."""
    near = ((distance(word, one), one) for one in known if abs(len(word) - len(one)) <= most)
    return min(((apart, one) for apart, one in near if apart <= most), default=(0, None))[1]


def hint(word: str, known: Iterable[str]) -> str:
    """Return a question that names the word that was meant, with a blank before it; empty when none is near.

    A word that is known as it stands was meant as it stands: another command has it.
    """
    names = list(known)
    meant = None if word in names else nearest(word, names)
    return f" Did you mean {meant}?" if meant else ""
