"""Run every rule over one view of a text: literals lead, regexes confirm where they must begin, a budget bounds it.

Theory of operation. An automaton reads the normalized view, with its digits written as 0, block by block. Where it
finds a literal, each pattern that the literal leads to is tried: at one place when its plan knows where a match must
begin, else over a window. Patterns that begin with a long token are looked for in long tokens alone, patterns of digits
in runs of digits. The answer is what trying each regex at each place would give: a pattern's matches are the leftmost
that do not overlap. Trying costs budget; a text that would need more than BUDGET tries in a block is cut short there,
and `is_cut_short` says so.

Nothing here works on more of a text at a time than a block: another thread never waits for long.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from gateway.shield import automaton
from gateway.shield.detections import Direction
from gateway.shield.layout import Layout, letters_of
from gateway.shield.literals import LONGEST_CHARS
from gateway.shield.normalize import View
from gateway.shield.patterns import DIGIT_SEPARATORS
from gateway.shield.runner import Runner, Span
from gateway.shield.shapes import Ranges, Shapes

BLOCK_CHARS = 32_768
BUDGET = 4_096
# What a literal at the end of a block is looked at with: the longest there is.
_AHEAD_CHARS = 64
# What costs as much as one try: so many literals found, so many characters of a window, or of a text that is searched.
_HITS_PER_TRY = 5
_CHARS_PER_TRY = 64
_SEARCHED_PER_TRY = 256
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_RUN = re.compile(f"[0-9]{{1,64}}(?:[{re.escape(DIGIT_SEPARATORS)}]{{1,4}}[0-9]{{1,64}}){{0,64}}")

Hit = tuple[int, int]


class Match(NamedTuple):
    """One match of the plan at place `rule` of the layout; start, end: its half-open span in the view's source."""

    rule: int
    start: int
    end: int


class Matches(NamedTuple):
    """Every match in one view, by plan and place. signals: signal words that stand there.

    is_cut_short: the budget ran out somewhere, so that matches may be missing.
    """

    found: tuple[Match, ...]
    signals: frozenset[str]
    is_cut_short: bool


class _Step(NamedTuple):
    """Where a literal leads: to a pattern whose match begins so far before it, or to none if it is a signal word."""

    low: int
    high: int
    runner: Runner | None


class _Index:
    """Literals, and an automaton over them. What a literal leads to is made ready when it is first met."""

    __slots__ = ("_layout", "_left_out", "_name", "_numbers", "_runner", "find", "known", "sizes")

    def __init__(
        self, layout: Layout, name: str, matcher: "Matcher", *, direction: Direction | None, native: bool | None
    ) -> None:
        literals = layout.literals(name, direction)
        self._layout = layout
        self._name = name
        self._runner = matcher.runner
        self._left_out = layout.left_out(direction)
        # The numbers in the layout of the literals, which have others here if some are left out.
        self._numbers = array("I", literals) if direction is Direction.OUTBOUND else range(len(literals))
        words = [*literals.values()]
        self.find, _ = automaton.build(words, native=native, is_dense=True)
        # The last one is for words that automaton.build adds for itself.
        self.known: list[tuple[_Step, ...] | None] = [*[None] * len(words), ()]
        self.sizes = bytes((*map(len, words), 1))

    def steps(self, number: int) -> tuple[_Step, ...]:
        """Return where a literal leads."""
        is_signal, rows = self._layout.leads(self._name, self._numbers[number])
        steps = [_Step(low, high, self._runner(plan)) for plan, low, high in rows if plan not in self._left_out]
        made = self.known[number] = (*steps, *[_Step(0, 0, None)] * is_signal)
        return made

    def hits(self, part: str) -> list[Hit]:
        """Return where literals begin in some letters, in order, and their numbers."""
        sizes = self.sizes
        return sorted([(last - sizes[number] + 1, number) for last, number in self.find(part)])


class _Attempt:
    """One scan under way. left: what may still be spent on the block at hand; below 0 it is cut short.

    windows: where the matches of a pattern may begin, to be searched at the end.
    """

    __slots__ = (
        "_matches", "direction", "has_digits", "has_values", "is_cut_short", "left", "signals", "view", "windows",
        "with_text_rules",
    )  # fmt: skip

    def __init__(self, view: View, shapes: Shapes, direction: Direction | None, *, with_text_rules: bool) -> None:
        self.view = view
        self.direction = direction
        self.with_text_rules = with_text_rules
        self.left = 0
        self.signals: set[str] = set()
        self.is_cut_short = False
        self.has_digits = self.has_values = True
        if view.is_even:
            # Where all is ASCII and nothing was left out, the view has what its source has.
            self.has_digits, self.has_values = shapes.has_digits, shapes.has_values
        self._matches: dict[Runner, list[Span]] = {}
        self.windows: dict[Runner, list[tuple[int, int]]] = {}

    def subject(self, runner: Runner) -> str:
        """Return the text that a pattern is tried on."""
        return self.view.source if runner.on_text else self.view.text

    def try_at(self, step: _Step, place: int) -> None:
        """Try the pattern that a literal leads to; place: of the literal in the pattern's subject."""
        runner, low, high = step.runner, step.low, step.high
        if runner is None:
            return
        if low != high:
            windows = self.windows.setdefault(runner, [])
            first, last = max(0, place - high), place - low
            fresh = last - max(first, windows[-1][1]) if windows else last - first
            self.left -= 1 + max(0, fresh) // _CHARS_PER_TRY
            windows.append((first, last))
            return
        subject, start = self.subject(runner), place - low
        if start < 0 or (start and subject[start - 1] in runner.alone and subject[start] in runner.alone):
            return
        self.left -= 1
        match = runner.regex.match(subject, start, start + runner.reach_chars)
        if match and (found := runner.confirm(subject, match)):
            self._matches.setdefault(runner, []).append(found)

    def search(self, runner: Runner, start: int, end: int) -> None:
        """Search a span of a pattern's subject."""
        self.left -= 1 + (end - start) // _SEARCHED_PER_TRY
        self._matches.setdefault(runner, []).extend(runner.search(self.subject(runner), start, end))

    def finish(self) -> Matches:
        """Search the windows, drop overlapping matches of one pattern, and lead all spans back to the source."""
        for runner, windows in self.windows.items():
            for low, high in merge_windows(windows):
                self._matches.setdefault(runner, []).extend(runner.search(self.subject(runner), low, high))
        found = []
        for runner in sorted(self._matches, key=lambda runner: runner.number):
            free = 0
            for start, end, told, told_end in sorted(self._matches[runner]):
                if start >= free:
                    free = end
                    span = (told, told_end) if runner.on_text else self.view.span(told, told_end)
                    found.append(Match(runner.number, *span))
        return Matches(tuple(found), frozenset(self.signals), self.is_cut_short)


class Matcher:
    """All rules of a set, ready to scan. Holds nothing of any text; safe in threads."""

    __slots__ = ("_indexes", "_layout", "_native", "_runners", "_runs", "_unseen", "kind")

    def __init__(self, layout: Layout, *, native: bool | None = None) -> None:
        """native: as in automaton.build."""
        self._layout = layout
        self._native = native
        self._runners: list[Runner | None] = [None] * layout.count
        self._indexes: dict[tuple[str, Direction | None], _Index] = {}
        self._runs = tuple(map(self.runner, layout.numbers("digits")))
        unseen = map(self.runner, layout.numbers("unseen"))
        self._unseen = tuple((runner, frozenset(runner.plan.first)) for runner in unseen)
        self.kind = automaton.kind(native=native)

    def ready(self) -> None:
        """Do now what the first scan would do."""
        for direction in Direction:
            self._index("words", direction)

    def runner(self, number: int) -> Runner:
        """Return what runs the plan of a number."""
        runner = self._runners[number]
        if runner is None:
            brief, plan = self._layout.rule(number)
            runner = Runner(number, plan, view=brief.view, validator=brief.validator, read=self.source)
            self._runners[number] = runner
        return runner

    def source(self, number: int) -> str:
        """Return the regex of the plan of a number."""
        return self._layout.rule(number)[1].source

    def _index(self, name: str, direction: Direction | None) -> _Index:
        index = self._indexes.get((name, direction))
        if index is None:
            index = _Index(self._layout, name, self, direction=direction, native=self._native)
            self._indexes[name, direction] = index
        return index

    def scan(
        self,
        view: View,
        shapes: Shapes | None = None,
        *,
        direction: Direction | None = None,
        with_text_rules: bool = True,
        budget: int = BUDGET,
    ) -> Matches:
        """Find the matches of every rule in a normalized view and in the text it was made from.

        shapes: of `view.source`. direction: rules that do not count in it may be left out; None for none of them.
        with_text_rules: whether the rules for the text as it is are run too. budget: for one block.
        """
        shapes = shapes or Shapes(view.source)
        attempt = _Attempt(view, shapes, direction, with_text_rules=with_text_rules)
        for begin in range(0, len(view.text), BLOCK_CHARS):
            attempt.left = budget
            self._scan_block(attempt, begin)
        if with_text_rules:
            for pieces in _batches(shapes.tokens):
                attempt.left = budget
                self._try_tokens(attempt, pieces)
            for runner, first in self._unseen if view.others else ():
                if not view.others.isdisjoint(first):
                    attempt.search(runner, 0, len(view.source))
        return attempt.finish()

    def _scan_block(self, attempt: _Attempt, begin: int) -> None:
        """Follow the literals that begin in one block, and search its runs of digits."""
        text = attempt.view.text
        end = min(begin + BLOCK_CHARS, len(text))
        part = text[begin : end + _AHEAD_CHARS]
        for index, hits in self._words_of(part, attempt.direction):
            self._follow(attempt, index, hits, begin, end)
        if attempt.has_digits and self._runs:
            for run in _RUN.finditer(part):
                for runner in self._runs:
                    if run.end() - run.start() >= runner.plan.run_chars and attempt.left >= 0:
                        attempt.search(runner, begin + run.start(), begin + run.end())
        attempt.is_cut_short |= attempt.left < 0

    def _words_of(self, part: str, direction: Direction | None) -> Iterator[tuple[_Index, Sequence[Hit]]]:
        """Yield where the literals of each index for normalized text begin in a part of one."""
        index = self._index("words", direction)
        # Letters beyond ASCII would be sought among all edges of the root.
        yield index, index.hits(part.encode("ascii", "replace").translate(_DIGITS).decode("ascii"))
        if not part.isascii():
            index = self._index("beyond", direction)
            letters = letters_of("beyond", part)
            hits = index.hits(letters.encode("latin-1").translate(_DIGITS).decode("latin-1"))
            yield index, _in_chars(hits, letters)

    def leads(self, view: View, begin: int, direction: Direction) -> Iterator[tuple[Runner, int, int]]:
        """Yield what the literals lead to that stand behind a place of a normalized text.

        That is a pattern, and the first and the last place in its subject where a match of it may begin.
        """
        source_begin = view.position(begin) if begin < len(view.text) else len(view.source)
        tokens = self._index("tokens", direction)
        every = [(index, hits, False) for index, hits in self._words_of(view.text[begin:], direction)]
        for index, hits, is_token in [*every, (tokens, tokens.hits(view.source[source_begin:]), True)]:
            for place, number in hits:
                for low, high, runner in index.known[number] or index.steps(number):
                    if runner is not None:
                        at = place + source_begin if is_token else place + begin
                        at = view.position(at) if runner.on_text and not is_token else at
                        yield runner, at - high, at - low

    def _follow(self, attempt: _Attempt, index: _Index, hits: Sequence[Hit], begin: int, end: int) -> None:
        """Try the patterns of the literals that begin before the end of a block, as long as there is budget."""
        attempt.left -= len(hits) // _HITS_PER_TRY
        known, view = index.known, attempt.view
        for place, number in hits:
            if attempt.left < 0 or begin + place >= end:
                break
            steps = known[number]
            for step in index.steps(number) if steps is None else steps:
                runner = step.runner
                if runner is None:
                    self._note_signal(attempt, begin + place, index.sizes[number])
                elif not runner.on_text:
                    attempt.try_at(step, begin + place)
                elif attempt.with_text_rules and (attempt.has_values or not runner.plan.holds_value):
                    attempt.try_at(step, view.position(begin + place))

    def _note_signal(self, attempt: _Attempt, place: int, size: int) -> None:
        """Keep a signal that stands at a place, if it is a word by itself."""
        text, end = attempt.view.text, place + size
        if not (place and text[place - 1].isalpha() or text[end : end + 1].isalpha()):
            attempt.signals.add(text[place:end])

    def _try_tokens(self, attempt: _Attempt, pieces: Ranges) -> None:
        """Follow the literals in long runs of token characters of the text as sent."""
        text = attempt.view.source
        index = self._index("tokens", attempt.direction)
        hits = index.hits("\n".join([text[start:end] for start, end in pieces]))
        attempt.left -= len(hits) // _HITS_PER_TRY
        # Where each piece begins among the letters that were read.
        begins = [0, *accumulate(end - start + 1 for start, end in pieces)]
        for place, number in hits:
            if attempt.left < 0:
                attempt.is_cut_short = True
                break
            piece = bisect_right(begins, place) - 1
            for step in index.known[number] or index.steps(number):
                attempt.try_at(step, pieces[piece][0] + place - begins[piece])


def _in_chars(hits: Iterable[Hit], letters: str) -> Sequence[Hit]:
    """Return hits by the characters of a text, of which each of `letters` is a byte in UTF-8."""
    found: list[Hit] = []
    chars = done = 0
    raw = letters.encode("latin-1")
    for place, number in hits:
        chars, done = chars + len(raw[done:place].decode("utf-8", "surrogatepass")), place
        found.append((chars, number))
    return found


def _batches(tokens: Ranges) -> Iterator[Ranges]:
    """Yield spans in groups of about a block; long ones in pieces, in which a literal is read to its own end."""
    batch: Ranges = []
    size = 0
    for start, end in tokens:
        for begin in range(start, end, BLOCK_CHARS):
            piece = begin, min(begin + BLOCK_CHARS + LONGEST_CHARS, end)
            batch.append(piece)
            size += piece[1] - begin
            if size >= BLOCK_CHARS:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def merge_windows(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join windows that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(windows):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
