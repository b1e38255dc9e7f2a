"""Literals and the automaton over their anchors: where a literal stands, the rules it leads to are tried.

Nothing is made ready before it is met: what must stand behind an anchor, what it leads to, and a rule's regex.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, NamedTuple

from gateway.shield import anchors, automaton
from gateway.shield.beginnings import LONGEST_CHARS
from gateway.shield.detections import Direction
from gateway.shield.layout import Layout, Row, Word
from gateway.shield.runner import Lead, PlainStep, Runner, Step, Try

if TYPE_CHECKING:
    from gateway.shield.attempt import Attempt

# So many characters before a block are handed over with it: a literal may begin before its anchor.
BEFORE_CHARS = 16
# So much is looked at before its anchors are followed: where there are too many, the rest is not looked at.
_SPAN_CHARS = 8_192
# A value that may stand farther off is asked for rule by rule.
_NEAR_CHARS = 192
# What finding an anchor costs, against trying a rule.
_HITS_PER_TRY = 5


class _Anchor(NamedTuple):
    """What to do where an anchor stands. then: pieces of which one must stand right behind it, or None; end: where they
    end, behind its last character. steps: None until one of the pieces is met. edge: characters before the anchor where
    only the `others` of the steps are done, or None; size: how far before its last character those stand. value: how
    far before and behind its last character the long value stands that each match holds, or None if one needs none.
    """

    then: anchors.Gate | None
    end: int
    steps: tuple[PlainStep, ...] | None
    edge: frozenset[str] | None = None
    size: int = 0
    others: tuple[PlainStep, ...] = ()
    value: tuple[int, int] | None = None


# The fields of an anchor, and of a step, in order: a plain tuple is taken apart in a third of the time of a named one.
_Plain = tuple[
    anchors.Gate | None,
    int,
    tuple[PlainStep, ...] | None,
    frozenset[str] | None,
    int,
    tuple[PlainStep, ...],
    tuple[int, int] | None,
]
# Of words that automaton.build adds for itself.
_NO_ANCHOR: _Plain = _Anchor(None, 0, ())[:]


class _Late:
    """Stands for a regex behind an anchor until that is first tried. In ordinary text seven of ten never are."""

    __slots__ = ("_put", "_rest", "_runner")

    def __init__(self, put: "_Put", runner: Runner, rest: int) -> None:
        """put: takes the regex in its place. rest: which part of the rule it is; 0 for what is tried first."""
        self._put = put
        self._runner = runner
        self._rest = rest

    def __call__(self, subject: str, place: int, end: int) -> re.Match[str] | None:
        """Do what the regex does, and have it be there from now on."""
        match = self._runner.part(self._rest) if self._rest else self._runner.match
        self._put(self, match)
        return match(subject, place, end)


_Put = Callable[[_Late, Try], None]


def _step(word: Word, size: int, row: Row, runner: Runner, put: _Put) -> Step:
    _, low, high, rest, back, _ = row
    ahead = size - 1 + word.before
    then, end = anchors.gate_of(_pieces(word, size, row))
    lead = Lead(runner, "" if len(word.literal) == size else word.literal, low, high, rest, back)
    edge, far = runner.before(back, word.literal[0]) if low != high else (None, 1)
    if low == high == 0 and word.literal[0] in runner.alone:
        edge = runner.alone
    if runner.on_text or lead.literal:
        is_sure = runner.plan.how == "tokens" or not runner.on_text
        return Step(ahead, then, end, edge if is_sure else None, far, None, runner.plan.run_chars - low, lead)
    if low != high:
        return Step(ahead, then, end, edge, far, _Late(put, runner, rest) if rest else None, runner.reach_chars, lead)
    return Step(ahead + low, then, end, edge, far, _Late(put, runner, 0), runner.reach_chars, lead)


def _pieces(word: Word, size: int, row: Row) -> list[str]:
    """Return what may stand right behind an anchor of a size where a lead's literal does; none if anything may."""
    tail = word.literal[word.before + size :]
    then = row[-1]
    if not then:
        return [tail] if tail else []
    chars = int(then[0])
    return [tail + then[place : place + chars] for place in range(1, len(then), chars)]


def _shared_value(steps: Sequence[Step]) -> tuple[int, int] | None:
    """Return how far before and behind an anchor's last character a long value may stand, if all steps want one."""
    before = behind = 0
    for step in steps:
        lead = step.lead
        chars = 0 if isinstance(lead, str) else lead.runner.wanted_chars
        if isinstance(lead, str) or not chars:
            return None
        before = max(before, step.ahead + max(lead.high, 0))
        behind = max(behind, chars - lead.low)
    return (before, behind) if before + behind <= _NEAR_CHARS else None


class Index:
    """Literals, and an automaton over their anchors."""

    __slots__ = (
        "_dearest",
        "_find",
        "_is_ascii",
        "_is_in_order",
        "_known",
        "_layout",
        "_left_out",
        "_name",
        "_numbers",
        "_runner",
        "_sizes",
    )

    def __init__(
        self,
        layout: Layout,
        name: str,
        runner: Callable[[int], Runner],
        *,
        direction: Direction | None,
        native: bool | None,
    ) -> None:
        """name: of the layout's index. runner: gives the rule of a number. direction: of the
        texts that will be read, so that no rule is tried that does not count there; None for any. native: as in
        automaton.build.
        """
        self._layout = layout
        self._name = name
        self._runner = runner
        self._left_out = layout.left_out(direction)
        numbered = layout.anchors(name, direction)
        # The numbers in the layout of the anchors, which have others here if some are left out.
        self._numbers = array("I", numbered) if direction is Direction.OUTBOUND else range(len(numbered))
        words = [*numbered.values()]
        self._find, kind = automaton.build(words, native=native, is_dense=True)
        self._is_in_order = kind == "native"
        self._is_ascii = all(map(str.isascii, words))
        # The last one is for words that automaton.build adds for itself.
        self._known: list[_Plain | None] = [*[None] * len(words), _NO_ANCHOR]
        self._sizes = bytes((*map(len, words), 1))
        # What following one anchor may cost.
        self._dearest = layout.dearest(name)

    def _words(self, number: int) -> Iterator[tuple[Word, list[Row]]]:
        """Yield the literals around an anchor, and their leads to rules that count."""
        for word in self._layout.words(self._name, self._numbers[number]):
            yield word, [row for row in word.leads if row[0] not in self._left_out]

    def _make(self, number: int) -> _Plain:
        """Make ready what an anchor's gate is, but none of the rules behind it."""
        size = self._sizes[number]
        pieces: list[str] = []
        words = [*self._words(number)]
        for word, rows in words:
            told = [_pieces(word, size, row) for row in rows] + [[]] * word.is_signal
            if not all(told):
                pieces = []
                break
            pieces += chain.from_iterable(told)
        is_led = any(rows or word.is_signal for word, rows in words)
        made: _Plain = _Anchor(*anchors.gate_of(pieces), None)[:] if is_led else _NO_ANCHOR
        self._known[number] = made
        return made

    def _open(self, number: int) -> tuple[PlainStep, ...]:
        """Make ready the rules behind an anchor."""
        words = [*self._words(number)]
        steps = [*self._told(number, words)]
        then, end, *_ = self._known[number] or self._make(number)
        if len(steps) == 1:
            # The anchor's own gate is the step's.
            steps = [steps[0]._replace(then=None)]
        size = self._sizes[number]
        letter = words[0][0].literal[words[0][0].before]
        edge = anchors.shared_edge(letter, [step.edge for step in steps if step.edge and step.ahead == size - 1])
        told = tuple(step[:] for step in steps)
        others = tuple(
            plain
            for step, plain in zip(steps, told, strict=True)
            if step.ahead != size - 1 or not (step.edge and edge and edge <= step.edge)
        )
        self._known[number] = _Anchor(then, end, told, edge, size, others, _shared_value(steps))[:]
        return told

    def _told(self, number: int, words: Iterable[tuple[Word, list[Row]]]) -> Iterator[Step]:
        size, put = self._sizes[number], partial(self._put, number)
        for word, rows in words:
            if word.is_signal:
                yield Step(size - 1 + word.before, None, 0, None, 1, None, 0, word.literal)
            for row in rows:
                yield _step(word, size, row, self._runner(row[0]), put)

    def _put(self, number: int, late: _Late, match: Try) -> None:
        """Have a regex itself tried where it stood for it behind an anchor."""
        then, end, steps, edge, size, others, value = self._known[number] or _NO_ANCHOR

        # The others are some of the steps, the same tuples.
        now = {id(step): (*step[:5], match, *step[6:]) for step in steps or () if step[5] is late}

        def changed(steps: Iterable[PlainStep]) -> tuple[PlainStep, ...]:
            return tuple(now.get(id(step), step) for step in steps)

        self._known[number] = then, end, changed(steps or ()), edge, size, changed(others), value

    def leads(self, part: str) -> Iterator[tuple[Lead, int]]:
        """Yield every lead of the literals in some letters of the automaton, and where its literal stands."""
        words = lru_cache(maxsize=None)(lambda number: tuple(self._words(number)))
        for last, number in self._find(part):
            for word, rows in words(number):
                place = last - self._sizes[number] + 1 - word.before
                if place >= 0 and part.startswith(word.literal, place):
                    for row in rows:
                        yield Lead(self._runner(row[0]), "", *row[1:5]), place

    def follow(self, attempt: "Attempt", subject: str, part: str, base: int, begin: int, end: int) -> None:
        """Try the rules of the literals whose anchors begin at begin..end of `part`, as long as there is budget.

        subject: what the rules are tried on that are not for the text as sent. part: letters of the automaton, to be
        read from `begin` on; what stands before is only looked at. base: the place of its first character.
        """
        while end - begin > _SPAN_CHARS and attempt.left >= 0:
            self._follow(attempt, subject, part, base, begin, begin + _SPAN_CHARS)
            begin += _SPAN_CHARS
        if attempt.left >= 0:
            self._follow(attempt, subject, part, base, begin, end)

    def follow_pieces(self, attempt: "Attempt", text: str, pieces: Sequence[tuple[int, int]]) -> None:
        """Try the rules of the literals in some pieces of a text, as long as there is budget."""
        part = "\n" + "\n".join([text[begin:end] for begin, end in pieces])
        hits = self._find(part)
        attempt.left -= len(hits) // _HITS_PER_TRY
        if len(hits) * self._dearest > attempt.left:
            hits.sort()
        # How far a piece stands from its place in the text; told when it is asked.
        ends: list[int] = []
        known = self._known
        for last, number in hits:
            steps = (known[number] or self._make(number))[2]
            for ahead, _, _, edge, _, _, chars, lead in self._open(number) if steps is None else steps:
                place = last - ahead
                if place < 0 or (edge is not None and place and part[place - 1] in edge):
                    continue
                # A piece that does not end where its token does is the last.
                if part.find("\n", place, place + chars) >= 0:
                    continue
                if isinstance(lead, Lead) and (not lead.literal or part.startswith(lead.literal, place)):
                    ends = ends or list(accumulate([end - begin + 1 for begin, end in pieces], initial=1))[1:]
                    piece = bisect_right(ends, place)
                    attempt.follow(lead, pieces[piece][1] + 1 + place - ends[piece])
            if attempt.left < 0:
                attempt.is_cut_short = True
                break

    def _hits(self, part: str, begin: int, end: int) -> list[tuple[int, int]]:
        """Find the anchors that begin at begin..end: how far from `begin` their last character stands, and numbers."""
        read = part[begin : end + LONGEST_CHARS] if begin or end < len(part) else part
        if self._is_ascii and not read.isascii():
            # Other letters would be sought among all edges of the root.
            read = read.encode("ascii", "replace").decode("ascii")
        hits = self._find(read)
        if end == len(part):
            return hits
        sizes, size = self._sizes, end - begin
        # What ends before its end begins there; of the others, that come last where the automaton is in C, some do.
        whole = bisect_left(hits, (size,)) if self._is_in_order else 0
        hits[whole:] = [hit for hit in hits[whole:] if hit[0] < size or hit[0] - sizes[hit[1]] + 1 < size]
        return hits

    def _follow(self, attempt: "Attempt", subject: str, part: str, base: int, begin: int, end: int) -> None:
        is_plain = part.isascii()
        hits = self._find(part) if is_plain and not begin and end == len(part) else self._hits(part, begin, end)
        left = attempt.left - len(hits) // _HITS_PER_TRY
        if left < 0:
            attempt.left, attempt.is_cut_short = left, True
            return
        if len(hits) * self._dearest > left:
            # The budget may run out: both automata must spend it on the same tries.
            hits.sort()
        known, has_values = self._known, attempt.has_values
        for last, number in hits:
            last += begin
            then, stop, steps, edge, size, others, value = known[number] or self._make(number)
            if edge is not None and last >= size and part[last - size] in edge:
                if not others:
                    continue
                steps = others
            if then is not None and (behind := part[last + 1 : last + stop]) not in then:
                if is_plain or behind.isascii():
                    continue
            if value is not None and not (has_values and attempt.holds_value(base + last, *value)):
                continue
            for ahead, then, stop, edge, among, match, reach, lead in self._open(number) if steps is None else steps:
                if then is not None and (behind := part[last + 1 : last + stop]) not in then:
                    if is_plain or behind.isascii():
                        continue
                place = last - ahead
                if place < 0:
                    continue
                if edge is not None and place:
                    if part[place - 1] in edge:
                        continue
                    if among > 1 and not edge.isdisjoint(part[max(0, place - among) : place - 1]):
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
                attempt.is_cut_short = True
                break
        attempt.left = left


def _note_signal(attempt: "Attempt", word: str, part: str, place: int) -> None:
    """Keep a signal that stands at a place, if it is a word by itself."""
    end = place + len(word)
    if part.startswith(word, place) and not (place and part[place - 1].isalpha() or part[end : end + 1].isalpha()):
        attempt.signals.add(word)
