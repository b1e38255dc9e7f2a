"""Which script a literal is written in, by the first byte of a character in UTF-8. Knows no language.

Words of each script have an automaton of their own: the first letters of all of them together would slow down every
text, since at each character the automaton goes through the edges of its root.
"""

# The first bytes of the characters of a script; a character of none of them is a sign.
_FIRST_BYTES = {
    "latin": range(0xC2, 0xCE),
    "greek": range(0xCE, 0xD0),
    "cyrillic": range(0xD0, 0xD5),
    "semitic": range(0xD5, 0xE0),
    "indic": range(0xE0, 0xE2),
    "kana": range(0xE3, 0xE4),
    "han": range(0xE4, 0xEA),
    "hangul": range(0xEA, 0xEE),
}
SCRIPTS = (*_FIRST_BYTES, "sign")
_ASCII = bytes(range(128))
# More characters beyond ASCII than this are not told apart: so many are no mere signs.
_MANY_BYTES = 512


def script_of(literal: str) -> str:
    """Return the script of a literal's first character beyond ASCII; it must have one."""
    first = first_letter(literal).encode("utf-8", "surrogatepass")[0]
    return next((name for name, lead_bytes in _FIRST_BYTES.items() if first in lead_bytes), "sign")


def first_letter(literal: str) -> str:
    """Return a literal's first character beyond ASCII; it must have one."""
    return next(char for char in literal if not char.isascii())


def scripts_in(raw: bytes, length: int, letters: dict[str, frozenset[str]]) -> list[str]:
    """Return the scripts some of whose letters stand in a text, and more of them where it holds many.

    raw: the text in UTF-8. length: of the text. letters: those that are asked for, by script.
    """
    if len(raw) - length <= _MANY_BYTES:
        beyond = raw.translate(None, _ASCII)
        if len(beyond) <= _MANY_BYTES:
            chars = frozenset(beyond.decode("utf-8", "surrogatepass"))
            return [name for name in SCRIPTS if not chars.isdisjoint(letters[name])]
    # No character of ASCII has one of these bytes.
    return [name for name in SCRIPTS if name not in _FIRST_BYTES or any(map(raw.__contains__, _FIRST_BYTES[name]))]
