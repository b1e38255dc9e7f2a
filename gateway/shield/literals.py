"""Which literals lead to the matches of a regex, and where a match may begin from there. Derived, never guessed.

Theory of operation. The regex is read as a sequence of items. Each item gives one way to find every match: what the
rest begins with from there on, and how many characters may stand before it. Where an item is a choice, each branch may
also go its own way. Of all ways the cheapest is taken, by how often its literals stand in ordinary text. Until a way is
taken, what stands right behind a literal is kept as the states that it begins in.
"""

import math
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gateway.shield.beginnings import END, PRICE_EACH, ZERO_WIDTH, Beginnings
from gateway.shield.frequency import likelihood
from gateway.shield.regex_tree import ops, parser
from gateway.shield.sequels import Sequels
from gateway.shield.unparse import backwards, bare, unparse

# How many literals a way may have: few at first, more only while what they give is dear.
_MOST_LITERALS = (24, 300, 3000)
# A way this cheap for so many literals is not worth looking for another.
_CHEAP_ENOUGH = (4e-6, 2e-5, 1e-4)
# A way this dear is worth looking for one where each branch of a choice goes its own way.
_DEAR = 3e-5
# With more literals only so many items are looked at again.
_MOST_SPOTS = 4
_MOST_BRANCHES = 80
# What following a lead costs, in tries at one place: when what comes after its literal is tried first, and a longer
# window only then; and when there is nothing to try first.
_RESTED = 1.6
_WINDOW = 3.0
_WINDOW_CHARS = 40
# What is tried around a rule's literals is no longer than this as regexes, or each of them than that, but for an item
# that must stand there: less tells nearly as much, and the rule's own regex has it all and is tried where that fits.
_MOST_PARTS_CHARS = 60_000
_MOST_PART_CHARS = 1_000
_WORD_CHARS = string.ascii_letters + string.digits + "_"
# What may not stand before a match, by `Plan.alone`, the most first.
ALONE = {
    "word": frozenset(_WORD_CHARS),
    "alnum": frozenset(string.ascii_letters + string.digits),
    "plain": frozenset(string.ascii_lowercase + string.digits),
    "letter": frozenset(string.ascii_letters),
    "lower": frozenset(string.ascii_lowercase),
    "digit": frozenset(string.digits),
    "": frozenset(""),
}
_DIGITS = {ord(digit): "0" for digit in "123456789"}


@dataclass(frozen=True, slots=True, order=True)
class Lead:
    """A literal and where a match may begin: `low` to `high` characters before it; negative is after it.

    When a match may begin at several places before it, rest: a regex that matches at the literal of every match, and
    back: one that matches what stands before it, read backwards from the literal's first letter on. Else empty.
    then: what stands right behind the literal, as in `Sequels.tell`; empty if that is not told.
    """

    literal: str
    low: int
    high: int
    rest: str = ""
    back: str = ""
    then: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """Leads one of which stands at every match. price: what following them costs, for each character of text."""

    leads: tuple[Lead, ...]
    price: float


def squash_digits(text: str) -> str:
    """Write every ASCII digit as 0: the letters the automaton reads."""
    return text.translate(_DIGITS)


def price_of(leads: Iterable[Lead]) -> float:
    """Estimate the work that leads cause for each character of ordinary text."""
    return sum(
        PRICE_EACH + likelihood(lead.literal) * _price_of_one(lead.low, lead.high, bool(lead.back)) for lead in leads
    )


def _price_of_one(low: int, high: int, is_checked: bool) -> float:
    if low == high:
        return 1.0
    return _RESTED if is_checked else _WINDOW + (high - low) / _WINDOW_CHARS


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in the regex from where on literals are told: the items, and how far into the match they may stand.

    before: the items that come before. state: where the items begin, for Beginnings.
    """

    before: list[Any]
    items: list[Any]
    low: int
    high: int
    state: int


@dataclass(frozen=True, slots=True)
class _Around:
    """What comes before and after some items; low, high: how much comes before. state: where it goes on after them."""

    before: list[Any]
    low: int
    high: int
    after: list[Any]
    state: int


_NOTHING = _Around([], 0, 0, [], END)


class Literals:
    """Derives literals from one parse tree.

    letter, digit, blank: as in Beginnings. is_exact: the literal's place in the text that is read is the regex's own,
    also where it begins with a blank.
    """

    __slots__ = ("_beginnings", "_blank", "_is_exact", "_kept", "_least", "_letter", "_parts", "_sizes", "_tree")

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
        self._blank = blank
        self._is_exact = is_exact
        self._letter = letter
        self._least = least
        self._beginnings = Beginnings(letter, digit=digit, blank=blank)
        self._kept: list[Any] = []
        # Items before and after the literals of windows; a lead carries their numbers until its way is chosen.
        self._parts: list[list[Any]] = []
        # How long each of those is as a regex, by its identity.
        self._sizes: dict[int, int] = {}

    def cheapest(self) -> Way | None:
        """Return the cheapest way to every match of the regex, or None if nothing leads there."""
        best = self._best(self._flat(self._tree), _NOTHING, math.inf)
        return best and self._written(best)

    def _best(self, own: list[Any], around: "_Around", limit: float) -> Way | None:
        """Choose among the ways that begin at some items or, branch by branch, within them; cost `limit` at most."""
        best = self._among(self._spots(own, around), limit)
        if best is None or best.price >= _DEAR:
            best = self._by_branches(own, around, best, limit)
        return best

    def _written(self, way: Way) -> Way:
        """Write out the regexes of a way's leads."""
        flags = self._tree.state.flags
        numbers = [{one.rest for one in way.leads} - {""}, {one.back for one in way.leads} - {""}]
        most = max(_MOST_PART_CHARS, _MOST_PARTS_CHARS // max(1, *map(len, numbers)))
        rests = {number: self._rest(self._parts[int(number)], most) for number in numbers[0]}
        backs = {
            number: backwards(self._short(self._parts[int(number)][::-1], most)[::-1], flags) for number in numbers[1]
        }
        tell = Sequels(self._beginnings, self._letter, is_exact=self._is_exact).tell
        written = (
            replace(
                one,
                rest=rests.get(one.rest, ""),
                back=backs.get(one.back, ""),
                then=tell(map(int, one.then.split()), one.literal),
            )
            for one in way.leads
        )
        return Way(tuple(written), way.price)

    def _rest(self, items: list[Any], most: int) -> str:
        """Write what comes from a literal on, as far as it is tried there: about so many characters as a regex."""
        state = self._tree.state
        return unparse(bare(self._short(items, most), state, with_edges=True), state.flags)

    def _short(self, items: list[Any], most: int) -> list[Any]:
        """Return the first of some items, up to one that must stand there or that looks around."""
        kept: list[Any] = []
        size = count = 0
        for number, item in enumerate(items, 1):
            if id(item) not in self._sizes:
                self._sizes[id(item)] = len(unparse([item]))
            size += self._sizes[id(item)]
            if size > most and count:
                break
            kept.append(item)
            if item[0] in ZERO_WIDTH or self._part([item]).getwidth()[0]:
                count = number
        return kept[:count]

    def beginning(self) -> Way | None:
        """Return the way by how every match begins, or None if that is not told."""
        items = self._flat(self._tree)
        way = self._way(_Spot([], items, 0, 0, self._beginnings.state(items)), _MOST_LITERALS[-1])
        return way and Way(tuple(replace(lead, then="") for lead in way.leads), way.price)

    def alone(self) -> str:
        """Tell what cannot stand before a match that begins with such a character, as in `Plan.alone`."""
        if any(op is ops.AT and arg is ops.AT_BOUNDARY for op, arg in self._conditions()):
            return "word"
        refused: set[str] = set()
        for op, arg in self._conditions():
            if op is ops.ASSERT_NOT and arg[0] < 0 and len(arg[1]) == 1 and arg[1].getwidth() == (1, 1):
                refused.update(filter(re.compile(unparse(arg[1]), re.ASCII).fullmatch, _WORD_CHARS))
        return next((name for name, chars in ALONE.items() if chars and refused.issuperset(chars)), "")

    def _conditions(self) -> Iterator[tuple[Any, Any]]:
        """Yield what must hold before the first character."""
        for op, arg in self._tree:
            if op not in ZERO_WIDTH:
                return
            yield op, arg

    def _among(self, spots: list[_Spot], limit: float) -> Way | None:
        """Choose among the ways that begin at some spots and cost no more than `limit`."""
        best: Way | None = None
        for most, enough in zip(_MOST_LITERALS, _CHEAP_ENOUGH, strict=True):
            told: list[tuple[float, int]] = []
            for number, spot in enumerate(spots):
                way = self._way(spot, most, limit if best is None else best.price)
                if way is not None:
                    told.append((way.price, number))
                    best = _cheaper(best, way)
                    if way.price < enough / 4:
                        return best
            if best is not None and best.price < enough:
                break
            # What was dear with few literals will hardly be the cheapest with more.
            spots = [spots[number] for _, number in sorted(told)[:_MOST_SPOTS]] or spots
        return best

    def _by_branches(self, own: list[Any], around: _Around, best: Way | None, limit: float) -> Way | None:
        """Choose among the ways where each branch of one choice goes its own way, and the best so far."""
        low, high = around.low, around.high
        for index, (op, arg) in enumerate(own):
            if op is ops.BRANCH and len(arg[1]) <= _MOST_BRANCHES:
                after, state = (
                    own[index + 1 :] + around.after,
                    self._beginnings.state(own, around.state, place=index + 1),
                )
                inner = _Around(around.before + own[:index], low, high, after, state)
                leads: list[Lead] = []
                most = min(limit, best.price if best else math.inf)
                price = 0.0
                for branch in map(self._flat, arg[1]):
                    way = self._best(branch, inner, most - price)
                    price += way.price if way else math.inf
                    if way is None or price >= most:
                        break
                    leads += way.leads
                else:
                    united = _united(leads)
                    best = _cheaper(best, Way(united, price_of(united)))
            least, widest = self._part([own[index]]).getwidth()
            low, high = low + least, high + widest
        return best

    def _spots(self, own: list[Any], around: _Around) -> list[_Spot]:
        """List where ways may begin among `own` items; words are not begun in their middle."""
        spots = []
        low, high = around.low, around.high
        items = own + around.after
        for index in range(min(len(own) or 1, len(items))):
            is_inside = (
                index > 0 and items[index][0] is items[index - 1][0] is ops.LITERAL and items[index - 1][1] != 32
            )
            least, most = self._part([items[index]]).getwidth()
            if not is_inside and most:
                state = self._beginnings.state(own, around.state, place=index)
                spots.append(_Spot(around.before + own[:index], items[index:], low, high, state))
            low, high = low + least, high + most
        return spots

    def _part(self, items: list[Any]) -> Any:
        return parser.SubPattern(self._tree.state, items)

    def _way(self, spot: _Spot, most: int, limit: float = math.inf) -> Way | None:
        is_window = spot.low != spot.high
        price = _price_of_one(spot.low, spot.high, True)
        beginnings = self._beginnings
        self._kept.append(spot.items)
        literals = beginnings.tell(spot.state, least_chars=self._least, most=most, price=price, limit=limit)
        if literals is None:
            return None
        if not self._is_exact and any(literal.startswith(" ") for literal in literals):
            # A blank may be one of a run in the text: the place found would not be the literal's own.
            return None
        rest = back = ""
        if is_window:
            rest = str(len(self._parts))
            self._parts.append(spot.items)
            back = str(len(self._parts))
            self._parts.append(spot.before)
        then = str(spot.state)
        leads = tuple(Lead(literal, spot.low, spot.high, rest, back, then) for literal in sorted(literals))
        return Way(leads, price_of(leads))

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
            else:
                flat.append((op, arg))
        return flat

    def _flagged(self, item: Any, on: int, off: int) -> Any:
        op, arg = item
        if op is ops.BRANCH:
            branches = [self._part([(ops.SUBPATTERN, (None, on, off, branch))]) for branch in arg[1]]
            return op, (None, branches)
        return ops.SUBPATTERN, (None, on, off, self._part([item]))


def _united(leads: Iterable[Lead]) -> tuple[Lead, ...]:
    """Return leads in order, those that differ only in the states they begin in as one."""
    states: dict[tuple[str, int, int, str, str], list[str]] = {}
    for lead in leads:
        states.setdefault((lead.literal, lead.low, lead.high, lead.rest, lead.back), []).append(lead.then)
    return tuple(Lead(*key, " ".join(sorted(set(found)))) for key, found in sorted(states.items()))


def _cheaper(one: Way | None, other: Way | None) -> Way | None:
    if one is None or other is None:
        return one or other
    return other if other.price < one.price else one
