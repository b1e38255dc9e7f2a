"""A regex for the text as it was sent, written for the normalized one: what it cannot match need not be tried there.

Theory of operation. Where a regex matches in a text, its folded form matches at the same place of the normalized view:
each character that may stand in a match is written as the view has it. A run of white space is one blank there, so what
may be white space may also be missing. Of what may be beyond ASCII nothing is told but how much of it there is. What
only looks around is left out. It ends where a long value has been read or where telling more would cost too much; it is
empty when it would hardly say more than the literal that led there.
"""

import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple

from gateway.shield.beginnings import REPEATS, ZERO_WIDTH
from gateway.shield.regex_tree import ops
from gateway.shield.unparse import parse, unparse

_SINGLE = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)
_FLAGS = int(re.IGNORECASE | re.DOTALL)
# What these match may be beyond ASCII.
_OPEN = (ops.ANY, ops.NOT_LITERAL, ops.NEGATE)
_OPEN_CATEGORIES = (ops.CATEGORY_NOT_DIGIT, ops.CATEGORY_NOT_SPACE, ops.CATEGORY_NOT_WORD)
# More characters beyond ASCII than this are not told one by one.
_MOST_BEYOND = 64
_ANYTHING = r"[\s\S]"
_ASCII = [chr(code) for code in range(128)]
_MOST_CHARS = 600
# So many characters make a value, which need not be read to its end.
_VALUE_CHARS = 8
# A longer gap of anything is tried only where one letter ends it.
_MOST_GAP_CHARS = 16

Letter = Callable[[str], str]


class _End(Exception):
    """From here on nothing is told."""


class _Piece(NamedTuple):
    """A part of the folded regex. least: as much of it as must stand there, empty if nothing must."""

    source: str
    least: str
    is_value: bool = False
    is_gap: bool = False


def folded_regex(source: str, letter: Letter, *, least_items: int) -> str:
    """Fold a regex. letter: what a character is in the view; one that is none or several there stands in no text.

    least_items: how many things it must ask for, a word being one of them; where it asks for fewer, it is empty.
    """
    tree = parse(source)
    pieces = _pieces(tree, tree.state.flags & _FLAGS, letter)
    while pieces and not pieces[-1].least:
        pieces.pop()
    kinds = "".join("w" if re.fullmatch("[a-z]", piece.source) else "-" if piece.least else "" for piece in pieces)
    if len(re.findall("w{1,}|-", kinds)) < least_items:
        return ""
    return "".join(piece.source for piece in pieces[:-1]) + pieces[-1].least


def _pieces(items: Iterable[Any], flags: int, letter: Letter) -> list[_Piece]:
    """Fold items up to where nothing is told any more."""
    pieces: list[_Piece] = []
    size = 0
    for item in items:
        try:
            told = _whole((item,), flags, letter)
        except _End:
            break
        value = next((place for place, piece in enumerate(told, 1) if piece.is_value), len(told))
        size += sum(len(piece.source) for piece in told[:value])
        is_after_gap = pieces and pieces[-1].is_gap
        if size > _MOST_CHARS or (is_after_gap and told and not re.fullmatch(r"\\?.", told[0].source)):
            break
        pieces += told[:value]
        if pieces and pieces[-1].is_value:
            break
    return pieces


def _whole(items: Iterable[Any], flags: int, letter: Letter) -> list[_Piece]:
    """Fold all of some items.

    Raises:
        _End: one is of a kind that is not told.
    """
    return [piece for op, arg in items if op not in ZERO_WIDTH for piece in _folded(op, arg, flags, letter)]


def _inner(items: Iterable[Any], flags: int, letter: Letter) -> list[_Piece]:
    """Fold all of some items that stand in a choice or may be missing, so that no gap may be among them."""
    pieces = _whole(items, flags, letter)
    if any(piece.is_gap for piece in pieces):
        raise _End
    return pieces


def _folded(op: Any, arg: Any, flags: int, letter: Letter) -> list[_Piece]:
    if op in _SINGLE:
        return [_repeated((op, arg), flags, 1, 1, letter)]
    if op is ops.SUBPATTERN:
        return _whole(arg[3], (flags | arg[1] & _FLAGS) & ~arg[2], letter)
    if op is ops.BRANCH:
        ways = [_inner(branch, flags, letter) for branch in arg[1]]
        source = f"(?:{'|'.join(dict.fromkeys(map(_source, ways)))})"
        return [_Piece(source, source if all(any(piece.least for piece in way) for way in ways) else "")]
    if op in REPEATS:
        least, most, body = arg
        if len(body) == 1 and body[0][0] in _SINGLE:
            return [_repeated(body[0], flags, least, most, letter)]
        if (least, most) == (0, 1):
            return [_Piece(f"(?:{_source(_inner(body, flags, letter))})?", "")]
    raise _End


def _source(pieces: Iterable[_Piece]) -> str:
    return "".join(piece.source for piece in pieces)


def _repeated(single: tuple[Any, Any], flags: int, least: int, most: int, letter: Letter) -> _Piece:
    """Fold what is one character and stands `least` to `most` times."""
    chars = _chars(*single, flags, letter)
    if chars is None or " " in chars:
        is_gap = chars is None and most > _MOST_GAP_CHARS
        return _Piece(f"{_class(chars)}{{0,{most}}}" if most > 1 else f"{_class(chars)}?", "", is_gap=is_gap)
    one = _class(chars)
    source = one if least == most == 1 else f"{one}{{{least},{most}}}"
    return _Piece(source, f"{one}{{{least}}}" if least > 1 else one * least, least >= _VALUE_CHARS)


def _class(chars: frozenset[str] | None) -> str:
    """Write some characters as a regex; None for all there are."""
    if chars is None:
        return _ANYTHING
    if len(chars) == 1:
        return re.escape(next(iter(chars)))
    return f"[{''.join(map(re.escape, sorted(chars)))}]" if chars else "(?!)"


def _chars(op: Any, arg: Any, flags: int, letter: Letter) -> frozenset[str] | None:
    """Return what the view has in place of the characters that an item matches, or None if that may be anything."""
    members = arg if op is ops.IN else [(op, arg)]
    beyond: list[int] = []
    for kind, value in members:
        if kind in _OPEN or kind is ops.CATEGORY and value in _OPEN_CATEGORIES:
            return None
        first, last = value if kind is ops.RANGE else (value, value) if kind is ops.LITERAL else (0, 0)
        if last - max(first, 128) > _MOST_BEYOND:
            return None
        beyond += range(max(first, 128), last + 1)
    accepts = re.compile(unparse([(op, arg)], flags), re.ASCII).match
    told = {letter(char) for char in chain(filter(accepts, _ASCII), map(chr, beyond))}
    return frozenset(char for char in told if len(char) == 1)
