"""Choices of a parsed regex brought together by their first letters, so that fewer are tried. Changes no match.

Theory of operation. `re` tries the branches of a choice one after the other, a hundred of them at each place. Branches
that begin with different letters exclude each other, so those with the same first letter can stand together in the
order they have among themselves, and be told by it once: ``(?:send|pay|share)`` becomes ``(?:s(?:end|hare)|pay)``. A
branch that begins with a choice, or with what may be left out, is written as several that begin with a letter where
little is written twice for that: ``(?:s?tnega|tob)`` becomes ``(?:stnega|tnega|tob)``. A branch that still does not
begin with a letter stays where it is, and none is moved across it.

Behind a wide gap a choice is tried at each place. Where branches of it are choices themselves, it is looked first
whether one of all their beginnings stands there.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.shield.automaton import trie_regex
from gateway.shield.beginnings import REPEATS, ZERO_WIDTH
from gateway.shield.regex_tree import ops, parser

_IGNORECASE = int(re.IGNORECASE)
# How many items may be written once more so that a branch begins with a letter.
_MOST_REPEATED = 40
# How wide a gap is, how many letters of what stands behind it are looked at, and how many beginnings at most.
_WIDE = 80
_HEAD_CHARS = 3
_MOST_HEADS = 160
_ONE_CHAR = (ops.NOT_LITERAL, ops.ANY, ops.IN)
_OPENED = (ops.BRANCH, ops.MAX_REPEAT, ops.MIN_REPEAT)
_GROUPS = (ops.SUBPATTERN, ops.GROUPREF, ops.GROUPREF_EXISTS)


def factor(tree: Any, flags: int = 0) -> Any:
    """Return a parse tree that matches as the given one does. flags: those in force where it stands."""
    return _sequence(tree, tree.state, flags | tree.state.flags)


def _sequence(items: Any, state: Any, flags: int) -> Any:
    done: list[Any] = []
    is_behind_gap = False
    for place, (op, arg) in enumerate(items):
        item = _item(op, arg, state, flags)
        if is_behind_gap and op is not ops.AT:
            done += _looked([item, *items[place + 1 :]], state, flags)
            is_behind_gap = False
        if op in REPEATS:
            is_behind_gap = arg[1] - arg[0] >= _WIDE and len(arg[2]) == 1 and arg[2][0][0] in _ONE_CHAR
        done.append(item)
    return parser.SubPattern(state, done)


def _looked(items: list[Any], state: Any, flags: int) -> list[Any]:
    """Return what looks whether items that begin with a choice of choices may stand there; nothing for any others."""
    op, arg = items[0]
    if op is ops.SUBPATTERN and not any(arg[:3]) and len(arg[3]) == 1:
        op, arg = arg[3][0]
    if op is not ops.BRANCH or flags & _IGNORECASE or all(_first_letter(one, flags) is not None for one in arg[1]):
        return []
    heads = {head for head, _ in _heads(items)}
    if "" in heads or len(heads) > _MOST_HEADS:
        return []
    least = [head for head in sorted(heads) if not any(head[:cut] in heads for cut in range(1, len(head)))]
    tree = parser.parse(trie_regex(least), flags)
    return [(ops.ASSERT, (1, _sequence(tree, state, flags)))]


def _heads(items: Iterable[Any]) -> set[tuple[str, bool]]:
    """Return up to _HEAD_CHARS letters with which a sequence may begin, and whether they may be all of it."""
    begun: set[str] = set()
    whole = {""}
    for op, arg in items:
        if op in ZERO_WIDTH:
            continue
        said = _said(op, arg)
        grown = {(head + more, is_all and len(head + more) < _HEAD_CHARS) for head in whole for more, is_all in said}
        begun.update(head[:_HEAD_CHARS] for head, is_all in grown if not is_all)
        whole = {head for head, is_all in grown if is_all}
        if len(begun) + len(whole) > _MOST_HEADS:
            return {("", False)}
    return {(head, False) for head in begun} | {(head, True) for head in whole}


def _said(op: Any, arg: Any) -> set[tuple[str, bool]]:
    """Return the same of one item."""
    if op is ops.LITERAL:
        return {(chr(arg), True)}
    if op is ops.SUBPATTERN and not (arg[1] or arg[2]):
        return _heads(arg[3])
    if op is ops.BRANCH:
        return {head for branch in arg[1] for head in _heads(branch)}
    if op in REPEATS and arg[:2] == (0, 1):
        return _heads(arg[2]) | {("", True)}
    if op in REPEATS and arg[0]:
        return {(head, False) for head, _ in _heads(arg[2])}
    return {("", False)}


def _item(op: Any, arg: Any, state: Any, flags: int) -> tuple[Any, Any]:
    if op is ops.BRANCH:
        on, off = _shared_flags(arg[1])
        if on or off:
            inner = parser.SubPattern(state, [(ops.BRANCH, (None, [branch[0][1][3] for branch in arg[1]]))])
            return _item(ops.SUBPATTERN, (None, on, off, inner), state, flags)
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


def _shared_flags(branches: list[Any]) -> tuple[int, int]:
    """Return the flags that each of some branches sets and clears for all that is in it; none if they differ."""
    found = {
        branch[0][1][:3] if len(branch) == 1 and branch[0][0] is ops.SUBPATTERN else (None, 0, 0) for branch in branches
    }
    group, on, off = found.pop()
    return (on, off) if not found and group is None else (0, 0)


def _choice(branches: list[Any], state: Any, flags: int) -> tuple[Any, Any]:
    """Write a choice whose branches are in order; those between two that begin with no letter are sorted together."""
    kept: list[Any] = []
    together: dict[int, list[Any]] = {}
    for branch in (one for whole in branches for one in _opened(whole, state, _MOST_REPEATED)):
        letter = _first_letter(branch, flags)
        if letter is None:
            kept += [_led(group, state, flags) for group in together.values()]
            together = {}
            kept.append(branch)
        else:
            together.setdefault(letter, []).append(branch)
    kept += [_led(group, state, flags) for group in together.values()]
    return ops.BRANCH, (None, kept)


def _opened(branch: Any, state: Any, most: int) -> Iterator[Any]:
    """Yield branches that together are one, in order, so that more of them begin with a letter."""
    if not len(branch) or branch[0][0] not in _OPENED:
        yield branch
        return
    (op, arg), *rest = branch
    ways: list[list[Any]] = []
    if not any(kind in _GROUPS for kind, _ in rest):
        if op is ops.BRANCH:
            ways = [list(way) for way in arg[1]]
        elif arg[:2] == (0, 1) and arg[2].getwidth()[0]:
            ways = [list(arg[2]), []] if op is ops.MAX_REPEAT else [[], list(arg[2])]
    left = most - (len(ways) - 1) * _size(rest)
    if not ways or left < 0:
        yield branch
        return
    for way in ways:
        yield from _opened(parser.SubPattern(state, way + rest), state, left // len(ways))


def _size(items: list[Any]) -> int:
    """Count the items of a sequence and of what is in it."""
    size = len(items)
    for op, arg in items:
        if op is ops.BRANCH:
            size += sum(_size(list(branch)) for branch in arg[1])
        elif op in REPEATS:
            size += _size(list(arg[2]))
    return size


def _first_letter(branch: Any, flags: int) -> int | None:
    if not len(branch) or branch[0][0] is not ops.LITERAL:
        return None
    letter = int(branch[0][1])
    if flags & _IGNORECASE:
        return ord(chr(letter).lower()) if letter < 128 else None
    return letter


def _led(group: list[Any], state: Any, flags: int) -> Any:
    """Write branches that begin with the same letter as one."""
    if len(group) == 1:
        return group[0]
    rests = [parser.SubPattern(state, branch.data[1:]) for branch in group]
    return parser.SubPattern(state, [group[0][0], _choice(rests, state, flags)])
