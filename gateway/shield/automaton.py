"""Find many words in a text at once: the one door to pyahocorasick, and its twin in Python. Same answers, same order.

Of pyahocorasick only `iter` over a fresh string is used: `iter().set()` corrupts the heap when strings with and
without astral characters alternate (2.3.1), and `iter_long` misses words. STORE_INTS cuts values at 32 bits, and
indexes need no more.
"""

import re
from collections.abc import Callable, Sequence

try:
    import ahocorasick
except ImportError:
    ahocorasick = None

# Root edges for the commonest first letters, so that the automaton leaves the root's list of edges early; a question
# mark stands for whatever is not ASCII where only ASCII is looked for.
_EARLY_EXITS = (" ", "e", "t", "?")
# Nodes lie in memory as they are made, and those of the first letters are read at nearly every character.
_FIRST_CHARS = 3

Find = Callable[[str], list[tuple[int, int]]]


def build(words: Sequence[str], *, native: bool | None = None, is_dense: bool = False) -> tuple[Find, str]:
    """Make a function that finds every occurrence of every word, overlapping ones too.

    native: True for pyahocorasick, False for the twin, None for the first that is there. is_dense: whether to take half
    as long again, so that what is read most lies together in memory. Words are distinct and not empty; they are added
    in the order given. The function returns (end, index) pairs, `end` the offset of the last character and `index` the
    place in `words`, in no particular order. The second value is ``native`` or ``python``.

    Raises:
        ImportError: native was asked for and is not there.
    """
    made = kind(native=native)
    if not words:
        return _find_nothing, made
    return _build_native(words, is_dense=is_dense) if made == "native" else _build_python(words), made


def kind(*, native: bool | None = None) -> str:
    """Return which of the two `build` makes: ``native`` or ``python``.

    Raises:
        ImportError: native was asked for and is not there.
    """
    if native and ahocorasick is None:
        raise ImportError("pyahocorasick is not there")
    return "python" if native is False or ahocorasick is None else "native"


def _find_nothing(text: str) -> list[tuple[int, int]]:
    return []


def _build_native(words: Sequence[str], *, is_dense: bool) -> Find:
    # Numbers lie in the nodes: as objects, each hit would write to one, and after a fork copy the page it lies in.
    automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
    for letter in _EARLY_EXITS:
        # NUL never stands in a normalized text, so these words are never found.
        automaton.add_word(letter + "\0", -1)
    beginnings = dict.fromkeys([word[:_FIRST_CHARS] for word in words]) if is_dense else {}
    for beginning in beginnings:
        automaton.add_word(beginning, -1)
    for index, word in enumerate(words):
        automaton.add_word(word, index)
    for beginning in beginnings.keys() - words:
        # The nodes stay, since words lead through them.
        automaton.remove_word(beginning)
    automaton.make_automaton()
    scan = automaton.iter

    def find(text: str) -> list[tuple[int, int]]:
        return list(scan(text))

    return find


def _build_python(words: Sequence[str]) -> Find:
    """Make a regex that consumes a first letter and looks ahead at the longest word that begins with it.

    The other words that begin there are its own prefixes, so one match tells them all.
    """
    index_of = {word: index for index, word in enumerate(words)}
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(word[0], []).append(word[1:])
    roots = sorted(tails)
    branches = "|".join(f"{re.escape(root)}(?=({trie_regex(tails[root])}))" for root in roots)
    search = re.compile(branches, re.DOTALL).finditer
    begins = {
        word: tuple((cut - 1, index_of[word[:cut]]) for cut in range(1, len(word) + 1) if word[:cut] in index_of)
        for word in words
    }

    def find(text: str) -> list[tuple[int, int]]:
        found = []
        for match in search(text):
            start = match.start()
            word = match[0] + match[match.lastindex or 0]
            found += [(start + last, index) for last, index in begins[word]]
        return found

    return find


def trie_regex(words: Sequence[str]) -> str:
    """Write a set of words as one regex that takes the longest of them. An empty word may end it."""
    branches: dict[str, list[str]] = {}
    for word in words:
        if word:
            branches.setdefault(word[0], []).append(word[1:])
    choices = "|".join(re.escape(char) + trie_regex(rest) for char, rest in sorted(branches.items()))
    if not branches:
        return ""
    if "" in words:
        return f"(?:{choices})?"
    return choices if len(branches) == 1 else f"(?:{choices})"
