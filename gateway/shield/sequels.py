"""What may stand right behind a literal, told by the regex it was taken from: a try that must fail need not be made.

Theory of operation. The states that a literal leads to are known. From there the regex is followed for a few letters
more, with what it asks of the edge of a word or of one character ahead. That gives pieces of one length of which one
stands behind the literal wherever a match goes on. Where anything may follow, nothing is told.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from gateway.shield.beginnings import END, REPEATS, Beginnings
from gateway.shield.frequency import likelihood
from gateway.shield.regex_tree import ops
from gateway.shield.unparse import unparse

# Stands for the end of the text in a piece; no letter of the automaton is a tab.
TEXT_END = "\t"
_MOST_CHARS = 4
_MOST_PIECES = 200
_MOST_EMPTY_COPIES = 4
# Pieces that stand behind so many of the literals keep too few tries from being made.
_MOST_SHARE = 0.85
# What each piece costs, in that share.
_PRICE_EACH = 0.0005
# What is rarer is hardly ever tried.
_RARE = 1e-7
# The letters of the automaton.
_LETTERS = frozenset(chr(code) for code in range(32, 127)) - frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz0_")
_SINGLE = (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY)
_BEYOND = (ops.NEGATE, ops.CATEGORY_NOT_DIGIT, ops.CATEGORY_NOT_SPACE, ops.CATEGORY_NOT_WORD)


class _Way(NamedTuple):
    """A state, and the letters that may come next as far as what looks around says; None when it says nothing."""

    state: int
    letters: frozenset[str] | None


# Letters, each with the states after it, and whether the text may end before one.
_Next = tuple[list[tuple[str, frozenset[int]]], bool]


class _Unknown(Exception):
    """Anything may follow."""


class Sequels:
    """Tells what stands behind literals of one parse tree.

    beginnings: of the tree, in the letters of the automaton. letter: as in Beginnings. is_exact: the regex is tried on
    the very text that is read, but for its digits; else on one of which that is a folded form.
    """

    __slots__ = ("_beginnings", "_is_exact", "_known", "_letter", "_next")

    def __init__(self, beginnings: Beginnings, letter: Callable[[str], str], *, is_exact: bool) -> None:
        self._beginnings = beginnings
        self._letter = letter
        self._is_exact = is_exact
        self._known: dict[tuple[frozenset[int], str], str] = {}
        # What may come in some states, by these and by what the letter before is; None where anything may.
        self._next: dict[tuple[frozenset[int], bool, bool], _Next | None] = {}

    def tell(self, states: Iterable[int], literal: str) -> str:
        """Return pieces of one length, of which one stands behind a literal that begins in one of the states.

        They stand one behind the other, after their length; one that the text may end in is filled with TEXT_END. Text
        beyond ASCII is in none of them. Empty when nothing can be told, or what can is not worth it.
        """
        if likelihood(literal) < _RARE or not literal.isascii():
            return ""
        after: set[int] = set()
        for state in states:
            after |= self._beginnings.after(state, literal) or {END}
        key = frozenset(after), literal[-1]
        if key not in self._known:
            self._known[key] = self._best(*key)
        return self._known[key]

    def _best(self, states: frozenset[int], last: str) -> str:
        """Return as `tell` does what stands behind a letter, in some states: neighbouring literals lead to the same."""
        whole = likelihood(last)
        best, least = "", _MOST_SHARE
        pieces: dict[str, frozenset[int]] = {"": states}
        for size in range(1, _MOST_CHARS + 1):
            longer, ended = self._longer(pieces, last)
            if not 0 < len(longer) + len(ended) <= _MOST_PIECES:
                break
            pieces = longer
            share = sum(likelihood(last + piece) for piece in pieces) / whole + len(pieces) * _PRICE_EACH
            if share < least:
                least = share
                best = f"{size}{''.join(sorted([*pieces, *(piece.ljust(size, TEXT_END) for piece in ended)]))}"
        return best

    def _longer(self, pieces: dict[str, frozenset[int]], last: str) -> tuple[dict[str, frozenset[int]], set[str]]:
        """Return the pieces that are one letter longer, and those the text may end in; none if there are too many."""
        longer: dict[str, frozenset[int]] = {}
        ended: set[str] = set()
        for piece, states in pieces.items():
            told = self._letters(states, (last + piece)[-1])
            if told is None or len(longer) > _MOST_PIECES:
                return {}, set()
            letters, is_end = told
            if is_end:
                ended.add(piece)
            for letter, after in letters:
                longer[piece + letter] = after
        return longer, ended

    def _letters(self, states: frozenset[int], last: str) -> _Next | None:
        """Return letters that may come in some states behind a letter, and the states after each; None if all may."""
        key = states, last in _WORD, last == " "
        if key not in self._next:
            try:
                self._next[key] = _by_letter(self._followed(states, last))
            except _Unknown:
                self._next[key] = None
        return self._next[key]

    def _followed(self, states: Iterable[int], last: str) -> Iterator[tuple[frozenset[str], int]]:
        """Yield letters and the state after them, END where the text may end.

        Raises:
            _Unknown: any letter may come.
        """
        ways = [_Way(state, None) for state in states]
        seen = set(ways)
        for way in ways:
            for found, state in self._steps(way, last):
                if isinstance(state, _Way):
                    more = [state]
                else:
                    # No two blanks stand together: one more of the regex is the same one of the text.
                    more = [_Way(state, None)] if last == " " and " " in found else []
                    if found or state == END:
                        yield found, state
                ways += [one for one in more if one not in seen]
                seen.update(more)

    def _steps(self, way: _Way, last: str) -> Iterator[tuple[frozenset[str], "int | _Way"]]:
        """Yield letters and the state after them, or none and a way that is reached without a letter."""
        nothing: frozenset[str] = frozenset()
        if way.state == END:
            if way.letters is None:
                raise _Unknown
            yield way.letters, END
            return
        items, place, after, copies = self._beginnings.at(way.state)
        if place == len(items):
            yield nothing, way._replace(state=after)
            return
        op, arg = items[place]
        to = self._beginnings.state
        following = to(items, after, place=place + 1)
        if op in _SINGLE:
            found = self._told(op, arg)
            yield found if way.letters is None else found & way.letters, following
        elif op is ops.BRANCH:
            for branch in arg[1]:
                yield nothing, way._replace(state=to(branch.data, following))
        elif op in (ops.SUBPATTERN, ops.ATOMIC_GROUP):
            body = arg[3] if op is ops.SUBPATTERN else arg
            yield nothing, way._replace(state=to(body.data, following))
        elif op in REPEATS:
            least, most, body = arg
            if copies >= least:
                yield nothing, way._replace(state=following)
            if copies < most:
                if body.getwidth()[0] == 0 and copies >= _MOST_EMPTY_COPIES:
                    raise _Unknown
                again = to(items, after, place=place, copies=copies + 1)
                yield nothing, way._replace(state=to(body.data, again))
        elif op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
            letters = self._around(op, arg, last) if self._is_exact else None
            if letters is not None and way.letters is not None:
                letters &= way.letters
            yield nothing, _Way(following, way.letters if letters is None else letters)
        else:
            raise _Unknown

    def _told(self, op: Any, arg: Any) -> frozenset[str]:
        """Return the letters of the automaton that an item of one character may be."""
        if op is ops.LITERAL:
            letter = self._letter(chr(arg))
            if len(letter) != 1:
                raise _Unknown
            return frozenset((letter,)) if letter.isascii() else frozenset()
        if self._is_exact:
            return _accepted(unparse([(op, arg)]))
        if op is not ops.IN or any(kind in _BEYOND or value in _BEYOND for kind, value in arg):
            # What folds to nothing or to anything may stand there.
            raise _Unknown
        accepts = re.compile(unparse([(op, arg)]), re.ASCII | re.IGNORECASE)
        letters = {self._letter(char) for char in map(chr, range(128)) if accepts.match(char)}
        if (
            "" in letters
            or not all(value < 128 for kind, value in arg if kind is ops.LITERAL)
            or not all(value[1] < 128 for kind, value in arg if kind is ops.RANGE)
        ):
            raise _Unknown
        return frozenset(letters)

    def _around(self, op: Any, arg: Any, last: str) -> frozenset[str] | None:
        """Return the letters one of which stands next where a condition holds behind a letter, if that is told."""
        if op is ops.AT:
            if arg not in (ops.AT_BOUNDARY, ops.AT_NON_BOUNDARY):
                return None
            is_word_next = (last in _WORD) is (arg is ops.AT_NON_BOUNDARY)
            return _WORD if is_word_next else _LETTERS - _WORD
        if op is ops.ASSERT_NOT and arg[0] > 0 and len(arg[1]) == 1 and arg[1][0][0] in _SINGLE:
            return _LETTERS - _refused(unparse(arg[1]))
        return None


def _by_letter(told: Iterable[tuple[frozenset[str], int]]) -> _Next:
    after: dict[str, set[int]] = {}
    is_end = False
    for letters, state in told:
        is_end |= state == END
        for letter in letters:
            after.setdefault(letter, set()).add(state)
    return [(letter, frozenset(states)) for letter, states in after.items()], is_end


@lru_cache(maxsize=4_096)
def _accepted(source: str) -> frozenset[str]:
    """Return the letters that one-character regex may match, in either case."""
    regexes = re.compile(source, re.ASCII), re.compile(source, re.ASCII | re.IGNORECASE)
    return frozenset(
        letter for letter in _LETTERS if any(regex.match(char) for regex in regexes for char in _written(letter))
    )


@lru_cache(maxsize=4_096)
def _refused(source: str) -> frozenset[str]:
    """Return the letters that a one-character regex matches however they are written."""
    regexes = re.compile(source, re.ASCII), re.compile(source, re.ASCII | re.IGNORECASE)
    return frozenset(
        letter for letter in _LETTERS if all(regex.match(char) for regex in regexes for char in _written(letter))
    )


def _written(letter: str) -> str:
    return "0123456789" if letter == "0" else letter
