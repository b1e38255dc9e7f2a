"""What stands before a literal, told by the regex that is read backwards from it. Knows no rule and no place."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from gateway.shield.beginnings import REPEATS, ZERO_WIDTH
from gateway.shield.literals import ALONE
from gateway.shield.regex_tree import ops, parser
from gateway.shield.unparse import parse, unparse

_CHARS = ALONE["word"]
_MOST_EDGE_CHARS = 8
_SINGLE = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)


def edge_before(back: str) -> str:
    """Return the name in ALONE of the most characters with which a regex cannot begin; empty when it may with any."""
    tree = _parsed(back)
    chars, is_empty = _first(tree, tree.state.flags)
    refused = frozenset() if is_empty else _CHARS - chars
    return next((name for name, held in ALONE.items() if held and refused >= held), "")


def edge_chars(back: str, edge: str) -> int:
    """Return how many characters on none of an edge stands in what a regex matches; 1 at least. edge: its name."""
    tree = _parsed(back)
    held, chars = ALONE[edge], 0
    for item in tree:
        least, most = parser.SubPattern(tree.state, [item]).getwidth()
        if most and held & _all([item], tree.state.flags):
            break
        chars += least
    return min(max(1, chars), _MOST_EDGE_CHARS)


@lru_cache(maxsize=1)
def _parsed(back: str) -> Any:
    return parse(back)


def _all(items: Iterable[Any], flags: int) -> frozenset[str]:
    """Return the characters that items may match anywhere."""
    chars: frozenset[str] = frozenset()
    for op, arg in items:
        if op in _SINGLE:
            chars |= _accepted(unparse([(op, arg)], flags))
        elif op is ops.SUBPATTERN:
            chars |= _all(arg[3], (flags | arg[1]) & ~arg[2])
        elif op is ops.BRANCH:
            chars = chars.union(*(_all(branch, flags) for branch in arg[1]))
        elif op in REPEATS:
            chars |= _all(arg[2], flags)
        elif op not in ZERO_WIDTH:
            return _CHARS
    return chars


def _first(items: Iterable[Any], flags: int) -> tuple[frozenset[str], bool]:
    """Return the characters that items may begin with, and whether they may match nothing."""
    chars: frozenset[str] = frozenset()
    left = _CHARS
    for op, arg in items:
        if op in ZERO_WIDTH:
            if op is ops.ASSERT_NOT and arg[0] > 0 and len(arg[1]) == 1 and arg[1][0][0] in _SINGLE:
                left -= _accepted(unparse(arg[1], flags))
            continue
        found, is_empty = _of(op, arg, flags)
        chars |= found & left
        if not is_empty:
            return chars, False
    return chars, True


def _of(op: Any, arg: Any, flags: int) -> tuple[frozenset[str], bool]:
    if op in _SINGLE:
        return _accepted(unparse([(op, arg)], flags)), False
    if op is ops.SUBPATTERN:
        return _first(arg[3], (flags | arg[1]) & ~arg[2])
    if op is ops.BRANCH:
        ways = [_first(branch, flags) for branch in arg[1]]
        return frozenset().union(*(chars for chars, _ in ways)), any(is_empty for _, is_empty in ways)
    if op in REPEATS:
        found, is_empty = _first(arg[2], flags)
        return found, is_empty or arg[0] == 0
    return _CHARS, True


@lru_cache(maxsize=4_096)
def _accepted(single: str) -> frozenset[str]:
    return frozenset(filter(re.compile(single, re.ASCII).match, _CHARS))
