"""A regex for the beginnings of what another regex matches, where a text ends before the match does. Tries nothing.

Theory of operation. A match that is not complete yet is a sequence of items, the last of which the text ends in. So at
each item there are three ways on: the text ends before it, in it, or the item is there and the rest has the same ways.
The regex made here may take more for a beginning than is one, never less: what an assertion will say of letters that
have not come is left open, and of a large choice only the length is kept.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gateway.shield.regex_tree import REPEATS, ZERO_WIDTH, ops, parse, unparse, width

_END = r"\Z"
# Writing out where a text may end in a larger choice would make a regex of many times its size.
_MOST_CHARS = 6_000
_ANY = r"[\s\S]"
_ONE_MORE = (ops.IN, [(ops.CATEGORY, ops.CATEGORY_SPACE), (ops.CATEGORY, ops.CATEGORY_NOT_SPACE)])
_CHARS = frozenset((ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY))


def unfinished(source: str) -> str:
    """Return a regex that matches to the end of a text from where a match of `source` may have begun.

    Raises:
        re.error: `source` is no regex.
    """
    tree = parse(source)
    inner = _ends_in(list(tree), is_begun=True) or "(?!)"
    written = unparse([], tree.state.flags).partition(":")[0]
    return f"{written}:{inner})" if written else inner


def _ends_in(items: Sequence[Any], *, is_begun: bool = False) -> str | None:
    """Return a regex for texts that end before or in one of the items; None if there are none.

    is_begun: a text that ends before the first item need not match.
    """
    if not items:
        return None
    letters = 0
    while letters < len(items) and items[letters][0] is ops.LITERAL:
        letters += 1
    ends = [] if is_begun else [_END]
    if letters > 1:
        first, *others = (re.escape(chr(arg)) for _, arg in items[:letters])
        within = "|".join("".join(others[:end]) for end in range(letters - 1))
        after = _ends_in(items[letters:])
        whole = f"|{''.join(others)}{after}" if after else ""
        return _choice([*ends, f"{first}(?:(?:{within}){_END}{whole})"])
    op, arg = items[0]
    if op in ZERO_WIDTH:
        following = _ends_in(items[1:], is_begun=is_begun)
        ways = [*ends, _whole(op, arg) + following] if following else [_END]
        if op is ops.ASSERT and arg[0] > 0 and (ahead := _ends_in(list(arg[1]))):
            # The match may end long before what has to follow it.
            ways.append(f"(?={ahead}){unparse(_loose(items[1:]))}")
        return _choice(ways)
    rest = _ends_in(items[1:])
    return _choice([*ends, *_ends_inside(op, arg, is_begun=is_begun), *([_whole(op, arg) + rest] if rest else [])])


def _choice(ways: Sequence[str]) -> str:
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways) or '(?!)'})"


def _ends_inside(op: Any, arg: Any, *, is_begun: bool) -> list[str]:
    """Return regexes for texts that end behind the beginning of an item."""
    if op in _CHARS:
        return []
    parts: list[str | None]
    if op in REPEATS:
        _, most, body = arg
        if len(body) == 1 and body[0][0] in _CHARS:
            return [f"{unparse(body)}{{{int(is_begun)},{most}}}+{_END}"] if most else []
        inner = _ends_in(list(body), is_begun=is_begun and most == 1)
        parts = [f"(?:{unparse(_loose(body))}){{0,{most - 1}}}{inner}" if inner and most else None]
    elif op is ops.BRANCH:
        parts = [_ends_in(list(branch), is_begun=is_begun) for branch in arg[1]]
    elif op is ops.SUBPATTERN:
        flags = unparse([(op, (*arg[:3], []))])
        parts = [f"{flags[:-1]}{inner})" if (inner := _ends_in(list(arg[3]), is_begun=is_begun)) else None]
    elif op is ops.ATOMIC_GROUP:
        parts = [_ends_in(list(arg), is_begun=is_begun)]
    else:
        return [_some(op, arg)]
    ways = [part for part in parts if part]
    return ways if sum(map(len, ways)) <= _MOST_CHARS else [_some(op, arg)]


def _some(op: Any, arg: Any) -> str:
    """Return a regex for any letters up to the length of an item."""
    return f"{_ANY}{{0,{width((op, arg))[1]}}}+{_END}"


def _whole(op: Any, arg: Any) -> str:
    """Write an item as it is; an assertion about what follows holds as well if the text ends too early to tell."""
    if op is ops.ASSERT and arg[0] > 0:
        inner = _ends_in(list(arg[1]))
        return f"(?={unparse(_loose(arg[1]))}{'|' + inner if inner else ''})"
    return unparse(_loose([(op, arg)]))


def _loose(items: Iterable[Any]) -> list[Any]:
    """Return items whose assertions about what follows say no only where more letters would change nothing."""
    found = []
    for op, arg in items:
        if op is ops.ASSERT and arg[0] > 0:
            continue
        if op is ops.ASSERT_NOT and arg[0] > 0:
            arg = (arg[0], [*_loose(arg[1]), _ONE_MORE])
        elif op is ops.BRANCH:
            arg = (arg[0], [_loose(branch) for branch in arg[1]])
        elif op in REPEATS:
            arg = (*arg[:2], _loose(arg[2]))
        elif op is ops.SUBPATTERN:
            arg = (*arg[:3], _loose(arg[3]))
        elif op is ops.ATOMIC_GROUP:
            arg = _loose(arg)
        found.append((op, arg))
    return found
