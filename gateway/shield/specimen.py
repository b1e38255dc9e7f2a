"""Texts that a regex matches, made at random from its own parts. They may fail its conditions: try them."""

import hashlib
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from gateway.shield.beginnings import REPEATS, ZERO_WIDTH
from gateway.shield.regex_tree import ops
from gateway.shield.unparse import parse

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


def specimens(source: str, seed: str, *, count: int) -> Iterator[str]:
    """Yield texts that a bounded regex may match, the same for the same seed."""
    tree = parse(source)
    dice = _Dice(seed)
    for number in range(count):
        yield _sequence(tree, dice, number)


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
