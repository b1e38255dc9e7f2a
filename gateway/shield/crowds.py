"""Where so many literals stand that the text is noise of digits: which of them no name can belong to. Tries no rule.

Theory of operation. Most rules for numbers want a name before the number ("passport no. 1234 5678"), and are led to by
its digits, which are rare in ordinary text. In a list of numbers, or in groups of hexadecimal digits, they stand at
every place, and each leads to dozens of rules. Of a name such noise has nothing: it has no letter behind f, nor two
letters in a row. So there only the rules are followed that want no name.
"""

import re

# So many literals in a piece of text are a crowd.
MANY = 512
# A rule that wants a name farther before its literal is followed everywhere.
NAME_CHARS = 64
# So far behind a name no literal belongs to it: a literal may be long, and is told by its end.
_FAR_CHARS = 96
# What each name holds, in the letters of the automaton.
_OF_NAME = re.compile("[g-z]|[a-f]{2,}")


def is_of_digits(part: str, begin: int, end: int) -> bool:
    """Tell whether a third of a span is digits, which the automaton reads as 0."""
    return part.count("0", begin, end) * 3 > end - begin


def far_from_names(part: str, begin: int, end: int, *, is_beginning: bool) -> bytearray:
    """Return for each character of a span of some ASCII text whether what ends there stands far behind any name.

    is_beginning: whether nothing stands before the text.
    """
    far = bytearray(end - begin)
    low = max(0, begin - _FAR_CHARS)
    free = begin if is_beginning and not low else low + _FAR_CHARS
    for name in _OF_NAME.finditer(part, low, end):
        if free < name.start():
            _mark(far, free - begin, name.start() - begin)
        free = max(begin, name.end() + _FAR_CHARS)
    _mark(far, free - begin, end - begin)
    return far


def _mark(far: bytearray, start: int, end: int) -> None:
    if start < end:
        far[start:end] = b"\1" * (end - start)
