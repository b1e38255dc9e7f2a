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
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"
SEPARATORS = b" \t\n\r._-*|/,+~:;'\"=<>()[]{}"
LEET = b"0134578@$!|+"
# Fewer digits than this make no hidden text.
_LEAST_DIGITS = 8
_LEAST_NUMBERS = 5
# More letters apart than this are listed all at once.
_MANY_APART = 64
# Two digits of a code, each between letters, stand no farther apart; so far around them the code may reach.
_CODED_CHARS = 64
_CODED_AROUND_CHARS = 160
# More of them than this in a block are not told apart.
_MANY_CODED = 48
# Fewer digits than this are in no text that is written in groups of hexadecimal ones.
_LEAST_HEX_DIGITS = 12
_DENSE_CHARS = 32
_DENSE_AROUND_CHARS = 16
# Where they end at more than one place in so many, their ends are not told apart.
_MOST_OF = 8

# What stands between two such digits.
_GROUPED = LETTERS + _DIGITS + b"+/ \t\r\n,;:.-_|'\"\\?"
# One digit is enough among words of one length.
_GROUP = re.compile(rb"[A-Za-z0-9+/]+")
_GROUPS_CHARS, _NEAR_CHARS = 40, 16

# The bits of a character's kinds: what may stand apart, what parts it, letters and what may stand for letters.
_APART, _SEPARATOR, _LETTER, _LEET = 1, 2, 4, 8
_KINDS = bytes(
    b"0123456789abcdef"[
        sum(
            bit
            for bit, chars in (
                (_APART, LETTERS + _DIGITS + b"@$!"),
                (_SEPARATOR, SEPARATORS),
                (_LETTER, LETTERS),
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
_BASE64 = bytes(97 if byte in LETTERS + _DIGITS + b"+/-_" else 46 for byte in range(256))
_HEX_DIGITS = bytes(97 if byte in b"0123456789abcdefABCDEF" else 46 for byte in range(256))
_HEX_KINDS = bytes(49 if byte in b"0123456789abcdefABCDEF" else 50 if byte in SEPARATORS else 48 for byte in range(256))
_HEX_MARK = re.compile(rb"0[xX]")
_WORDS = bytes(97 if byte in LETTERS else 46 for byte in range(256))
_LONG_BASE64 = b"a" * 16
_LONG_HEX = b"a" * 16
_LONG_WORD = b"a" * 20

Ranges = list[tuple[int, int]]
# Stays empty.
_NONE: Ranges = []


class Shapes:
    """The shapes of one text. Spans are half-open, in order, and do not touch.

    raw: one byte a character, those beyond ASCII as question marks.
    has_digits: whether a digit may stand there. has_values: whether LEAST_VALUE_CHARS characters of a value stand in
    a row somewhere.
    tokens: spans of every run of at least LEAST_TOKEN_CHARS characters of a token.
    base64, letters: places where 16 of its characters, or 20 of those, stand in a row.
    apart: places before two letters that stand alone beside one another.
    coded: spans around two digits near each other, each between two letters, as in base64 that was cut into groups, and
    blocks with eight pairs of letters and digits in a row.
    digital: spans around _DENSE_CHARS characters in a row of which every four hold a digit.
    The others are spans of blocks. hexadecimal: 16 of its digits stand in a row there, or pairs of them apart. mixed:
    letters and what may stand for letters make one word. codes: decimal numbers stand apart, or eight digits in a row.
    marked: a 0 stands before an x.
    """

    __slots__ = (
        "apart", "base64", "coded", "codes", "digital", "has_digits", "has_values", "hexadecimal", "letters", "marked",
        "mixed", "raw", "text", "tokens",
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
        self.coded = self.digital = _NONE
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
            places, odd = _digits_of(alone, len(block)), len(block) % 2
            shift = 4 + odd
            if alone.bit_count() > _MANY_APART:
                parts = places[: end - begin + shift].split(_FOUND)[:-1]
                self.apart += map(add, accumulate(map(len, parts)), count(begin - shift))
            else:
                place = places.find(_FOUND)
                while 0 <= place < end - begin + shift:
                    self.apart.append(begin + place - shift)
                    place = places.find(_FOUND, place + 1)
        beside = around & word
        if beside & x >> 5 or twice & word & x >> 9:
            add_span(self.mixed, begin, end)
        # What may stand apart and is no letter is a digit, or one of a few signs.
        digits = (x ^ x >> 2) & part
        if not digits:
            return
        self.has_digits = True
        # Told at the letter behind a digit between two.
        between = beside & digits >> 2
        if between:
            self._add_coded(between, block, begin, end)
        many = digits.bit_count()
        if many < _LEAST_DIGITS:
            return
        if _HEX_MARK.search(block):
            add_span(self.marked, begin, end)
        if paired := _paired(twice, x, part):
            self._add_pairs(paired, block, begin, end)
        numbers = digits & digits >> 4
        if not numbers:
            return
        if many >= _LEAST_HEX_DIGITS and (dense := _dense(digits)):
            self._add_digital(dense, len(block), begin)
        four = numbers & numbers >> 8
        apart = numbers >> 4 & x >> 1
        # A row of numbers: from each to the next are three to five characters.
        for _ in range(_LEAST_NUMBERS):
            apart = apart and apart & (apart >> 12 | apart >> 16 | apart >> 20)
        if apart or four & four >> 16:
            add_span(self.codes, begin, end)

    def _add_coded(self, found: int, block: bytes, begin: int, end: int) -> None:
        """Add spans around places near one another, and around one among words of one length. found: their bits."""
        spans, before = [], -BLOCK_CHARS
        for _ in range(_MANY_CODED):
            bit = found.bit_length() - 1
            if bit < 0:
                break
            found ^= 1 << bit
            at = len(block) - 1 - bit // 4
            if at - before > _CODED_CHARS:
                if _are_alike(block, at):
                    spans.append((begin + at, begin + at))
            elif not block[before:at].translate(None, _GROUPED):
                spans.append((begin + before, begin + at))
            before = at
        if found:
            spans = [(begin, end)]
        for start, last in spans:
            self.coded = self.coded or []
            add_span(self.coded, max(0, start - _CODED_AROUND_CHARS), last + _CODED_AROUND_CHARS)

    def _add_pairs(self, paired: int, block: bytes, begin: int, end: int) -> None:
        """Add a block in which four pairs stand in a row. paired: behind which they do."""
        part, _, _ = _masks()
        codes = _number_of(block.translate(_HEX_KINDS))
        if in_hex := _paired(codes & codes >> 4, codes, part):
            add_span(self.hexadecimal, begin, end)
        # Twice as many in a row.
        if paired & paired >> 48 & ~(in_hex & in_hex >> 48):
            self.coded = [span for span in self.coded if span[0] < begin]
            add_span(self.coded, begin, end)

    def _add_digital(self, found: int, size: int, begin: int) -> None:
        """Add what ends at the same places, and a little around it."""
        self.digital = self.digital or []
        if found.bit_count() * _MOST_OF > size:
            add_span(self.digital, max(0, begin - _DENSE_CHARS), begin + size)
            return
        places, shift = _digits_of(found, size) + "0", begin - size % 2
        place = places.find(_FOUND_APART)
        while place >= 0:
            last = places.index("0", place)
            low = shift + place - _DENSE_CHARS - _DENSE_AROUND_CHARS
            add_span(self.digital, max(0, low), shift + last + _DENSE_AROUND_CHARS)
            place = places.find(_FOUND_APART, last)


def _are_alike(block: bytes, at: int) -> bool:
    """Tell whether around a place stand three words in a row of one length."""
    if block[max(0, at - _NEAR_CHARS) : at + _NEAR_CHARS].translate(None, _GROUPED):
        return False
    low = max(0, at - _GROUPS_CHARS)
    sizes = [len(word) for word in _GROUP.findall(block, low, at + _GROUPS_CHARS)]
    return any(one == two == three > 2 for one, two, three in zip(sizes, sizes[1:], sizes[2:], strict=False))


def _digits_of(found: int, size: int) -> str:
    """Return a number in hexadecimal digits, so many or one more."""
    return found.to_bytes((size + 1) // 2, "big").hex()


def _dense(digits: int) -> int:
    """Return behind which _DENSE_CHARS characters in a row, every four of them hold one of some places."""
    near = digits | digits >> 4
    near |= near >> 8
    near &= near >> 16
    near &= near >> 32
    return near and near & near >> 64


def _paired(twice: int, x: int, part: int) -> int:
    """Return behind which four pairs of characters of the kind `part` stand in a row, a separator behind each."""
    pairs = twice >> 4 & part & x >> 1
    pairs &= pairs >> 12
    return pairs and pairs & pairs >> 24


def _number_of(kinds: bytes) -> int:
    """Read hexadecimal digits as a number; the last character stands in its lowest bits."""
    if len(kinds) % 2:
        return int.from_bytes(a2b_hex(b"0" + kinds), "big")
    return int.from_bytes(a2b_hex(kinds), "big")


_STARTS = bytes(97 if byte in LETTERS + _DIGITS + b"@$!" else 32 if byte in SEPARATORS else 46 for byte in range(256))
_FOUND = f"{_SEPARATOR:x}"
_FOUND_APART = f"{_APART:x}"


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
