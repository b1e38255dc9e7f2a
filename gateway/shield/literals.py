"""Which literals lead to the matches of a regex, and where a match may begin from there. Derived, never guessed.

Theory of operation. The regex is read as a sequence of items. From each item on, the texts that the rest may begin with
are listed, as long as there are not too many: one of them stands there in every match. Of all these lists the cheapest
is taken, by how often its texts stand in ordinary text. Where an item is a choice, each branch may have its own list.

How often that is was measured on seventeen million characters of harmless texts: prose, manuals, dialogues and much
code, normalized, every digit written as 0. `grams.json` (`bench/scan/grams.py`) lists for each length and class the
pieces of that length one behind the other; a piece of class n stands once in 2 ** (n / 2) characters. Of other scripts
nothing was counted: their letters are taken for equally frequent, and texts in them for rare.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from gateway.shield import data_files
from gateway.shield.regex_tree import REPEATS, ZERO_WIDTH, ops, width

GRAMS_FILE = "gateway/shield/grams.json"
LONGEST_GRAM_CHARS = 5
# How often what is not listed may stand at most, by its length: what `grams.json` was cut off at.
CUT_OFF = {1: 1e-6, 2: 1e-6, 3: 2e-6, 4: 5e-6, 5: 1e-5}
_UNLISTED = 0.4
_LEAST = 1e-13
# How many texts are in another script, and how often one of its letters or signs stands in those; an ideograph behind
# another one makes a word with it more often.
_OTHER_SCRIPTS = 0.05
_LETTER, _BLANK, _IDEOGRAPH, _NEXT_IDEOGRAPH = 0.05, 0.15, 0.004, 0.03
_FIRST_IDEOGRAPH = "\u2e80"
LONGEST_CHARS = 12
# How many texts a list may have, and how many letters a class; what is larger counts as anything.
_MOST_TEXTS = 3_000
_MOST_LETTERS = 10
_MOST_COPIES = 3
# Where there are too many, they are cut to so many characters.
_SHORTER = (8, 6, 5, 4, 3)
_MOST_BRANCHES = 80
# What one more literal costs wherever it stands: room in the automaton, and time at the start.
_PRICE_EACH = 5e-7
# A list this dear is worth looking for one of each branch.
_DEAR = 1e-5
# What following a literal costs in tries at one place, when a match may begin at several places before it.
_WINDOW = 3.0
_WINDOW_CHARS = 30
# Numbers come in pages full of them: where a match may begin at several places before some digits, they are no rarer.
_NUMBER_SHARE = 5e-3
_DIGITS = {ord(digit): "0" for digit in "123456789"}


@dataclass(frozen=True, slots=True, order=True)
class Lead:
    """A literal and where a match may begin: `low` to `high` characters before it; negative is after it."""

    literal: str
    low: int
    high: int


class Way(NamedTuple):
    """Leads one of which stands at every match. price: what following them costs, for each character of text."""

    leads: tuple[Lead, ...]
    price: float


class _Texts(NamedTuple):
    """What some items may be: whole texts, to which more may be joined, and beginnings of longer ones."""

    whole: frozenset[str]
    cut: frozenset[str]


_NOTHING = _Texts(frozenset(("",)), frozenset())
_ANYTHING = _Texts(frozenset(), frozenset(("",)))


def squash_digits(text: str) -> str:
    """Write every ASCII digit as 0: the letters the automaton reads."""
    return text.translate(_DIGITS)


def price_of(leads: Iterable[Lead]) -> float:
    """Estimate the work that leads cause for each character of ordinary text."""
    price = 0.0
    for lead in leads:
        share = likelihood(lead.literal)
        if lead.low != lead.high and "0" in lead.literal and not any(map(str.isalpha, lead.literal)):
            share = max(share, _NUMBER_SHARE)
        price += _PRICE_EACH + share * _tries(lead.low, lead.high)
    return price


def _tries(low: int, high: int) -> float:
    return 1.0 if low == high else _WINDOW + (high - low) / _WINDOW_CHARS


class Literals:
    """Derives literals from one parse tree.

    letter: what a character of the regex is in the text that is read; empty if it is not there. digit: the letter that
    stands for any digit, or empty. blank: the letter of any white space, of which no two stand together, or empty.
    is_exact: the literal's place in the text that is read is the regex's own, also where it begins with a blank.
    least_chars: of a literal.
    """

    __slots__ = ("_blank", "_digit", "_is_exact", "_known", "_least_chars", "_letter", "_tree")

    def __init__(
        self,
        tree: Any,
        letter: Callable[[str], str],
        *,
        digit: str = "",
        blank: str = "",
        is_exact: bool = True,
        least_chars: int = 2,
    ) -> None:
        self._tree = tree
        self._letter = letter
        self._digit = digit
        self._blank = blank
        self._is_exact = is_exact
        self._least_chars = least_chars
        self._known: dict[int, _Texts] = {}  # by the identity of items of the tree, which lives as long

    def cheapest(self) -> Way | None:
        """Return the cheapest way to every match of the regex, or None if nothing leads there."""
        return self._best(_flat(self._tree), [], 0, 0)

    def beginning(self) -> Way | None:
        """Return the way by how every match begins, or None if that is not told."""
        return self._way(_flat(self._tree), 0, 0)

    def _best(self, own: list[Any], after: list[Any], low: int, high: int) -> Way | None:
        """Choose among the ways that begin at some items or, branch by branch, within them. low, high: what stands
        before them.
        """
        best: Way | None = None
        items, lows = own + after, [(low, high)]
        for place, item in enumerate(own):
            is_inside = place and item[0] is items[place - 1][0] is ops.LITERAL and items[place - 1][1] != ord(" ")
            if not is_inside and width(item)[1]:
                best = _cheaper(best, self._way(items[place:], *lows[-1]))
            least, most = width(item)
            lows.append((lows[-1][0] + least, lows[-1][1] + most))
        if best is not None and best.price < _DEAR:
            return best
        for place, (op, arg) in enumerate(own):
            if op is ops.BRANCH and len(arg[1]) <= _MOST_BRANCHES:
                best = _cheaper(best, self._by_branches(arg[1], items[place + 1 :], *lows[place]))
        return best

    def _by_branches(self, branches: Iterable[Any], after: list[Any], low: int, high: int) -> Way | None:
        leads: set[Lead] = set()
        for branch in branches:
            way = self._best(_flat(branch), after, low, high)
            if way is None:
                return None
            leads.update(way.leads)
        return Way(tuple(sorted(leads)), price_of(leads))

    def _way(self, items: list[Any], low: int, high: int) -> Way | None:
        texts = self._sequence(items)
        every = texts.whole | texts.cut
        if any(len(text) < self._least_chars and text != "@" for text in every):
            return None
        if not self._is_exact and any(text.startswith(" ") for text in every):
            # A blank may be one of a run in the text: the place found would not be the literal's own.
            return None
        kept = _pruned(every, max(2, self._least_chars), _tries(low, high))
        leads = tuple(Lead(text, low, high) for text in sorted(kept))
        return Way(leads, price_of(leads))

    def _sequence(self, items: Iterable[Any]) -> _Texts:
        found = _NOTHING
        for item in items:
            if not found.whole:
                break
            found = self._joined(found, self._item(item))
        return found

    def _joined(self, first: _Texts, then: _Texts) -> _Texts:
        if len(first.whole) * (len(then.whole) + len(then.cut)) > _MOST_TEXTS or then == _ANYTHING:
            return _Texts(frozenset(), first.cut | first.whole)
        cut = {self._text(one, other) for one in first.whole for other in then.cut}
        whole = {self._text(one, other) for one in first.whole for other in then.whole}
        long = {text for text in whole if len(text) >= LONGEST_CHARS}
        return _Texts(frozenset(whole - long), first.cut | cut | long)

    def _text(self, one: str, other: str) -> str:
        if self._blank and one.endswith(self._blank) and other.startswith(self._blank):
            other = other[len(self._blank) :]
        return (one + other)[:LONGEST_CHARS]

    def _item(self, item: Any) -> _Texts:
        op, arg = item
        if op is ops.LITERAL:
            letter = self._letter(chr(arg))
            return _Texts(frozenset((letter,)), frozenset()) if letter else _ANYTHING
        if op in ZERO_WIDTH:
            return _NOTHING
        known = self._known.get(id(arg))
        if known is None:
            known = self._known[id(arg)] = self._listed(op, arg)
        return known

    def _listed(self, op: Any, arg: Any) -> _Texts:
        if op is ops.IN:
            return self._members(arg)
        if op is ops.BRANCH:
            return _union([self._sequence(branch) for branch in arg[1]])
        if op is ops.SUBPATTERN:
            return self._sequence(arg[3])
        if op is ops.ATOMIC_GROUP:
            return self._sequence(arg)
        if op in REPEATS:
            return self._copies(arg[0], arg[1], self._sequence(arg[2]))
        return _ANYTHING

    def _copies(self, least: int, most: int, body: _Texts) -> _Texts:
        found = _NOTHING
        for _ in range(min(least, LONGEST_CHARS)):
            found = self._joined(found, body)
        several = [found]
        for _ in range(least, min(most, least + _MOST_COPIES)):
            several.append(self._joined(several[-1], body))
        if most > least + _MOST_COPIES or least > LONGEST_CHARS:
            # The last ones go on.
            several[-1] = _Texts(frozenset(), several[-1].whole | several[-1].cut)
        return _union(several)

    def _members(self, members: list[Any]) -> _Texts:
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
                return _ANYTHING
        if "" in letters or len(letters) > _MOST_LETTERS:
            return _ANYTHING
        return _Texts(frozenset(letters), frozenset())


def _flat(items: Iterable[Any]) -> list[Any]:
    """Write groups as the sequence they hold. Flags of a group do not matter: literals are looked for in any case."""
    flat: list[Any] = []
    for op, arg in items:
        if op is ops.SUBPATTERN:
            flat += _flat(arg[3])
        else:
            flat.append((op, arg))
    return flat


def _union(several: list[_Texts]) -> _Texts:
    whole = frozenset().union(*(one.whole for one in several))
    cut = frozenset().union(*(one.cut for one in several))
    if "" in cut:
        return _ANYTHING
    if len(whole) + len(cut) <= _MOST_TEXTS:
        return _Texts(whole, cut)
    shorter = (frozenset(text[:size] for text in whole | cut) for size in _SHORTER)
    few = next((texts for texts in shorter if len(texts) <= _MOST_TEXTS), _ANYTHING.cut)
    return _Texts(frozenset(), few)


def _pruned(texts: Iterable[str], least_chars: int, tries: float) -> list[str]:
    """Return fewer texts with one of which each of some begins: those hardly rarer than what they begin with go."""
    kept: list[str] = []
    for text in sorted(texts):
        if not (kept and text.startswith(kept[-1])):
            kept.append(text)
    prices = {text: _PRICE_EACH + tries * likelihood(text) for text in kept}
    for size in range(LONGEST_CHARS - 1, least_chars - 1, -1):
        groups: dict[str, list[str]] = {}
        for text in prices:
            if len(text) > size:
                groups.setdefault(text[:size], []).append(text)
        for beginning, group in groups.items():
            price = _PRICE_EACH + tries * likelihood(beginning)
            if sum(prices[text] for text in group) >= price:
                for text in group:
                    del prices[text]
                prices[beginning] = price
    return list(prices)


def _cheaper(one: Way | None, other: Way | None) -> Way | None:
    if one is None or other is None:
        return one or other
    return other if other.price < one.price else one


@lru_cache(maxsize=262_144)
def likelihood(text: str) -> float:
    """Estimate how often `text` stands at a given character of ordinary text, 0 to 1."""
    if not text.isascii():
        return max(_LEAST, math.prod(map(_letter, text, " " + text), start=_OTHER_SCRIPTS))
    if len(text) <= LONGEST_GRAM_CHARS:
        return _share(text)
    last = text[-LONGEST_GRAM_CHARS:]
    return max(_LEAST, likelihood(text[:-1]) * min(1.0, _share(last) / _share(last[:-1])))


def _letter(char: str, before: str) -> float:
    if char >= _FIRST_IDEOGRAPH:
        return _NEXT_IDEOGRAPH if before >= _FIRST_IDEOGRAPH else _IDEOGRAPH
    return _BLANK if char == " " else _LETTER


@lru_cache(maxsize=131_072)
def _share(piece: str) -> float:
    if not piece:
        return 1.0
    told = _grams().get(piece)
    if told is not None:
        return told
    most = CUT_OFF[len(piece)] * _UNLISTED
    if len(piece) == 1:
        return most
    # Both ends are known to follow and to precede the middle: so often do they do both if that is chance.
    return max(_LEAST, min(most, _share(piece[:-1]) * _share(piece[1:]) / _share(piece[1:-1])))


@lru_cache(maxsize=1)
def _grams() -> dict[str, float]:
    shares: dict[str, float] = {}
    for length, classes in json.loads(data_files.read(GRAMS_FILE))["pieces"].items():
        step = int(length)
        for kind, pieces in classes.items():
            share = 2.0 ** (-int(kind) / 2)
            shares.update(dict.fromkeys((pieces[at : at + step] for at in range(0, len(pieces), step)), share))
    return shares
