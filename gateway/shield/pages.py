"""One byte a character for a text in one script beside ASCII, as code pages had it. Folds nothing, keeps nothing.

Which characters a text holds, and what becomes of each, costs a question a character in a string, and next to nothing
in bytes. So a text whose letters are one script's is written in bytes first: ASCII stands for itself, behind it come
the script's characters, and behind them the few others that the text holds.
"""

import codecs
import re
from dataclasses import dataclass
from functools import cache

# First and last characters, in order: Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai.
_SCRIPTS = (
    ("\u0384", "\u03ce"),
    ("\u0400", "\u045f"),
    ("\u05b0", "\u05ea"),
    ("\u060c", "\u0655"),
    ("\u0901", "\u0965"),
    ("\u0e01", "\u0e5b"),
)
_LETTER = re.compile("[{}]".format("".join(f"{first}-{last}" for first, last in _SCRIPTS)))
_ASCII = "".join(map(chr, range(128)))
_MOST_CHARS = 256
# A script is told by so many characters of the text, a third of which are its letters.
_SAMPLE_CHARS = 192
# What no page can hold: a character that stands for none there.
_NONE = "\ufffe"
# Stand in for characters that take more than two bytes, which no page looks up soon.
_SPARE = tuple(map(chr, range(0xE000, 0xE000 + _MOST_CHARS)))


@dataclass(frozen=True, slots=True)
class Page:
    """A text in bytes, and which character each of them stands for."""

    data: bytes
    chars: str

    def beyond_ascii(self) -> set[str]:
        """Return the text's characters beyond ASCII, each once."""
        return {char for code, char in enumerate(self.chars) if code >= len(_ASCII) and code in self.data}


def page_of(text: str) -> Page | None:
    """Return a text in bytes, or None if it is of none of the scripts, or holds too many other characters."""
    sample = text[: _SAMPLE_CHARS * 8 : 8]
    letters = _LETTER.findall(sample)
    if len(letters) * 3 < len(sample):
        return None
    known, others = _page(next(script for script in _SCRIPTS if letters[-1] <= script[1]))
    strange = set(others.findall(text))
    chars = known + "".join(strange)
    if len(chars) > _MOST_CHARS or _NONE in strange:
        return None
    looked_up = chars
    spare = (char for char in _SPARE if char not in strange)
    for char in sorted(strange):
        if char > "\uffff":
            instead = next(spare)
            text, looked_up = text.replace(char, instead), looked_up.replace(char, instead)
    return Page(codecs.charmap_encode(text, "strict", codecs.charmap_build(looked_up))[0], chars)


@cache
def _page(script: tuple[str, str]) -> tuple[str, re.Pattern[str]]:
    """Return the characters of ASCII and of a script, and a regex of every other one."""
    first, last = script
    return _ASCII + "".join(map(chr, range(ord(first), ord(last) + 1))), re.compile(f"[^\\0-\x7f{first}-{last}]")
