r"""Regexes for the beginnings of matches, to hold what a stream says against: `ways` tells them letter by letter.

Every character of a regex may also be the end of the text, so that what follows is taken as read. It matches at a
place if, and only if, some continuation of the text may change what the regex does there; in doubt it matches.
Conditions on what lies ahead are taken the same way, those on what lies behind hold.
"""

import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any

from gateway.shield.partial import told_group, width_of
from gateway.shield.unparse import unparse

_END = r"\Z"
_ONE_CHAR = frozenset((ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN))
_REPEATS = {ops.MAX_REPEAT: "", ops.MIN_REPEAT: "?", ops.POSSESSIVE_REPEAT: ""}
_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))


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
    told = told_group(tree) if gap_chars is None else None
    said = _Unfinished(gap_chars, told).sequence(tree) + _END
    return f"(?{letters}:{said})" if letters else said


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
            self._is_last = is_last and not any(width_of([item]) for item in items[place:])
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
