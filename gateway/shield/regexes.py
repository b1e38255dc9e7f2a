"""Compile the regexes of rules: they match as `re.compile` has it, and faster where they list many words.

`re` tries the branches of a choice one after the other. A choice of plain words is therefore written as a tree of
their first letters: ``(?:send|share|pay)`` becomes ``(?:s(?:end|hare)|pay)``. Words keep their order among those that
begin with the same letter, and the others exclude each other, so the same branch matches first.
"""

import re

_LETTER = r"(?:[^\\()\[\]{}?*+|.^$]|\\[^A-Za-z0-9])"
# Escapes and classes are matched so that nothing in them is taken for a group.
_CHOICE = re.compile(
    rf"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|\(\?:(?P<words>{_LETTER}*+(?:\|{_LETTER}*+){{4,}}+)\)", re.DOTALL
)
_LETTERS = re.compile(_LETTER, re.DOTALL)


def compile_regex(text: str, flags: int = int(re.ASCII)) -> re.Pattern[str]:
    """Compile a regex whose choices of words are written as trees."""
    return re.compile(_CHOICE.sub(_tree_of, text), flags)


def _tree_of(choice: re.Match[str]) -> str:
    words = choice["words"]
    # Under (?i) the two cases of a letter would not exclude each other.
    if words is None or not words.islower():
        return choice[0]
    return f"(?:{_branches([_LETTERS.findall(word) for word in words.split('|')])})"


def _branches(words: list[list[str]]) -> str:
    """Write words, each a list of letters as a regex has them, as branches."""
    branches: list[str] = []
    together: dict[str, list[list[str]]] = {}
    for word in words:
        if word:
            together.setdefault(word[0], []).append(word)
        else:
            branches += [*map(_led, together.values()), ""]
            together = {}
    return "|".join([*branches, *map(_led, together.values())])


def _led(words: list[list[str]]) -> str:
    """Write words that begin with the same letter as one branch."""
    if len(words) == 1:
        return "".join(words[0])
    rests = _branches([word[1:] for word in words])
    return words[0][0] + (f"(?:{rests})" if "|" in rests else rests)
