"""Choices of a parsed regex brought together by their first letters, so that fewer are tried. Changes no match.

Theory of operation. `re` tries the branches of a choice one after the other, a hundred of them at each place. Branches
that begin with different letters exclude each other, so those with the same first letter can stand together in the
order they have among themselves, and be told by it once: ``(?:send|pay|share)`` becomes ``(?:s(?:end|hare)|pay)``. A
branch that does not begin with a letter stays where it is, and none is moved across it.
"""

import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

from gateway.shield.beginnings import REPEATS


def factor(tree: Any, flags: int = 0) -> Any:
    """Return a parse tree that matches as the given one does. flags: those in force where it stands."""
    return _sequence(tree, tree.state, flags | tree.state.flags)


def _sequence(items: Any, state: Any, flags: int) -> Any:
    return parser.SubPattern(state, [_item(op, arg, state, flags) for op, arg in items])


def _item(op: Any, arg: Any, state: Any, flags: int) -> tuple[Any, Any]:
    if op is ops.BRANCH:
        return _choice([_sequence(branch, state, flags) for branch in arg[1]], state, flags)
    if op is ops.SUBPATTERN:
        group, on, off, inner = arg
        return op, (group, on, off, _sequence(inner, state, (flags | on) & ~off))
    if op is ops.ATOMIC_GROUP:
        return op, _sequence(arg, state, flags)
    if op in REPEATS:
        return op, (arg[0], arg[1], _sequence(arg[2], state, flags))
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return op, (arg[0], _sequence(arg[1], state, flags))
    return op, arg


def _choice(branches: list[Any], state: Any, flags: int) -> tuple[Any, Any]:
    """Write a choice whose branches are in order; those between two that begin with no letter are sorted together."""
    kept: list[Any] = []
    together: dict[int, list[Any]] = {}
    for branch in branches:
        letter = _first_letter(branch, flags)
        if letter is None:
            kept += [_led(group, state, flags) for group in together.values()]
            together = {}
            kept.append(branch)
        else:
            together.setdefault(letter, []).append(branch)
    kept += [_led(group, state, flags) for group in together.values()]
    return ops.BRANCH, (None, kept)


def _first_letter(branch: Any, flags: int) -> int | None:
    if not len(branch) or branch[0][0] is not ops.LITERAL:
        return None
    letter = int(branch[0][1])
    if flags & re.IGNORECASE:
        return ord(chr(letter).lower()) if letter < 128 else None
    return letter


def _led(group: list[Any], state: Any, flags: int) -> Any:
    """Write branches that begin with the same letter as one."""
    if len(group) == 1:
        return group[0]
    rests = [parser.SubPattern(state, branch.data[1:]) for branch in group]
    return parser.SubPattern(state, [group[0][0], _choice(rests, state, flags)])
