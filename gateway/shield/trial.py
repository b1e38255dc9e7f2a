"""Texts made from a regex by its parse tree: such as it may match, at random, and those that are its worst cases.

The worst cases are long runs of what the regex repeats, with an end that does not fit. Lengths grow step by step, so
that a regex whose time explodes is refused long before it could hang.
"""

import hashlib
import re
import string
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from gateway.shield.patterns import PatternError
from gateway.shield.regex_tree import REPEATS, ZERO_WIDTH, ops, parse

# What one search may take, for a text of at most 2,048 characters; a usual one takes a hundredth of it.
SLOWEST_SECONDS = 0.1
_LENGTHS = (12, 16, 20, 24, 32, 48, 64, 128, 256, 512, 1024, 2048)
_MOST_UNITS = 24
_MOST_HEADS = 4
_MOST_UNIT_CHARS, _MOST_HEAD_CHARS = 32, 64
_USUAL_UNITS = ("a", "0", " ", "a ", "a.", "-")
_Choice = TypeVar("_Choice")
# Copies of what may repeat, above the fewest.
_MORE_COPIES = 24
_ALPHABET = string.ascii_letters + string.digits
_OTHERS = "_-. =:/\"'\n\t" + string.punctuation
_CATEGORIES = {
    ops.CATEGORY_DIGIT: string.digits,
    ops.CATEGORY_NOT_DIGIT: string.ascii_letters,
    ops.CATEGORY_SPACE: " ",
    ops.CATEGORY_NOT_SPACE: _ALPHABET,
    ops.CATEGORY_WORD: _ALPHABET,
    ops.CATEGORY_NOT_WORD: " -",
}


def try_pattern(source: str) -> None:
    """Run a checked regex on its worst cases.

    Raises:
        PatternError: it takes too long on one of them.
    """
    regex = re.compile(source, re.ASCII)
    tree = parse(source)
    for length in _LENGTHS:
        for head in _heads(tree):
            for unit in _units(tree):
                text = head + (unit * (length // len(unit) + 1))[:length] + "\x00"
                began = time.thread_time()
                regex.search(text)
                if time.thread_time() - began > SLOWEST_SECONDS:
                    raise PatternError(f"takes too long on {text[:24]!r}… of {len(text)} characters")


def _heads(tree: Any) -> list[str]:
    """Return samples of what stands before each of the regex's first repeats, with as few copies as may be."""
    heads = {"": None}
    items = list(tree)
    for index, (op, _) in enumerate(items):
        if op in REPEATS or op is ops.SUBPATTERN or op is ops.BRANCH:
            heads[_plainest(items[:index])[:_MOST_HEAD_CHARS]] = None
    return list(heads)[:_MOST_HEADS]


def _units(tree: Any) -> list[str]:
    """Return what to make runs of: samples of all that the regex repeats, and usual characters."""
    units = dict.fromkeys(_USUAL_UNITS)
    for unit in _repeated(tree):
        units[unit] = None
    return list(units)[: _MOST_UNITS + len(_USUAL_UNITS)]


def _repeated(items: Iterable[Any]) -> list[str]:
    found: list[str] = []
    for op, arg in items:
        if op in REPEATS:
            if arg[1] > 1:
                found.append(_plainest(arg[2])[:_MOST_UNIT_CHARS] or "a")
            found += _repeated(arg[2])
        elif op is ops.SUBPATTERN:
            found += _repeated(arg[3])
        elif op is ops.ATOMIC_GROUP:
            found += _repeated(arg)
        elif op is ops.BRANCH:
            for branch in arg[1]:
                found += _repeated(branch)
    return found


class _Dice:
    """Chance that is the same for the same seed, on every host."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._throws = 0

    def below(self, size: int) -> int:
        """Return a number from 0 to size - 1."""
        self._throws += 1
        digest = hashlib.sha256(f"{self._seed}/{self._throws}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % size

    def choice(self, choices: Sequence[_Choice]) -> _Choice:
        """Return one of some."""
        return choices[self.below(len(choices))]


class _Fewest(_Dice):
    """Always the first choice."""

    def below(self, size: int) -> int:
        return 0


def specimens(source: str, seed: str, *, count: int) -> Iterator[str]:
    """Yield texts that a bounded regex may match, the same for the same seed."""
    tree = parse(source)
    dice = _Dice(seed)
    for number in range(count):
        yield _sequence(tree, dice, number)


def _plainest(items: Iterable[Any]) -> str:
    """Return a text that items would take, roughly: the first choice, the fewest copies."""
    return _sequence(items, _Fewest(""), 0)


def _sequence(items: Iterable[Any], dice: _Dice, more: int) -> str:
    return "".join(_item(op, arg, dice, more) for op, arg in items)


def _item(op: Any, arg: Any, dice: _Dice, more: int) -> str:
    if op in ZERO_WIDTH:
        return ""
    if op is ops.LITERAL:
        return chr(arg)
    if op is ops.NOT_LITERAL:
        return dice.choice(_ALPHABET.replace(chr(arg), ""))
    if op is ops.ANY:
        return dice.choice(_ALPHABET)
    if op is ops.IN:
        return dice.choice(_members(arg))
    if op is ops.BRANCH:
        return _sequence(dice.choice(arg[1]), dice, more)
    if op is ops.SUBPATTERN:
        return _sequence(arg[3], dice, more)
    if op is ops.ATOMIC_GROUP:
        return _sequence(arg, dice, more)
    if op in REPEATS:
        least, most, body = arg
        copies = min(most, least + dice.below(min(more, _MORE_COPIES) + 1))
        return "".join(_sequence(body, dice, more) for _ in range(copies))
    return ""


def _members(members: list[Any]) -> str:
    chars: set[str] = set()
    is_negated = False
    for op, arg in members:
        if op is ops.NEGATE:
            is_negated = True
        elif op is ops.LITERAL:
            chars.add(chr(arg))
        elif op is ops.RANGE:
            chars.update(map(chr, range(arg[0], min(arg[1], arg[0] + 255) + 1)))
        elif op is ops.CATEGORY:
            chars.update(_CATEGORIES[arg])
    if is_negated:
        return "".join(char for char in _ALPHABET + _OTHERS if char not in chars) or "~"
    return "".join(sorted(chars)) or "a"
