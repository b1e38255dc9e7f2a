"""The one door to the parse trees of `re`, which are private to CPython and have no public replacement.

The shield plans rules by their parse trees, and writes parts of them back as regexes. Everything that a new Python
could change is imported here, so a new Python is checked against one file.
"""

import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any

__all__ = ["REPEATS", "ZERO_WIDTH", "ops", "parse", "parser", "unparse", "width"]

ZERO_WIDTH = frozenset((ops.AT, ops.ASSERT, ops.ASSERT_NOT))
REPEATS = frozenset((ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT))
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


def width(item: Any) -> tuple[int, int]:
    """Return how many characters an item matches, at least and at most."""
    least, most = parser.SubPattern(parser.State(), [item]).getwidth()
    return int(least), int(most)


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
