"""Which pieces of the literals the automaton looks for: few first letters, rare ones, and pieces that are rare.

Beside them, what all that an anchor leads to wants around it.

pyahocorasick tries the edges of a node in the order they were added, and those of the root at nearly every character.
So the fewer first letters the anchors have, the faster the scan, and common characters get an edge of their own first.
Nodes lie in memory as they are made, so the anchors with the commonest beginnings are added first.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from gateway.shield.frequency import likelihood
from gateway.shield.literals import ALONE
from gateway.shield.sequels import TEXT_END

Gate = frozenset[str]

LEAST_CHARS = 4
MOST_CHARS = 12
# What an edge at the root costs, in occurrences of a first letter in one character.
_EDGE = 0.014
# So many letters of an anchor are read so often that it matters where in memory they lie.
_COMMON_CHARS = 3


def choose_roots(literals: Iterable[str]) -> frozenset[str]:
    """Choose first letters so that every literal holds one early enough for an anchor of LEAST_CHARS."""
    choices = {frozenset(literal[: max(1, len(literal) - LEAST_CHARS + 1)]) for literal in literals}
    roots = {letter for choice in choices if len(choice) == 1 for letter in choice}
    left = {choice for choice in choices if not choice & roots}
    counts = Counter(letter for choice in left for letter in choice)
    while left:
        best = max(sorted(counts), key=lambda letter: counts[letter] / (likelihood(letter) + _EDGE))
        roots.add(best)
        covered = {choice for choice in left if best in choice}
        left -= covered
        counts.subtract(letter for choice in covered for letter in choice)
    # A letter that is the only root of no literal can go, the commonest first.
    sole = Counter(next(iter(held)) for choice in choices if len(held := choice & roots) == 1)
    for letter in sorted(roots, key=lambda letter: (-likelihood(letter), letter)):
        if not sole[letter]:
            roots.discard(letter)
            sole = Counter(next(iter(held)) for choice in choices if len(held := choice & roots) == 1)
    return frozenset(roots)


def choose_anchor(literal: str, roots: frozenset[str]) -> tuple[str, int]:
    """Return the first piece of `literal` that begins with a root letter, and its offset there: a long one is rare."""
    if len(literal) <= LEAST_CHARS:
        return literal, 0
    place = next(place for place, letter in enumerate(literal) if letter in roots)
    return literal[place : place + MOST_CHARS], place


def order_words(words: list[str]) -> list[str]:
    """Order anchors: at each node the commonest letters come first, and what is common lies together in memory."""
    return sorted(words, key=lambda word: (-likelihood(word[:_COMMON_CHARS]), word))


def gate_of(pieces: Sequence[str]) -> tuple[Gate | None, int]:
    """Return pieces of which one must stand right behind an anchor, cut to the length of the shortest, and their end.

    Of several lengths where the text may end; None where anything may stand.
    """
    if not pieces:
        return None, 0
    size = min(map(len, pieces))
    return frozenset(piece[:size].rstrip(TEXT_END) for piece in pieces), size + 1


def shared_edge(letter: str, edges: Sequence[frozenset[str]]) -> frozenset[str] | None:
    """Return characters that most of some steps want none of before a letter, of its own kind; None if none does."""
    held = [chars for chars in ALONE.values() if letter in chars]
    count, edge = max(((sum(map(chars.issubset, edges)), chars) for chars in held), default=(0, None), key=_count)
    return edge if count else None


def _count(counted: tuple[int, frozenset[str] | None]) -> int:
    return counted[0]
