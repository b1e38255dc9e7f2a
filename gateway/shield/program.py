"""A regex read as a program, whose ways are gone letter by letter (`ways`). Runs nothing.

A program is a list of sequences, of which the first is the whole regex. Of what a sequence holds, words stand as they
are; if case does not count, as a tuple of the letters in both cases; the rest is a list that begins with its kind.
What looks ahead behind a match is read as a part of it that may be missing. What looks around further than at one
character is left out: who goes these ways may go some that the regex does not.
"""

import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any

from gateway.shield.beginnings import REPEATS
from gateway.shield.partial import REPORTED, width_of
from gateway.shield.unparse import parse, unparse

Program = list[list[Any]]

# One character, by its class; such characters, and a sequence, so many times at least and at most, which may be a gap;
# a choice of words and sequences; an edge of a word; what stands before, or behind, and whether
# it does; where a text begins, or behind which characters; where what is reported begins.
CHAR, CHARS, TIMES, CHOICE, EDGE, BEFORE, BEHIND, OPENING, TOLD = range(9)
_ONE_CHAR = frozenset((ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN))
# As numbers: those of `re` take their time.
_IGNORECASE, _MULTILINE = int(re.IGNORECASE), int(re.MULTILINE)
_FLAGS = ((_IGNORECASE, "i"), (_MULTILINE, "m"), (int(re.DOTALL), "s"))
_ANYTHING = "(?s:.)"


def read(source: str, *, gap_chars: int | None = None) -> Program:
    """Read a regex as a program.

    gap_chars: what may be longer or shorter by more, the first time on a way, is a gap; behind a choice one counts as
    passed if it was on one of its ways. None: nothing is a gap, but it is said where what is reported begins.
    """
    tree = parse(source)
    reader = _Reader(gap_chars, tree.state.groupdict.get(REPORTED) if gap_chars is None else None)
    reader.sequence(tree, int(tree.state.flags), is_last=True)
    return reader.program


class _Reader:
    """Reads one regex. gap_chars: as above, or None when no gap is looked for any more. told: what is reported."""

    def __init__(self, gap_chars: int | None, told: int | None) -> None:
        self.program: Program = []
        self._gap_chars = gap_chars
        self._told = told

    def sequence(self, items: Iterable[Any], flags: int, *, is_last: bool) -> int:
        """Add a sequence and return its number."""
        number = len(self.program)
        said: list[Any] = []
        self.program.append(said)
        self._items(items, flags, said, is_last=is_last)
        return number

    def _items(self, items: Iterable[Any], flags: int, said: list[Any], *, is_last: bool) -> None:
        items = items.data if isinstance(items, parser.SubPattern) else list(items)
        any_case = bool(flags & _IGNORECASE)
        # The last that may be anything but an edge.
        last = next((at for at in range(len(items) - 1, -1, -1) if width_of([items[at]])), 0) if is_last else 0
        for place, (op, arg) in enumerate(items):
            is_end = is_last and place >= last
            if op is ops.LITERAL:
                _spell(chr(arg), said, any_case=any_case)
            elif op in _ONE_CHAR:
                said.append([CHAR, _class([(op, arg)], flags)])
            elif op is ops.SUBPATTERN:
                if arg[0] is not None and arg[0] == self._told:
                    said.append([TOLD])
                self._items(arg[3], (flags | arg[1]) & ~arg[2], said, is_last=is_end)
            elif op is ops.ATOMIC_GROUP:
                self._items(arg, flags, said, is_last=is_end)
            elif op is ops.BRANCH:
                said.append([CHOICE, *self._offers(arg[1], flags, is_last=is_end)])
            elif op in REPEATS:
                said.append(self._repeat(arg, flags, is_last=is_end))
            elif op is ops.AT:
                said += self._edge(arg, flags, is_end=is_end)
            elif op in (ops.ASSERT, ops.ASSERT_NOT):
                said += self._around((op, *arg), flags, is_end=is_end)
            else:
                said.append([CHARS, 0, int(ops.MAXREPEAT), _ANYTHING, False])

    @staticmethod
    def _edge(place: Any, flags: int, *, is_end: bool) -> list[Any]:
        """Return what is told of a place; what a text ends with is not: it has not ended."""
        if place in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return [[OPENING, "\n" if place is ops.AT_BEGINNING and flags & _MULTILINE else ""]]
        return [[EDGE]] if place is ops.AT_BOUNDARY and not is_end else []

    def _repeat(self, repeat: Any, flags: int, *, is_last: bool) -> list[Any]:
        least, most, body = int(repeat[0]), int(repeat[1]), repeat[2]
        shortest, longest = map(int, body.getwidth())
        is_gap = self._gap_chars is not None and most * longest - least * shortest > self._gap_chars
        if is_gap:
            self._gap_chars = None
        if len(body) == 1 and body[0][0] in _ONE_CHAR:
            return [CHARS, least, most, _class(body, flags), is_gap]
        return [TIMES, least, most, self.sequence(body, flags, is_last=is_last), is_gap]

    def _offers(self, branches: Iterable[Any], flags: int, *, is_last: bool) -> list[Any]:
        """Add what a choice offers, and return the numbers, or words."""
        before, after, offers = self._gap_chars, self._gap_chars, []
        for branch in branches:
            self._gap_chars = before
            offers.append(self._offer(branch, flags, is_last=is_last))
            after = None if self._gap_chars is None else after
        self._gap_chars = after
        return offers

    def _offer(self, items: Any, flags: int, *, is_last: bool) -> Any:
        """Add what a choice offers, and return its number, or the word that it is."""
        number = len(self.program)
        self.sequence(items, flags, is_last=is_last)
        said = self.program[number]
        if len(said) == 1 and not isinstance(said[0], list) and number == len(self.program) - 1:
            self.program.pop()
            return said[0]
        return number

    def _around(self, condition: Any, flags: int, *, is_end: bool) -> list[Any]:
        """Return what is told of what stands around."""
        op, way, items = condition
        if way > 0 and is_end:
            # Behind a match it is part of it until it is known: it may be there, or not. No gap is in it.
            before, self._gap_chars = self._gap_chars, None
            ahead = self.sequence(items, flags, is_last=True)
            self._gap_chars = before
            return [[CHOICE, "", ahead]]
        if len(items) == 1 and items[0][0] in _ONE_CHAR:
            return [[BEHIND if way > 0 else BEFORE, _class(items, flags), op is ops.ASSERT]]
        return []


def _spell(char: str, said: list[Any], *, any_case: bool) -> None:
    """Add a letter to the word that stands last, or begin one. Where case does not count, a word is a list of both."""
    if any_case and char.lower() != char.upper():
        cases: Any = (char.lower() + char.upper(),)
    else:
        cases = (char,) if any_case else char
    if said and type(said[-1]) is type(cases):
        said[-1] += cases
    else:
        said.append(cases)


def _class(items: Iterable[Any], flags: int) -> str:
    letters = "".join(letter for flag, letter in _FLAGS if flags & flag)
    return f"(?{letters}:{unparse(items)})" if letters else unparse(items)
