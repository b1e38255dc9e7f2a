r"""Regexes for the beginnings of matches: what a text may end with while a match is still under way. Runs none.

Theory of operation. Python's `re` cannot say that a match has begun and the text ended too soon. But a regex can be
written that says it: every character of the first one may also be the end of the text, so that what follows is taken
as read. It matches at a place if, and only if, some continuation of the text may change what the first one does there;
in doubt it matches. Conditions on what lies ahead are taken the same way, those on what lies behind hold.
"""

import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable
from string import ascii_lowercase
from typing import Any, NamedTuple

from gateway.shield.unparse import unparse

_END = r"\Z"
_ONE_CHAR = frozenset((ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN))
_REPEATS = {ops.MAX_REPEAT: "", ops.MIN_REPEAT: "?", ops.POSSESSIVE_REPEAT: ""}
_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))
# What a match reports, if it is not the whole of it.
_TOLD = "secret"
# Stands before a beginning behind which no letter of the same word can stand.
_EDGE = "\x01"
_UNKNOWN = "\0"
BEGINNING_CHARS = 12
_MOST_BEGINNINGS = 400
_MOST_MEMBERS = 10


def unfinished(source: str, *, gap_chars: int | None = None) -> str:
    """Write the regex that matches where a match of `source` may be under way at the end of the text.

    gap_chars: the first repeat on each way through the regex whose length varies by more than this is a gap. It ends in
    an empty group, so that a match tells where what comes after the gap begins: at the end of the text, if nothing of
    that is there. So does what looks ahead behind a whole match, has read some of the text and is not sure yet: of the
    groups in a match the first tells. Without gaps
    the empty group stands before what a match reports, if that is not the whole of it.
    """
    tree = parser.parse(source, re.ASCII)
    letters = "".join(letter for flag, letter in _FLAGS if tree.state.flags & flag)
    told = _told_group(tree) if gap_chars is None else None
    said = _Unfinished(gap_chars, told).sequence(tree) + _END
    return f"(?{letters}:{said})" if letters else said


def _told_group(tree: Any) -> int | None:
    """Return the number of the group that every match reports, if there is one."""
    number = tree.state.groupdict.get(_TOLD)
    return None if number is None or _width_before(tree, number) is None else int(number)


def _width_before(items: Iterable[Any], group: int) -> int | None:
    """Return how many characters may stand before a group that every match goes through, or None if there is none."""
    width = 0
    for op, arg in items:
        if op is ops.SUBPATTERN:
            inside = 0 if arg[0] == group else _width_before(arg[3], group)
            if inside is not None:
                return width + inside
        width += _width([(op, arg)])
    return None


def _width(items: list[Any]) -> int:
    """Return how many characters some items match at most."""
    return int(parser.SubPattern(parser.State(), items).getwidth()[1])


class _Unfinished:
    """Writes the items of one regex.

    gap_chars: as above, or None when no gap is marked any more. told: the group that is marked, None behind it. Before
    it every repeat takes the least it can, so that what may be reported is marked where it may begin soonest.
    """

    def __init__(self, gap_chars: int | None, told: int | None = None) -> None:
        self._gap_chars = gap_chars
        self._told = told
        # Whether nothing of a match can come behind the item that is written.
        self._is_last = True

    def sequence(self, items: Iterable[Any]) -> str:
        items, is_last, said = list(items), self._is_last, []
        for place, (op, arg) in enumerate(items, 1):
            self._is_last = is_last and not any(_width([item]) for item in items[place:])
            said.append(self._item(op, arg))
        self._is_last = is_last
        return "".join(said)

    def _item(self, op: Any, arg: Any) -> str:
        if op in _ONE_CHAR:
            return f"(?:{unparse([(op, arg)])}|{_END})"
        if op in _REPEATS:
            return self._repeat(op, *arg)
        if op is ops.BRANCH:
            return "(?:" + "|".join(self._branches(arg[1])) + ")"
        if op is ops.SUBPATTERN:
            on, off = ("".join(letter for flag, letter in _FLAGS if flags & flag) for flags in arg[1:3])
            mark = ""
            if arg[0] is not None and arg[0] == self._told:
                mark, self._told = "()", None
            return f"{mark}(?{on}{'-' + off if off else ''}:{self.sequence(arg[3])})"
        if op is ops.ATOMIC_GROUP:
            return f"(?:{self.sequence(arg)})"
        said = unparse([(op, arg)])
        if op in (ops.ASSERT, ops.ASSERT_NOT) and arg[0] > 0:
            ahead = _Unfinished(None).sequence(arg[1])
            if not self._is_last:
                # What follows is read from the same place.
                return f"(?:(?={ahead}{_END})|{said})"
            # Where the text ends before that, what stands there is part of a match under way.
            mark = "" if self._gap_chars is None else f"{_END}|()"
            return f"(?:{mark}{ahead}{_END}|{said})"
        if op is ops.AT and arg in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return said
        # What stands behind the end of the text is not the text's own.
        return f"(?:{_END}|{said})"

    def _branches(self, branches: Iterable[Any]) -> list[str]:
        """Write the branches of a choice; behind it a gap counts as passed if it was on one of them.

        Those without a gap come first: where a text may go on with either, all of it is held.
        """
        before = self._gap_chars
        said: list[str] = []
        behind_gap: list[str] = []
        for branch in branches:
            self._gap_chars = before
            written = self.sequence(branch)
            (said if self._gap_chars == before else behind_gap).append(written)
        self._gap_chars = None if behind_gap else before
        return said + behind_gap

    def _repeat(self, op: Any, least: int, most: int, body: Any) -> str:
        kind, mark = "?" if self._told is not None else _REPEATS[op], ""
        shortest, longest = body.getwidth()
        if self._gap_chars is not None and most * longest - least * shortest > self._gap_chars:
            # Of all its lengths the shortest that does.
            kind, mark, self._gap_chars = "?", "()", None
        if len(body) == 1 and body[0][0] in _ONE_CHAR:
            char = unparse(body)
            return f"(?:{char}{{{least},{most}}}{kind}|{char}{{0,{most}}}{_END}){mark}"
        return f"(?:{self.sequence(body)}){{{least},{most}}}{kind}{mark}"


class Beginning(NamedTuple):
    """What a match begins with.

    is_edge: whether no letter of the same word can stand before it. is_told: whether a match reports it: what it
    reports may begin further on.
    """

    word: str
    is_edge: bool
    is_told: bool = True


def beginnings(source: str, letter: Callable[[str], str], *, least: int = 2) -> tuple[Beginning, ...]:
    """Return what every match of a regex begins with, in the letters that `letter` gives; nothing if that is not known.

    Each is at least so long, or begins with a sign, and ends where what a match reports may begin, unless that is where
    the match begins.
    """
    tree = parser.parse(source, re.ASCII)
    group = _told_group(tree)
    is_told = group is None or _width_before(tree, group) == 0
    found = _Beginnings(letter, None if is_told else group).sequence(tree)
    if not found or any(len(word) < least and _is_common(word[:1]) for word, _ in found):
        return ()
    return tuple(Beginning(word, is_edge, is_told) for word, is_edge in sorted(found))


def _is_common(char: str) -> bool:
    return char in ("", " ") or (char.isascii() and char.isalnum())


class _Beginnings:
    """Multiplies out how the items of a regex begin, as far as that stays small. A word that goes no further ends."""

    def __init__(self, letter: Callable[[str], str], told: int | None) -> None:
        """told: the group that ends every word."""
        self._letter = letter
        self._told = told

    def sequence(self, items: Iterable[Any]) -> set[tuple[str, bool]]:
        """Return the beginnings of a sequence, and whether they stand at an edge."""
        found = (word.removesuffix(_UNKNOWN) for word in self._words(items))
        return {(word.lstrip(_EDGE)[:BEGINNING_CHARS], word.startswith(_EDGE)) for word in found}

    def _words(self, items: Iterable[Any]) -> set[str]:
        """Return beginnings; _UNKNOWN at the end of one says that what follows is not known."""
        found = {""}
        for op, arg in items:
            if op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
                if _is_edge(op, arg):
                    found = {word or _EDGE for word in found}
                continue
            tails = self._step(op, arg)
            longer = set()
            for word in found:
                if word.endswith(_UNKNOWN) or len(word) > BEGINNING_CHARS:
                    longer.add(word)
                elif word.strip(_EDGE):
                    longer.update(word + tail.lstrip(_EDGE) for tail in tails)
                else:
                    longer.update(word + tail.removeprefix(word) for tail in tails)
            if len(longer) > _MOST_BEGINNINGS:
                return {word.removesuffix(_UNKNOWN) + _UNKNOWN for word in found}
            found = longer
        return found

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
        if op in _REPEATS:
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
    return _begins_at_edge(parser.parse(source, re.ASCII))


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
