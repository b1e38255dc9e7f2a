"""What stands at the end of a text that has not ended, told by its shape alone: runs that no literal begins.

Theory of operation. Long keys, encodings, lists of numbers and letters that stand apart begin with anything. While such
a run goes on it is held from its beginning, once it no longer looks like a word. Most of a text is plain words, which
one regex tells at once.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from gateway.shield.decode import decodings
from gateway.shield.shapes import Shapes

# So much of a run without a known beginning is held, and no more.
RUN_CHARS = 4_096
# A run so long may hide another text, which is then scanned for.
LONG_RUN_CHARS = 16
HEAD_CHARS = 4
_STRANGE_CHARS = 6
_WIDEST_GAP_CHARS = 4
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_TOKENS = _LETTERS + "+/_-="
RUN = _LETTERS + "!#$%&*+-./:;<=>@\\^_`|~"
CODE_LETTERS = "abcdefABCDEFxXuU"
_RUN_CHARS = frozenset(RUN)
_CODES = f"0123456789{CODE_LETTERS}+ ,:;\r\n-.()/"
_BETWEEN = frozenset(" \t\r\n._-*|/,+~:;'\"=<>()[]{}")
_DIGIT = re.compile(r"(?<![0-9A-Za-z])[0-9+(]")
# A run that looks like a word of a language as yet: no digit, no sign inside it, no capital behind a small letter.
_WORD = re.compile(r"[^A-Za-z0-9%&\\]{0,3}([A-Za-z]?[a-z]{0,15})[.:;!>*`-]{0,3}")
_LONG_RUNS = re.compile(f"[{re.escape(RUN)}]{{{LONG_RUN_CHARS},{RUN_CHARS}}}")
_LONG_RUN = re.compile(f"[{re.escape(RUN)}]{{{LONG_RUN_CHARS}}}")
_APART = "(?<![A-Za-z0-9])(?:[A-Za-z0-9@$!][^A-Za-z0-9@$!]{1,4}){3}"
_STRANGE = re.compile(f"[0-9][0-9 ,:;.()/+-]{{8}}|[0-9][0-9a-fA-FxXuU+ ,:;\\r\\n-]{{14}}|{_APART}")
_LETTERS_APART = re.compile(_APART)
# What a list of codes or of digits is made of, invisible characters among them; no encoding has fewer hexadecimal
# digits in it.
_RUN_OF_CODES = re.compile(f"[{re.escape(_CODES)}\\x00-\\x1f\\x7f]+")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
LEAST_CODE_DIGITS = 12
# What no encoding does without, in a run so long.
_CODED = re.compile("[0-9A-Z%&\\\\]")

# Plain text: words, none of them long, of which no two beside each other are one letter; short numbers before words
# that no code of characters goes on with; and names in code, a short run of letters and signs. The last may go on.
_OPENING, _CLOSING = r"[\"'(*`\u2018\u201c]{0,2}+", r"[.,:;!?)*\"'`\u2019\u201d]{0,3}+"
_NAME = r"(?=[^ \n]{0,13}[A-Za-z]{2})(?!(?:[^A-Za-z \n]{0,4}[A-Za-z](?![A-Za-z])){3})[!-/:-~]{2,15}+"
_NUMBER = r"[0-9]{1,4}+(?:[.,][0-9]{1,3}+)?+[.,:;!?)]{0,2}+(?=[ \n][G-TVWYZg-tvwyz])"


def _plain(small: str) -> "re.Pattern[str]":
    """Compile a regex for plain text, with some small letters."""
    word = (
        rf"(?:[A-Z]{small}{{1,14}}+|{small}{{2,15}}+)(?:['\u2019]{small}{{1,14}}+)?+"
        rf"|[A-Z]?+{small}{{1,7}}+-{small}{{1,6}}+"
    )
    last = (
        rf"([A-Z]?+{small}{{1,7}}+)-({small}{{0,6}}+)"
        rf"|([A-Z]?+{small}{{0,14}}+)(?:(?<={small}{{2}})['\u2019]{small}{{1,14}}+)?+"
    )
    return re.compile(
        rf"(?:(?:[A-Za-z][ \n])?+(?:(?:{_OPENING}(?:{word}){_CLOSING}|{_NAME})(?=[ \n])|({_NUMBER})|[-\u2013\u2014])"
        rf"[ \n])*+((?:[A-Za-z][ \n])?+)({_OPENING}(?:{last}){_CLOSING}|[!-/:-~]{{1,15}}+)"
    )


_PLAIN_ASCII, _PLAIN = _plain("[a-z]"), _plain(r"[^\W\d_A-Z\u0e00-\U0010ffff]")


class Plain(NamedTuple):
    """What was told of plain text.

    begin: where its last word begins, a single letter before that included. live: where something begins that no
    literal tells. has_digits: whether there are any.
    """

    begin: int
    live: int
    has_digits: bool


class Runs:
    """Tells where the runs begin that a text ends with."""

    __slots__ = ("_heads", "_least_digits", "_letters", "_short", "_unseen", "heads")

    def __init__(self, heads: Collection[str], unseen: str, least_digits: int) -> None:
        """heads: how keys begin, as they are written. unseen: invisible characters that something begins with.

        least_digits: of what no literal leads to.
        """
        self.heads = frozenset(heads)
        self._least_digits = min(least_digits, LEAST_CODE_DIGITS)
        self._short = frozenset(head for head in heads if len(head) < HEAD_CHARS)
        # How those begin.
        self._letters = frozenset(head[0] for head in self._short)
        self._heads = frozenset(head[:cut] for head in heads for cut in range(1, HEAD_CHARS + 1))
        self._unseen = unseen

    def plain(self, text: str, begin: int) -> Plain | None:
        """Tell the end of a text from where a word begins on, or nothing if it is not all plain."""
        tail, length = text[begin:], len(text)
        found = (_PLAIN_ASCII if tail.isascii() else _PLAIN).fullmatch(tail)
        if found is None:
            return None
        number, letter, last, (part, ended), _, word = found.regs[1:]
        live = length
        if part >= 0:
            if begin + ended + 1 == length or self.is_head(found[4]) or self.is_head(found[5]):
                live = begin + last[0]
        elif word[0] < 0:
            live = self._name(text, begin + last[0])
        else:
            if word[1] - word[0] <= 1:
                live = begin + letter[0]
            elif self.is_head(found[6]):
                live = begin + last[0]
        return Plain(begin + letter[0], live, number[0] >= 0)

    def _name(self, text: str, begin: int) -> int:
        """Return from where on a name in code is held that begins so."""
        run = max(begin, len(text.rstrip(RUN)))
        word = _WORD.fullmatch(text, run)
        live = len(text) if run == len(text) or (word and not self.is_head(word[1])) else run
        return min(live, _letters_apart(text, run))

    def live(self, text: str) -> int:
        """Return where the runs begin that have no known beginning, and with which the text ends."""
        length = len(text)
        run = len(text.rstrip(RUN))
        live = run
        word = _WORD.fullmatch(text, run)
        if word and not self.is_head(word[1]):
            live = length
        if text[run - 1 : run] == "\n":
            live = min(live, _first_line(text, run))
        codes = len(text.rstrip(_CODES))
        if codes < live:
            digit = _DIGIT.search(text, codes, live)
            live = digit.start() if digit else live
        live = min(live, _letters_apart(text, run))
        if self._unseen:
            live = min(live, len(text.rstrip(self._unseen)))
        # In steps of half the bound, so that what goes out is scanned with what came before it and no oftener.
        return live if length - live <= RUN_CHARS else length - RUN_CHARS // 2

    def is_strange(self, text: str, start: int, end: int) -> bool:
        """Say whether a span may hide another text, or what no literal leads to."""
        if end - start < _STRANGE_CHARS:
            return False
        if _STRANGE.search(text, start, end) and (
            _LETTERS_APART.search(text, start, end) or self._has_codes(text, start, end)
        ):
            return True
        if any(_CODED.search(run[0]) and _may_hide(run) for run in _LONG_RUNS.finditer(text, start, end)):
            return True
        return not text.isascii() and any(char in self._unseen for char in text[start:end])

    def _has_codes(self, text: str, start: int, end: int) -> bool:
        """Say whether a span may hold digits that are codes, or a number that no literal leads to."""
        if not text.isascii():
            return True
        least = self._least_digits
        run = _RUN_OF_CODES.search(text, len(text[:start].rstrip(_CODES)))
        while run and run.start() < end:
            if len(run[0]) >= least and sum(map(_HEX_DIGITS.__contains__, run[0])) >= least:
                return True
            run = _RUN_OF_CODES.search(text, run.end())
        return False

    def is_head(self, word: str) -> bool:
        """Say whether a key may begin with a word, as it is written."""
        if word[:HEAD_CHARS] in self._heads:
            return True
        short = self._short
        return word[:1] in self._letters and (word[:3] in short or word[:2] in short or word[:1] in short)


def _may_hide(run: "re.Match[str]") -> bool:
    """Say whether a run may hide another text; one that is cut may."""
    text, (start, end) = run.string, run.span()
    if text[start - 1 : start] in _RUN_CHARS or text[end : end + 1] in _RUN_CHARS:
        return True
    shapes = Shapes(run[0])
    return bool(shapes.mixed or shapes.letters or shapes.apart or decodings(shapes, frozenset()))


def is_long(text: str, start: int) -> bool:
    """Say whether a long run stands behind a place."""
    return len(text) - start >= LONG_RUN_CHARS and _LONG_RUN.search(text, start) is not None


def _first_line(text: str, at: int) -> int:
    """Return where the first of the lines begins that one code is written in, one of which ended before `at`."""
    least = max(0, at - RUN_CHARS)
    while at > least and text[at - 1] == "\n":
        line = text[text.rfind("\n", 0, at - 1) + 1 : at - 1].removesuffix("\r")
        code = len(line) - len(line.rstrip(_TOKENS))
        if code < LONG_RUN_CHARS:
            break
        at -= 1 + code + (text[at - 2 : at - 1] == "\r")
    return at


def _letters_apart(text: str, run: int) -> int:
    """Return where the single letters begin that stand apart at the end of the text, the last of them at `run`."""
    place = run if len(text) - run <= 1 else len(text)
    least = max(0, place - RUN_CHARS)
    while True:
        letter = place - 1
        while letter > least and text[letter] in _BETWEEN and place - letter <= _WIDEST_GAP_CHARS:
            letter -= 1
        if letter < least or letter == place - 1 or not text[letter].isalnum():
            return place
        if letter and text[letter - 1] not in _BETWEEN:
            return place
        place = letter
