"""Run every rule over one view of a text: literals lead, regexes confirm where they must begin, a budget bounds it.

Theory of operation. The automaton reads the normalized view with its digits written as 0, in blocks. Where it finds
an anchor, the literals around it are compared, and each rule of such a literal is tried: at one place with
`regex.match` when its plan knows where a match must begin, else by `regex.search` over a window. Rules of digits alone
are searched in runs of digits. The answer is what trying each regex at each place would give: a rule's matches are
the leftmost that do not overlap. Trying costs budget; a text that would need more than BUDGET tries in a block is cut
short there, and `is_cut_short` says so.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.shield import anchors, automaton
from gateway.shield.normalize import View
from gateway.shield.patterns import DIGIT_SEPARATORS
from gateway.shield.plan import GATE_CHARS, Plan
from gateway.shield.rules import Rule
from gateway.shield.validators import VALIDATORS

BLOCK_CHARS = 32_768
BUDGET = 1_024
# Characters searched that cost as much as one try.
_CHARS_PER_TRY = 64
# A block with fewer anchors than this cannot reach the budget by anchors alone, so their order is of no matter.
_SORTED_FROM = 32
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_RUNS = bytes(48 if chr(byte) in "0123456789" + DIGIT_SEPARATORS else 46 for byte in range(256))
_RUN = re.compile(b"0{1,}")

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Match:
    """One match of the rule at place `rule` of the rule set; start, end: its half-open span in the view's source."""

    rule: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Every match in one view, by rule and place. signals: signal words that stand there.

    is_cut_short: the budget ran out somewhere, so that matches may be missing.
    """

    found: tuple[Match, ...]
    signals: frozenset[str]
    is_cut_short: bool


class _Runner:
    """One rule, ready to be tried. Its regex is compiled at the first try."""

    __slots__ = ("_checks", "_regex", "_rule", "number", "on_text", "plan")

    def __init__(self, number: int, rule: Rule, plan: Plan) -> None:
        self.number = number
        self.plan = plan
        self.on_text = rule.view == "text"
        self._rule = rule
        self._regex: re.Pattern[str] | None = None
        self._checks: tuple[Check, ...] = ()

    def regex(self) -> re.Pattern[str]:
        regex = self._regex
        if regex is None:
            self._checks = tuple(_check(name) for name in (self._rule.validator or "").split("+") if name)
            regex = self._regex = re.compile(self.plan.source, re.ASCII)
        return regex

    def search(self, subject: str, low: int, high: int) -> list[tuple[int, int, int, int]]:
        """Return all matches that begin in low..high, as (start, end, reported start, reported end)."""
        regex = self.regex()
        reach = self.plan.reach_chars
        found = []
        place = max(low, 0)
        while place <= high and (match := regex.search(subject, place, high + reach)):
            if match.start() > high:
                break
            kept = self._confirm(subject, match)
            if kept:
                found.append(kept)
                place = match.end()
            else:
                place = match.start() + 1
        return found

    def match(self, subject: str, place: int) -> tuple[int, int, int, int] | None:
        """Return the match that begins at `place`, if any."""
        match = self.regex().match(subject, place, place + self.plan.reach_chars)
        return self._confirm(subject, match) if match else None

    def _confirm(self, subject: str, match: re.Match[str]) -> tuple[int, int, int, int] | None:
        start, end = match.span()
        gate = self.plan.gate
        if gate:
            near = subject[max(0, start - GATE_CHARS) : end]
            if not any(literal in near for literal in gate):
                return None
        told = match.span("secret") if "secret" in match.re.groupindex else (start, end)
        if told[0] == told[1]:
            told = (start, end)
        if self._checks:
            value = subject[told[0] : told[1]]
            if not all(check(value) for check in self._checks):
                return None
        return start, end, *told


def _check(name: str) -> Check:
    kind, _, argument = name.partition(":")
    check = VALIDATORS[kind]
    return lambda value: check(value, argument)


@dataclass(frozen=True, slots=True)
class _Word:
    """A literal around an anchor: how far before the anchor it begins, and what it leads to."""

    literal: str
    before: int
    runners: tuple[_Runner, ...]
    signal: str


class Matcher:
    """All rules of a set, ready to scan. Holds nothing of any text; safe in threads."""

    __slots__ = ("_anchors", "_find", "_overlap", "_run_chars", "_runs", "kind")

    def __init__(
        self, rules: Sequence[Rule], plans: Sequence[Plan], *, signals: Sequence[str] = (), native: bool | None = None
    ) -> None:
        """signals: words to report when they stand in a view. native: as in automaton.build."""
        runners = [_Runner(number, rule, plan) for number, (rule, plan) in enumerate(zip(rules, plans, strict=True))]
        self._runs = tuple(runner for runner in runners if runner.plan.run_chars)
        self._run_chars = min((runner.plan.run_chars for runner in self._runs), default=0)
        leads: dict[str, list[_Runner]] = {signal: [] for signal in signals}
        for runner in runners:
            for literal in runner.plan.literals:
                leads.setdefault(literal, []).append(runner)
        roots = anchors.choose_roots(list(leads))
        words: dict[str, list[_Word]] = {}
        for literal, led in leads.items():
            anchor, before = anchors.choose_anchor(literal, roots)
            signal = literal if literal in signals else ""
            words.setdefault(anchor, []).append(_Word(literal, before, tuple(led), signal))
        order = anchors.order_words(list(words))
        self._find, self.kind = automaton.build(order, native=native)
        self._anchors = [(len(anchor) - 1, tuple(words[anchor])) for anchor in order]
        self._overlap = max(map(len, order), default=1) - 1

    def scan(self, view: View) -> Matches:
        """Find the matches of every rule in a normalized view and in the text it was made from."""
        scan = _Scan(view)
        text = view.text.encode("utf-8", "surrogatepass").translate(_DIGITS).decode("utf-8", "surrogatepass")
        for begin in range(0, len(text), BLOCK_CHARS):
            block = text[begin : begin + BLOCK_CHARS + self._overlap] if len(text) > BLOCK_CHARS else text
            hits = self._find(block)
            if hits:
                if len(hits) >= _SORTED_FROM:
                    # Both automata must spend the budget on the same tries.
                    hits.sort()
                self._try(scan, text, begin, hits)
        if self._runs:
            self._try_runs(scan)
        return scan.finish()

    def _try(self, scan: "_Scan", text: str, begin: int, hits: list[tuple[int, int]]) -> None:
        """Try the rules that the anchors of one block lead to."""
        scan.left = BUDGET
        for last, index in hits:
            if index < 0:
                continue
            length, words = self._anchors[index]
            start = last - length
            if start >= BLOCK_CHARS:
                continue
            for word in words:
                place = begin + start - word.before
                if place < 0 or not text.startswith(word.literal, place):
                    continue
                if word.signal:
                    scan.signals.add(word.signal)
                for runner in word.runners:
                    scan.lead(runner, place)
            if scan.left < 0:
                scan.is_cut_short = True
                break

    def _try_runs(self, scan: "_Scan") -> None:
        """Search the rules of digits alone in every run of digits that could hold a match."""
        text = scan.view.text
        shapes = text.encode("ascii", "replace").translate(_RUNS)
        shortest = b"0" * self._run_chars
        block, scan.left = 0, BUDGET
        start = shapes.find(shortest)
        while start >= 0:
            run = _RUN.match(shapes, start)
            assert run is not None
            end = run.end()
            if start // BLOCK_CHARS != block:
                block, scan.left = start // BLOCK_CHARS, BUDGET
            digits = sum(map(text.count, "0123456789", (start,) * 10, (end,) * 10))
            for runner in self._runs:
                if runner.plan.run_chars <= end - start and runner.plan.run_digits <= digits:
                    scan.search(runner, start, end)
            start = shapes.find(shortest, end)


class _Scan:
    """What one scan has found so far, and what is left of its budget."""

    __slots__ = ("_matches", "_tried", "_windows", "is_cut_short", "left", "signals", "view")

    def __init__(self, view: View) -> None:
        self.view = view
        self.left = BUDGET
        self.signals: set[str] = set()
        self.is_cut_short = False
        self._matches: dict[_Runner, list[tuple[int, int, int, int]]] = {}
        self._windows: dict[_Runner, list[tuple[int, int]]] = {}
        self._tried: set[tuple[int, int]] = set()

    def lead(self, runner: _Runner, place: int) -> None:
        """Try a rule where a literal of it begins, or note the window in which its match may begin."""
        plan = runner.plan
        subject = self.view.text
        if runner.on_text:
            place = self.view.position(place)
            subject = self.view.source
        if plan.low != plan.high:
            windows = self._windows.setdefault(runner, [])
            low, high = max(0, place - plan.high), place - plan.low
            if windows and low <= windows[-1][1] + 1 and low >= windows[-1][0]:
                low = windows[-1][1] + 1
            self.left -= 1 + max(0, high - low) // _CHARS_PER_TRY
            windows.append((low, high))
            return
        start = place - plan.low
        if start < 0 or (runner.number, start) in self._tried:
            return
        self._tried.add((runner.number, start))
        self.left -= 1
        found = runner.match(subject, start)
        if found:
            self._matches.setdefault(runner, []).append(found)

    def search(self, runner: _Runner, start: int, end: int) -> None:
        """Search a run of digits, given by its span in the normalized view."""
        self.left -= 1 + (end - start) // _CHARS_PER_TRY
        if self.left < 0:
            self.is_cut_short = True
            return
        subject = self.view.text
        if runner.on_text:
            start, end = self.view.span(start, end)
            subject = self.view.source
        self._matches.setdefault(runner, []).extend(runner.search(subject, start, end))

    def finish(self) -> Matches:
        """Search the windows, drop overlapping matches of one rule, and lead all spans back to the source."""
        for runner, windows in self._windows.items():
            subject = self.view.source if runner.on_text else self.view.text
            for low, high in _merge(windows):
                self._matches.setdefault(runner, []).extend(runner.search(subject, low, high))
        found = []
        for runner in sorted(self._matches, key=lambda runner: runner.number):
            free = 0
            for start, end, told, told_end in sorted(self._matches[runner]):
                if start < free:
                    continue
                free = end
                span = (told, told_end) if runner.on_text else self.view.span(told, told_end)
                found.append(Match(runner.number, *span))
        return Matches(tuple(found), frozenset(self.signals), self.is_cut_short)


def _merge(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(windows):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
