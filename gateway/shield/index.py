"""Literals and the automaton over their anchors: where a literal stands, the rules it leads to are tried.

Nothing is made ready before it is met: what an anchor leads to, and a rule's regex.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from gateway.shield import automaton
from gateway.shield.beginnings import LONGEST_CHARS
from gateway.shield.layout import Layout, Word
from gateway.shield.runner import Lead, Runner, Step

if TYPE_CHECKING:
    from gateway.shield.attempt import Attempt

# So many characters before a block are handed over with it: a literal may begin before its anchor.
BEFORE_CHARS = 16
# So much is looked at before its anchors are followed: where there are too many, the rest is not looked at.
_SPAN_CHARS = 8_192
# What finding an anchor costs, against trying a rule.
_HITS_PER_TRY = 16


def _step(word: Word, anchor: str, row: tuple[int, int, int, int, int], runner: Runner) -> Step:
    _, low, high, rest, back = row
    ahead = len(anchor) - 1 + word.before
    lead = Lead(runner, "" if word.literal == anchor else word.literal, low, high, rest, back)
    if runner.on_text or lead.literal:
        return Step(ahead, None, None, 0, lead)
    if low != high:
        return Step(ahead, None, runner.part(rest) if rest else None, runner.reach_chars, lead)
    is_edge = low == 0 and word.literal[0] in runner.alone
    return Step(ahead + low, runner.alone if is_edge else None, runner.first, runner.reach_chars, lead)


class Index:
    """Literals, and an automaton over their anchors."""

    __slots__ = ("_dearest", "_find", "_layout", "_name", "_runner", "_sizes", "_steps")

    def __init__(self, layout: Layout, name: str, runner: Callable[[int], Runner], *, native: bool | None) -> None:
        """name: of the layout's index. runner: gives the rule of a number. native: as in automaton.build."""
        self._layout = layout
        self._name = name
        self._runner = runner
        anchors = layout.anchors(name)
        self._find, _ = automaton.build(anchors, native=native)
        # The last one is for words that automaton.build adds for itself.
        self._steps: list[tuple[Step, ...] | None] = [*[None] * len(anchors), ()]
        self._sizes = [*map(len, anchors), 1]
        # What following one anchor may cost.
        self._dearest = layout.dearest(name)

    def _make(self, number: int) -> tuple[Step, ...]:
        steps = self._steps[number] = tuple(self._told(number))
        return steps

    def _told(self, number: int) -> Iterator[Step]:
        size = self._sizes[number]
        for word in self._layout.words(self._name, number):
            anchor = word.literal[word.before : word.before + size]
            if word.is_signal:
                yield Step(size - 1 + word.before, None, None, 0, word.literal)
            for row in word.leads:
                yield _step(word, anchor, row, self._runner(row[0]))

    def leads(self, part: str) -> Iterator[tuple[Lead, int]]:
        """Yield every lead of the literals in some letters of the automaton, and where its literal stands."""
        words = lru_cache(maxsize=None)(self._layout.words)
        for last, number in self._find(part):
            for word in words(self._name, number):
                place = last - self._sizes[number] + 1 - word.before
                if place >= 0 and part.startswith(word.literal, place):
                    for row in word.leads:
                        yield Lead(self._runner(row[0]), "", *row[1:]), place

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

    def follow_pieces(self, attempt: "Attempt", text: str, pieces: Sequence[tuple[int, int]]) -> None:
        """Try the rules of the literals in some pieces of a text, as long as there is budget."""
        part = "\n".join([text[begin:end] for begin, end in pieces])
        hits = self._find(part)
        attempt.left -= len(hits) // _HITS_PER_TRY
        if len(hits) * self._dearest > attempt.left:
            hits.sort()
        # How far a piece stands from its place in the text.
        ends = list(accumulate(end - begin + 1 for begin, end in pieces))
        known = self._steps
        for last, number in hits:
            for ahead, _, _, _, lead in known[number] or self._make(number):
                place = last - ahead
                if place < 0 or not isinstance(lead, Lead):
                    continue
                alone = lead.runner.alone
                if place and part[place - 1] in alone and part[place] in alone and lead.low == lead.high == 0:
                    continue
                if part.startswith(lead.literal, place):
                    piece = bisect_right(ends, place)
                    attempt.follow(lead, pieces[piece][1] + 1 + place - ends[piece])
            if attempt.left < 0:
                attempt.is_cut_short = True
                break

    def _follow(self, attempt: "Attempt", subject: str, part: str, base: int, begin: int, end: int) -> None:
        hits = self._find(part[begin : end + LONGEST_CHARS] if begin or end < len(part) else part)
        if end < len(part):
            sizes, size = self._sizes, end - begin
            hits = [hit for hit in hits if hit[0] - sizes[hit[1]] + 1 < size]
        left = attempt.left - len(hits) // _HITS_PER_TRY
        if len(hits) * self._dearest > left:
            # The budget may run out: both automata must spend it on the same tries.
            hits.sort()
        known = self._steps
        for last, number in hits:
            last += begin
            for ahead, edge, match, reach, lead in known[number] or self._make(number):
                place = last - ahead
                if place < 0 or (edge is not None and place and part[place - 1] in edge):
                    continue
                at = base + place
                if match is not None:
                    left -= 1
                    found = match(subject, at, at + reach)
                    if found is None:
                        continue
                else:
                    found = None
                attempt.left = left
                if isinstance(lead, str):
                    _note_signal(attempt, lead, part, place)
                elif found is None:
                    if not lead.literal or part.startswith(lead.literal, place):
                        attempt.follow(lead, at)
                elif lead.low != lead.high:
                    attempt.lead_within(lead, subject, at)
                else:
                    attempt.keep(lead.runner, subject, found)
                left = attempt.left
            if left < 0:
                break
        attempt.left = left


def _note_signal(attempt: "Attempt", word: str, part: str, place: int) -> None:
    """Keep a signal that stands at a place, if it is a word by itself."""
    end = place + len(word)
    if part.startswith(word, place) and not (place and part[place - 1].isalpha() or part[end : end + 1].isalpha()):
        attempt.signals.add(word)
