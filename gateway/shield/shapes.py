"""The bytes of a text, one a character, and where long runs of one kind of character stand in them.

Theory of operation. A translation writes each character as the letter of its kind, and a search for a run of one letter
costs a microsecond where there is none. What has no such run needs no closer look by a regex.
"""

import re
from collections.abc import Iterator
from string import ascii_letters, digits
from typing import AnyStr

from gateway.shield.patterns import LEAST_VALUE_CHARS, SIGNS_IN_TOKENS, SIGNS_IN_VALUES

LETTERS, DIGITS = ascii_letters.encode(), digits.encode()
HEX_DIGITS = DIGITS + b"ABCDEFabcdef"
LEAST_TOKEN_CHARS = 16
# A regex reads so much at a time, so that another thread never waits for long, and so far beyond it.
_BLOCK_CHARS, _BEYOND_CHARS = 65_536, 4_096

Ranges = list[tuple[int, int]]


def kinds_of(**chars: bytes) -> bytes:
    """Return a table that writes characters as the letters they are given by, and all others as full stops."""
    table = bytearray(b"." * 256)
    for kind, members in chars.items():
        for member in members:
            table[member] = ord(kind)
    return bytes(table)


_TOKENS = kinds_of(a=LETTERS + DIGITS + SIGNS_IN_TOKENS.encode())
_VALUES = kinds_of(a=LETTERS + DIGITS + SIGNS_IN_VALUES.encode())


def runs(raw: bytes, kinds: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs of at least so many characters of the kind `a`."""
    written = raw.translate(kinds) + b"."
    run = b"a" * least
    start = written.find(run)
    while start >= 0:
        end = written.index(b".", start)
        yield start, end
        start = written.find(run, end)


def matches(
    code: re.Pattern[AnyStr], text: AnyStr, start: int = 0, end: int | None = None
) -> Iterator[re.Match[AnyStr]]:
    """Yield the matches of a regex in a span, as `finditer` does, block by block."""
    last = len(text) if end is None else end
    for begin in range(start, last, _BLOCK_CHARS):
        after = begin + _BLOCK_CHARS
        for found in code.finditer(text, max(begin, start), min(after + _BEYOND_CHARS, last)):
            if found.start() >= after:
                break
            start = found.end()
            yield found


class Shapes:
    """One text. raw: one byte a character, those beyond ASCII as question marks.

    tokens: spans of runs of at least LEAST_TOKEN_CHARS characters of a token. has_digits: whether there is any.
    has_values: whether LEAST_VALUE_CHARS characters of a value stand in a row somewhere.
    """

    __slots__ = ("has_digits", "has_values", "raw", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode("ascii", "replace")
        self.has_digits = len(self.raw.translate(None, DIGITS)) < len(text)
        self.has_values = any(True for _ in runs(self.raw, _VALUES, LEAST_VALUE_CHARS))
        # A long token is a long value too.
        self.tokens: Ranges = list(runs(self.raw, _TOKENS, LEAST_TOKEN_CHARS)) if self.has_values else []
