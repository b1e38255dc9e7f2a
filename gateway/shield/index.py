"""Literals and the automaton over their anchors: where a literal stands, the rules it leads to are tried.

Nothing is made ready before it is met: what an anchor leads to, and a rule's regex.
"""

import string
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from gateway.shield import automaton
from gateway.shield.beginnings import LONGEST_CHARS
from gateway.shield.layout import Layout, Word
from gateway.shield.runner import Runner

if TYPE_CHECKING:
    from gateway.shield.attempt import Attempt

# So many characters before a block are handed over with it: a literal may begin before its anchor.
BEFORE_CHARS = 16
# So much is looked at before its anchors are followed: where there are too many, the rest is not looked at.
_SPAN_CHARS = 8_192
# What finding an anchor costs, against trying a rule.
_HITS_PER_TRY = 16
# What may not stand before a match, by `Plan.alone`. A match begins with such a character itself.
_BEFORE = {
    "digit": frozenset(string.digits),
    "alnum": frozenset(string.digits + string.ascii_letters),
    "word": frozenset(string.digits + string.ascii_letters + "_"),
}


class Step(NamedTuple):
    """One thing to do where an anchor stands.

    ahead: how far before the anchor's last character the literal begins. literal: what must stand there, empty when
    the anchor says it all. edge: characters that may not stand before it, or None. runner: the rule to try, or None
    when the literal is a signal. low, high: how far before the literal a match may begin. rest, back: numbers of what
    must match there, and backwards from there.
    """

    ahead: int
    literal: str
    edge: frozenset[str] | None
    runner: Runner | None
    low: int
    high: int
    rest: int
    back: int


def _steps(word: Word, anchor: str, runner_of: Callable[[int], Runner]) -> Iterator[Step]:
    ahead = len(anchor) - 1 + word.before
    literal = "" if word.literal == anchor else word.literal
    if word.is_signal:
        yield Step(ahead, word.literal, None, None, 0, 0, 0, 0)
    for number, low, high, rest, back in word.leads:
        runner = runner_of(number)
        edge = _BEFORE.get(runner.alone) if low == high == 0 else None
        if edge is not None and word.literal[0] not in edge:
            edge = None
        yield Step(ahead, literal, edge, runner, low, high, rest, back)


class Index:
    """Literals, and an automaton over their anchors."""

    __slots__ = ("_anchors", "_dearest", "_find", "_layout", "_name", "_runner", "_sizes", "_steps", "kind")

    def __init__(self, layout: Layout, name: str, runner: Callable[[int], Runner], *, native: bool | None) -> None:
        """name: of the layout's index. runner: gives the rule of a number. native: as in automaton.build."""
        self._layout = layout
        self._name = name
        self._runner = runner
        self._anchors = layout.anchors(name)
        self._find, self.kind = automaton.build(self._anchors, native=native)
        # The last one is for words that automaton.build adds for itself.
        self._steps: list[tuple[Step, ...] | None] = [*[None] * len(self._anchors), ()]
        self._sizes = [*map(len, self._anchors), 1]
        # What following one anchor may cost.
        self._dearest = layout.dearest(name)

    def _make(self, number: int) -> tuple[Step, ...]:
        anchor = self._anchors[number]
        words = self._layout.words(self._name, number)
        steps = self._steps[number] = tuple(step for word in words for step in _steps(word, anchor, self._runner))
        return steps

    def follow(self, attempt: "Attempt", subject: str, part: str, *, base: int, begin: int, end: int) -> None:
        """Try the rules of the literals whose anchors begin at begin..end of `part`, as long as there is budget.

        subject: what the rules are tried on that are not for the text as sent. part: letters of the automaton, to be
        read from `begin` on; what stands before is only looked at. base: the place of its first character.
        """
        for start in range(begin, end, _SPAN_CHARS):
            self._follow(attempt, subject, part, base, start, min(start + _SPAN_CHARS, end))
            if attempt.left < 0:
                attempt.is_cut_short = True
                break

    def _follow(self, attempt: "Attempt", subject: str, part: str, base: int, begin: int, end: int) -> None:
        hits = self._find(part[begin : end + LONGEST_CHARS] if begin or end < len(part) else part)
        if end < len(part):
            sizes, size = self._sizes, end - begin
            hits = [hit for hit in hits if hit[0] - sizes[hit[1]] + 1 < size]
        attempt.left -= len(hits) // _HITS_PER_TRY
        if len(hits) * self._dearest > attempt.left:
            # The budget may run out: both automata must spend it on the same tries.
            hits.sort()
        known = self._steps
        for last, number in hits:
            last += begin
            for ahead, literal, edge, runner, low, high, rest, back in known[number] or self._make(number):
                place = last - ahead
                if place < 0 or (literal and not part.startswith(literal, place)):
                    continue
                if edge is not None and place and part[place - 1] in edge:
                    continue
                if runner is None:
                    # A signal is a word by itself.
                    if not (
                        place
                        and part[place - 1].isalpha()
                        or part[place + len(literal) : place + len(literal) + 1].isalpha()
                    ):
                        attempt.signals.add(literal)
                elif low != high:
                    attempt.lead_within(runner, base + place, low, high, rest, back)
                elif runner.on_text:
                    attempt.try_sent(runner, base + place, low)
                elif (at := base + place - low) >= 0:
                    attempt.left -= 1
                    match = runner.first(subject, at, at + runner.reach_chars)
                    if match:
                        attempt.keep(runner, subject, match)
            if attempt.left < 0:
                break
