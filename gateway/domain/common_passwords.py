"""The 10,000 most common passwords, which nobody may choose: words, first names, runs of digits, keyboard walks."""

import re
import unicodedata

from gateway import bundle

FILE = "gateway/domain/common-passwords.txt"
COUNT = 10_000
_END = re.compile(r"[0-9!]{1,4}\Z")


def is_common(password: str) -> bool:
    """Return whether the list has a password, whatever its case and width, or has it without a short end.

    The end may be up to four digits or exclamation marks.
    """
    folded = unicodedata.normalize("NFKC", password).strip().casefold()
    known = frozenset(bundle.read(FILE).decode().split("\n"))
    return not known.isdisjoint({folded, _END.sub("", folded)} - {""})
