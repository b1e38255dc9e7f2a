"""Disguises for the texts of the validation suite: a text in, the same text hidden in one of twenty-two ways out.

Pure, and the same answer every time. Nothing here reads a disguise: that is what the shield is tested for.
"""

import base64
import codecs
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

_LEET = str.maketrans("aeiostAEIOST", "431057431057")
_LOOK_ALIKES = str.maketrans("aceopsxyiACEOPTXHKM", "асеорѕхуіАСЕОРТХНКМ")
_ZERO_WIDTH_SPACE = "\u200b"
_ACUTE = "\u0301"
_MATHEMATICAL_BOLD = {ord("A") + index: 0x1D400 + index for index in range(26)} | {
    ord("a") + index: 0x1D41A + index for index in range(26)
}
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | {0x20: 0x3000}
_GROUP_CHARS = 4
_TAGS = {code: code + 0xE0000 for code in range(0x20, 0x7F)}


def in_base64(text: str) -> str:
    """Return its UTF-8 in base64."""
    return base64.b64encode(text.encode()).decode()


def in_hex(text: str) -> str:
    """Return its UTF-8 in lowercase hex digits."""
    return text.encode().hex()


def in_rot13(text: str) -> str:
    """Move every Latin letter by thirteen."""
    return codecs.encode(text, "rot13")


def in_url_escapes(text: str) -> str:
    """Write every byte that is no letter or digit, and every other vowel, as a percent escape."""
    return "".join(f"%{ord(one):02X}" if one in "aeiou" else quote(one, safe="") for one in text)


def in_leet(text: str) -> str:
    """Write digits for a, e, i, o, s and t."""
    return text.translate(_LEET)


def with_zero_width(text: str) -> str:
    """Put a zero-width space after every character."""
    return _ZERO_WIDTH_SPACE.join(text)


def with_homoglyphs(text: str) -> str:
    """Write the Cyrillic letters that look like Latin ones."""
    return text.translate(_LOOK_ALIKES)


def in_full_width(text: str) -> str:
    """Write the full-width forms of ASCII."""
    return text.translate(_FULL_WIDTH)


def in_mathematical(text: str) -> str:
    """Write the mathematical bold letters."""
    return text.translate(_MATHEMATICAL_BOLD)


def in_tags(text: str) -> str:
    """Write the invisible tag characters of ASCII."""
    return text.translate(_TAGS)


def spaced(text: str) -> str:
    """Put a blank between letters and three between words."""
    return "   ".join(" ".join(word) for word in text.split())


def reversed_(text: str) -> str:
    """Write it backwards."""
    return text[::-1]


def dotted(text: str) -> str:
    """Put a full stop between the letters of a word."""
    return " ".join(".".join(word) for word in text.split())


def with_combining(text: str) -> str:
    """Put an acute accent on every letter."""
    return "".join(one + _ACUTE if one.isalpha() else one for one in text)


def in_mixed_case(text: str) -> str:
    """Write every other character as a capital."""
    return "".join(one.upper() if index % 2 else one.lower() for index, one in enumerate(text))


def with_typos(text: str) -> str:
    """Swap the third and fourth letters of every other word of six or more. Twice done, it is undone."""
    long_words = 0

    def swap(found: re.Match[str]) -> str:
        nonlocal long_words
        long_words += 1
        word = found[0]
        return word[:2] + word[3] + word[2] + word[4:] if long_words % 2 else word

    return re.sub(r"[A-Za-z]{6,}", swap, text)


def in_html_entities(text: str) -> str:
    """Write every character as a numeric character reference."""
    return "".join(f"&#{ord(one)};" for one in text)


def _in_groups(code: str) -> str:
    return " ".join(code[place : place + _GROUP_CHARS] for place in range(0, len(code), _GROUP_CHARS))


def in_base64_groups(text: str) -> str:
    """Return its UTF-8 in base64, a blank behind every four characters."""
    return _in_groups(in_base64(text))


def in_hex_groups(text: str) -> str:
    """Return its UTF-8 in hex digits, a blank behind every four."""
    return _in_groups(in_hex(text))


def overstruck(text: str) -> str:
    """Write every character, a backspace, and the character again."""
    return "".join(f"{one}\b{one}" for one in text)


def in_colours(text: str) -> str:
    """Put a terminal's code for a colour into every word, and the one for none behind it."""
    return re.sub(r"(\w\w)(\w+)", "\\1\x1b[31m\\2\x1b[0m", text)


def with_markup(text: str) -> str:
    """Put a comment of HTML into every word, and an element with nothing in it."""
    return re.sub(r"(\w)(\w)(\w*)", r"\1<!-- x -->\2<b></b>\3", text)


OBFUSCATIONS: Mapping[str, Callable[[str], str]] = {
    "base64": in_base64,
    "hex": in_hex,
    "rot13": in_rot13,
    "url": in_url_escapes,
    "leet": in_leet,
    "zero-width": with_zero_width,
    "homoglyph": with_homoglyphs,
    "full-width": in_full_width,
    "mathematical": in_mathematical,
    "tags": in_tags,
    "spaced": spaced,
    "reversed": reversed_,
    "dotted": dotted,
    "combining": with_combining,
    "mixed-case": in_mixed_case,
    "typos": with_typos,
    "html-entities": in_html_entities,
    "base64-groups": in_base64_groups,
    "hex-groups": in_hex_groups,
    "overstrike": overstruck,
    "colours": in_colours,
    "markup": with_markup,
}
"""Every disguise by the name that a case of the suite gives it."""
