"""What can be known of a regex without running it: is it bounded, how far can it reach, what is it made of."""

import re
import string
from collections.abc import Callable, Iterable
from typing import Any

from gateway.shield.regex_tree import REPEATS, ZERO_WIDTH, ops, parse, unparse

LONGEST_MATCH_CHARS = 4096
DIGIT_SEPARATORS = " -.()/+"
SIGNS_IN_TOKENS = "_-.+/="
# A value holds no blank, no quote, no bracket and nothing that sets values apart.
LEAST_VALUE_CHARS = 16
SIGNS_IN_VALUES = SIGNS_IN_TOKENS + "~%!*$@:#&^|\\"
ALNUM = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ANY_WORD = "az09AZ_"


class PatternError(ValueError):
    """A regex is not one the shield may run; the message says why."""


class Pattern:
    """A parsed regex. `fold` says what a character of it is in the normalized view, when it is written for that.

    Raises:
        PatternError: no regex, not bounded, too wide, or made of parts that are not allowed.
    """

    __slots__ = ("narrowest_chars", "reach_chars", "tree", "widest_chars")

    def __init__(self, source: str, fold: Callable[[str], str] | None) -> None:
        try:
            self.tree = parse(source)
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(f"not a regex: {error}") from error
        looked_ahead = _check(self.tree, fold)
        self.narrowest_chars: int
        self.widest_chars: int
        self.narrowest_chars, self.widest_chars = self.tree.getwidth()
        if self.narrowest_chars == 0:
            raise PatternError("matches the empty text")
        if self.widest_chars > LONGEST_MATCH_CHARS:
            raise PatternError(f"may match more than {LONGEST_MATCH_CHARS} characters")
        # Two more for \b, $ and what they look at.
        self.reach_chars: int = self.widest_chars + looked_ahead + 2

    def least_digits(self) -> int:
        """Return how many digits every match holds if matches are digits and their separators alone, else 0."""
        count = 0
        for least, _, members in _runs(self.tree):
            chars = _chars_of(members)
            if chars is None or any(not char.isdecimal() and char not in DIGIT_SEPARATORS for char in chars):
                return 0
            count += least if all(char.isdecimal() for char in chars) else 0
        return count

    def least_token_chars(self) -> int:
        """Return how many characters of a token every match begins with: letters, digits and SIGNS_IN_TOKENS."""
        count = 0
        for least, _, members in _runs(self.tree):
            chars = _chars_of(members)
            if chars is None or not all(is_token_char(char) for char in chars):
                break
            count += least
        return count

    def holds_value(self) -> bool:
        """Say whether every match holds LEAST_VALUE_CHARS of a value in a row: letters, digits and SIGNS_IN_VALUES."""
        count = 0
        for least, _, members in _runs(self.tree):
            chars = _chars_of(members)
            count = count + least if chars is not None and all(map(is_value_char, chars)) else 0
            if count >= LEAST_VALUE_CHARS:
                return True
        return False

    def alone(self) -> str:
        """Return of which ASCII letters and digits none stands before a match that begins with one of them."""
        refused: set[str] = set()
        for op, arg in self.tree:
            if op is ops.AT and arg is ops.AT_BOUNDARY:
                return ALNUM
            if op is ops.ASSERT_NOT and arg[0] < 0 and len(arg[1]) == 1 and arg[1].getwidth() == (1, 1):
                refused.update(filter(re.compile(unparse(arg[1]), re.ASCII).fullmatch, ALNUM))
            if op not in ZERO_WIDTH:
                break
        return "".join(sorted(refused))

    def first_chars(self) -> str:
        """Return the characters a match may begin with if none of them is ASCII, else an empty text."""
        for least, _, members in _runs(self.tree):
            chars = _chars_of(members)
            return "".join(sorted(chars)) if least and chars and min(chars) > "\x7f" else ""
        return ""


def is_token_char(char: str) -> bool:
    """Say whether a character may stand in a token: an ASCII letter, digit or one of a few signs."""
    return char.isascii() and (char.isalnum() or char in SIGNS_IN_TOKENS)


def is_value_char(char: str) -> bool:
    """Say whether a character may stand in a value: an ASCII letter, digit or one of some signs."""
    return char.isascii() and (char.isalnum() or char in SIGNS_IN_VALUES)


def _check(items: Iterable[Any], fold: Callable[[str], str] | None) -> int:
    """Refuse what is not bounded or not allowed; return how many characters lookaheads read past the match."""
    ahead = 0
    for op, arg in getattr(items, "data", items):  # a list is gone through faster
        if op in REPEATS:
            if arg[1] is ops.MAXREPEAT:
                raise PatternError("is not bounded: write {0,n} in place of *, + and {n,}")
            ahead = max(ahead, _check(arg[2], fold))
        elif op is ops.BRANCH:
            ahead = max(ahead, *(_check(branch, fold) for branch in arg[1]))
        elif op is ops.SUBPATTERN:
            ahead = max(ahead, _check(arg[3], fold))
        elif op is ops.ATOMIC_GROUP:
            ahead = max(ahead, _check(arg, fold))
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            inner = _check(arg[1], fold)
            ahead = max(ahead, inner + (arg[1].getwidth()[1] if arg[0] > 0 else 0))
        elif op is ops.LITERAL and fold is not None and fold(chr(arg)) != chr(arg):
            raise PatternError(f"holds {chr(arg)!r}, which the normalized view never has")
        elif op in (ops.GROUPREF, ops.GROUPREF_IGNORE, ops.GROUPREF_EXISTS):
            raise PatternError("refers back to a group")
    return ahead


def _runs(items: Iterable[Any]) -> list[tuple[int, int, list[Any]]]:
    """Flatten a regex to (least and most copies, members of the class), in order; what cannot be told has no members.

    A choice counts with its shortest and its longest branch, and its members are those of all branches together.
    """
    found: list[tuple[int, int, list[Any]]] = []
    for op, arg in getattr(items, "data", items):
        if op in ZERO_WIDTH:
            continue
        if op is ops.LITERAL:
            found.append((1, 1, [(op, arg)]))
        elif op is ops.IN:
            found.append((1, 1, arg))
        elif op in REPEATS:
            # Copies of several items are told as one: what stands between the copies must not be lost.
            inner = _runs(arg[2])
            least, most = _lengths(inner)
            found.append((arg[0] * least, arg[1] * most, _members(inner)))
        elif op is ops.SUBPATTERN:
            found += _runs(arg[3])
        elif op is ops.BRANCH:
            branches = [_runs(branch) for branch in arg[1]]
            lengths = [_lengths(branch) for branch in branches]
            every = [part for branch in branches for part in branch]
            found.append((min(least for least, _ in lengths), max(most for _, most in lengths), _members(every)))
        else:
            found.append((0, LONGEST_MATCH_CHARS, [None]))
    return found


def _lengths(runs: list[tuple[int, int, list[Any]]]) -> tuple[int, int]:
    return sum(least for least, _, _ in runs), sum(most for _, most, _ in runs)


def _members(runs: list[tuple[int, int, list[Any]]]) -> list[Any]:
    return [member for _, _, members in runs for member in members]


def _chars_of(members: list[Any]) -> set[str] | None:
    """Return samples of the characters of a class: all that are listed, the ends of long ranges; None if unknown."""
    chars: set[str] = set()
    for member in members:
        if member is None:
            return None
        op, arg = member
        if op is ops.LITERAL:
            chars.add(chr(arg))
        elif op is ops.RANGE:
            if arg[0] < 128 and not (chr(arg[0]).isalnum() and chr(arg[1]).isalnum() and arg[1] - arg[0] < 26):
                return None
            chars.update(map(chr, range(arg[0], min(arg[1], arg[0] + 4096) + 1)))
        elif op is ops.CATEGORY and arg is ops.CATEGORY_DIGIT:
            chars.add("0")
        elif op is ops.CATEGORY and arg is ops.CATEGORY_SPACE:
            chars.add(" ")
        elif op is ops.CATEGORY and arg is ops.CATEGORY_WORD:
            chars.update(_ANY_WORD)
        else:
            return None
    return chars
