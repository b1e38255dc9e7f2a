"""Texts hidden in another by an encoding: base64, hex, URL, HTML entities, escapes, lists of codes. Scans nothing.

Theory of operation. Each encoding has a sign without which it cannot be: where the sign is, a regex finds its codes,
and each is replaced by what it stands for, with the plain text around it. Encodings without a sign are in `codes`.
"""

import html
import re
from collections.abc import Callable
from functools import lru_cache

from gateway.shield import codes
from gateway.shield.shapes import Shapes, matches
from gateway.shield.views import Builder, Decoded, regions

_AROUND_CHARS = 128
# What a code stands for is remembered for one text.
_REMEMBERED_CODES = 1_024
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*+")
_PERCENT_OR_PLUS = re.compile(r"(?:%[0-9A-Fa-f]{2})++|\+")
_HTML = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});?")
_ESCAPES = (
    r"(?:\\u[0-9A-Fa-f]{4})++|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|(?:\\x[0-9A-Fa-f]{2})++"
    r"|(?:\\[0-3][0-7]{2})++|(?:%u[0-9A-Fa-f]{4})++"
)
_ESCAPE = re.compile(_ESCAPES)
# Line breaks and tabs alone hide nothing.
_ESCAPE_OR_BREAK = re.compile(_ESCAPES + r"|\\[nrt]")
_POINTS = re.compile(r"[Uu]\+[0-9A-Fa-f]{4,6}(?:[ ,;]{0,2}[Uu]\+[0-9A-Fa-f]{4,6}){2,}+")
_POINT = re.compile(r"[Uu]\+([0-9A-Fa-f]{4,6})")
_ALL_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


def decodings(shapes: Shapes, others: frozenset[str]) -> list[Decoded]:
    """Return every decoded view of a text, one for each encoding that is there. Never raises.

    others: its characters beyond ASCII, each once.
    """
    text = shapes.text
    found = codes.base64(shapes) + codes.hexadecimal(shapes) + codes.character_codes(shapes)
    if "%" in text:
        found += _substituted("url", text, _PERCENT, _PERCENT_OR_PLUS, _from_url)
    if "&" in text:
        found += _substituted("html", text, _HTML, _HTML, html.unescape)
    if "\\" in text or "%u" in text:
        found += _substituted("unicode-escape", text, _ESCAPE, _ESCAPE_OR_BREAK, _from_escape)
    if "U+" in text or "u+" in text:
        found += _points(text)
    if not others.isdisjoint(_ALL_SELECTORS):
        found += _selectors(text)
    return found


def _from_url(code: str) -> str:
    return " " if code == "+" else bytes.fromhex(code.replace("%", "")).decode("utf-8", "replace")


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


def _points(text: str) -> list[Decoded]:
    """Code points written as U+0069 U+0067."""
    builder = Builder("unicode-escape")
    for run in matches(_POINTS, text):
        builder.end_piece(run.start())
        builder.add("".join(map(_char, _POINT.findall(run[0]))), *run.span())
    return builder.done()


def _selectors(text: str) -> list[Decoded]:
    """Bytes written as invisible variation selectors."""
    builder = Builder("variation-selectors")
    for run in matches(_SELECTORS, text):
        points = map(ord, run[0])
        said = codes.readable(bytes(point - 0xFE00 if point < 0x10000 else point - 0xE0100 + 16 for point in points))
        if said:
            builder.end_piece(run.start())
            builder.add(said, *run.span())
    return builder.done()


def _substituted(
    name: str, text: str, sought: re.Pattern[str], replaced: re.Pattern[str], decode: Callable[[str], str]
) -> list[Decoded]:
    """Replace every code near those that are sought by what it stands for, with the plain text around it."""
    decode = lru_cache(_REMEMBERED_CODES)(decode)
    spots = [code.span() for code in matches(sought, text) if _says_something(code, decode(code[0]))]
    builder = Builder(name)
    for start, end, _ in regions(spots, around=_AROUND_CHARS, length=len(text)):
        builder.end_piece(start)
        done = start
        for code in replaced.finditer(text, start, end):
            builder.add(text[done : code.start()], done, code.start())
            builder.add(decode(code[0]), *code.span())
            done = code.end()
        builder.add(text[done:end], done, end)
    return builder.done()


def _says_something(code: re.Match[str], said: str) -> bool:
    """Tell whether a code stands for something else that is seen, or that parts a word."""
    if said == code[0]:
        return False
    if any(char.isspace() or (char.isprintable() and char != "\ufffd") for char in said):
        return True
    text, (start, end) = code.string, code.span()
    return text[start - 1 : start].isalpha() or text[end : end + 1].isalpha()
