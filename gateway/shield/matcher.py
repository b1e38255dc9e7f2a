"""Run every rule over one view of a text: literals lead, regexes confirm where they must begin, a budget bounds it.

Theory of operation. The automaton reads the normalized view with its digits written as 0, in blocks. Where it finds
an anchor, the literals around it are compared, and each rule of such a literal is tried: at one place with
`regex.match` when its plan knows where a match must begin, else by `regex.search` over a window, once what must come
after the literal was found there. Rules of digits alone are searched in runs of digits. The answer is what trying each
regex at each place would give: a rule's matches are the leftmost that do not overlap. Trying costs budget; a text that
would need more than BUDGET tries in a block is cut short there, and `is_cut_short` says so.

Nothing is made ready before it is met: an anchor's literals, a rule's regex, the automaton of other scripts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gateway.shield import automaton
from gateway.shield.layout import CHARS_PER_TRY, Layout
from gateway.shield.normalize import View
from gateway.shield.patterns import DIGIT_SEPARATORS, is_token_char
from gateway.shield.plan import LONG_TOKEN_CHARS
from gateway.shield.runner import Runner, Span

BLOCK_CHARS = 32_768
BUDGET = 1_024
_DIGITS_PER_TRY = 256
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_RUNS = bytes(48 if chr(byte) in "0123456789" + DIGIT_SEPARATORS else 46 for byte in range(256))
_TOKENS = bytes(48 if is_token_char(chr(byte)) else 46 for byte in range(256))
_LONG_TOKEN = b"0" * LONG_TOKEN_CHARS
_RUN = re.compile(b"0{1,}")


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


# A literal around an anchor: how far before the anchor's last character it begins, the literal, whether nothing leads
# from it inside a word, the rules that begin there and how far before it, those with a window, and whether it is a
# signal.
_Word = tuple[int, str, bool, tuple[tuple[Runner, int], ...], tuple[tuple[Runner, int, int], ...], bool]


class _Index:
    """Literals, and an automaton over their anchors. What an anchor leads to is made ready when it is first found."""

    __slots__ = ("_anchors", "_dearest", "_find", "_layout", "_name", "_runner", "_words", "kind", "overlap_chars")

    def __init__(self, layout: Layout, name: str, runner: Callable[[int], Runner], *, native: bool | None) -> None:
        self._layout = layout
        self._name = name
        self._runner = runner
        self._anchors = layout.anchors(name)
        self._find, self.kind = automaton.build(self._anchors, native=native)
        # The last one is for words that automaton.build adds for itself.
        self._words: list[tuple[_Word, ...] | None] = [*[None] * len(self._anchors), ()]
        self.overlap_chars = max(map(len, self._anchors), default=1) - 1
        # What following one anchor may cost.
        self._dearest = layout.dearest(name)

    def _ready(self, index: int) -> tuple[_Word, ...]:
        last = len(self._anchors[index]) - 1
        ready: list[_Word] = []
        for word in self._layout.words(self._name, index):
            leads = [(self._runner(number), low, high) for number, low, high in word.leads]
            fixed = tuple((runner, low) for runner, low, high in leads if low == high)
            windows = tuple(lead for lead in leads if lead[1] != lead[2])
            first = word.literal[0]
            # A word cannot begin where a letter stands before it.
            is_letter = first.isascii() and (first.isalnum() or first == "_")
            begun = tuple((runner, low) for runner, low in fixed if is_letter and low == 0 and runner.at_word)
            other = tuple(lead for lead in fixed if lead not in begun)
            back = last + word.before
            if begun:
                ready.append((back, word.literal, True, begun, (), False))
            if other or windows or word.is_signal:
                ready.append((back, word.literal, False, other, windows, word.is_signal))
        words = self._words[index] = tuple(ready)
        return words

    def follow(self, scan: "_Scan", text: str, begin: int, end: int) -> None:
        """Try the rules whose literals' anchors begin in begin..end of `text`, as long as there is budget."""
        whole = begin == 0 and end + self.overlap_chars >= len(text)
        hits = self._find(text if whole else text[begin : end + self.overlap_chars])
        if not whole or end < len(text):
            hits = [hit for hit in hits if begin + hit[0] - len(self._anchors[hit[1]]) + 1 < end]
        if len(hits) * self._dearest > scan.left:
            # The budget may run out: both automata must spend it on the same tries.
            hits.sort()
        ready, subject = self._words, scan.view.text
        for last, index in hits:
            for back, literal, at_word, fixed, windows, is_signal in ready[index] or self._ready(index):
                place = begin + last - back
                if place < 0 or not text.startswith(literal, place):
                    continue
                if at_word and place:
                    before = text[place - 1]
                    if before.isascii() and (before.isalnum() or before == "_"):
                        continue
                for runner, low in fixed:
                    start = place - low
                    if runner.on_text:
                        scan.lead(runner, place, low)
                    elif start >= 0:
                        scan.left -= 1
                        match = runner.match(subject, start, start + runner.reach_chars)
                        if match:
                            scan.keep(runner, subject, match)
                for runner, low, high in windows:
                    scan.lead_within(runner, place, low, high)
                if is_signal:
                    scan.signals.add(literal)
            if scan.left < 0:
                scan.is_cut_short = True
                break


class Matcher:
    """All rules of a set, ready to scan. Holds nothing of any text; safe in threads."""

    __slots__ = ("_layout", "_native", "_others", "_runners", "_runs", "_tokens", "_unseen", "_words", "kind")

    def __init__(self, layout: Layout, *, native: bool | None = None) -> None:
        """native: as in automaton.build."""
        self._layout = layout
        self._native = native
        self._runners: list[Runner | None] = [None] * layout.count
        self._words = _Index(layout, "words", self._runner, native=native)
        self._tokens = _Index(layout, "tokens", self._runner, native=native)
        # Words of other scripts apart: their many first letters would slow down every text.
        self._others: _Index | None = None
        self._runs = tuple(map(self._runner, layout.numbers("digits")))
        self._unseen = tuple(map(self._runner, layout.numbers("unseen")))
        self.kind = self._words.kind

    def _runner(self, number: int) -> Runner:
        runner = self._runners[number]
        if runner is None:
            brief, plan = self._layout.rule(number)
            runner = self._runners[number] = Runner(number, plan, view=brief.view, validator=brief.validator)
        return runner

    def scan(self, view: View, *, with_text_rules: bool = True) -> Matches:
        """Find the matches of every rule in a normalized view and in the text it was made from.

        with_text_rules: whether the rules for the text as it is are run too.
        """
        scan = _Scan(view, with_text_rules=with_text_rules)
        text = view.text.encode("utf-8", "surrogatepass").translate(_DIGITS).decode("utf-8", "surrogatepass")
        for begin in range(0, len(text), BLOCK_CHARS):
            scan.left = BUDGET
            self._words.follow(scan, text, begin, min(begin + BLOCK_CHARS, len(text)))
            if not text.isascii() and scan.left >= 0:
                if self._others is None:
                    self._others = _Index(self._layout, "others", self._runner, native=self._native)
                self._others.follow(scan, text, begin, min(begin + BLOCK_CHARS, len(text)))
        if with_text_rules:
            self._try_tokens(scan)
        if self._runs:
            self._try_runs(scan, text)
        if with_text_rules and not view.source.isascii():
            for runner in self._unseen:
                if any(char in view.source for char in runner.plan.first):
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

    def _try_runs(self, scan: "_Scan", squashed: str) -> None:
        """Search the rules of digits alone in every run of digits that could hold a match."""
        if squashed.count("0") < min(runner.plan.run_digits for runner in self._runs):
            return
        shapes = squashed.encode("ascii", "replace").translate(_RUNS)
        shortest = b"0" * min(runner.plan.run_chars for runner in self._runs)
        block, scan.left = 0, BUDGET
        start = shapes.find(shortest)
        while start >= 0:
            run = _RUN.match(shapes, start)
            end = run.end() if run else len(shapes)
            if end // BLOCK_CHARS != block:
                # A run may be longer than a block: it has the budget of all blocks it stands in.
                block, scan.left = end // BLOCK_CHARS, BUDGET * (1 + end // BLOCK_CHARS - start // BLOCK_CHARS)
            digits = squashed.count("0", start, end)
            for runner in self._runs:
                if runner.plan.run_chars <= end - start and runner.plan.run_digits <= digits:
                    scan.search(runner, start, end)
            start = shapes.find(shortest, end)


class _Scan:
    """What one scan has found so far, and what is left of its budget."""

    __slots__ = ("_matches", "_windows", "_with_text_rules", "is_cut_short", "left", "signals", "view")

    def __init__(self, view: View, *, with_text_rules: bool) -> None:
        self.view = view
        self.left = BUDGET
        self.signals: set[str] = set()
        self.is_cut_short = False
        self._with_text_rules = with_text_rules
        self._matches: dict[Runner, list[Span]] = {}
        self._windows: dict[Runner, list[tuple[int, int]]] = {}

    def lead(self, runner: Runner, place: int, before: int) -> None:
        """Try a rule for the text as it is whose match begins `before` characters before a literal."""
        if not self._with_text_rules:
            return
        if runner.plan.how == "words":
            place = self.view.position(place)
        start = place - before
        if start >= 0:
            self.left -= 1
            match = runner.match(self.view.source, start, start + runner.reach_chars)
            if match:
                self.keep(runner, self.view.source, match)

    def keep(self, runner: Runner, subject: str, match: re.Match[str]) -> None:
        """Note a match of a rule's regex, unless the rule wants more than that."""
        found = runner.confirm(subject, match)
        if found:
            self._matches.setdefault(runner, []).append(found)

    def lead_within(self, runner: Runner, place: int, low: int, high: int) -> None:
        """Note that a match of a rule may begin low..high characters before a literal, if its rest is there."""
        subject = self.view.text
        if runner.on_text:
            if not self._with_text_rules:
                return
            subject = self.view.source
            if runner.plan.how == "words":
                place = self.view.position(place)
        self.left -= 1
        if not runner.may_go_on(subject, place):
            return
        windows = self._windows.setdefault(runner, [])
        first, last = max(0, place - high), place - low
        fresh = last - max(first, windows[-1][1]) if windows else last - first
        self.left -= max(0, fresh) // CHARS_PER_TRY
        windows.append((first, last))

    def search(self, runner: Runner, start: int, end: int) -> None:
        """Search a span of the normalized view, or of the source for the unseen that stands only there."""
        if runner.on_text and not self._with_text_rules:
            return
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
