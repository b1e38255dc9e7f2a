"""How far a match may have come in a text that has not ended, told letter by letter. Asks no regex for whole matches.

Theory of operation. A regex is read as a set of ways through it (`program`); a letter leads on some and ends others.
While one is left, a match may be under way. A set is worked out when a letter first leads to it, and costs one look-up
from then on: nothing is compiled, and nothing of the text is read twice. What a way cannot tell counts as fulfilled, so
one may be left though no match is under way, never the other way round: what looks around at more than one character,
and in a gap how often what may come very often has come.

A way is what must come next of a word, where it goes on behind that, and its kind: of what is held.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from gateway.shield.program import BEFORE, CHAR, CHARS, CHOICE, EDGE, OPENING, TIMES, TOLD, Program

# A place in the program: sequence, item, how often the item came (or what stood before it), where to go on behind.
Place = tuple[int, int, int, "Place | None"] | None
Step = tuple[Any, Place, int]
# Kinds of ways: before a gap; behind one, or where what is reported begins, and nothing of that came; in a gap of
# characters, or of sequences; behind it.
_FIRST, _AT_LAST, _IN_GAP, _IN_WIDE_GAP, _LAST = range(5)
_HELD, _GAPS = (_FIRST, _LAST), (_IN_GAP, _IN_WIDE_GAP)
# What may come so many times more than it must may come any number of times.
_OFTEN = 16
# A class of letters that may come so many times is one of few.
_FEW = 3
# A word may go on behind it; nothing else is asked of it.
_ANY_LETTER = "x"
_NOTHING: Mapping[str, "Way"] = MappingProxyType({})
_is_word = re.compile(r"\w", re.ASCII).match


class Way(dict[str, "Way"]):
    """A set of ways, and where each letter leads that came so far.

    steps: the ways. is_held: whether what led here is held from where they began. is_whole: whether one is through.
    branches: where letters lead from here behind a gap. What goes on there is held from that letter on.
    """

    __slots__ = ("_joined", "_ways", "branches", "is_held", "is_whole", "steps")

    def __init__(self, ways: "Ways", steps: tuple[Step, ...]) -> None:
        super().__init__()
        self._ways = ways
        self._joined: dict[str, Way] | None = None
        self.steps = steps
        self.is_held = any(step[2] in _HELD for step in self.steps)
        self.is_whole = any(step[1] is None and not step[0] for step in self.steps)
        self.branches: Mapping[str, Way] = _NOTHING

    def __missing__(self, char: str) -> "Way":
        way, branch = self._ways.after(self, char)
        if branch is not None:
            self.branches = {**self.branches, char: branch}
        self[char] = way
        return way

    @property
    def is_narrow(self) -> bool:
        """Whether few letters lead on, and what led here is held."""
        return self._ways.is_narrow(self)

    def joined(self, before: str) -> "Way":
        """Return these ways together with those that begin here. before: the character before, if there is one."""
        if self._joined is None:
            self._joined = {}
        way = self._joined.get(before)
        if way is None:
            way = self._joined[before] = self._ways.begun(self, before)
        return way


class Room:
    """How much all ways may remember together; and the classes of characters, which they have in common."""

    __slots__ = ("_all", "_classes", "_most_steps", "_steps")

    def __init__(self, most_steps: int) -> None:
        self._most_steps = most_steps
        self._steps = 0
        self._all: list[Callable[[], None]] = []
        self._classes: dict[str, Callable[[str], object]] = {}

    def enter(self, forget: Callable[[], None]) -> None:
        """Let somebody remember ways here. forget: what has all of them forgotten."""
        self._all.append(forget)

    def take(self) -> None:
        """Make room for one more step to remember, be it that all others are forgotten."""
        self._steps += 1
        if self._steps > self._most_steps:
            self._steps = 0
            for forget in self._all:
                forget()

    def is_of(self, source: str, char: str) -> bool:
        """Say whether a character is of a class, which is given as a regex."""
        match = self._classes.get(source)
        if match is None:
            match = self._classes[source] = re.compile(source, re.ASCII).match
        return match(char) is not None


class Ways:
    """The ways through one regex. Threads may share it: what two work out at once is the same. none: not one."""

    __slots__ = ("_choices", "_known", "_program", "_room", "none")

    def __init__(self, program: Program, room: Room) -> None:
        """program: the regex. What leads to a gap or comes in it is not held, nor what leads to what is reported."""
        self._program = program
        self._room = room
        self._choices: dict[tuple[int, int], tuple[dict[str, list[tuple[Any, Place]]], list[Any]]] = {}
        self.forget()
        room.enter(self.forget)

    def forget(self) -> None:
        """Forget what was worked out. Who stands in a set of ways goes on from there."""
        self._known: dict[tuple[Step, ...], Way] = {}
        self.none = self._way(())

    def is_narrow(self, way: Way) -> bool:
        """Say whether words lead on from some ways, or classes of letters that do not come often, before any gap."""
        return all(kind == _FIRST and (word or self._is_few(place)) for word, place, kind in way.steps)

    def _is_few(self, place: Place) -> bool:
        if place is None:
            return False
        item = self._program[place[0]][place[1]]
        return bool(item[0] != CHARS or item[2] <= _FEW)

    @property
    def anywhere(self) -> Way:
        """The ways that may begin, whatever stands before."""
        return self.none.joined("").joined(_ANY_LETTER)

    def begun(self, way: Way, before: str) -> Way:
        """Work out some ways together with those that begin behind a character."""
        self._room.take()
        found = dict.fromkeys(way.steps)
        self._enter((0, 0, 0, None), _FIRST, before, found)
        return self._way(found)

    def after(self, way: Way, char: str) -> tuple[Way, Way | None]:
        """Work out where a letter leads, and where from a gap on."""
        self._room.take()
        found: dict[Step, None] = {}
        for step in way.steps:
            self._advance(step, char, found)
        late = [step for step in found if step[2] == _LAST]
        if not late or way.steps[0][2] == _LAST:
            return self._way(found), None
        return self._way([step for step in found if step[2] != _LAST]), self._way(late)

    def _way(self, steps: Iterable[Step]) -> Way:
        key = tuple(steps)
        way = self._known.get(key)
        if way is None:
            way = self._known[key] = Way(self, key)
        return way

    def _enter(self, place: Place, kind: int, before: str | None, found: dict[Step, None]) -> None:
        """Add the ways that go on from a place, up to the next letter each. before: the letter that led there."""
        seen: set[tuple[Place, int]] = set()
        ahead = [(place, kind)]
        while ahead:
            place, kind = ahead.pop()
            while place is not None and place[1] == len(self._program[place[0]]):
                place = place[3]
            if place is None:
                found["", None, kind] = None
                continue
            if (place, kind) in seen:
                continue
            seen.add((place, kind))
            number, at, count, then = place
            item = self._program[number][at]
            after = number, at + 1, 0, then
            if not isinstance(item, list):
                found[item, after, kind] = None
                continue
            what = item[0]
            if what == CHARS or what == TIMES:
                _, least, most, body, is_wide = item
                if kind == _FIRST and is_wide:
                    kind = _IN_GAP if what == CHARS else _IN_WIDE_GAP
                if count < most and what == CHARS:
                    found["", place, kind] = None
                elif count < most:
                    ahead.append(((body, 0, 0, (number, at, _counted(count, least, most, kind), then)), kind))
                if count >= least:
                    is_gap = kind == (_IN_GAP if what == CHARS else _IN_WIDE_GAP)
                    ahead.append((after, _AT_LAST if is_gap else kind))
            elif what == CHOICE:
                firsts, others = self._choice(number, at, item)
                if firsts:
                    found["", place, kind] = None
                ahead += [(_chosen(other, after), kind) for other in others]
            elif what == EDGE:
                if before is None:
                    ahead.append((after, kind))
                else:
                    found["", (number, at, 1 + (_is_word(before) is not None), then), kind] = None
            elif what == BEFORE:
                if not before or self._room.is_of(item[1], before) is item[2]:
                    ahead.append((after, kind))
            elif what == OPENING:
                if not before or before in item[1]:
                    ahead.append((after, kind))
            elif what == TOLD:
                ahead.append((after, _AT_LAST if kind == _FIRST else kind))
            else:
                found["", place, kind] = None

    def _advance(self, step: Step, char: str, found: dict[Step, None]) -> None:
        """Add the ways that a letter leads to from one."""
        word, place, kind = step
        later = _LAST if kind == _AT_LAST else kind
        if word:
            if char in word[0]:
                self._go(word[1:], place, later, char, found)
            return
        if place is None:
            return
        number, at, count, then = place
        item = self._program[number][at]
        after = number, at + 1, 0, then
        what = item[0]
        if what == CHOICE:
            for rest, behind in self._choice(number, at, item)[0].get(char, ()):
                self._go(rest, _behind(behind, after), later, char, found)
        elif what == CHAR:
            if self._room.is_of(item[1], char):
                self._enter(after, later, char, found)
        elif what == CHARS:
            if self._room.is_of(item[3], char):
                self._enter((number, at, _counted(count, item[1], item[2], later), then), later, char, found)
        elif (
            (_is_word(char) is not None) != (count == 2) if what == EDGE else self._room.is_of(item[1], char) is item[2]
        ):
            ready: dict[Step, None] = {}
            self._enter(after, kind, None, ready)
            for one in ready:
                self._advance(one, char, found)

    def _go(self, word: Any, place: Place, kind: int, char: str, found: dict[Step, None]) -> None:
        if word:
            found[word, place, kind] = None
        else:
            self._enter(place, kind, char, found)

    def _choice(self, number: int, at: int, item: list[Any]) -> tuple[dict[str, list[tuple[Any, Place]]], list[Any]]:
        """Return what a choice offers by the first letter, and what has none."""
        known = self._choices.get((number, at))
        if known is None:
            firsts: dict[str, list[tuple[Any, Place]]] = {}
            others = []
            for offer in item[1:]:
                word, behind = offer, None
                if isinstance(offer, int):
                    sequence = self._program[offer]
                    word, behind = (sequence[0], (offer, 1, 0, None)) if sequence else ("", None)
                if isinstance(word, list) or not word:
                    others.append(offer)
                    continue
                for char in word[0]:
                    firsts.setdefault(char, []).append((word[1:], behind))
            known = self._choices[number, at] = firsts, others
        return known


def _counted(count: int, least: int, most: int, kind: int) -> int:
    return min(count + 1, least) if most - least > _OFTEN and kind in _GAPS else count + 1


def _chosen(offer: Any, after: Place) -> Place:
    return (offer, 0, 0, after) if isinstance(offer, int) else after


def _behind(place: Place, after: Place) -> Place:
    return after if place is None else (*place[:3], after)
