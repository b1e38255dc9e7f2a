"""What can be known of a regex without running it: is it bounded, how far can it reach, how must its matches begin.

Literals are derived on the parse tree of `re` itself. They are written in the letters the automaton reads: the
normalized view with every digit as `0`, so that "two digits" is as good a literal as a word.
"""

import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

LONGEST_MATCH_CHARS = 4096
DIGIT_SEPARATORS = " -.()/+"
_MOST_PREFIXES = 64
_LONGEST_PREFIX_CHARS = 20
_MOST_COPIES = 4
_MOST_MEMBERS = 8
_ZERO_WIDTH = frozenset((ops.AT, ops.ASSERT, ops.ASSERT_NOT))
_REPEATS = frozenset((ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT))
_DIGITS = {ord(digit): "0" for digit in "123456789"}

Prefixes = frozenset[tuple[str, bool]]
_NOTHING: Prefixes = frozenset((("", True),))
_UNKNOWN: Prefixes = frozenset((("", False),))


class PatternError(ValueError):
    """A regex is not one the shield may run; the message says why."""


class _NotDigits(Exception):
    """A pattern holds more than digits and their separators."""


@dataclass(frozen=True, slots=True)
class Required:
    """Literals one of which every match holds, and where.

    literals: in the automaton's letters. low, high: least and most characters of the match before the literal.
    """

    literals: frozenset[str]
    low: int
    high: int


def squash_digits(text: str) -> str:
    """Write every ASCII digit as 0: the letters the automaton reads."""
    return text.translate(_DIGITS)


class Pattern:
    """A parsed regex. `fold` says what a character of it is in the normalized view.

    Raises:
        PatternError: no regex, not bounded, too wide, or made of parts that are not allowed.
    """

    __slots__ = ("_fold", "_is_normalized", "_tree", "narrowest_chars", "reach_chars", "widest_chars")

    def __init__(self, source: str, *, fold: Callable[[str], str], is_normalized: bool) -> None:
        try:
            self._tree = parser.parse(source, re.ASCII)
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(f"not a regex: {error}") from error
        self._fold = fold
        self._is_normalized = is_normalized
        looked_ahead = self._check(self._tree, in_normalized=is_normalized)
        low, high = self._tree.getwidth()
        if low == 0:
            raise PatternError("matches the empty text")
        if high > LONGEST_MATCH_CHARS:
            raise PatternError(f"may match more than {LONGEST_MATCH_CHARS} characters")
        self.narrowest_chars: int = low
        self.widest_chars: int = high
        self.reach_chars: int = high + looked_ahead + 2

    def _check(self, items: Iterable[Any], *, in_normalized: bool) -> int:
        """Refuse what is not bounded or not allowed; return how many characters lookaheads read past the match."""
        ahead = 0
        for op, arg in items:
            if op in _REPEATS:
                if arg[1] is ops.MAXREPEAT:
                    raise PatternError("is not bounded: write {0,n} in place of *, + and {n,}")
                ahead = max(ahead, self._check(arg[2], in_normalized=in_normalized))
            elif op is ops.BRANCH:
                ahead = max(ahead, *(self._check(branch, in_normalized=in_normalized) for branch in arg[1]))
            elif op is ops.SUBPATTERN:
                ahead = max(ahead, self._check(arg[3], in_normalized=in_normalized))
            elif op is ops.ATOMIC_GROUP:
                ahead = max(ahead, self._check(arg, in_normalized=in_normalized))
            elif op in (ops.ASSERT, ops.ASSERT_NOT):
                inner = self._check(arg[1], in_normalized=in_normalized)
                ahead = max(ahead, inner + (arg[1].getwidth()[1] if arg[0] > 0 else 0))
            elif op is ops.LITERAL and in_normalized and self._fold(chr(arg)) != chr(arg):
                raise PatternError(f"holds {chr(arg)!r}, which the normalized view never has")
            elif op in (ops.GROUPREF, ops.GROUPREF_IGNORE, ops.GROUPREF_EXISTS):
                raise PatternError("refers back to a group")
        return ahead

    def required(self) -> list[Required]:
        """Return the ways to find every match: by how it begins, and by what stands inside it."""
        items = self._flat(self._tree)
        found = []
        low = high = 0
        for index, item in enumerate(items):
            literals = self._literals(items[index:])
            if literals:
                found.append(Required(literals, low, high))
            least, most = parser.SubPattern(self._tree.state, [item]).getwidth()
            low, high = low + least, high + most
        return found

    def least_digits(self) -> int:
        """Return how many digits every match holds if matches are digits and their separators alone, else 0."""
        try:
            return self._digits(self._tree)
        except _NotDigits:
            return 0

    def _digits(self, items: Iterable[Any]) -> int:
        count = 0
        for op, arg in items:
            if op in _ZERO_WIDTH:
                continue
            if op is ops.LITERAL or op is ops.IN:
                members = [(op, arg)] if op is ops.LITERAL else arg
                kinds = {_kind_of(member) for member in members}
                count += kinds == {"digit"}
            elif op in _REPEATS:
                count += arg[0] * self._digits(arg[2])
            elif op is ops.BRANCH:
                count += min(self._digits(branch) for branch in arg[1])
            elif op is ops.SUBPATTERN:
                count += self._digits(arg[3])
            else:
                raise _NotDigits
        return count

    def _flat(self, items: Iterable[Any]) -> list[Any]:
        """Write groups that only hold a sequence as that sequence."""
        flat: list[Any] = []
        for op, arg in items:
            if op is ops.SUBPATTERN:
                flat += self._flat(arg[3])
            elif op not in _ZERO_WIDTH:
                flat.append((op, arg))
        return flat

    def _literals(self, items: Iterable[Any]) -> frozenset[str]:
        """Return the shortest set of literals one of which any match of `items` begins with, or nothing."""
        prefixes = {" ".join(part for part in re.split("  +", prefix)) for prefix, _ in self._sequence(items)}
        if not self._is_normalized:
            # A blank at the edge of a view may be one of a run: the position found would not be the literal's own.
            if any(prefix.startswith(" ") for prefix in prefixes):
                return frozenset()
        if any(len(prefix) < 2 and prefix != "@" for prefix in prefixes):
            return frozenset()
        return frozenset(
            prefix for prefix in prefixes if not any(prefix[:cut] in prefixes for cut in range(1, len(prefix)))
        )

    def _sequence(self, items: Iterable[Any]) -> Prefixes:
        found = _NOTHING
        for op, arg in items:
            if op in _ZERO_WIDTH:
                continue
            if not any(is_open for _, is_open in found):
                break
            longer = _join(found, self._step(op, arg))
            if longer is None:
                return _close(found)
            found = longer
        return found

    def _step(self, op: Any, arg: Any) -> Prefixes:
        if op is ops.LITERAL:
            letter = self._letter(arg)
            return frozenset(((letter, True),)) if letter else _UNKNOWN
        if op is ops.IN:
            return self._members(arg)
        if op is ops.BRANCH:
            return frozenset().union(*(self._sequence(branch) for branch in arg[1]))
        if op is ops.SUBPATTERN:
            return self._sequence(arg[3])
        if op is ops.ATOMIC_GROUP:
            return self._sequence(arg)
        if op in _REPEATS:
            return self._repeat(arg[0], arg[1], arg[2])
        return _UNKNOWN

    def _letter(self, code: int) -> str:
        return squash_digits(self._fold(chr(code)))

    def _members(self, members: list[Any]) -> Prefixes:
        letters: set[str] = set()
        for op, arg in members:
            if op is ops.LITERAL:
                letters.add(self._letter(arg))
            elif op is ops.RANGE and arg[1] - arg[0] < 26:
                letters.update(self._letter(code) for code in range(arg[0], arg[1] + 1))
            elif op is ops.CATEGORY and arg is ops.CATEGORY_DIGIT:
                letters.add("0")
            elif op is ops.CATEGORY and arg is ops.CATEGORY_SPACE:
                letters.add(" ")
            else:
                return _UNKNOWN
        if "" in letters or len(letters) > _MOST_MEMBERS:
            return _UNKNOWN
        return frozenset((letter, True) for letter in letters)

    def _repeat(self, least: int, most: int, body: Iterable[Any]) -> Prefixes:
        once = self._sequence(body)
        found: Prefixes = _NOTHING
        whole: set[tuple[str, bool]] = set()
        for copies in range(most + 1):
            if copies >= least:
                whole |= found
                if copies < most and copies - least >= _MOST_COPIES:
                    return frozenset(whole) | _close(found)
            if copies == most:
                break
            longer = _join(found, once)
            if longer is None or longer == found:
                return frozenset(whole) | _close(found)
            found = longer
        return frozenset(whole)


def _kind_of(member: tuple[Any, Any]) -> str:
    """Say whether a member of a class is digits or separators of digits.

    Raises:
        _NotDigits: it is neither.
    """
    op, arg = member
    if op is ops.LITERAL:
        chars = chr(arg)
    elif op is ops.RANGE and 48 <= arg[0] and arg[1] <= 57:
        chars = "0"
    elif op is ops.CATEGORY and arg is ops.CATEGORY_DIGIT:
        chars = "0"
    elif op is ops.CATEGORY and arg is ops.CATEGORY_SPACE:
        chars = " "
    else:
        raise _NotDigits
    if chars.isdecimal():
        return "digit"
    if chars in DIGIT_SEPARATORS:
        return "separator"
    raise _NotDigits


def _close(prefixes: Prefixes) -> Prefixes:
    return frozenset((prefix, False) for prefix, _ in prefixes)


def _join(heads: Prefixes, tails: Prefixes) -> Prefixes | None:
    """Append every tail to every head that is still open; None when that would be too many to keep apart."""
    joined: set[tuple[str, bool]] = set()
    for head, is_open in heads:
        if not is_open:
            joined.add((head, False))
            continue
        for tail, goes_on in tails:
            text = head + tail
            joined.add((text[:_LONGEST_PREFIX_CHARS], goes_on and len(text) < _LONGEST_PREFIX_CHARS))
    return frozenset(joined) if len(joined) <= _MOST_PREFIXES else None
