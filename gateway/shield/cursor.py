"""Where a stream stands in its text: what is out, what was looked at, which matches may be under way. Asks no rule."""

from typing import NamedTuple

from gateway.shield.watched import Entry
from gateway.shield.ways import Way

# How far before what is held the text is looked at, beside what a literal's lead says.
BEHIND_CHARS = 32


class Spot(NamedTuple):
    """A place where a match of a rule may begin: from `first` to `last`, in what the rule reads."""

    entry: Entry
    first: int
    last: int


class Open:
    """A match that may be under way, and how far it has come.

    is_ripe: whether it may be whole by now, which the rule must say.
    """

    __slots__ = ("_begin", "_branches", "_read", "_way", "is_ripe", "spot")

    def __init__(self, spot: Spot) -> None:
        self.spot = spot
        self.is_ripe = False
        # What was read, the ways that are left, and from where on they are held; and those from a gap on.
        self._read = self._begin = spot.first
        self._way = spot.entry.ways.none
        self._branches: list[tuple[Way, int]] = []

    def read_on(self, text: str) -> tuple[int, bool]:
        """Read what came anew. Return from where on something is held, and whether a match is under way."""
        length = len(text)
        # No match is longer.
        end = self.spot.last + self.spot.entry.reach_chars
        if end < length:
            self._follow(text[:end])
            return length, False
        self._follow(text)
        live = self._begin if self._way.is_held else length
        if self._branches:
            live = min(live, self._branches[0][1])
        return live, bool(length <= self.spot.last or self._branches or self._way.steps)

    def _follow(self, text: str) -> None:
        entry, _, last = self.spot
        read, way = self._read, self._way
        branches = self._branches and [(self._led(way, text, read), begin) for way, begin in self._branches]
        for place in range(read, len(text)):
            if place <= last:
                if not way.is_held:
                    self._begin = place
                way = way.joined(text[place - 1 : place] if place else "")
            elif not way.steps:
                break
            char = text[place]
            after = way[char]
            if char in way.branches:
                branches = [*branches, (self._led(way.branches[char], text, place + 1), place)]
            way = after
            self.is_ripe |= way.is_whole
        self._way, self._read = way, max(read, len(text))
        self._branches = branches and [(way, begin) for way, begin in branches if way.steps]

    def _led(self, way: Way, text: str, read: int) -> Way:
        self.is_ripe |= way.is_whole
        for char in text[read:]:
            way = way[char]
            if not way.steps:
                break
            self.is_ripe |= way.is_whole
        return way

    def move(self, chars: int) -> None:
        """Follow a text that has lost some characters at its beginning."""
        entry, first, last = self.spot
        self.spot = Spot(entry, max(0, first - chars), last - chars)
        self._read = max(0, self._read - chars)
        self._begin = max(0, self._begin - chars)
        self._branches = [(way, begin - chars) for way, begin in self._branches]


class Cursor:
    """Where a stream stands in its text, and what was seen of that.

    out: all before is out. seen: all before was looked at. begin: where a word begins, before which no run goes on.
    is_suspect: whether something that is held, and need not be any more, may be a match. final: where the last match
    ends that was seen and cannot change. tokens: all before was asked for long tokens, or is out. folded: the
    normalized text, from some place on. letters: the last of them as the automaton reads them. begun: where literals
    may have begun, each with how many letters it has. opens: matches under way.
    """

    __slots__ = ("begin", "begun", "final", "folded", "is_suspect", "letters", "opens", "out", "seen", "tokens")

    def __init__(self) -> None:
        self.out = self.seen = self.begin = self.final = self.tokens = 0
        self.is_suspect = False
        self.folded = self.letters = ""
        self.begun: list[tuple[int, int]] = []
        self.opens: list[Open] = []

    def move(self, chars: int, kept_chars: int) -> None:
        """Follow a text that has lost some characters at its beginning; so many of the normalized text are kept."""
        self.out -= chars
        self.seen -= chars
        self.tokens -= chars
        self.begin = max(0, self.begin - chars)
        self.final = max(0, self.final - chars)
        self.begun = [(place - chars, count) for place, count in self.begun]
        spots = (one.spot for one in self.opens)
        first = min((spot.first for spot in spots if not spot.entry.on_text), default=len(self.folded))
        lost = max(0, min(first - BEHIND_CHARS, len(self.folded) - kept_chars))
        self.folded = self.folded[lost:]
        for one in self.opens:
            one.move(chars if one.spot.entry.on_text else lost)
