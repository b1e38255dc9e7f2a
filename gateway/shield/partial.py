"""What every match of a regex begins with: the letters that a stream looks out for. Runs no regex."""

import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable
from string import ascii_lowercase
from typing import Any, NamedTuple

from gateway.shield.beginnings import REPEATS
from gateway.shield.unparse import parse, unparse

# What a match reports, if it is not the whole of it.
REPORTED = "secret"
# Stands before a beginning behind which no letter of the same word can stand.
_EDGE = "\x01"
_UNKNOWN = "\0"
BEGINNING_CHARS = 12
_MOST_BEGINNINGS = 400
_MOST_MEMBERS = 10


class Beginning(NamedTuple):
    """What a match begins with.

    is_edge: whether no letter of the same word can stand before it; None if that is not said. is_told: whether a match
    reports it: what it reports may begin further on.
    """

    word: str
    is_edge: bool | None
    is_told: bool = True


def beginnings(source: str, letter: Callable[[str], str], *, least: int = 2) -> tuple[Beginning, ...]:
    """Return what every match of a regex begins with, in the letters that `letter` gives; nothing if that is not known.

    Each is at least so long, or begins with a sign, and ends where what a match reports may begin, unless that is where
    the match begins.
    """
    tree = parse(source)
    group = told_group(tree)
    is_told = group is None or _width_before(tree, group) == 0
    found: set[tuple[str, bool]] = set()
    # Whether any is too short is soon told.
    for most_chars in (least, BEGINNING_CHARS):
        found = _Beginnings(letter, None if is_told else group, most_chars).sequence(tree)
        if not found or any(len(word) < least and _is_common(word[:1]) for word, _ in found):
            return ()
    return tuple(Beginning(word, is_edge, is_told) for word, is_edge in sorted(found))


def told_group(tree: Any) -> int | None:
    """Return the number of the group that every match reports, if there is one."""
    number = tree.state.groupdict.get(REPORTED)
    return None if number is None or _width_before(tree, number) is None else int(number)


def _width_before(items: Iterable[Any], group: int) -> int | None:
    """Return how many characters may stand before a group that every match goes through, or None if there is none."""
    width = 0
    for op, arg in items:
        if op is ops.SUBPATTERN:
            inside = 0 if arg[0] == group else _width_before(arg[3], group)
            if inside is not None:
                return width + inside
        width += width_of([(op, arg)])
    return None


def width_of(items: list[Any]) -> int:
    """Return how many characters some items match at most."""
    return int(parser.SubPattern(parser.State(), items).getwidth()[1])


def _is_common(char: str) -> bool:
    return char in ("", " ") or (char.isascii() and char.isalnum())


class _Beginnings:
    """Multiplies out how the items of a regex begin, as far as that stays small. A word that goes no further ends."""

    def __init__(self, letter: Callable[[str], str], told: int | None, most_chars: int) -> None:
        """told: the group that ends every word. most_chars: of a word."""
        self._letter = letter
        self._told = told
        self._most_chars = most_chars

    def sequence(self, items: Iterable[Any]) -> set[tuple[str, bool]]:
        """Return the beginnings of a sequence, and whether they stand at an edge."""
        found = (word.removesuffix(_UNKNOWN) for word in self._words(items))
        return {(word.lstrip(_EDGE)[: self._most_chars], word.startswith(_EDGE)) for word in found}

    def _words(self, items: Iterable[Any]) -> set[str]:
        """Return beginnings; _UNKNOWN at the end of one says that what follows is not known."""
        found = {""}
        for op, arg in items:
            if op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
                if _is_edge(op, arg):
                    found = {word or _EDGE for word in found}
                continue
            if all(map(self._is_done, found)):
                break
            tails = self._step(op, arg)
            longer = set()
            for word in found:
                if self._is_done(word):
                    longer.add(word)
                elif word.strip(_EDGE):
                    longer.update(word + tail.lstrip(_EDGE) for tail in tails)
                else:
                    longer.update(word + tail.removeprefix(word) for tail in tails)
            if len(longer) > _MOST_BEGINNINGS:
                return {word.removesuffix(_UNKNOWN) + _UNKNOWN for word in found}
            found = longer
        return found

    def _is_done(self, word: str) -> bool:
        """Say whether what follows does not matter to a beginning."""
        return word.endswith(_UNKNOWN) or len(word) > self._most_chars

    def _step(self, op: Any, arg: Any) -> set[str]:
        if op is ops.LITERAL:
            return {self._letter(chr(arg)) or _UNKNOWN}
        if op is ops.IN:
            return self._members(arg)
        if op is ops.BRANCH:
            return set().union(*map(self._words, arg[1]))
        if op is ops.SUBPATTERN:
            return {_UNKNOWN} if arg[0] is not None and arg[0] == self._told else self._words(arg[3])
        if op is ops.ATOMIC_GROUP:
            return self._words(arg)
        if op in REPEATS:
            least, most, body = arg
            once = self._words(body)
            if most == 1:
                return once | ({""} if least == 0 else set())
            ended = {word.removesuffix(_UNKNOWN) + _UNKNOWN for word in once}
            return ended | ({""} if least == 0 else set())
        return {_UNKNOWN}

    def _members(self, members: list[Any]) -> set[str]:
        letters: set[str] = set()
        for op, arg in members:
            if op is ops.LITERAL:
                letters.add(self._letter(chr(arg)))
            elif op is ops.RANGE and arg[1] - arg[0] < 26:
                letters.update(self._letter(chr(code)) for code in range(arg[0], arg[1] + 1))
            elif op is ops.CATEGORY and arg is ops.CATEGORY_DIGIT:
                letters.add("0")
            elif op is ops.CATEGORY and arg is ops.CATEGORY_SPACE:
                letters.add(" ")
            else:
                return {_UNKNOWN}
        return letters if "" not in letters and len(letters) <= _MOST_MEMBERS else {_UNKNOWN}


def is_at_edge(source: str) -> bool:
    """Say whether no letter of the same word can stand before a match of a regex that begins with one."""
    return _begins_at_edge(parse(source))


def _begins_at_edge(items: Iterable[Any]) -> bool:
    for op, arg in items:
        if op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
            if _is_edge(op, arg):
                return True
            continue
        if op is ops.BRANCH:
            return all(map(_begins_at_edge, arg[1]))
        return op is ops.SUBPATTERN and _begins_at_edge(arg[3])
    return False


def _is_edge(op: Any, arg: Any) -> bool:
    """Say whether a condition refuses every letter of the same word before the place it stands at."""
    if op is ops.AT:
        return arg is ops.AT_BOUNDARY
    if op is not ops.ASSERT_NOT or arg[0] >= 0 or arg[1].getwidth() != (1, 1):
        return False
    refused = re.compile(unparse(arg[1]), re.ASCII)
    # It may ask what follows, too: of a word that goes on in small letters.
    return all(refused.match(letter + "a") for letter in ascii_lowercase)
