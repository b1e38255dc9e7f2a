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
from typing import get_args

from gateway.shield import anchors, automaton
from gateway.shield.normalize import View
from gateway.shield.patterns import DIGIT_SEPARATORS, is_token_char
from gateway.shield.plan import GATE_CHARS, LONG_TOKEN_CHARS, How, Plan
from gateway.shield.rules import Rule
from gateway.shield.validators import VALIDATORS

BLOCK_CHARS = 32_768
BUDGET = 1_024
# Characters searched that cost as much as one try.
_CHARS_PER_TRY = 64
_DIGITS_PER_TRY = 256
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_RUNS = bytes(48 if chr(byte) in "0123456789" + DIGIT_SEPARATORS else 46 for byte in range(256))
_TOKENS = bytes(48 if is_token_char(chr(byte)) else 46 for byte in range(256))
_LONG_TOKEN = b"0" * LONG_TOKEN_CHARS
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

    __slots__ = ("_checks", "_regex", "_rest", "_rule", "_starts", "at_word", "number", "on_text", "plan")

    def __init__(self, number: int, rule: Rule, plan: Plan) -> None:
        self.number = number
        self.plan = plan
        self.on_text = rule.view == "text"
        # Where the automaton reads the very text the regex does, a place inside a word need not be tried.
        self.at_word = plan.source.startswith(r"\b") and (plan.how == "tokens" or not self.on_text)
        self._rule = rule
        self._regex: re.Pattern[str] | None = None
        self._starts: re.Pattern[str] | None = None
        self._rest: re.Pattern[str] | None = None
        self._checks: tuple[Check, ...] = ()

    def regex(self) -> re.Pattern[str]:
        regex = self._regex
        if regex is None:
            self._checks = tuple(_check(name) for name in (self._rule.validator or "").split("+") if name)
            self._starts = re.compile(self.plan.starts, re.ASCII) if self.plan.starts else None
            regex = self._regex = re.compile(self.plan.source, re.ASCII)
        return regex

    def may_go_on(self, subject: str, place: int) -> bool:
        """Say whether what must come after a lead's literal does, with the literal at `place`."""
        if not self.plan.rest:
            return True
        if self._rest is None:
            self._rest = re.compile(self.plan.rest, re.ASCII)
        return self._rest.match(subject, place) is not None

    def search(self, subject: str, low: int, high: int) -> list[tuple[int, int, int, int]]:
        """Return all matches that begin in low..high, as (start, end, reported start, reported end)."""
        regex = self.regex()
        reach = self.plan.reach_chars
        found = []
        place = max(low, 0)
        while place <= high:
            if self._starts is None:
                match = regex.search(subject, place, high + reach)
            else:
                start = self._starts.search(subject, place, high + reach)
                if start is None or start.start() > high:
                    break
                place = start.start() + 1
                match = regex.match(subject, start.start(), start.start() + reach)
                if match is None:
                    continue
            if match is None or match.start() > high:
                break
            kept = self._confirm(subject, match)
            if kept:
                found.append(kept)
            place = match.end() if kept else match.start() + 1
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
    """A literal around an anchor: how far before the anchor it begins, and what it leads to.

    leads: rules, and how far before the literal a match begins, least and most. signal: the literal if it is one.
    """

    literal: str
    before: int
    leads: tuple[tuple[_Runner, int, int], ...]
    signal: str


def _cost(word: _Word) -> int:
    return sum(1 + (high - low) // _CHARS_PER_TRY for _, low, high in word.leads)


class _Index:
    """Literals, and an automaton over their anchors."""

    __slots__ = ("_anchors", "_dearest", "_find", "kind", "overlap_chars")

    def __init__(
        self,
        runners: Sequence[_Runner],
        *,
        native: bool | None,
        signals: Sequence[str] = (),
        is_ascii: bool | None = None,
    ) -> None:
        """is_ascii: take only the literals that are ASCII, or only those that are not; None takes all."""
        leads: dict[str, list[tuple[_Runner, int, int]]] = {signal: [] for signal in signals}
        for runner in runners:
            for lead in runner.plan.leads:
                if is_ascii is None or lead.literal.isascii() is is_ascii:
                    leads.setdefault(lead.literal, []).append((runner, lead.low, lead.high))
        roots = anchors.choose_roots(leads)
        words: dict[str, list[_Word]] = {}
        for literal, led in leads.items():
            anchor, before = anchors.choose_anchor(literal, roots)
            words.setdefault(anchor, []).append(
                _Word(literal, before, tuple(led), literal if literal in signals else "")
            )
        order = anchors.order_words(list(words))
        self._find, self.kind = automaton.build(order, native=native)
        self._anchors = [(len(anchor) - 1, tuple(words[anchor])) for anchor in order]
        self.overlap_chars = max(map(len, order), default=1) - 1
        # What following one anchor may cost.
        self._dearest = max((sum(_cost(word) for word in words[anchor]) for anchor in order), default=1)

    def follow(self, scan: "_Scan", text: str, begin: int, end: int) -> None:
        """Try the rules whose literals' anchors begin in begin..end of `text`, as long as there is budget."""
        whole = begin == 0 and end + self.overlap_chars >= len(text)
        hits = self._find(text if whole else text[begin : end + self.overlap_chars])
        if len(hits) * self._dearest > scan.left:
            # The budget may run out: both automata must spend it on the same tries.
            hits.sort()
        for last, index in hits:
            if index < 0:
                continue
            length, words = self._anchors[index]
            start = begin + last - length
            if start >= end:
                continue
            for word in words:
                place = start - word.before
                if place < 0 or not text.startswith(word.literal, place):
                    continue
                if word.signal:
                    scan.signals.add(word.signal)
                in_word = place > 0 and (text[place - 1] == "_" or text[place - 1].isalnum()) and text[place].isalnum()
                for runner, low, high in word.leads:
                    if not (in_word and low == high == 0 and runner.at_word and text[place - 1].isascii()):
                        scan.lead(runner, place, low, high)
            if scan.left < 0:
                scan.is_cut_short = True
                break


class Matcher:
    """All rules of a set, ready to scan. Holds nothing of any text; safe in threads."""

    __slots__ = ("_least_run_chars", "_others", "_runs", "_tokens", "_unseen", "_unseen_chars", "_words", "kind")

    def __init__(
        self, rules: Sequence[Rule], plans: Sequence[Plan], *, signals: Sequence[str] = (), native: bool | None = None
    ) -> None:
        """signals: words to report when they stand in a view. native: as in automaton.build."""
        runners = [_Runner(number, rule, plan) for number, (rule, plan) in enumerate(zip(rules, plans, strict=True))]
        by_how = {how: [runner for runner in runners if runner.plan.how == how] for how in get_args(How)}
        self._words = _Index(by_how["words"], signals=signals, native=native, is_ascii=True)
        # Words of other scripts apart: their many first letters would slow down every text.
        self._others = _Index(by_how["words"], native=native, is_ascii=False)
        self._tokens = _Index(by_how["tokens"], native=native)
        self._runs = tuple(by_how["digits"])
        self._unseen = tuple(by_how["unseen"])
        self._least_run_chars = min((runner.plan.run_chars for runner in self._runs), default=0)
        unseen = {char for runner in self._unseen for char in runner.plan.first}
        self._unseen_chars = re.compile("[" + "".join(map(re.escape, sorted(unseen))) + "]") if unseen else None
        self.kind = self._words.kind

    def scan(self, view: View) -> Matches:
        """Find the matches of every rule in a normalized view and in the text it was made from."""
        scan = _Scan(view)
        text = view.text.encode("utf-8", "surrogatepass").translate(_DIGITS).decode("utf-8", "surrogatepass")
        for begin in range(0, len(text), BLOCK_CHARS):
            scan.left = BUDGET
            self._words.follow(scan, text, begin, min(begin + BLOCK_CHARS, len(text)))
            if not text.isascii() and scan.left >= 0:
                self._others.follow(scan, text, begin, min(begin + BLOCK_CHARS, len(text)))
        self._try_tokens(scan)
        if self._runs:
            self._try_runs(scan)
        if self._unseen_chars and not view.source.isascii() and self._unseen_chars.search(view.source):
            for runner in self._unseen:
                scan.search(runner, 0, len(view.source))
        return scan.finish()

    def _try_tokens(self, scan: "_Scan") -> None:
        """Follow the leads of tokens in every long run of token characters of the text as sent."""
        text = scan.view.source
        shapes = text.encode("ascii", "replace").translate(_TOKENS)
        block, scan.left = 0, BUDGET
        start = shapes.find(_LONG_TOKEN)
        while start >= 0:
            run = _RUN.match(shapes, start)
            end = run.end() if run else len(shapes)
            for begin in range(start, end, BLOCK_CHARS):
                if begin // BLOCK_CHARS != block:
                    block, scan.left = begin // BLOCK_CHARS, BUDGET
                if scan.left >= 0:
                    self._tokens.follow(scan, text, begin, min(begin + BLOCK_CHARS, end))
            start = shapes.find(_LONG_TOKEN, end)

    def _try_runs(self, scan: "_Scan") -> None:
        """Search the rules of digits alone in every run of digits that could hold a match."""
        text = scan.view.text
        shapes = text.encode("ascii", "replace").translate(_RUNS)
        shortest = b"0" * self._least_run_chars
        block, scan.left = 0, BUDGET
        start = shapes.find(shortest)
        while start >= 0:
            run = _RUN.match(shapes, start)
            end = run.end() if run else len(shapes)
            if end // BLOCK_CHARS != block:
                # A run may be longer than a block: it has the budget of all blocks it stands in.
                block, scan.left = end // BLOCK_CHARS, BUDGET * (1 + end // BLOCK_CHARS - start // BLOCK_CHARS)
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

    def lead(self, runner: _Runner, place: int, low: int, high: int) -> None:
        """Try a rule whose match begins low..high before a literal, or note that window for later."""
        subject = self.view.text
        if runner.on_text:
            subject = self.view.source
            if runner.plan.how == "words":
                place = self.view.position(place)
        if low != high:
            self.left -= 1
            if not runner.may_go_on(subject, place):
                return
            windows = self._windows.setdefault(runner, [])
            first, last = max(0, place - high), place - low
            fresh = last - max(first, windows[-1][1]) if windows else last - first
            self.left -= max(0, fresh) // _CHARS_PER_TRY
            windows.append((first, last))
            return
        start = place - low
        if start < 0 or (runner.number, start) in self._tried:
            return
        self._tried.add((runner.number, start))
        self.left -= 1
        found = runner.match(subject, start)
        if found:
            self._matches.setdefault(runner, []).append(found)

    def search(self, runner: _Runner, start: int, end: int) -> None:
        """Search a span of the normalized view, or of the source for the unseen that stands only there."""
        self.left -= 1 + (end - start) // _DIGITS_PER_TRY
        if self.left < 0 and runner.plan.how == "digits":
            self.is_cut_short = True
            return
        subject = self.view.text
        if runner.on_text:
            subject = self.view.source
            if runner.plan.how == "digits":
                start, end = self.view.span(start, end)
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
