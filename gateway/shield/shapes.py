"""Which kinds of characters stand where in a text, block by block: what no plain text pays for is asked only here.

Theory of operation. A block is translated to a hexadecimal digit a character whose bits are the kinds it belongs to,
and read as one large number. Shifting it by whole characters and taking what both have in common tells, for all places
and kinds at once, whether the same kind stands there twice: thirty operations on a number cost what one search by regex
costs for a few characters. Long tokens are rarer, and found by a search for a run of one byte.
"""

import re
from binascii import a2b_hex
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, count
from operator import add

from gateway.shield.patterns import LEAST_VALUE_CHARS, is_token_char, is_value_char

BLOCK_CHARS = 16_384
LEAST_TOKEN_CHARS = 16
_PIECE_CHARS = 262_144
# A shape that begins in one block may end in the next.
_AHEAD_CHARS = 64
_MOST_AHEAD = _AHEAD_CHARS // LEAST_TOKEN_CHARS
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"
SEPARATORS = b" \t\n\r._-*|/,+~:;'\"=<>()[]{}"
LEET = b"0134578@$!|+"
# Fewer digits than this make no hidden text.
_LEAST_DIGITS = 8
_LEAST_NUMBERS = 5
# More letters apart than this are listed all at once.
_MANY_APART = 64

# The bits of a character's kinds: what may stand apart, what parts it, letters and what may stand for letters.
_APART, _SEPARATOR, _LETTER, _LEET = 1, 2, 4, 8
_KINDS = bytes(
    b"0123456789abcdef"[
        sum(
            bit
            for bit, chars in (
                (_APART, _LETTERS + _DIGITS + b"@$!"),
                (_SEPARATOR, SEPARATORS),
                (_LETTER, _LETTERS),
                (_LEET, LEET),
            )
            if byte in chars
        )
    ]
    for byte in range(256)
)
_TOKENS = bytes(48 if is_token_char(chr(byte)) else 46 for byte in range(256))
_LONG_TOKEN = b"0" * LEAST_TOKEN_CHARS
# A long token is a long value too.
_VALUES = bytes(48 if is_value_char(chr(byte)) else 46 for byte in range(256))
_LONG_VALUE = b"0" * LEAST_VALUE_CHARS
_BASE64 = bytes(97 if byte in _LETTERS + _DIGITS + b"+/-_" else 46 for byte in range(256))
_HEX_DIGITS = bytes(97 if byte in b"0123456789abcdefABCDEF" else 46 for byte in range(256))
_HEX_KINDS = bytes(49 if byte in b"0123456789abcdefABCDEF" else 50 if byte in SEPARATORS else 48 for byte in range(256))
_HEX_MARK = re.compile(rb"0[xX]")
_WORDS = bytes(97 if byte in _LETTERS else 46 for byte in range(256))
_LONG_BASE64 = b"a" * 16
_LONG_HEX = b"a" * 16
_LONG_WORD = b"a" * 20

Ranges = list[tuple[int, int]]


class Shapes:
    """The shapes of one text. Spans are half-open, in order, and do not touch.

    raw: one byte a character, those beyond ASCII as question marks.
    has_digits: whether a digit may stand there. has_values: whether LEAST_VALUE_CHARS characters of a value stand in
    a row somewhere.
    tokens: spans of every run of at least LEAST_TOKEN_CHARS characters of a token.
    base64, letters: places where 16 of its characters, or 20 of those, stand in a row.
    apart: places before two letters that stand alone beside one another.
    The others are spans of blocks. hexadecimal: 16 of its digits stand in a row there, or pairs of them apart. mixed:
    letters and what may stand for letters make one word. codes: decimal numbers stand apart, or eight digits in a row.
    marked: a 0 stands before an x.
    """

    __slots__ = (
        "apart", "base64", "codes", "has_digits", "has_values", "hexadecimal", "letters", "marked", "mixed", "raw",
        "text", "tokens",
    )  # fmt: skip

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = _bytes_of(text)
        self.has_digits = self.has_values = False
        self.tokens: Ranges = []
        self.base64: list[int] = []
        self.hexadecimal: Ranges = []
        self.letters: list[int] = []
        self.apart: list[int] = []
        self.mixed: Ranges = []
        self.marked: Ranges = []
        self.codes: Ranges = []
        size = len(text)
        for begin in range(0, size, BLOCK_CHARS):
            end = min(begin + BLOCK_CHARS, size)
            block = self.raw[begin : end + _AHEAD_CHARS] if size > BLOCK_CHARS else self.raw
            value = block.translate(_VALUES).find(_LONG_VALUE)
            if value >= 0:
                self.has_values = True
                self._find_tokens(block, value, begin, end)
            self._compare(block, begin, end)

    def _find_tokens(self, block: bytes, place: int, begin: int, end: int) -> None:
        """place: where the block's first token may begin."""
        # One behind the block is in no token.
        kinds = block.translate(_TOKENS) + b"."
        start = kinds.find(_LONG_TOKEN, place)
        if start < 0:
            return
        spans: Ranges = []
        while start >= 0:
            last = kinds.index(b".", start)
            spans.append((start, last))
            start = kinds.find(_LONG_TOKEN, last)
        found = [block[start:last] for start, last in spans]
        joined = b"\n".join(found)
        # The first few may have been seen from the block before, or begin there.
        for start, last in spans[:_MOST_AHEAD]:
            add_span(self.tokens, begin + start, begin + last)
        self.tokens += [(begin + start, begin + last) for start, last in spans[_MOST_AHEAD:]]
        if _LONG_HEX in joined.translate(_HEX_DIGITS):
            add_span(self.hexadecimal, begin, end)
        # How many characters of the joined ones stand before each.
        before = [*accumulate([len(token) + 1 for token in found], initial=0)]
        for places, run, kinds in (
            (self.letters, _LONG_WORD, joined.translate(_WORDS)),
            (self.base64, _LONG_BASE64, joined.translate(_BASE64)),
        ):
            place = kinds.find(run)
            while place >= 0:
                number = bisect_right(before, place) - 1
                places.append(begin + spans[number][0] + place - before[number])
                place = kinds.find(b".", place)
                place = kinds.find(run, place) if place >= 0 else -1

    def _compare(self, block: bytes, begin: int, end: int) -> None:
        part, blank, word = _masks()
        # `x >> 4 * n` holds at each place what stands n characters before it; a shift by a bit more or less turns one
        # kind into another.
        x = _number_of(block.translate(_KINDS))
        twice, around = x & x >> 4, x & x >> 8
        # Told at the separator behind it.
        single = around & blank & x >> 3
        alone = single & single >> 8
        if wide := single & single >> 12:
            alone |= wide << 4
        if begin == 0 and block[1:2] in SEPARATORS and block[:6].translate(_STARTS).startswith((b"a a ", b"a  a ")):
            self.apart.append(0)
        if alone:
            # Found is the last of five characters.
            places, odd = alone.to_bytes((len(block) + 1) // 2, "big").hex(), len(block) % 2
            shift = 4 + odd
            if alone.bit_count() > _MANY_APART:
                parts = places[: end - begin + shift].split(_FOUND)[:-1]
                self.apart += map(add, accumulate(map(len, parts)), count(begin - shift))
            else:
                place = places.find(_FOUND)
                while 0 <= place < end - begin + shift:
                    self.apart.append(begin + place - shift)
                    place = places.find(_FOUND, place + 1)
        if around & word & x >> 5 or twice & word & x >> 9:
            add_span(self.mixed, begin, end)
        # What may stand apart and is no letter is a digit, or one of a few signs.
        digits = (x ^ x >> 2) & part
        if not digits:
            return
        self.has_digits = True
        if digits.bit_count() < _LEAST_DIGITS:
            return
        if _HEX_MARK.search(block):
            add_span(self.marked, begin, end)
        if _are_paired(twice, x, part):
            codes = _number_of(block.translate(_HEX_KINDS))
            if _are_paired(codes & codes >> 4, codes, part):
                add_span(self.hexadecimal, begin, end)
        numbers = digits & digits >> 4
        if not numbers:
            return
        four = numbers & numbers >> 8
        apart = numbers >> 4 & x >> 1
        # A row of numbers: from each to the next are three to five characters.
        for _ in range(_LEAST_NUMBERS):
            apart = apart and apart & (apart >> 12 | apart >> 16 | apart >> 20)
        if apart or four & four >> 16:
            add_span(self.codes, begin, end)


def _are_paired(twice: int, x: int, part: int) -> bool:
    """Tell whether four pairs of characters of the kind `part` stand in a row, a separator behind each."""
    pairs = twice >> 4 & part & x >> 1
    pairs &= pairs >> 12
    return bool(pairs & pairs >> 24)


def _number_of(kinds: bytes) -> int:
    """Read hexadecimal digits as a number; the last character stands in its lowest bits."""
    if len(kinds) % 2:
        return int.from_bytes(a2b_hex(b"0" + kinds), "big")
    return int.from_bytes(a2b_hex(kinds), "big")


_STARTS = bytes(97 if byte in _LETTERS + _DIGITS + b"@$!" else 32 if byte in SEPARATORS else 46 for byte in range(256))
_FOUND = f"{_SEPARATOR:x}"


@lru_cache(maxsize=1)
def _masks() -> tuple[int, ...]:
    """Return numbers that hold one kind at each place of a block: what may stand apart, separators, letters."""
    everywhere = int("1" * (BLOCK_CHARS + _AHEAD_CHARS), 16)
    return tuple(everywhere * bit for bit in (_APART, _SEPARATOR, _LETTER))


def _bytes_of(text: str) -> bytes:
    """Return one byte a character, of a long text in pieces, so that another thread never waits for long."""
    if len(text) <= _PIECE_CHARS:
        return text.encode("ascii", "replace")
    ends = range(_PIECE_CHARS, len(text) + _PIECE_CHARS, _PIECE_CHARS)
    return b"".join([text[end - _PIECE_CHARS : end].encode("ascii", "replace") for end in ends])


def add_span(found: Ranges, start: int, end: int) -> None:
    """Append a span, or lengthen the last one if they touch."""
    if found and start <= found[-1][1]:
        found[-1] = found[-1][0], max(end, found[-1][1])
    else:
        found.append((start, end))
