"""Where a stream stands in its text: what is out, what was looked at, which matches may be under way. Asks no rule."""

from typing import NamedTuple

from gateway.shield.watched import Entry

# How far before what is held the text is looked at, beside what a literal's lead says.
BEHIND_CHARS = 32


class Open(NamedTuple):
    """A match that may be under way. first, last: where it may begin, in what its rule reads."""

    entry: Entry
    first: int
    last: int


class Cursor:
    """Where a stream stands in its text, and what was seen of that.

    out: all before is out. seen: all before was looked at. begin: where a word begins, before which no run goes on.
    is_suspect: whether something that is held, and
    need not be any more, may be a match. final: where the last match ends that was seen and cannot change. tokens: all
    before was asked for long tokens, or is out. folded: the normalized text, from some place on. letters: the last of
    them as the automaton reads them. begun: where literals may have begun, each with how many letters it has. opens:
    matches under way.
    """

    __slots__ = ("begin", "begun", "final", "folded", "is_suspect", "letters", "opens", "out", "seen", "tokens")

    def __init__(self) -> None:
        self.out = self.seen = self.begin = self.final = self.tokens = 0
        self.is_suspect = False
        self.folded = self.letters = ""
        self.begun: list[tuple[int, int]] = []
        self.opens: list[Open] = []

    def asked_chars(self) -> int:
        """Return how much the rules read of which a match is under way."""
        return max((len(self.folded) - one.first for one in self.opens if not one.entry.on_text), default=0)

    def move(self, chars: int, kept_chars: int) -> None:
        """Follow a text that has lost some characters at its beginning; so many of the normalized text are kept."""
        self.out -= chars
        self.seen -= chars
        self.tokens -= chars
        self.begin = max(0, self.begin - chars)
        self.final = max(0, self.final - chars)
        self.begun = [(place - chars, count) for place, count in self.begun]
        first = min((one.first for one in self.opens if not one.entry.on_text), default=len(self.folded))
        lost = max(0, min(first - BEHIND_CHARS, len(self.folded) - kept_chars))
        self.folded = self.folded[lost:]
        self.opens = [
            one._replace(first=max(0, one.first - gone), last=one.last - gone)
            for one in self.opens
            for gone in (chars if one.entry.on_text else lost,)
        ]
