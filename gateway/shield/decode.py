"""Texts hidden in another by an encoding: base64, hex, URL, HTML entities, escapes, lists of codes. Scans nothing.

An encoding is looked for by its shape: the text is translated to classes of characters and `bytes.find` looks for a
run of one class, which costs a few microseconds where nothing is hidden. Only what was found is read more exactly,
and only what then is mostly printable is kept.
"""

import binascii
import html
import re
import string
from collections.abc import Callable, Iterator
from functools import lru_cache

from gateway.shield.groups import add_base64, add_hex
from gateway.shield.normalize import View
from gateway.shield.shapes import Ranges, Shapes
from gateway.shield.unshown import NAMES, readings
from gateway.shield.views import Builder, Decoded, regions

# The views of `shown`.
SHOWN = NAMES
_CODED = frozenset(("base64", "hex"))
# Two pieces of a code stand no farther apart.
_GAP_CHARS = 4
_LEAST_BASE64_CHARS = 16
# A run that begins in a block that was found may end behind it.
_BEYOND_CHARS = 4_096
_BLOCK_CHARS = 65_536
# What a code stands for is remembered for one text.
_REMEMBERED_CODES = 1_024
_AROUND_CHARS = 128


# Bytes are asked for by number: `in` tries for one before it takes bytes, and fails, which costs tenfold.
_PERCENT_SIGN, _AMPERSAND, _BACKSLASH, _PLUS = b"%&\\+"
_PLAIN = bytes(range(32, 127)) + b"\t\n\r"
_NO_LETTERS = b"0123456789+/_-\r\n"
_USUAL_BASE64 = bytes.maketrans(b"-_", b"+/")
# Groups repeat possessively here and below: else the regex engine keeps a hundred bytes for each repetition, to go back
# to, and a text of millions takes its memory many times over.
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*+")
# Read in the letters of _HEX_KINDS: what begins with two known letters is searched for far sooner than with a class.
_BASE64_SEAM = re.compile(rb"([+/_-]|\r?\n)")
_HEX_RUN = re.compile(rb"hh(?:h{14}(?:hh)*+|(?:s{1,2}hh){5,}+)")
# How it begins either way.
_LONG_HEX = b"h" * 16
_HEX_PAIRS = re.compile(rb"hhss?hhss?hh(?:s{1,2}hh){3}")
_HEX_KINDS = bytes(ord("h" if chr(b) in string.hexdigits else "s" if chr(b) in " ,:;\n-" else ".") for b in range(256))
_HEX_MARKED = re.compile(rb"0[xX][0-9a-fA-F]{2}(?:[ ,;\n]{0,3}0[xX][0-9a-fA-F]{2}){3,}+")
_URL = re.compile(r"(?:%[0-9A-Fa-f]{2})++|\+")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})++")
_HTML = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});?")
_ESCAPE = re.compile(
    r"(?:\\u[0-9A-Fa-f]{4})++|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|(?:\\x[0-9A-Fa-f]{2})++|(?:\\[0-3][0-7]{2})++"
    r"|(?:%u[0-9A-Fa-f]{4})++|\\[nrt]"
)
# What stands behind the backslash of a code: line breaks and tabs alone hide nothing.
_ESCAPED = b"uUx0123"
# What begins with one character is searched for far sooner than what begins with two.
_PERCENT_U = re.compile(rb"%(?=u)")
_POINTS = re.compile(r"[Uu]\+[0-9A-Fa-f]{4,6}(?:[ ,;]{0,2}[Uu]\+[0-9A-Fa-f]{4,6}){2,}+")
_POINT = re.compile(r"[Uu]\+([0-9A-Fa-f]{4,6})")
_BITS = re.compile(rb"[01]{8}(?:[ ,\n]{0,2}[01]{8}){3,}+")
_EIGHT_BITS = b"0" * 8
_BIT_KINDS = bytes(48 if byte in b"01" else 46 for byte in range(256))
# What stands in each of them, but for what is before its first two digits; searched for by how it begins.
_DECIMALS_NEAR = re.compile(rb"00 (?: ?000?+ ){6} ?00")
_DECIMALS = re.compile(rb"\b[0-9]{2,3}(?:[ ,;\n]{1,2}[0-9]{2,3}){7,}\b")
_DECIMAL_KINDS = bytes(48 if byte in b"0123456789" else 32 if byte in b" ,;\n" else 46 for byte in range(256))
_ALL_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


def decodings(shapes: Shapes, others: frozenset[str]) -> list[Decoded]:
    """Return every decoded view of a text, one for each encoding that is there. Never raises.

    others: as of the `View` of the text.
    """
    # One byte a character, so that offsets are the same; no encoding uses characters beyond ASCII.
    text, raw = shapes.text, shapes.raw
    found: list[Decoded] = []
    if shapes.base64 or shapes.coded:
        found += _base64(raw, shapes)
    if shapes.hexadecimal or shapes.marked or shapes.digital:
        found += _hex(raw, shapes)
    if shapes.codes:
        found += _codes(raw, shapes.codes)
    has_percent = _PERCENT_SIGN in raw
    if has_percent:
        found += _url(text, raw)
    if _AMPERSAND in raw:
        found += _html(text, raw)
    has_percent_u = has_percent and _holds_percent_u(raw)
    if _BACKSLASH in raw or has_percent_u:
        found += _escapes(text, raw, has_percent_u=has_percent_u)
    if _PLUS in raw:
        found += _points(text, raw)
    if others and not others.isdisjoint(_ALL_SELECTORS):
        found += _selectors(text)
    return found


def coded_spans(found: list[Decoded], length: int) -> bytearray:
    """Return for each character of a text whether it is a part of a code that was read."""
    is_coded = bytearray(length)
    for one in found:
        if one.name in _CODED:
            before = 0
            for start, end in sorted(zip(one.starts, one.ends, strict=True)):
                low = before if 0 < start - before <= _GAP_CHARS else start
                is_coded[low:end] = b"\1" * (end - low)
                before = end
    return is_coded


def shown(shapes: Shapes, view: View) -> list[Decoded]:
    """Return a text as it is shown, near where something in it is not. view: of the same text."""
    return readings(shapes, view)


def _runs(code: re.Pattern[bytes], raw: bytes, ranges: Ranges) -> Iterator[re.Match[bytes]]:
    """Yield what a regex matches within some spans, and a little beyond them."""
    for start, end in ranges:
        yield from code.finditer(raw, start, end + _BEYOND_CHARS)


def _runs_of_bits(raw: bytes, ranges: Ranges) -> Iterator[re.Match[bytes]]:
    """Yield runs of characters of eight bits each, within some spans and a little beyond them."""
    for start, end in ranges:
        if _EIGHT_BITS in raw[start : end + _BEYOND_CHARS].translate(_BIT_KINDS):
            yield from _BITS.finditer(raw, start, end + _BEYOND_CHARS)


def _runs_of_decimals(raw: bytes, ranges: Ranges) -> Iterator[re.Match[bytes]]:
    """Yield runs of decimal numbers: one begins with two or three digits and what stands between two numbers."""
    for start, end in ranges:
        kinds = raw[start : end + _BEYOND_CHARS].translate(_DECIMAL_KINDS)
        near = _DECIMALS_NEAR.search(kinds)
        while near:
            place = near.start()
            begin = place - kinds.startswith(b"0", place - 1) if place else 0
            run = _DECIMALS.match(raw, start + begin, end + _BEYOND_CHARS)
            if run:
                yield run
            near = _DECIMALS_NEAR.search(kinds, run.end() - start if run else place + 1)


def _runs_of_hex(raw: bytes, ranges: Ranges) -> Iterator[re.Match[bytes]]:
    """Yield runs of hex digits, or of pairs of them apart; in the letters of _HEX_KINDS."""
    kinds = raw.translate(_HEX_KINDS)
    for start, end in ranges:
        end = min(end + _BEYOND_CHARS, len(kinds))
        # Where the next of either kind begins.
        long = pairs = -1
        while start < end:
            if long < start:
                long = kinds.find(_LONG_HEX, start, end)
                long = end if long < 0 else long
            if pairs < start:
                near = _HEX_PAIRS.search(kinds, start, end)
                pairs = near.start() if near else end
            run = _HEX_RUN.match(kinds, min(long, pairs), end)
            if run:
                yield run
            start = run.end() if run else end


def _readable(data: bytes) -> str:
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


def _base64(raw: bytes, shapes: Shapes) -> list[Decoded]:
    builder = Builder("base64")
    done = 0
    for place in shapes.base64:
        run = _BASE64_RUN.match(raw, place) if place >= done else None
        if run is None:
            continue
        data, done = run[0], run.end()
        # Letters of one case alone are words and names, never a code; neither are their pieces. Without a letter it is
        # a number or a line: what a text may begin with is written with letters, every four characters anew.
        is_code = not (data.islower() or data.isupper()) and data.translate(None, _NO_LETTERS)
        if is_code and not _add_base64(builder, data, place):
            for piece in _BASE64_SEAM.split(data):
                if len(piece) >= _LEAST_BASE64_CHARS and len(piece) < len(data):
                    _add_base64(builder, piece, place)
                place += len(piece)
    if shapes.coded:
        add_base64(builder, raw, shapes.coded, shapes.digital)
    return builder.done()


def _add_base64(builder: Builder, run: bytes, at: int) -> bool:
    code = run.translate(_USUAL_BASE64, b"\r\n")
    if code.islower() or code.isupper() or code.isdigit():
        return False
    if len(code) % 4 == 1:
        code = code[:-1]
    said = _readable(binascii.a2b_base64(code + b"=" * (-len(code) % 4)))
    if said:
        builder.end_piece(at)
        builder.add(said, at, at + len(run))
    return bool(said)


def _hex(raw: bytes, shapes: Shapes) -> list[Decoded]:
    builder = Builder("hex")
    for run in _runs_of_hex(raw, shapes.hexadecimal) if shapes.hexadecimal else ():
        digits = raw[run.start() : run.end()].translate(None, b" ,:;\n-")
        _add_bytes(builder, bytes.fromhex(digits.decode()), run)
    for run in _runs(_HEX_MARKED, raw, shapes.marked):
        digits = re.sub(rb"0[xX]|[ ,;\n]", b"", run[0])
        _add_bytes(builder, bytes.fromhex(digits.decode()), run)
    if shapes.digital:
        add_hex(builder, raw, shapes.digital)
    return builder.done()


def _add_bytes(builder: Builder, data: bytes, run: re.Match[bytes]) -> None:
    said = _readable(data)
    if said:
        builder.end_piece(run.start())
        builder.add(said, run.start(), run.end())


def _codes(raw: bytes, ranges: Ranges) -> list[Decoded]:
    """Lists of character codes: eight bits each, or decimal numbers."""
    builder = Builder("codes")
    for run in _runs_of_bits(raw, ranges):
        bits = run[0].translate(None, b" ,\n")
        _add_bytes(builder, int(bits[:8192], 2).to_bytes(len(bits[:8192]) // 8, "big"), run)
    for run in _runs_of_decimals(raw, ranges):
        numbers = [int(number) for number in re.findall(rb"[0-9]{2,3}", run[0])]
        if all(number < 128 for number in numbers):
            _add_bytes(builder, bytes(numbers), run)
    return builder.done()


def _url(text: str, raw: bytes) -> list[Decoded]:
    runs = _found_at(b"%", _PERCENT, text, raw)
    if not runs:
        return []
    decode = lru_cache(_REMEMBERED_CODES)(_from_url)
    spots = [run.span() for run in filter(_seen(decode), runs)]
    return _substituted("url", text, spots, _URL, decode)


def _from_url(code: str) -> str:
    return " " if code == "+" else bytes.fromhex(code.replace("%", "")).decode("utf-8", "replace")


def _html(text: str, raw: bytes) -> list[Decoded]:
    unescape = lru_cache(_REMEMBERED_CODES)(html.unescape)
    spots = [run.span() for run in _found_at(b"&", _HTML, text, raw) if unescape(run[0]) != run[0]]
    return _substituted("html", text, spots, _HTML, unescape)


def _escapes(text: str, raw: bytes, *, has_percent_u: bool) -> list[Decoded]:
    runs = _found_at(b"\\", _ESCAPE, text, raw, second=_ESCAPED)
    if has_percent_u:
        runs = sorted(runs + _found_at(b"%", _ESCAPE, text, raw, second=b"u"), key=re.Match.start)
    if not runs:
        return []
    decode = lru_cache(_REMEMBERED_CODES)(_from_escape)
    is_seen = _seen(decode)
    spots = [run.span() for run in runs if is_seen(run)]
    return _substituted("unicode-escape", text, spots, _ESCAPE, decode)


def _from_escape(code: str) -> str:
    if code[1] in "nrt":
        return " "
    if code[1] == "x":
        return bytes.fromhex(code.replace("\\x", "")).decode("utf-8", "replace")
    if code[1].isdigit():
        return bytes(int(octal, 8) for octal in code.split("\\")[1:]).decode("utf-8", "replace")
    if code[2] == "{" or code[1] == "U":
        return _char(code[2:].strip("{}"))
    units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in re.split(r"\\u|%u", code)[1:])
    return units.decode("utf-16-be", "replace")


def _char(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _points(text: str, raw: bytes) -> list[Decoded]:
    """Code points written as U+0069 U+0067."""
    builder = Builder("unicode-escape")
    place = raw.find(b"+", 1)
    while place > 0:
        run = _POINTS.match(text, place - 1) if raw[place - 1] in b"Uu" else None
        if run:
            builder.end_piece(run.start())
            builder.add("".join(map(_char, _POINT.findall(run[0]))), *run.span())
        place = raw.find(b"+", run.end() if run else place + 1)
    return builder.done()


def _selectors(text: str) -> list[Decoded]:
    """Bytes written as invisible variation selectors."""
    builder = Builder("variation-selectors")
    for run in _SELECTORS.finditer(text):
        codes = (ord(char) for char in run[0])
        said = _readable(bytes(code - 0xFE00 if code < 0x10000 else code - 0xE0100 + 16 for code in codes))
        if said:
            builder.end_piece(run.start())
            builder.add(said, *run.span())
    return builder.done()


def _holds_percent_u(raw: bytes) -> bool:
    """Tell whether a code in the manner of old scripts may stand somewhere; looks a block at a time."""
    return any(_PERCENT_U.search(raw, begin, begin + _BLOCK_CHARS + 1) for begin in range(0, len(raw), _BLOCK_CHARS))


def _found_at(sign: bytes, code: re.Pattern[str], text: str, raw: bytes, *, second: bytes = b"") -> list[re.Match[str]]:
    """Return what stands at each occurrence of a sign, without searching between them.

    second: what may stand behind the sign, if not anything.
    """
    found = []
    # A code is more than a sign: none begins with the last character.
    last = len(raw) - 1
    place = raw.find(sign, 0, last)
    while place >= 0:
        run = code.match(text, place) if not second or raw[place + 1] in second else None
        if run:
            found.append(run)
        place = raw.find(sign, run.end() if run else place + 1, last)
    return found


def _seen(decode: Callable[[str], str]) -> Callable[[re.Match[str]], bool]:
    """Return what tells whether anything is seen of what a code stands for, or it may part a word beside a letter."""
    shows = lru_cache(_REMEMBERED_CODES)(lambda code: _shows(decode(code)))
    return lambda run: shows(run[0]) or _is_beside_letter(run)


def _shows(said: str) -> bool:
    return any(char.isspace() or (char.isprintable() and char != "\ufffd") for char in said)


def _is_beside_letter(code: re.Match[str]) -> bool:
    text, (start, end) = code.string, code.span()
    return text[start - 1 : start].isalpha() or text[end : end + 1].isalpha()


def _substituted(
    name: str, text: str, spots: list[tuple[int, int]], codes: re.Pattern[str], decode: Callable[[str], str]
) -> list[Decoded]:
    """Replace every code near `spots` by what it stands for, with the plain text around it."""
    if not spots:
        return []
    builder = Builder(name)
    for start, end, _ in regions(spots, around=_AROUND_CHARS, length=len(text)):
        builder.end_piece(start)
        done = start
        for code in codes.finditer(text, start, end):
            first, last = code.span()
            if done < first:
                builder.add(text[done:first], done, first)
            builder.add(decode(code[0]), first, last)
            done = last
        builder.add(text[done:end], done, end)
    return builder.done()
