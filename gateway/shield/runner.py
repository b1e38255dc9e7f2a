"""One rule, ready to be tried on a text: its regexes, what must stand near a match, and its checks. Finds no place."""

import re
from collections.abc import Callable
from typing import NamedTuple

from gateway.shield.plan import GATE_CHARS, Plan
from gateway.shield.validators import VALIDATORS

Check = Callable[[str], bool]


class Span(NamedTuple):
    """Where a rule matched, and the part of it that is reported: half-open spans in the rule's subject."""

    start: int
    end: int
    told: int
    told_end: int


class Runner:
    """One rule. Each of its regexes is compiled at the first try.

    match: tries the regex at a place of the subject, up to an end. at_word: a match begins at the edge of a word, which
    the automaton's text shows. has_checks: the rule has a
    validator.
    """

    __slots__ = (
        "_checks",
        "_rest",
        "_search",
        "_starts",
        "at_word",
        "match",
        "number",
        "on_text",
        "plan",
        "reach_chars",
    )

    def __init__(self, number: int, plan: Plan, *, view: str, validator: str | None) -> None:
        self.number = number
        self.plan = plan
        self.reach_chars = plan.reach_chars
        self.on_text = view == "text"
        # Where the automaton reads the very text the regex does, a place inside a word need not be tried.
        self.at_word = plan.source.startswith(r"\b") and (plan.how == "tokens" or not self.on_text)
        self.match: Callable[[str, int, int], re.Match[str] | None] = self._first_match
        self._search: Callable[[str, int, int], re.Match[str] | None] = self._first_search
        self._starts: re.Pattern[str] | None = None
        self._rest: re.Pattern[str] | None = None
        self._checks = tuple(_check(name) for name in (validator or "").split("+") if name)

    def _compile(self) -> None:
        regex = re.compile(self.plan.source, re.ASCII)
        self.match, self._search = regex.match, regex.search

    def _first_match(self, subject: str, start: int, end: int) -> re.Match[str] | None:
        self._compile()
        return self.match(subject, start, end)

    def _first_search(self, subject: str, start: int, end: int) -> re.Match[str] | None:
        self._compile()
        return self._search(subject, start, end)

    def may_go_on(self, subject: str, place: int) -> bool:
        """Say whether what must come after a lead's literal does, with the literal at `place`."""
        rest = self._rest
        if rest is None:
            # An empty regex matches anywhere.
            rest = self._rest = re.compile(self.plan.rest, re.ASCII)
        return rest.match(subject, place) is not None

    def search(self, subject: str, low: int, high: int) -> list[Span]:
        """Return all matches that begin in low..high and do not overlap."""
        reach = self.reach_chars
        if self._starts is None and self.plan.starts:
            self._starts = re.compile(self.plan.starts, re.ASCII)
        found = []
        place = max(low, 0)
        while place <= high:
            if self._starts is None:
                match = self._search(subject, place, high + reach)
            else:
                start = self._starts.search(subject, place, high + reach)
                if start is None or start.start() > high:
                    break
                place = start.start() + 1
                match = self.match(subject, start.start(), start.start() + reach)
                if match is None:
                    continue
            if match is None or match.start() > high:
                break
            kept = self.confirm(subject, match)
            if kept:
                found.append(kept)
            place = match.end() if kept else match.start() + 1
        return found

    def confirm(self, subject: str, match: re.Match[str]) -> Span | None:
        """Return where a match stands if what the rule wants beside its regex is there too."""
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
        return Span(start, end, *told)


def _check(name: str) -> Check:
    kind, _, argument = name.partition(":")
    check = VALIDATORS[kind]
    return lambda value: check(value, argument)
