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
from functools import lru_cache
from typing import Any

from gateway.shield.frequency import likelihood
from gateway.shield.unparse import unparse

_MOST_PREFIXES = (24, 128, 400)
_LONGEST_PREFIX_CHARS = 12
# With so many prefixes, none shorter than this, following them further gains nothing.
_MANY_PREFIXES = 16
_LONG_ENOUGH_CHARS = 6
# A way this cheap is not worth looking into choices for a cheaper one.
_CHEAP_ENOUGH = 8e-6
# What following a lead costs when what comes after its literal is tried first, and a longer window only then.
_RESTED = 1.5
# What one more lead costs wherever it stands: room in the automaton, and time at the start.
_LEAD = 1e-7
# A literal this rare need not be longer.
_RARE_ENOUGH = 2e-7
_MOST_COPIES = 4
# When alternatives are too many to be told apart, they are told apart by their first characters.
_CUTS = (4, 2, 1)
_MOST_MEMBERS = 10
_MOST_BRANCHES = 80
_DIGITS = {ord(digit): "0" for digit in "123456789"}
ZERO_WIDTH = frozenset((ops.AT, ops.ASSERT, ops.ASSERT_NOT))
REPEATS = frozenset((ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT))

Prefixes = frozenset[tuple[str, bool]]
_NOTHING: Prefixes = frozenset((("", True),))
_UNKNOWN: Prefixes = frozenset((("", False),))


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
        for most in _MOST_PREFIXES:
            self._most = most
            self._known = {}
            best = _cheaper(best, self._plain(items, len(items), 0, 0))
            if best is not None and best.price < _CHEAP_ENOUGH * most / _MOST_PREFIXES[0]:
                return best
        low = high = 0
        for index, item in enumerate(items):
            op, arg = item
            if op is ops.BRANCH and len(arg[1]) <= _MOST_BRANCHES:
                branches = [self._flat(branch) for branch in arg[1]]
                rest = items[index + 1 :]
                ways = [self._plain(branch + rest, len(branch), low, high) for branch in branches]
                best = _cheaper(best, _union(ways))
            least, most = self._width(item)
            low, high = low + least, high + most
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
        for index in range(own):
            best = _cheaper(best, self._way(items[index:], low, high))
            least, most = self._width(items[index])
            low, high = low + least, high + most
        return best

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
            prefixes = {_squeeze(prefix) for prefix in prefixes}
        if not self._is_exact and any(prefix.startswith(" ") for prefix in prefixes):
            # A blank may be one of a run in the text: the place found would not be the literal's own.
            return None
        if any(len(prefix) < self._least and prefix != "@" for prefix in prefixes):
            return None
        prefixes = {_shortened(prefix) for prefix in prefixes}
        shortest = [prefix for prefix in prefixes if not any(prefix[:cut] in prefixes for cut in range(1, len(prefix)))]
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
        found = _NOTHING
        for tails in self._steps(items):
            if not any(is_open for _, is_open in found):
                break
            longer = _join(found, tails, self._most)
            if longer is None:
                return _close(found)
            found = longer
            if len(found) > _MANY_PREFIXES and all(len(prefix) >= _LONG_ENOUGH_CHARS for prefix, _ in found):
                break
        return found

    def _steps(self, items: Iterable[Any]) -> Iterator[Prefixes]:
        """Tell what each item begins with, one after the other; characters in a row are told as one."""
        word = ""
        for op, arg in items:
            if op in ZERO_WIDTH:
                continue
            letter = self._letter(chr(arg)) if op is ops.LITERAL else ""
            if letter and len(word) < _LONGEST_PREFIX_CHARS:
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
            return frozenset(((letter, True),)) if letter else _UNKNOWN
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
        return _UNKNOWN

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
                return _UNKNOWN
        if "" in letters or len(letters) > _MOST_MEMBERS:
            return _UNKNOWN
        return frozenset((letter, True) for letter in letters)

    def _repeat(self, least: int, most: int, body: Iterable[Any]) -> Prefixes:
        once = self.sequence(body)
        found: Prefixes = _NOTHING
        whole: set[tuple[str, bool]] = set()
        for copies in range(most + 1):
            if copies >= least:
                whole |= found
                if copies < most and copies - least >= _MOST_COPIES:
                    return frozenset(whole) | _close(found)
            if copies == most:
                break
            longer = _join(found, once, self._most)
            if longer is None or longer == found:
                return frozenset(whole) | _close(found)
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


def _shortened(prefix: str) -> str:
    """Return the beginning of a literal that is rare enough by itself: so many literals become one."""
    for cut in range(_LONG_ENOUGH_CHARS, len(prefix)):
        if likelihood(prefix[:cut]) < _RARE_ENOUGH and prefix[cut - 1] != " ":
            return prefix[:cut]
    return prefix


def _squeeze(text: str) -> str:
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def _close(prefixes: Prefixes) -> Prefixes:
    return frozenset((prefix, False) for prefix, _ in prefixes)


def _join(heads: Prefixes, tails: Prefixes, most: int) -> Prefixes | None:
    """Append every tail to every head that is still open.

    When that would be too many, only the beginnings of the tails are. When even those are too many, only the heads
    that are likeliest to stand anywhere are followed, the rest are closed. None when not even one can be.
    """
    open_heads = [head for head, is_open in heads if is_open]
    if len(open_heads) == len(tails) == len(heads) == 1:
        ((tail, goes_on),) = tails
        text = open_heads[0] + tail
        return frozenset(((text[:_LONGEST_PREFIX_CHARS], goes_on and len(text) < _LONGEST_PREFIX_CHARS),))
    joined = {(head, False) for head, is_open in heads if not is_open}
    if len(joined) + len(open_heads) * len(tails) > most:
        for cut in _CUTS:
            short = _cut(tails, cut)
            if len(joined) + len(open_heads) * len(short) <= most:
                tails = short
                break
        else:
            followed = max(0, most - len(heads)) // max(1, len(short) - 1)
            if not followed:
                return None
            open_heads.sort(key=lambda head: (-likelihood(head), head))
            joined.update((head, False) for head in open_heads[followed:])
            open_heads, tails = open_heads[:followed], short
    for head in open_heads:
        for tail, goes_on in tails:
            text = head + tail
            joined.add((text[:_LONGEST_PREFIX_CHARS], goes_on and len(text) < _LONGEST_PREFIX_CHARS))
    return frozenset(joined)


@lru_cache(maxsize=1024)
def _cut(prefixes: Prefixes, most: int) -> Prefixes:
    """Return the first `most` characters of prefixes; what is cut off cannot be followed further."""
    return frozenset((prefix[:most], is_open and len(prefix) <= most) for prefix, is_open in prefixes)
