"""Texts in base64, in hex, or as lists of character codes: in one piece, or cut into groups.

Theory of operation. A code is looked for by its shape: only where its characters stand in a long run is it read more
exactly, and only what then is mostly printable is kept. Of a code in groups, what parts them is left out, whatever it
is, and the rest is decoded from each of its first four characters on (two of hex): a word before the code has moved it
by so many. Words and numbers decode to noise, so what is readable for long is a hidden text.
"""

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gateway.shield.shapes import DIGITS, HEX_DIGITS, LETTERS, Shapes, kinds_of, matches, runs
from gateway.shield.views import Builder, Decoded

_PLAIN = bytes(range(32, 127)) + b"\t\n\r"
# Groups repeat possessively here and below: else the regex engine keeps a hundred bytes for each repetition, to go back
# to, and a text of millions takes its memory many times over.
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*+")
_BASE64_SEAM = re.compile(rb"([+/_-]|\r?\n)")
_LEAST_BASE64_CHARS = 16
_NO_LETTERS = DIGITS + b"+/_-\r\n"
_USUAL_BASE64 = bytes.maketrans(b"-_", b"+/")
_HEX_RUN = re.compile(rb"(?:[0-9A-Fa-f]{2}){8,}+|[0-9A-Fa-f]{2}(?:[ ,:;\n-]{1,2}[0-9A-Fa-f]{2}){5,}+")
_LEAST_HEX_CHARS = 16
_HEX_MARKED = re.compile(rb"0[xX][0-9a-fA-F]{2}(?:[ ,;\n]{0,3}0[xX][0-9a-fA-F]{2}){3,}+")
_BITS = re.compile(rb"[01]{8}(?:[ ,\n]{0,2}[01]{8}){3,}+")
_MOST_BITS = 8_192
_DECIMALS = re.compile(rb"\b[0-9]{2,3}(?:[ ,;\n]{1,2}[0-9]{2,3}){7,}\b")
_BASE64_KINDS = kinds_of(a=LETTERS + DIGITS + b"+/_-")
_HEX_KINDS = kinds_of(a=HEX_DIGITS + b" \t\r\n,:;.-_|/'\"\\")
_BIT_KINDS = kinds_of(a=b"01 ,\n")
_DECIMAL_KINDS = kinds_of(a=DIGITS + b" ,;\n")
_LETTERS_AND_DIGITS = kinds_of(a=LETTERS, d=DIGITS)

# Letters and digits stand side by side at so many places of a code in groups.
_LEAST_MIXED = 3
# So much is readable in a row before it is a text: of noise one character in three is.
_LEAST_LETTERS_BYTES = 24
# Readable, the first byte of a character beyond ASCII, another of its bytes.
_READABLE_KINDS = kinds_of(a=_PLAIN, c=bytes(range(128, 192)), L=bytes(range(194, 245)))
# Of letters of a word that is not ASCII, fewer are enough.
_READABLE, _IN_TWO_BYTES, _IN_THREE_BYTES = b"a" * 16, b"Lc" * 5, b"Lcc" * 4
_STRETCH = re.compile(rb"(?:a|Lc{1,3}+){12,}+")
# So many bytes at a time are asked whether they are readable.
_BLOCK_BYTES = 2_048
# Groups of base64 are sought in so much of a text at a time, and so far beyond it.
_PIECE_CHARS, _BEYOND_CHARS = 262_144, 4_096
# So many bytes of a text in groups know where they come from.
_PIECE_BYTES = 12
# What was read in one piece is not read again for so many more characters.
_NOISE_CHARS = 12


class _Alphabet(NamedTuple):
    """The characters of a code in groups, of which `chars` are `size` bytes. noise: those that alone are no text."""

    members: bytes
    others: bytes
    noise: bytes
    decode: Callable[[bytes], bytes]
    chars: int
    size: int


def _alphabet(members: bytes, noise: bytes, decode: Callable[[bytes], bytes], *, chars: int, size: int) -> _Alphabet:
    others = bytes(set(range(256)).difference(members))
    return _Alphabet(members, others, noise, decode, chars, size)


def _from_base64(code: bytes) -> bytes:
    if len(code) % 4 == 1:
        code = code[:-1]
    return binascii.a2b_base64(code + b"=" * (-len(code) % 4))


def _from_hex(code: bytes) -> bytes:
    return binascii.a2b_hex(code[: len(code) // 2 * 2])


# Signs of base64 may also be what parts its groups.
_BASE62 = _alphabet(LETTERS + DIGITS, HEX_DIGITS, _from_base64, chars=4, size=3)
_BASE64 = _alphabet(LETTERS + DIGITS + b"+/", HEX_DIGITS, _from_base64, chars=4, size=3)
_HEX = _alphabet(HEX_DIGITS, DIGITS, _from_hex, chars=2, size=1)


def base64(shapes: Shapes) -> list[Decoded]:
    """Return what stands in base64."""
    if not shapes.tokens and not shapes.has_digits:
        return []
    builder, raw, done = Builder("base64"), shapes.raw, 0
    for start, _ in runs(raw, _BASE64_KINDS, _LEAST_BASE64_CHARS) if shapes.tokens else ():
        run = _BASE64_RUN.match(raw, start) if start >= done else None
        if run is None:
            continue
        data, done = run[0], run.end()
        # Letters of one case alone are words and names, never a code; neither are their pieces. Without a letter it is
        # a number or a line: what a text may begin with is written with letters, every four characters anew.
        is_code = not (data.islower() or data.isupper()) and data.translate(None, _NO_LETTERS)
        if is_code and not _add_base64(builder, data, start):
            for piece in _BASE64_SEAM.split(data):
                if _LEAST_BASE64_CHARS <= len(piece) < len(data):
                    _add_base64(builder, piece, start)
                start += len(piece)
    read = len(builder.parts)
    # What stands at the end of a piece is read again with the next.
    for start in range(0, len(raw), _PIECE_CHARS) if shapes.has_digits else ():
        part = raw[start : start + _PIECE_CHARS + _BEYOND_CHARS]
        if _is_mixed(part) and not _add_groups(builder, read, part, start, _BASE64) and (b"/" in part or b"+" in part):
            _add_groups(builder, read, part, start, _BASE62)
    return builder.done()


def hexadecimal(shapes: Shapes) -> list[Decoded]:
    """Return what stands in hex digits."""
    if not shapes.has_digits:
        return []
    builder, raw = Builder("hex"), shapes.raw
    for start, end in runs(raw, _HEX_KINDS, _LEAST_HEX_CHARS):
        for run in matches(_HEX_RUN, raw, start, end):
            _add(builder, _from_hex(run[0].translate(None, b" ,:;\n-")), run)
        if _is_mixed(raw[start:end]):
            _add_groups(builder, len(builder.parts), raw[start:end], start, _HEX)
    if b"0x" in raw or b"0X" in raw:
        for run in matches(_HEX_MARKED, raw):
            _add(builder, _from_hex(re.sub(rb"0[xX]|[ ,;\n]", b"", run[0])), run)
    return builder.done()


def character_codes(shapes: Shapes) -> list[Decoded]:
    """Return what stands in lists of character codes: eight bits each, or decimal numbers."""
    if not shapes.has_digits:
        return []
    builder, raw = Builder("codes"), shapes.raw
    for start, end in runs(raw, _BIT_KINDS, 32):
        for run in matches(_BITS, raw, start, end):
            bits = run[0].translate(None, b" ,\n")[:_MOST_BITS]
            _add(builder, int(bits, 2).to_bytes(len(bits) // 8, "big"), run)
    for start, end in runs(raw, _DECIMAL_KINDS, 23):
        for run in matches(_DECIMALS, raw, start, end):
            numbers = [int(number) for number in re.findall(rb"[0-9]{2,3}", run[0])]
            if max(numbers) < 128:
                _add(builder, bytes(numbers), run)
    return builder.done()


def readable(data: bytes) -> str:
    """Return bytes as text if they are mostly printable, else an empty text."""
    odd = len(data.translate(None, _PLAIN))
    if odd == 0:
        return data.decode("ascii")
    if len(data) >= 8 and data[1::2].count(0) * 10 >= len(data) * 4:
        return _checked(data.decode("utf-16-le", "replace"))
    try:
        return _checked(data.decode("utf-8"))
    except UnicodeDecodeError:
        # A cut or a stray byte at an end does not make the rest unreadable.
        return data.decode("utf-8", "replace") if odd * 8 <= len(data) else ""


def _checked(text: str) -> str:
    odd = sum(not char.isprintable() and char not in "\t\n\r" for char in text)
    return text if odd * 8 <= len(text) else ""


def _add(builder: Builder, data: bytes, run: re.Match[bytes]) -> None:
    said = readable(data)
    if said:
        builder.end_piece(run.start())
        builder.add(said, *run.span())


def _add_base64(builder: Builder, run: bytes, at: int) -> bool:
    code = run.translate(_USUAL_BASE64, b"\r\n")
    if code.islower() or code.isupper() or code.isdigit():
        return False
    said = readable(_from_base64(code))
    if said:
        builder.end_piece(at)
        builder.add(said, at, at + len(run))
    return bool(said)


def _is_mixed(part: bytes) -> bool:
    """Tell whether letters and digits stand side by side, as they do in groups of a code."""
    kinds = part.translate(_LETTERS_AND_DIGITS)
    return kinds.count(b"ad") + kinds.count(b"da") >= _LEAST_MIXED


def _add_groups(builder: Builder, read: int, part: bytes, at: int, alphabet: _Alphabet) -> bool:
    """Add the readable stretches of a code in groups; tell whether there are any.

    read: so many first pieces of the builder were read in one piece, in order. at: where the part begins.
    """
    members, others, noise, decode, chars, size = alphabet
    code = part.translate(None, others)
    places: list[int] = []
    count = len(builder.parts)
    for first in range(chars):
        data = decode(code[first:])
        for low, high in _stretches(data):
            start, end = first + low * chars // size, first - (-high * chars // size)
            places = places or [at + place for place, byte in enumerate(part) if byte in members]
            span = places[start], places[end - 1] + 1
            # What stands in one piece is no group.
            if (
                span[1] - span[0] > end - start
                and code[start:end].translate(None, noise)
                and not _is_read(builder, read, *span)
            ):
                _add_pieces(builder, data, (low, high), places[first:], (chars, size))
    return len(builder.parts) > count


def _is_read(builder: Builder, count: int, start: int, end: int) -> bool:
    """Tell whether one of the first pieces holds a span, but for some noise around it. count: of those pieces."""
    piece = bisect_right(builder.starts, start + _NOISE_CHARS, 0, count) - 1
    return piece >= 0 and end <= builder.ends[piece] + _NOISE_CHARS


def _add_pieces(
    builder: Builder, data: bytes, span: tuple[int, int], places: list[int], sizes: tuple[int, int]
) -> None:
    """Add a stretch of decoded bytes, in pieces that know where they come from.

    places: where the characters stand from which the bytes were decoded. sizes: so many of those are so many bytes.
    """
    (low, high), (chars, size) = span, sizes
    said = data[low:high].decode("utf-8", "replace")
    if said.count("\ufffd") * 8 > len(said):
        return
    builder.end_piece(places[low * chars // size])
    step = _PIECE_BYTES if said.isascii() else high - low
    for begin in range(low, high, step):
        end = min(begin + step, high)
        start, after = places[begin * chars // size], places[-(-end * chars // size) - 1] + 1
        builder.add(data[begin:end].decode("utf-8", "replace"), start, after)


def _stretches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of bytes that are readable for long."""
    kinds = data.translate(_READABLE_KINDS)
    done = 0
    for begin in range(0, len(kinds), _BLOCK_BYTES):
        end = begin + _BLOCK_BYTES + _LEAST_LETTERS_BYTES
        if not _is_readable(kinds[begin:end]):
            continue
        for near in _STRETCH.finditer(kinds, max(begin, done), end):
            # It may go on behind the block.
            stretch = _STRETCH.match(kinds, near.start()) or near
            done, found = stretch.end(), stretch[0]
            if _READABLE in found or (len(found) >= _LEAST_LETTERS_BYTES and _is_readable(found)):
                yield stretch.span()


def _is_readable(kinds: bytes) -> bool:
    """Tell whether bytes of some kinds are readable for long somewhere."""
    return _READABLE in kinds or _IN_TWO_BYTES in kinds or _IN_THREE_BYTES in kinds
