"""What stands at the end of a text that has not ended, told by its shape alone: runs that no literal begins.

Theory of operation. Long keys, encodings, lists of numbers and letters that stand apart begin with anything. While such
a run goes on it is held from its beginning, once it no longer looks like a word. Most of a text is plain words, which
one regex tells at once.
"""

import re
from collections.abc import Collection

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
_CODES = "0123456789abcdefABCDEFxXuU+ ,:;\r\n-.()/"
_BETWEEN = frozenset(" \t\r\n._-*|/,+~:;'\"=<>()[]{}")
_DIGIT = re.compile(r"(?<![0-9A-Za-z])[0-9+(]")
# A run that looks like a word of a language as yet: no digit, no sign inside it, no capital behind a small letter.
_WORD = re.compile(r"[^A-Za-z0-9%&\\]{0,3}([A-Za-z]?[a-z]{0,15})[.:;!>*`-]{0,3}")
_LONG_RUN = re.compile(f"[{re.escape(RUN)}]{{{LONG_RUN_CHARS}}}")
_STRANGE = re.compile(
    f"[{re.escape(RUN)}]{{{LONG_RUN_CHARS}}}|[0-9][0-9 ,:;.()/+-]{{8}}|[0-9][0-9a-fA-FxXuU+ ,:;\\r\\n-]{{14}}"
    "|(?<![A-Za-z0-9])(?:[A-Za-z0-9@$!][^A-Za-z0-9@$!]{1,4}){3}"
)
# Plain words, none of them long, of which no two beside each other are one letter; the last may go on.
_OPENING, _CLOSING = r"[\"'(*`]{0,2}", r"[.,:;!?)*\"'`]{0,3}"
_PLAIN = re.compile(
    rf"(?:(?:[A-Za-z][ \n])?{_OPENING}[A-Za-z][a-z]{{1,14}}{_CLOSING}(?: |\n\n?))*"
    rf"((?:[A-Za-z][ \n])?)({_OPENING}([A-Za-z]?[a-z]{{0,14}}){_CLOSING})"
).fullmatch


class Runs:
    """Tells where the runs begin that a text ends with."""

    __slots__ = ("_heads", "_short", "_unseen")

    def __init__(self, heads: Collection[str], unseen: str) -> None:
        """heads: how keys begin, as they are written. unseen: invisible characters that something begins with."""
        self._short = frozenset(head for head in heads if len(head) < HEAD_CHARS)
        self._heads = frozenset(head[:cut] for head in heads for cut in range(1, HEAD_CHARS + 1))
        self._unseen = unseen

    def plain(self, text: str, begin: int) -> tuple[int, int] | None:
        """Tell the end of a text from where a word begins on, or nothing if it is not all plain words.

        Return where its last word begins, a single letter before that included, and where something begins that no
        literal tells.
        """
        found = _PLAIN(text, begin)
        if found is None:
            return None
        word = found[3]
        first = found.start(1)
        if len(word) <= 1:
            return first, first
        return first, found.start(2) if self._is_head(word) else len(text)

    def live(self, text: str) -> int:
        """Return where the runs begin that have no known beginning, and with which the text ends."""
        length = len(text)
        run = len(text.rstrip(RUN))
        live = run
        word = _WORD.fullmatch(text, run)
        if word and not self._is_head(word[1]):
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
        if _STRANGE.search(text, start, end):
            return True
        return not text.isascii() and any(char in self._unseen for char in text[start:end])

    def _is_head(self, word: str) -> bool:
        short = self._short
        return word[:HEAD_CHARS] in self._heads or word[:3] in short or word[:2] in short or word[:1] in short


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
