"""Run every rule over one view of a text: literals lead, regexes confirm where they must begin, a budget bounds it.

Theory of operation. The automaton reads the normalized view with its digits written as 0, block by block. Where it
finds an anchor, the literal around it is compared, and each rule of such a literal is tried: at one place when its plan
knows where a match must begin, else over a window, once what must come after the literal was found there. Rules that
begin with a long token are looked for in long tokens alone, rules of digits in runs of digits; a rule of which every
match holds a long value is tried where one stands near. The answer is what trying each regex at each place would give:
a rule's matches are the leftmost that do not overlap. Trying costs budget; a text that would need more than BUDGET
tries in a block is cut short there, and `is_cut_short` says so.

Nothing here works on more of a text at a time than a block: another thread never waits for long.
"""

import re
from collections.abc import Callable

from gateway.shield import automaton
from gateway.shield.attempt import Attempt, Match, Matches
from gateway.shield.beginnings import LONGEST_CHARS
from gateway.shield.detections import Direction
from gateway.shield.index import BEFORE_CHARS, Index
from gateway.shield.layout import Layout
from gateway.shield.literals import squash_digits
from gateway.shield.normalize import View
from gateway.shield.patterns import DIGIT_SEPARATORS
from gateway.shield.plan import Plan
from gateway.shield.runner import Lead, Runner
from gateway.shield.scripts import SCRIPTS, scripts_in
from gateway.shield.shapes import Ranges, Shapes, add_span

__all__ = ["BLOCK_CHARS", "BUDGET", "Match", "Matcher", "Matches"]

BLOCK_CHARS = 32_768
BUDGET = 4_096
# What an anchor at the end of a block is looked at with: the longest word there is a signal for.
_AHEAD_CHARS = 32
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_RUNS = bytes(48 if chr(byte) in "0123456789" + DIGIT_SEPARATORS else 46 for byte in range(256))
# Shorter runs hold no match: see `plan`.
_LEAST_RUN = b"0" * 9


def compile_regex(text: str) -> re.Pattern[str]:
    """Compile a regex of a plan."""
    return re.compile(text, re.ASCII)


class Matcher:
    """All rules of a set, ready to scan. Holds nothing of any text; safe in threads."""

    __slots__ = (
        "_indexes",
        "_layout",
        "_letters",
        "_native",
        "_runners",
        "_runs",
        "_unseen",
        "kind",
    )

    def __init__(self, layout: Layout, *, native: bool | None = None) -> None:
        """native: as in automaton.build."""
        self._layout = layout
        self._native = native
        self._runners: list[Runner | None] = [None] * layout.count
        self._letters = layout.letters()
        self._indexes: dict[tuple[str, Direction | None], Index] = {}
        self._runs = tuple(map(self._runner, layout.numbers("digits")))
        unseen = map(self._runner, layout.numbers("unseen"))
        self._unseen = tuple((runner, frozenset(runner.plan.first)) for runner in unseen)
        self.kind = automaton.kind(native=native)

    def ready(self) -> None:
        """Do now what the first scan would do."""
        for direction in Direction:
            self._index("words", direction)

    def _runner(self, number: int) -> Runner:
        runner = self._runners[number]
        if runner is None:
            brief, plan = self._layout.rule(number)
            runner = self._runners[number] = Runner(
                number, plan, view=brief.view, validator=brief.validator, compiled=self._compiled
            )
        return runner

    def _compiled(self, number: int, chosen: Callable[[Plan], str]) -> re.Pattern[str]:
        """Return a regex of a rule. chosen: tells which one of its plan, whose texts are read anew: few are wanted."""
        return compile_regex(chosen(self._layout.rule(number)[1]))

    def _index(self, name: str, direction: Direction | None) -> Index:
        index = self._indexes.get((name, direction))
        if index is None:
            index = Index(self._layout, name, self._runner, direction=direction, native=self._native)
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
        attempt = Attempt(view, shapes, direction=direction, with_text_rules=with_text_rules, budget=budget)
        runs: Ranges = []
        begin, length = 0, len(view.text)
        while begin < length:
            attempt.left = budget
            self._scan_block(attempt, begin, runs)
            begin += BLOCK_CHARS
        if runs:
            self._try_runs(attempt, runs)
        if with_text_rules:
            if shapes.tokens:
                self._try_tokens(attempt, shapes.tokens)
            if view.others:
                self._try_unseen(attempt)
        return attempt.finish()

    def leads(self, view: View) -> list[tuple[Lead, int]]:
        """List the leads of a normalized text and where their literals stand: for those who ask what a rule costs."""
        part = squash_digits(view.text)
        return [found for name in ("words", *SCRIPTS) for found in self._index(name, None).leads(part)]

    def _scan_block(self, attempt: Attempt, begin: int, runs: Ranges) -> None:
        """Follow the words of one block, and note its runs of digits."""
        text = attempt.subject
        part, base, end = text, 0, len(text)
        if end > BLOCK_CHARS:
            base, end = max(0, begin - BEFORE_CHARS), min(begin + BLOCK_CHARS, end)
            part = text[base : end + _AHEAD_CHARS]
        raw = b""
        if attempt.has_digits:
            sent = part.encode("utf-8", "surrogatepass")
            raw = sent.translate(_DIGITS)
            if raw != sent:
                part = raw.decode("utf-8", "surrogatepass")
        index = self._indexes.get(("words", attempt.direction)) or self._index("words", attempt.direction)
        index.follow(attempt, text, part, base, begin - base, end - base)
        if attempt.left >= 0 and not part.isascii():
            for name in scripts_in(raw or part.encode("utf-8", "surrogatepass"), len(part), self._letters):
                self._index(name, attempt.direction).follow(attempt, text, part, base, begin - base, end - base)
        if attempt.has_digits and self._runs and "00" in part:
            # What crosses the edge of a block is long enough on both sides to be seen by both.
            kinds = part.encode("ascii", "replace").translate(_RUNS)
            start = kinds.find(_LEAST_RUN)
            while start >= 0:
                last = kinds.find(b".", start)
                last = len(kinds) if last < 0 else last
                add_span(runs, base + start, base + last)
                start = kinds.find(_LEAST_RUN, last)

    def _try_tokens(self, attempt: Attempt, tokens: Ranges) -> None:
        """Follow the leads of tokens in every long run of token characters of the text as sent."""
        text = attempt.view.source
        if len(text) <= BLOCK_CHARS:
            attempt.left = attempt.budget
            self._index("tokens", attempt.direction).follow_pieces(attempt, text, tokens)
            return
        blocks: dict[int, list[tuple[int, int]]] = {}
        for start, end in tokens:
            for begin in range(start, end, BLOCK_CHARS):
                # A literal that begins before the end of a piece is read to its own end.
                piece = begin, min(begin + BLOCK_CHARS + LONGEST_CHARS, end)
                blocks.setdefault(begin // BLOCK_CHARS, []).append(piece)
        for pieces in blocks.values():
            attempt.left = attempt.budget
            self._index("tokens", attempt.direction).follow_pieces(attempt, text, pieces)

    def _try_runs(self, attempt: Attempt, runs: Ranges) -> None:
        """Search the rules of digits alone in every run of digits that could hold a match."""
        text, block, attempt.left = attempt.subject, 0, attempt.budget
        for start, end in runs:
            if end // BLOCK_CHARS != block:
                # A run may be longer than a block: it has the budget of all blocks it stands in.
                block = end // BLOCK_CHARS
                attempt.left = attempt.budget * (1 + block - start // BLOCK_CHARS)
            # All in a run is ASCII.
            run = text[start : min(end, start + BLOCK_CHARS)].encode("ascii", "replace")
            digits = len(run) - len(run.translate(None, b"0123456789"))
            for runner in self._runs:
                if runner.plan.run_chars <= end - start and runner.plan.run_digits <= digits:
                    attempt.search(runner, start, end)

    def _try_unseen(self, attempt: Attempt) -> None:
        others = attempt.view.others
        for runner, first in self._unseen:
            if not others.isdisjoint(first):
                attempt.search(runner, 0, len(attempt.view.source))
