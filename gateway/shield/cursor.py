"""Where a stream stands in its text: what is out, what was looked at, which matches may be under way. Asks no rule."""

from bisect import bisect_right
from collections.abc import Sequence

from gateway.shield.normalize import View
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
                for led, _ in branches:
                    self.is_ripe |= led.is_whole
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
    is_suspect: whether something that is held, and need not be any more, may be a match. final: where the last match
    ends that was seen and cannot change.
    tokens: all before was asked for long tokens, or is out. folded: the normalized text, from some place on. begun:
    literals that may have begun. due: those that are complete and were not followed. opens: matches under way.
    """

    __slots__ = (
        "_count", "_lost", "_numbers", "_places", "begin", "begun", "due", "final", "folded", "is_suspect", "opens",
        "out", "seen", "tokens",
    )  # fmt: skip

    def __init__(self) -> None:
        self.out = self.seen = self.begin = self.final = self.tokens = 0
        # How many characters are lost, and how many letters there were. From which of these on the text was read at
        # once: where in the whole text that is, the view of it if it is not even with it, and what of that is left out.
        self._lost = self._count = 0
        self._numbers: list[int] = [0]
        self._places: list[tuple[int, View | None, int]] = [(0, None, 0)]
        self.is_suspect = False
        self.folded = ""
        self.begun: Sequence[Begun] = ()
        self.due: Sequence[Hit] = ()
        self.opens: list[Open] = []

    def read(self, seen: int, folded: str, view: View | None, *, is_met: bool) -> None:
        """Go on to a place with what is new in the normalized text.

        view: of that; None if it has a letter for each of the text. is_met: whether its first blank is left out.
        """
        place, known, left_out = self._places[-1]
        begin = self._lost + self.seen
        if view or known or is_met or left_out + place + self._count - self._numbers[-1] != begin:
            self._numbers.append(self._count)
            self._places.append((begin, view, is_met))
        self.folded += folded
        self._count += len(folded)
        self.seen = seen

    def written(self, ahead: int) -> int:
        """Return where in the text a character of the normalized text comes from: the last but so many."""
        if not ahead:
            return self.seen
        number = self._count - ahead
        step = max(0, bisect_right(self._numbers, number) - 1)
        place, view, left_out = self._places[step]
        behind = max(0, number - self._numbers[step]) + left_out
        return max(0, place - self._lost + (view.position(behind) if view else behind))

    def seek(self, place: int) -> None:
        """Begin to look anew, from a place on."""
        self.seen = self.begin = self.tokens = place
        self.folded, self.begun, self.due, self.opens = "", (), (), []

    def move(self, chars: int, kept_chars: int) -> None:
        """Follow a text that has lost some characters at its beginning; so many of the normalized text are kept."""
        self.out -= chars
        self.seen -= chars
        self.tokens -= chars
        self.begin = max(0, self.begin - chars)
        self.final = max(0, self.final - chars)
        most = max((one.size for one in self.opens if not one.entry.on_text), default=0)
        self.folded = self.folded[-max(kept_chars, most + BEHIND_CHARS) :]
        self._lost += chars
        step = max(0, bisect_right(self._numbers, self._count - len(self.folded)) - 1)
        del self._numbers[:step], self._places[:step]
