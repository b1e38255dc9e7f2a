"""A regex parsed, and written back as a regex, so that a part of one can be run by itself. Knows no rule."""

import re
from collections.abc import Iterable
from typing import Any

from gateway.shield.regex_tree import ops, parser

_PLACES = {
    ops.AT_BEGINNING: "^",
    ops.AT_BEGINNING_STRING: r"\A",
    ops.AT_BOUNDARY: r"\b",
    ops.AT_NON_BOUNDARY: r"\B",
    ops.AT_END: "$",
    ops.AT_END_STRING: r"\Z",
}
_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
_REPEATS = {ops.MAX_REPEAT: "", ops.MIN_REPEAT: "?", ops.POSSESSIVE_REPEAT: "+"}
_FLAGS = ((int(re.IGNORECASE), "i"), (int(re.MULTILINE), "m"), (int(re.DOTALL), "s"))


def parse(source: str) -> Any:
    """Parse a regex that is compiled with re.ASCII.

    Raises:
        re.error, OverflowError, RecursionError: it is none.
    """
    # As a number, which is asked for one of its bits ten times as fast as re's own flags: all that is parsed asks.
    return parser.parse(source, int(re.ASCII))


def unparse(items: Iterable[Any], flags: int = 0) -> str:
    """Write items of a parse tree as a regex without named groups. flags: those the whole regex was parsed with.

    Raises:
        ValueError: an item is of a kind this does not know.
    """
    source = "".join(_item(op, arg) for op, arg in items)
    letters = _letters(flags)
    return f"(?{letters}:{source})" if letters else source


def backwards(items: Iterable[Any], flags: int = 0) -> str:
    """Write items as a regex for the text read backwards: it matches from where a match of theirs ends.

    It may match more: of what looks around, only the edges of words and what looks at one character is kept. The text
    that is read begins with the character after the match, at which nothing is consumed.
    """
    source = "".join(map(_backwards, reversed(list(items))))
    letters = _letters(flags)
    return f"(?{letters}:{source})" if letters else source


def _backwards(item: Any) -> str:
    op, arg = item
    if op is ops.AT:
        return _PLACES[arg] if arg in (ops.AT_BOUNDARY, ops.AT_NON_BOUNDARY) else ""
    if op is ops.BRANCH:
        return "(?:" + "|".join(map(backwards, arg[1])) + ")"
    if op is ops.SUBPATTERN:
        on, off = _letters(arg[1]), _letters(arg[2])
        return f"(?{on}{'-' + off if off else ''}:{backwards(arg[3])})"
    if op is ops.ATOMIC_GROUP:
        return f"(?:{backwards(arg)})"
    if op in _REPEATS:
        least, most, body = arg
        return f"(?:{backwards(body)}){{{least},{most}}}{'?' * (op is ops.MIN_REPEAT)}"
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        if arg[1].getwidth() != (1, 1):
            return ""
        sign = "=" if op is ops.ASSERT else "!"
        return f"(?{'' if arg[0] < 0 else '<'}{sign}{backwards(arg[1])})"
    return _item(op, arg)


def bare(items: Iterable[Any], state: Any, *, with_edges: bool = False) -> list[Any]:
    """Return items without what only looks around or holds on: they match wherever the given ones do.

    state: of the parse tree they are from. with_edges: keep what looks at one character or at the edge of a word.
    """

    def part(items: Iterable[Any]) -> Any:
        return parser.SubPattern(state, bare(items, state, with_edges=with_edges))

    kept: list[Any] = []
    for op, arg in items:
        is_edge = op is ops.AT or (op in (ops.ASSERT, ops.ASSERT_NOT) and arg[1].getwidth() == (1, 1))
        if op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT) and not (with_edges and is_edge):
            continue
        if op is ops.BRANCH:
            arg = None, [part(branch) for branch in arg[1]]
        elif op is ops.SUBPATTERN:
            arg = None, arg[1], arg[2], part(arg[3])
        elif op is ops.ATOMIC_GROUP:
            op, arg = ops.SUBPATTERN, (None, 0, 0, part(arg))
        elif op in _REPEATS:
            op = ops.MAX_REPEAT if op is ops.POSSESSIVE_REPEAT else op
            arg = arg[0], arg[1], part(arg[2])
        kept.append((op, arg))
    return kept


def _letters(flags: int) -> str:
    return "".join(letter for flag, letter in _FLAGS if flags & flag)


def _item(op: Any, arg: Any) -> str:
    if op is ops.LITERAL:
        return re.escape(chr(arg))
    if op is ops.NOT_LITERAL:
        return f"[^{_member(ops.LITERAL, arg)}]"
    if op is ops.ANY:
        return "."
    if op is ops.AT:
        return _PLACES[arg]
    if op is ops.IN:
        return "[" + "".join(_member(kind, value) for kind, value in arg) + "]"
    if op is ops.BRANCH:
        return "(?:" + "|".join(unparse(branch) for branch in arg[1]) + ")"
    if op is ops.SUBPATTERN:
        on, off = _letters(arg[1]), _letters(arg[2])
        return f"(?{on}{'-' + off if off else ''}:{unparse(arg[3])})"
    if op is ops.ATOMIC_GROUP:
        return f"(?>{unparse(arg)})"
    if op in _REPEATS:
        least, most, body = arg
        return f"(?:{unparse(body)}){{{least},{most}}}{_REPEATS[op]}"
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        sign = "=" if op is ops.ASSERT else "!"
        return f"(?{'<' if arg[0] < 0 else ''}{sign}{unparse(arg[1])})"
    raise ValueError(f"cannot write {op}")


def _member(op: Any, arg: Any) -> str:
    if op is ops.NEGATE:
        return "^"
    if op is ops.LITERAL:
        return re.escape(chr(arg))
    if op is ops.RANGE:
        return f"{re.escape(chr(arg[0]))}-{re.escape(chr(arg[1]))}"
    if op is ops.CATEGORY:
        return _CATEGORIES[arg]
    raise ValueError(f"cannot write {op}")
