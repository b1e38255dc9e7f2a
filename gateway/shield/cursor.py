"""Where a stream stands in its text: what is out, what was looked at, which matches may be under way. Asks no rule."""

from collections.abc import Sequence

from gateway.shield.steps import Begun
from gateway.shield.watched import Entry, Hit
from gateway.shield.ways import Way

# How far before what is held the text is looked at, beside what a literal's lead says.
BEHIND_CHARS = 32


class Open:
    """A match that may be under way, and how far it has come in what its rule reads. It keeps none of that.

    width: it may begin at a first letter or at so many behind that. size: letters read, from the first on. held_chars:
    so many of the last are held. is_begun: whether a match may be under way. is_ripe: whether it may be whole by now,
    which the rule must say.
    """

    __slots__ = (
        "_before",
        "_begin",
        "_branches",
        "_way",
        "entry",
        "held_chars",
        "is_begun",
        "is_ripe",
        "size",
        "width",
    )

    def __init__(self, entry: Entry, width: int, before: str) -> None:
        """before: the letter before the first, if there is one."""
        self.entry = entry
        self.width = width
        self.size = self.held_chars = 0
        self.is_begun, self.is_ripe = True, False
        self._before = before
        # The ways that are left, and behind how many letters they begin; and those from a gap on.
        self._way, self._begin = entry.ways.none, 0
        self._branches: list[tuple[Way, int]] = []

    def read(self, letters: str) -> None:
        """Read what came anew."""
        width, size, way, branches = self.width, self.size, self._way, self._branches
        # No match is longer.
        end = width + self.entry.reach_chars
        self.size = size + len(letters)
        is_over = self.size > end
        for char in letters[: max(0, end - size)] if is_over else letters:
            if size <= width:
                if not way.is_held:
                    self._begin = size
                way = way.joined(self._before)
                self._before = char
            elif not (branches or way.steps):
                break
            after = way[char]
            if branches:
                branches = [(led[char], begin) for led, begin in branches if led.steps]
                self.is_ripe |= any(led.is_whole for led, _ in branches)
            if way.branches and char in way.branches:
                fork = way.branches[char]
                branches = [*branches, (fork, size)]
                self.is_ripe |= fork.is_whole
            way = after
            if way.is_whole:
                self.is_ripe = True
            size += 1
        self._way, self._branches = way, branches
        if is_over:
            self.is_begun, self.held_chars = False, 0
            return
        self.held_chars = self.size - self._begin if way.is_held else 0
        is_begun = bool(way.steps) or size <= width
        for led, begin in branches:
            if led.steps:
                is_begun = True
                self.held_chars = max(self.held_chars, self.size - begin)
        self.is_begun = is_begun


class Cursor:
    """Where a stream stands in its text, and what was seen of that.

    out: all before is out. seen: all before was looked at. begin: where a word begins, before which no run goes on.
    even: from there on the text and the normalized text have as many letters. is_suspect: whether something that is
    held, and need not be any more, may be a match. final: where the last match ends that was seen and cannot change.
    tokens: all before was asked for long tokens, or is out. folded: the normalized text, from some place on. begun:
    literals that may have begun. due: those that are complete and were not followed. opens: matches under way.
    """

    __slots__ = ("begin", "begun", "due", "even", "final", "folded", "is_suspect", "opens", "out", "seen", "tokens")

    def __init__(self) -> None:
        self.out = self.seen = self.begin = self.even = self.final = self.tokens = 0
        self.is_suspect = False
        self.folded = ""
        self.begun: Sequence[Begun] = ()
        self.due: Sequence[Hit] = ()
        self.opens: list[Open] = []

    def move(self, chars: int, kept_chars: int) -> None:
        """Follow a text that has lost some characters at its beginning; so many of the normalized text are kept."""
        self.out -= chars
        self.seen -= chars
        self.tokens -= chars
        self.begin = max(0, self.begin - chars)
        self.even = max(0, self.even - chars)
        self.final = max(0, self.final - chars)
        most = max((one.size for one in self.opens if not one.entry.on_text), default=0)
        self.folded = self.folded[-max(kept_chars, most + BEHIND_CHARS) :]
