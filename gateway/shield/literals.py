"""Which literals lead to the matches of a regex, and where a match may begin from there. Derived, never guessed.

Theory of operation. The regex is read as a sequence of items. From any item on, the literals that the rest must begin
with are told item by item, alternatives multiplied out as long as they are few. So each item gives one way to find
every match: its literals, and how many characters may stand before them. Where an item is a choice, each branch may
also go its own way. Of all ways the cheapest is taken, by how often its literals stand in ordinary text.
"""

import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gateway.shield.frequency import likelihood
from gateway.shield.prefixes import (
    LONG_ENOUGH_CHARS,
    LONGEST_PREFIX_CHARS,
    NOTHING,
    UNKNOWN,
    Prefixes,
    close,
    join,
    shortened,
    squeeze,
)
from gateway.shield.unparse import unparse

_MOST_PREFIXES = (24, 128, 400)
# With so many prefixes, none shorter than this, following them further gains nothing.
_MANY_PREFIXES = 16
# A way this cheap is not worth looking into choices for a cheaper one.
_CHEAP_ENOUGH = 8e-6
# What following a lead costs when what comes after its literal is tried first, and a longer window only then.
_RESTED = 1.5
# What one more lead costs wherever it stands: room in the automaton, and time at the start.
_LEAD = 1e-7
# A way this dear is worth looking for another for longer.
_DEAR = 2e-4
_MOST_COPIES = 4
# With more prefixes only so many places are looked at again.
_MOST_SPOTS = 6
_MOST_MEMBERS = 10
_MOST_BRANCHES = 80
_DIGITS = {ord(digit): "0" for digit in "123456789"}
ZERO_WIDTH = frozenset((ops.AT, ops.ASSERT, ops.ASSERT_NOT))
REPEATS = frozenset((ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT))


@dataclass(frozen=True, slots=True, order=True)
class Lead:
    """A literal and where a match may begin: `low` to `high` characters before it; negative is after it."""

    literal: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Way:
    """Leads one of which stands at every match.

    price: what following them costs, for each character of text. rest: items of the regex that match at the literal of
    every match, when a match may begin at several places before it; else none.
    """

    leads: tuple[Lead, ...]
    price: float
    rest: tuple[Any, ...] = ()


def squash_digits(text: str) -> str:
    """Write every ASCII digit as 0: the letters the automaton reads."""
    return text.translate(_DIGITS)


def price_of(leads: Iterable[Lead]) -> float:
    """Estimate the work that leads cause for each character of ordinary text."""
    return sum(
        _LEAD + likelihood(lead.literal) * (1 if lead.low == lead.high else 2 + (lead.high - lead.low) / 40)
        for lead in leads
    )


class Literals:
    """Derives literals from one parse tree.

    letter: what a character of the regex is in the text that literals are looked for in; empty if it is not there.
    digit: the letter that stands for any digit, or empty. blank: the letter of any white space, or empty.
    is_exact: the literal's place in that text is the regex's own, also where it begins with a blank.
    """

    __slots__ = ("_blank", "_digit", "_is_exact", "_kept", "_known", "_least", "_letter", "_most", "_tree")

    def __init__(
        self,
        tree: Any,
        letter: Callable[[str], str],
        *,
        digit: str = "",
        blank: str = "",
        is_exact: bool = True,
        least: int = 2,
    ) -> None:
        self._tree = tree
        self._most = _MOST_PREFIXES[-1]
        self._letter = letter
        self._digit = digit
        self._blank = blank
        self._is_exact = is_exact
        self._least = least
        # By identity of a parse tree's parts: one object serves one tree.
        self._known: dict[int, Prefixes] = {}
        self._kept: list[Any] = []

    def cheapest(self) -> Way | None:
        """Return the cheapest way to every match of the regex, or None if nothing leads there.

        Few prefixes are kept apart at first, more only if what they give is dear, and choices are looked into last.
        """
        items = self._flat(self._tree)
        best: Way | None = None
        spots = self._spots(items, len(items), 0, 0)
        for most in _MOST_PREFIXES:
            self._most = most
            self._known = {}
            ways = [(self._way(items[index:], low, high), (index, low, high)) for index, low, high in spots]
            told = sorted(((way.price, spot) for way, spot in ways if way), key=lambda pair: pair[0])
            for way, _ in ways:
                best = _cheaper(best, way)
            if best is not None and best.price < _CHEAP_ENOUGH * most / _MOST_PREFIXES[0]:
                return best
            # What was dear with few prefixes will hardly be the cheapest with more.
            spots = [spot for _, spot in told[:_MOST_SPOTS]] or spots
        self._most = _MOST_PREFIXES[1 if best is not None and best.price < _DEAR else -1]
        self._known = {}
        return _cheaper(best, self._by_branches(items))

    def _by_branches(self, items: list[Any]) -> Way | None:
        """Choose among the ways where each branch of one choice goes its own way."""
        best: Way | None = None
        for index, low, high in self._spots(items, len(items), 0, 0):
            op, arg = items[index]
            if op is ops.BRANCH and len(arg[1]) <= _MOST_BRANCHES:
                rest = items[index + 1 :]
                ways = []
                for branch in map(self._flat, arg[1]):
                    ways.append(self._plain(branch + rest, len(branch), low, high))
                    if ways[-1] is None:
                        break
                best = _cheaper(best, _union(ways))
        return best

    def beginning(self) -> Way | None:
        """Return the way by how every match begins, or None if that is not told."""
        self._known = {}
        return self._way(self._flat(self._tree), 0, 0)

    def is_at_word(self) -> bool:
        r"""Say whether the regex begins with ``\b``, other conditions aside."""
        for op, arg in self._tree:
            if op not in ZERO_WIDTH:
                return False
            if op is ops.AT and arg is ops.AT_BOUNDARY:
                return True
        return False

    def _plain(self, items: list[Any], own: int, low: int, high: int) -> Way | None:
        """Choose among the ways that begin at one of the first `own` items, low..high characters into the match."""
        best: Way | None = None
        for index, least, most in self._spots(items, own, low, high):
            best = _cheaper(best, self._way(items[index:], least, most))
        return best

    def _spots(self, items: list[Any], own: int, low: int, high: int) -> list[tuple[int, int, int]]:
        """List where ways may begin, and how far into the match that is; words are not begun in their middle."""
        spots = []
        for index in range(own):
            is_inside = (
                index > 0 and items[index][0] is items[index - 1][0] is ops.LITERAL and items[index - 1][1] != 32
            )
            if not is_inside:
                spots.append((index, low, high))
            least, most = self._width(items[index])
            low, high = low + least, high + most
        return spots

    def _width(self, item: Any) -> tuple[int, int]:
        return self._width_of([item])

    def _width_of(self, items: list[Any]) -> tuple[int, int]:
        least, most = self._part(items).getwidth()
        return least, most

    def _part(self, items: list[Any]) -> Any:
        return parser.SubPattern(self._tree.state, items)

    def rest_of(self, way: Way) -> str:
        """Write the rest of a way as a regex, or an empty text if it has none."""
        return unparse(way.rest, self._tree.state.flags) if way.rest else ""

    def _way(self, items: list[Any], low: int, high: int) -> Way | None:
        prefixes = {prefix for prefix, _ in self.sequence(items)}
        if self._blank:
            prefixes = {squeeze(prefix) for prefix in prefixes}
        if not self._is_exact and any(prefix.startswith(" ") for prefix in prefixes):
            # A blank may be one of a run in the text: the place found would not be the literal's own.
            return None
        if any(len(prefix) < self._least and prefix != "@" for prefix in prefixes):
            return None
        prefixes = {shortened(prefix) for prefix in prefixes}
        sizes = sorted(set(map(len, prefixes)))
        shortest = [
            prefix for prefix in prefixes if not any(prefix[:cut] in prefixes for cut in sizes if cut < len(prefix))
        ]
        leads = tuple(Lead(prefix, low, high) for prefix in sorted(shortest))
        if low == high or self._width_of(items)[0] <= max(map(len, shortest)):
            return Way(leads, price_of(leads))
        return Way(leads, sum(_LEAD + _RESTED * likelihood(lead.literal) for lead in leads), tuple(items))

    def _flat(self, items: Iterable[Any]) -> list[Any]:
        """Write groups that only hold a sequence as that sequence; flags of a group stay on its items."""
        flat: list[Any] = []
        for op, arg in items:
            if op is ops.SUBPATTERN:
                inner = self._flat(arg[3])
                if arg[1] or arg[2]:
                    inner = [self._flagged(item, arg[1], arg[2]) for item in inner]
                    self._kept += inner
                flat += inner
            elif op not in ZERO_WIDTH:
                flat.append((op, arg))
        return flat

    def _flagged(self, item: Any, on: int, off: int) -> Any:
        op, arg = item
        if op is ops.BRANCH:
            branches = [self._part([(ops.SUBPATTERN, (None, on, off, branch))]) for branch in arg[1]]
            return op, (None, branches)
        return ops.SUBPATTERN, (None, on, off, self._part([item]))

    def sequence(self, items: Iterable[Any]) -> Prefixes:
        """Return what any match of a sequence begins with, and for each whether it may be followed further."""
        found = NOTHING
        for tails in self._steps(items):
            if not any(is_open for _, is_open in found):
                break
            longer = join(found, tails, self._most)
            if longer is None:
                return close(found)
            found = longer
            if len(found) > _MANY_PREFIXES and all(len(prefix) >= LONG_ENOUGH_CHARS for prefix, _ in found):
                break
        return found

    def _steps(self, items: Iterable[Any]) -> Iterator[Prefixes]:
        """Tell what each item begins with, one after the other; characters in a row are told as one."""
        word = ""
        for op, arg in items:
            if op in ZERO_WIDTH:
                continue
            letter = self._letter(chr(arg)) if op is ops.LITERAL else ""
            if letter and len(word) < LONGEST_PREFIX_CHARS:
                word += letter
                continue
            if word:
                yield frozenset(((word, True),))
                word = letter
            if not letter:
                yield self._step(op, arg)
        if word:
            yield frozenset(((word, True),))

    def _step(self, op: Any, arg: Any) -> Prefixes:
        """Return what one item begins with. Items are asked about again and again, so answers are remembered."""
        if isinstance(arg, int):
            return self._told(op, arg)
        known = self._known.get(id(arg))
        if known is None:
            known = self._known[id(arg)] = self._told(op, arg)
        return known

    def _told(self, op: Any, arg: Any) -> Prefixes:
        if op is ops.LITERAL:
            letter = self._letter(chr(arg))
            return frozenset(((letter, True),)) if letter else UNKNOWN
        if op is ops.IN:
            return self._members(arg)
        if op is ops.BRANCH:
            return frozenset().union(*(self.sequence(branch) for branch in arg[1]))
        if op is ops.SUBPATTERN:
            return self.sequence(arg[3])
        if op is ops.ATOMIC_GROUP:
            return self.sequence(arg)
        if op in REPEATS:
            return self._repeat(arg[0], arg[1], arg[2])
        return UNKNOWN

    def _members(self, members: list[Any]) -> Prefixes:
        letters: set[str] = set()
        for op, arg in members:
            if op is ops.LITERAL:
                letters.add(self._letter(chr(arg)))
            elif op is ops.RANGE and arg[1] - arg[0] < 26:
                letters.update(self._letter(chr(code)) for code in range(arg[0], arg[1] + 1))
            elif op is ops.CATEGORY and arg is ops.CATEGORY_DIGIT:
                letters.add(self._digit)
            elif op is ops.CATEGORY and arg is ops.CATEGORY_SPACE:
                letters.add(self._blank)
            else:
                return UNKNOWN
        if "" in letters or len(letters) > _MOST_MEMBERS:
            return UNKNOWN
        return frozenset((letter, True) for letter in letters)

    def _repeat(self, least: int, most: int, body: Iterable[Any]) -> Prefixes:
        once = self.sequence(body)
        found: Prefixes = NOTHING
        whole: set[tuple[str, bool]] = set()
        for copies in range(most + 1):
            if copies >= least:
                whole |= found
                if copies < most and copies - least >= _MOST_COPIES:
                    return frozenset(whole) | close(found)
            if copies == most:
                break
            longer = join(found, once, self._most)
            if longer is None or longer == found:
                return frozenset(whole) | close(found)
            found = longer
        return frozenset(whole)


def _cheaper(one: Way | None, other: Way | None) -> Way | None:
    if one is None or other is None:
        return one or other
    return other if other.price < one.price else one


def _union(ways: list[Way | None]) -> Way | None:
    leads: set[Lead] = set()
    for way in ways:
        if way is None:
            return None
        leads.update(way.leads)
    return Way(tuple(sorted(leads)), price_of(leads))
