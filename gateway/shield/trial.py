"""Time a regex on texts made to be its worst: long runs of what it repeats, with an end that does not fit.

Lengths grow step by step, so that a regex whose time explodes is refused long before it could hang.
"""

import re
import time
from collections.abc import Iterable
from typing import Any

from gateway.shield.beginnings import REPEATS, ZERO_WIDTH
from gateway.shield.patterns import PatternError
from gateway.shield.regex_tree import ops
from gateway.shield.unparse import parse

# What one search may take, for a text of at most 2,048 characters; a usual one takes a hundredth of it.
SLOWEST_SECONDS = 0.1
_LENGTHS = (12, 16, 20, 24, 32, 48, 64, 128, 256, 512, 1024, 2048)
_MOST_UNITS = 24
_MOST_HEADS = 4
_USUAL_UNITS = ("a", "0", " ", "a ", "a.", "-")


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
            heads[_sample(items[:index], at_most=64)] = None
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
                found.append(_sample(arg[2], at_most=32) or "a")
            found += _repeated(arg[2])
        elif op is ops.SUBPATTERN:
            found += _repeated(arg[3])
        elif op is ops.ATOMIC_GROUP:
            found += _repeated(arg)
        elif op is ops.BRANCH:
            for branch in arg[1]:
                found += _repeated(branch)
    return found


def _sample(items: Iterable[Any], *, at_most: int) -> str:
    """Return a text that the items would take, roughly: the first choice, the fewest copies."""
    parts: list[str] = []
    for op, arg in items:
        if op in ZERO_WIDTH:
            continue
        if op is ops.LITERAL:
            parts.append(chr(arg))
        elif op is ops.IN:
            parts.append(_member(arg))
        elif op in REPEATS:
            parts.append(_sample(arg[2], at_most=at_most) * min(arg[0], at_most))
        elif op is ops.SUBPATTERN:
            parts.append(_sample(arg[3], at_most=at_most))
        elif op is ops.ATOMIC_GROUP:
            parts.append(_sample(arg, at_most=at_most))
        elif op is ops.BRANCH:
            parts.append(_sample(arg[1][0], at_most=at_most))
        else:
            parts.append("a")
        if sum(map(len, parts)) >= at_most:
            break
    return "".join(parts)[:at_most]


def _member(members: list[Any]) -> str:
    op, arg = members[0]
    if op is ops.LITERAL:
        return chr(arg)
    if op is ops.RANGE:
        return chr(arg[0])
    if op is ops.CATEGORY:
        return {ops.CATEGORY_DIGIT: "0", ops.CATEGORY_SPACE: " "}.get(arg, "a")
    return next((char for char in "a0 ~" if not any(member == (ops.LITERAL, ord(char)) for member in members)), "a")
