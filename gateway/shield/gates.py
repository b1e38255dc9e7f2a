"""Which of several regexes may match in a text, by pieces of which some must stand in a match. Matches nothing.

Theory of operation. Of each regex it is told which strings stand in its matches: a sequence gives groups, one string of
each of which must be there; where branches of a choice say different things, each is a way of its own. All strings of
all regexes are looked for in one pass of an automaton. A regex none of whose ways has all its groups cannot match.
"""

import re
from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

from gateway.shield import automaton
from gateway.shield.beginnings import REPEATS, ZERO_WIDTH
from gateway.shield.regex_tree import ops, parser

# Shorter strings stand everywhere, unless they are of another script.
_LEAST_CHARS = 3
_MOST_STRINGS = 96
_MOST_IN_GROUP = 256
_MOST_WAYS = 16
_MOST_LETTERS = 4

# Of so many answers each is kept.
_MOST_KNOWN = 1_024
# One string of each group stands in a match.
_Way = tuple[frozenset[str], ...]


class _Search(NamedTuple):
    """What a gate looks for: in a text of ASCII alone and in any, with the groups of each string, and of each way."""

    find_plain: automaton.Find
    find: automaton.Find
    bits: list[int]
    needs: list[list[int]]


class Gate:
    """Tells which of some regexes may match. Made ready when it is first asked; threads may share it."""

    __slots__ = ("_known", "_regexes", "_search")

    def __init__(self, *regexes: str) -> None:
        """regexes: as for `re.compile` without flags; of one that takes capitals for small letters nothing is told."""
        self._regexes = regexes
        self._search: _Search | None = None
        self._known: dict[int, frozenset[str]] = {}

    def open(self, text: str) -> frozenset[str]:
        """Return those of the regexes that may match in a text."""
        search = self._search
        if search is None:
            search = self._search = _search_for(self._regexes)
        found, bits = 0, search.bits
        for _, number in (search.find_plain if text.isascii() else search.find)(text):
            found |= bits[number]
        opened = self._known.get(found)
        if opened is None:
            opened = frozenset(
                regex
                for regex, needs in zip(self._regexes, search.needs, strict=True)
                if any(found & need == need for need in needs)
            )
            if len(self._known) >= _MOST_KNOWN:
                self._known = {}
            self._known[found] = opened
        return opened


def _search_for(regexes: Iterable[str]) -> _Search:
    groups: dict[frozenset[str], int] = {}
    needs = [
        [sum({groups.setdefault(group, 1 << len(groups)) for group in way}) for way in ways_of(regex)]
        for regex in regexes
    ]
    bits: dict[str, int] = {}
    for group, bit in groups.items():
        for one in group:
            bits[one] = bits.get(one, 0) | bit
    words = sorted(bits, key=str.isascii, reverse=True)
    find_plain, _ = automaton.build([word for word in words if word.isascii()])
    find, _ = automaton.build(words)
    # The last is for words that the automaton has of its own.
    return _Search(find_plain, find, [*map(bits.__getitem__, words), 0], needs)


def ways_of(regex: str) -> list[_Way]:
    """Return the ways in which a regex matches; one without groups says nothing."""
    tree = parser.parse(regex)
    return [()] if tree.state.flags & re.IGNORECASE else _ways(tree)


def _ways(items: Iterable[tuple[Any, Any]]) -> list[_Way]:
    ways: list[_Way] = [()]
    # All that may stand right before the next item.
    runs = frozenset(("",))
    for op, value in items:
        is_ahead = op is ops.ASSERT and value[0] > 0
        if op in ZERO_WIDTH and not is_ahead:
            continue
        said = _said_by(value[1]) if is_ahead else _said(op, value)
        if said is not None and len(runs) * len(said) <= _MOST_STRINGS:
            runs = frozenset(map("".join, product(runs, said)))
            if not is_ahead:
                continue
            said = frozenset(("",))
        ways = _both(ways, [_way(runs)])
        runs = said or frozenset(("",))
        if said is None:
            ways = _both(ways, _within(op, value))
    return _both(ways, [_way(runs)])


def _both(ways: list[_Way], others: list[_Way]) -> list[_Way]:
    """Return the ways of two parts that follow each other; where they would be too many, of the first alone."""
    if not all(others) or len(ways) * len(others) > _MOST_WAYS:
        return ways
    return [way + other for way, other in product(ways, others)]


def _way(runs: frozenset[str]) -> _Way:
    """Return the way of some strings, without those that another of them stands in."""
    if any(len(run) < _LEAST_CHARS and run.isascii() for run in runs) or len(runs) > _MOST_IN_GROUP:
        return ()
    return (_shortest(runs),)


def _shortest(strings: frozenset[str]) -> frozenset[str]:
    return frozenset(one for one in strings if not any(other in one and other != one for other in strings))


def _within(op: Any, value: Any) -> list[_Way]:
    """Return the ways of an item that says too much to be told string by string."""
    if op is ops.BRANCH:
        ways = [way for branch in value[1] for way in _ways(branch)]
        alone = [way[0] for way in ways if len(way) == 1]
        # What branches have one group each is one group.
        return [*(way for way in ways if len(way) != 1), *([(_shortest(frozenset().union(*alone)),)] if alone else [])]
    if op is ops.SUBPATTERN:
        return _ways(value[3])
    if op is ops.ATOMIC_GROUP:
        return _ways(value)
    if op is ops.ASSERT:
        return _ways(value[1])
    return _ways(value[2]) if op in REPEATS and value[0] > 0 else [()]


def _said(op: Any, value: Any) -> frozenset[str] | None:
    """Return all strings that an item may match, or None if they are too many or cannot be told."""
    if op is ops.LITERAL:
        return frozenset((chr(value),))
    if op is ops.IN and len(value) <= _MOST_LETTERS and all(kind is ops.LITERAL for kind, _ in value):
        return frozenset(chr(code) for _, code in value)
    if op is ops.SUBPATTERN:
        return _said_by(value[3])
    if op is ops.ATOMIC_GROUP:
        return _said_by(value)
    if op is ops.BRANCH:
        branches = [_said_by(branch) for branch in value[1]]
        told = [branch for branch in branches if branch is not None]
        return frozenset().union(*told) if len(told) == len(branches) else None
    if op in REPEATS and value[:2] == (0, 1):
        said = _said_by(value[2])
        return None if said is None else said | {""}
    return None


def _said_by(items: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    """Return all strings that some items in a row may match, or None if they are too many or cannot be told."""
    runs = frozenset(("",))
    for op, value in items:
        said = frozenset(("",)) if op is ops.AT else _said(op, value)
        if said is None or len(runs) * len(said) > _MOST_STRINGS:
            return None
        runs = frozenset(map("".join, product(runs, said)))
    return runs
