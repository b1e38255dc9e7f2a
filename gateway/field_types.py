"""Text forms that many records share. One pattern checks the value and stands in the OpenAPI document."""

import re
from typing import Annotated

from gateway.errors import InvalidRequest
from gateway.schema import Bounds, ByTime
from gateway.strict_json import read_age, read_timestamp

# Control and format characters, and every space but U+0020: a name that holds one of these looks like another name.
# Unassigned and private-use code points are allowed: naming all 137,000 would cost a generator of texts seconds.
_UNSHOWN = (
    "\\u0000-\\u001f\\u007f-\\u00a0\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u1680\\u180e"
    "\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3000\\ufeff\\ufff9-\\ufffb"
    # As characters, because ECMA-262 and Python have different escapes for them.
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff"
)
LINE_PATTERN = f"^ *[^ {_UNSHOWN}][^{_UNSHOWN}]*$"
"""One line that a person can read, with at least one character that is not a space."""
LINE_OR_NONE_PATTERN = f"^[^{_UNSHOWN}]*$"
NOTE_PATTERN = f"^(?:[\\t\\n]|[^{_UNSHOWN}])*$"
"""What `LINE_OR_NONE_PATTERN` allows, and also line feeds and tabs."""

WHOLE_PATH = f"(?:/(?:\\.|\\.?[^/.{_UNSHOWN}][^/{_UNSHOWN}]*|\\.\\.[^/{_UNSHOWN}]+)?)+"
"""Part of a pattern: an absolute path in one line, without ``..`` in it."""

# Characters other than space and asterisk, with spaces only between them; then the same after each asterisk.
_RUN = f"(?: *[^ *{_UNSHOWN}])*"
GLOB_PATTERN = f"^(?:[^ *{_UNSHOWN}]{_RUN}(?: *\\*{_RUN}){{0,10}}|\\*{_RUN}(?: *\\*{_RUN}){{0,9}})$"
"""One line without spaces at its ends, in which up to ten ``*`` stand for any text."""

# Only a command line can hold half of a surrogate pair: `read_json` refuses it, so no schema names it.
_NOT_OF_A_LINE = re.compile(f"[{_UNSHOWN}\\ud800-\\udfff]")


def is_line(text: str) -> bool:
    """Return whether a text, which may be empty, is one line of readable characters."""
    return _NOT_OF_A_LINE.search(text) is None


def as_line(text: str) -> str:
    """Return the text with U+FFFD in place of every character that `is_line` refuses."""
    return _NOT_OF_A_LINE.sub("\ufffd", text)


def line(high: int, low: int = 1) -> Bounds:
    """Return the bounds of a field that is one line. low: 0 if the text may be empty."""
    pattern = LINE_PATTERN if low else LINE_OR_NONE_PATTERN
    return Bounds(low, high, pattern=pattern, says="must be one line of printable characters")


def note(high: int) -> Bounds:
    """Return the bounds of a field that may have several lines, and be empty."""
    return Bounds(0, high, pattern=NOTE_PATTERN, says="must be lines of printable characters")


def glob(high: int) -> Bounds:
    """Return the bounds of a field that is the name of a model, or a glob of such names."""
    says = "must be printable characters, without leading or trailing spaces and with at most 10 asterisks"
    return Bounds(1, high, pattern=GLOB_PATTERN, says=says)


PlainName = Annotated[
    str,
    Bounds(
        1,
        64,
        pattern="^ *[A-Za-z0-9][A-Za-z0-9 ._-]*$",
        says="must be 1 to 64 letters, digits, spaces and ._- and begin with a letter or digit",
    ),
]
"""A name of letters and digits. Services strip the spaces around it."""


def read_ahead(text: str, *, param: str, now_at: int) -> int:
    """Read `90d`, `12h`, `30m` or `45s` from now on, or an RFC 3339 time, as Unix milliseconds.

    The caller checks whether the time lies ahead, and how far.

    Raises:
        InvalidRequest: neither.
    """
    if (age := read_age(text)) is not None:
        return now_at + age
    try:
        return read_timestamp(text, param=param)
    except InvalidRequest:
        raise InvalidRequest(
            f"{param} must be an RFC 3339 time such as 2026-01-31T12:00:00Z, or a duration from now: 90d, 12h.",
            param=param,
        ) from None


_AHEAD = ByTime(read_ahead)
_AGES = "[1-9][0-9]{0,5}s|[1-9][0-9]{0,4}m|[1-9][0-9]{0,2}h"
# The patterns name the ages that are accepted at any time.
Expiry = Annotated[
    int,
    Bounds(2, 40, promise="^[1-9][0-9]{0,5}[smhd]$"),
    "From now on, such as 90d or 12h; or an RFC 3339 time that lies ahead.",
    _AHEAD,
]
UntilInAYear = Annotated[
    int,
    Bounds(2, 40, promise=f"^(?:{_AGES}|(?:[1-9][0-9]?|[12][0-9]{{2}}|3[0-5][0-9]|36[0-5])d)$"),
    "From now on, such as 4h or 30d; or an RFC 3339 time that lies ahead. At most 366 days.",
    _AHEAD,
]
UntilIn90Days = Annotated[
    int,
    Bounds(2, 40, promise=f"^(?:{_AGES}|(?:[1-9]|[1-8][0-9]|90)d)$"),
    "From now on, such as 30d; or an RFC 3339 time that lies ahead. At most 90 days.",
    _AHEAD,
]
