"""Texts in base64 or hex that was cut into groups. Looks where `Shapes` tells that such may be; scans nothing.

Theory of operation. What parts the groups is left out, whatever it is, and the rest is decoded from each of its first
four characters on (two of hex): a word before the code has moved it by so many. Words and numbers decode to noise, so
what is readable for long is a hidden text, and nothing else is kept. The work is in proportion to the text.
"""

import binascii
import re
from collections.abc import Iterator
from itertools import compress

from gateway.shield.shapes import Ranges
from gateway.shield.views import Builder

# So much is readable in a row before it is a text: of noise one character in three is.
_LEAST_BYTES = 16
_LEAST_LETTERS_BYTES = 24
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LONGEST_SIGNED = 9
_GROUP = re.compile(rb"[^A-Za-z0-9+/][A-Za-z0-9+/]{1,40}+[^A-Za-z0-9+/=]")
_HEX = b"0123456789abcdefABCDEF"
_DIGITS = b"0123456789"
_BETWEEN = b" \t\r\n,:;.-_|/'\"\\"
_NUMBERS = _DIGITS + _BETWEEN
_HEX_KINDS = bytes(104 if byte in _HEX else 115 if byte in _BETWEEN else 46 for byte in range(256))
_HEX_STRETCHES = bytes(104 if byte in _HEX + _BETWEEN else 46 for byte in range(256))
_LONG_STRETCH = b"h" * 33
_END_CHARS = 16
# From the first digit of a group on: else a long run would be gone through from each of its digits.
_HEX_GROUPS = re.compile(rb"(?<!h)hh++(?:s{1,4}+hh++)+")
# Readable, the first byte of a character beyond ASCII, another of its bytes, none of these.
_PLAIN = bytes(range(32, 127)) + b"\t\n\r"
_KINDS = bytes(
    ord("a" if byte in _PLAIN else "c" if 128 <= byte < 192 else "L" if 194 <= byte < 245 else ".")
    for byte in range(256)
)
_READABLE = b"a" * _LEAST_BYTES
# Some letters of a word that is not ASCII.
_IN_TWO, _IN_THREE = b"Lc" * 5, b"Lcc" * 4
# Possessive, as in `decode`.
_STRETCH = re.compile(rb"(?:a|Lc{1,3}+){12,}+")
# So many bytes know where they come from.
_PIECE_BYTES = 12
# What is as long is not said twice, but for some noise around it; what is shorter costs less than to look for it.
_LONG_CHARS = 32
_NOISE_CHARS = 8


def add_base64(builder: Builder, raw: bytes, ranges: Ranges, digital: Ranges) -> None:
    """Add what groups of base64 say that stand within some spans, unless it is there already. digital: of `Shapes`."""
    raw = _without_hex(raw, digital) if digital else raw
    for start, end in ranges:
        part = raw[start:end]
        # What stands in one piece, or in whole lines of it, is read elsewhere.
        if not _GROUP.search(part):
            continue
        for others, counts in ((_NO_BASE64, _IN_BASE64), (_NO_BASE62, _IN_BASE62)):
            code = part.translate(None, others)
            data = [_from_base64(code[first:]) for first in range(4)]
            if _is_readable(b"\0".join(data).translate(_KINDS)):
                for first, decoded in enumerate(data):
                    _add(builder, decoded, (part, start), (counts, first, 4, 3))
                break
            # Its signs may be what parts short groups.
            if (part.count(b"/") + part.count(b"+")) * _LONGEST_SIGNED < len(code):
                break


def _without_hex(raw: bytes, spans: Ranges) -> bytes:
    """Write blanks for long stretches of hex digits within some spans: no text has so many in a row in base64."""
    left = bytearray(raw)
    for start, end in spans:
        for first, last in _hex_stretches(raw[start:end]):
            # Its ends may be parts of other groups.
            low, high = first + _END_CHARS, last - _END_CHARS
            if low < high:
                left[start + low : start + high] = b" " * (high - low)
    return bytes(left)


def _hex_stretches(part: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of long stretches of hex digits and what may part them."""
    kinds = part.translate(_HEX_STRETCHES) + b"."
    start = kinds.find(_LONG_STRETCH)
    while start >= 0:
        end = kinds.index(b".", start)
        yield start, end
        start = kinds.find(_LONG_STRETCH, end)


def _from_base64(code: bytes) -> bytes:
    if len(code) % 4 == 1:
        code = code[:-1]
    return binascii.a2b_base64(code + b"=" * (-len(code) % 4))


def add_hex(builder: Builder, raw: bytes, ranges: Ranges) -> None:
    """Add the same of groups of hex digits."""
    for start, end in ranges:
        part = raw[start:end]
        kinds = part.translate(_HEX_KINDS)
        # A few groups among words are soon passed by.
        for first, last in _hex_stretches(part):
            # Numbers alone are no text: some letters are written with a letter.
            if not part[first:last].translate(None, _NUMBERS):
                continue
            for run in _HEX_GROUPS.finditer(kinds, first, last):
                low = start + run.start()
                _add_digits(builder, raw[low : start + run.end()], low)


def _add_digits(builder: Builder, part: bytes, at: int) -> None:
    code = part.translate(None, _NO_HEX)
    if len(code) < 2 * _LEAST_BYTES or not code.translate(None, _DIGITS):
        return
    for first in range(2):
        last = len(code) - (len(code) - first) % 2
        _add(builder, binascii.a2b_hex(code[first:last]), (part, at), (_IN_HEX, first, 2, 1))


def _add(builder: Builder, data: bytes, where: tuple[bytes, int], how: tuple[bytes, int, int, int]) -> None:
    """Add the readable stretches of decoded bytes.

    where: what they were decoded from, and where that begins. how: which of its characters count, of which the first
    that was decoded, and how many of them are how many bytes.
    """
    part, at = where
    counts, first, chars, size = how
    places: list[int] = []
    told = ""
    for low, high in _stretches(data):
        said = data[low:high].decode("utf-8", "replace")
        if said.count("\ufffd") * 8 > len(said):
            continue
        told = told or "".join(builder.parts)
        if len(said) >= _LONG_CHARS and said[_NOISE_CHARS:-_NOISE_CHARS] in told:
            continue
        places = places or list(compress(range(len(part)), part.translate(counts)))
        start, end = first + low * chars // size, first - (-high * chars // size)
        if places[end - 1] - places[start] == end - start - 1:
            # In one piece: no group.
            continue
        builder.end_piece(at + places[start])
        step = _PIECE_BYTES if said.isascii() else len(data)
        for begin in range(low, high, step):
            after = min(begin + step, high)
            start, end = first + begin * chars // size, first - (-after * chars // size)
            builder.add(data[begin:after].decode("utf-8", "replace"), at + places[start], at + places[end - 1] + 1)


def _stretches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of bytes that are readable for long."""
    kinds = data.translate(_KINDS)
    if _is_readable(kinds):
        for stretch in _STRETCH.finditer(kinds):
            found = stretch[0]
            if _READABLE in found or (len(found) >= _LEAST_LETTERS_BYTES and _is_readable(found)):
                yield stretch.span()


def _is_readable(kinds: bytes) -> bool:
    """Tell whether bytes of some kinds are readable for long somewhere."""
    return _READABLE in kinds or _IN_TWO in kinds or _IN_THREE in kinds


def _others(chars: bytes) -> bytes:
    return bytes(byte for byte in range(256) if byte not in chars)


def _kept(chars: bytes) -> bytes:
    return bytes(byte in chars for byte in range(256))


_NO_BASE64, _NO_BASE62, _NO_HEX = map(_others, (_BASE64, _BASE64[:62], _HEX))
_IN_BASE64, _IN_BASE62, _IN_HEX = map(_kept, (_BASE64, _BASE64[:62], _HEX))
