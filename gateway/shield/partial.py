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
from typing import Any

from gateway.shield.unparse import unparse

_END = r"\Z"
_ONE_CHAR = frozenset((ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN))
_REPEATS = {ops.MAX_REPEAT: "", ops.MIN_REPEAT: "?", ops.POSSESSIVE_REPEAT: ""}
_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))
_BEGINNING_CHARS = 12
_MOST_BEGINNINGS = 400
_MOST_MEMBERS = 10


def unfinished(source: str, *, gap_chars: int | None = None) -> str:
    """Write the regex that matches where a match of `source` may be under way at the end of the text.

    gap_chars: the first repeat on each way through the regex whose length varies by more than this is a gap. It ends in
    an empty group, so that a match tells where what comes after the gap begins: at the end of the text, if nothing of
    that is there. So does what looks ahead and is not sure yet: of the groups in a match the first tells.
    """
    tree = parser.parse(source, re.ASCII)
    letters = "".join(letter for flag, letter in _FLAGS if tree.state.flags & flag)
    said = _Unfinished(gap_chars).sequence(tree) + _END
    return f"(?{letters}:{said})" if letters else said


class _Unfinished:
    """Writes the items of one regex. gap_chars: as above, or None when no gap is marked any more."""

    def __init__(self, gap_chars: int | None) -> None:
        self._gap_chars = gap_chars

    def sequence(self, items: Iterable[Any]) -> str:
        return "".join([self._item(op, arg) for op, arg in items])

    def _item(self, op: Any, arg: Any) -> str:
        if op in _ONE_CHAR:
            return f"(?:{unparse([(op, arg)])}|{_END})"
        if op in _REPEATS:
            return self._repeat(op, *arg)
        if op is ops.BRANCH:
            return "(?:" + "|".join(self._branches(arg[1])) + ")"
        if op is ops.SUBPATTERN:
            on, off = ("".join(letter for flag, letter in _FLAGS if flags & flag) for flags in arg[1:3])
            return f"(?{on}{'-' + off if off else ''}:{self.sequence(arg[3])})"
        if op is ops.ATOMIC_GROUP:
            return f"(?:{self.sequence(arg)})"
        said = unparse([(op, arg)])
        if op in (ops.ASSERT, ops.ASSERT_NOT) and arg[0] > 0:
            mark = "" if self._gap_chars is None else "()"
            return f"(?:{mark}{_Unfinished(None).sequence(arg[1])}{_END}|{said})"
        if op is ops.AT and arg in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return said
        # What stands behind the end of the text is not the text's own.
        return f"(?:{_END}|{said})"

    def _branches(self, branches: Iterable[Any]) -> list[str]:
        """Write the branches of a choice; behind it a gap counts as passed if it was on one of them."""
        before, after, said = self._gap_chars, self._gap_chars, []
        for branch in branches:
            self._gap_chars = before
            said.append(self.sequence(branch))
            after = after if self._gap_chars == before else None
        self._gap_chars = after
        return said

    def _repeat(self, op: Any, least: int, most: int, body: Any) -> str:
        kind, mark = _REPEATS[op], ""
        shortest, longest = body.getwidth()
        if self._gap_chars is not None and most * longest - least * shortest > self._gap_chars:
            # Of all its lengths the shortest that does.
            kind, mark, self._gap_chars = "?", "()", None
        if len(body) == 1 and body[0][0] in _ONE_CHAR:
            char = unparse(body)
            return f"(?:{char}{{{least},{most}}}{kind}|{char}{{0,{most}}}{_END}){mark}"
        return f"(?:{self.sequence(body)}){{{least},{most}}}{kind}{mark}"


def beginnings(source: str, letter: Callable[[str], str], *, least: int = 2) -> tuple[str, ...]:
    """Return what every match of a regex begins with, in the letters that `letter` gives; nothing if that is not told.

    least: how long each must be, or else begin with a sign.
    """
    found = _Beginnings(letter).sequence(parser.parse(source, re.ASCII))
    words = {word[:_BEGINNING_CHARS] for word in found}
    if not words or any(len(word) < least and _is_common(word[:1]) for word in words):
        return ()
    return tuple(sorted(words))


def _is_common(char: str) -> bool:
    return char in ("", " ") or (char.isascii() and char.isalnum())


class _Beginnings:
    """Multiplies out how the items of a regex begin, as far as that stays small. A word that goes no further ends."""

    def __init__(self, letter: Callable[[str], str]) -> None:
        self._letter = letter

    def sequence(self, items: Iterable[Any]) -> set[str]:
        """Return the beginnings of a sequence."""
        return {word.removesuffix("\0") for word in self._words(items)}

    def _words(self, items: Iterable[Any]) -> set[str]:
        """Return beginnings; a NUL at the end of one says that what follows is not known."""
        found = {""}
        for op, arg in items:
            if op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
                continue
            tails = self._step(op, arg)
            longer = set()
            for word in found:
                if word.endswith("\0") or len(word) >= _BEGINNING_CHARS:
                    longer.add(word)
                else:
                    longer.update(word + tail for tail in tails)
            if len(longer) > _MOST_BEGINNINGS:
                return {word.removesuffix("\0") + "\0" for word in found}
            found = longer
        return found

    def _step(self, op: Any, arg: Any) -> set[str]:
        if op is ops.LITERAL:
            return {self._letter(chr(arg)) or "\0"}
        if op is ops.IN:
            return self._members(arg)
        if op is ops.BRANCH:
            return set().union(*map(self._words, arg[1]))
        if op is ops.SUBPATTERN:
            return self._words(arg[3])
        if op is ops.ATOMIC_GROUP:
            return self._words(arg)
        if op in _REPEATS:
            least, most, body = arg
            once = self._words(body)
            if most == 1:
                return once | ({""} if least == 0 else set())
            ended = {word.removesuffix("\0") + "\0" for word in once}
            return ended | ({""} if least == 0 else set())
        return {"\0"}

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
                return {"\0"}
        return letters if "" not in letters and len(letters) <= _MOST_MEMBERS else {"\0"}
