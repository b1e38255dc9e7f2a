"""One rule, ready to be tried on a text: its regexes, what must stand near a match, and its checks. Finds no place."""

import re
from collections.abc import Callable
from typing import NamedTuple

from gateway.shield.plan import EDGE, GATE_CHARS, Plan
from gateway.shield.validators import VALIDATORS

Check = Callable[[str], bool]
Compiled = Callable[[int, str], re.Pattern[str]]
# A long text is searched in pieces, so that another thread never waits for long.
_PIECE_CHARS = 65_536
_Part = Callable[[str, int], re.Match[str] | None]
_Try = Callable[[str, int, int], re.Match[str] | None]


class Span(NamedTuple):
    """Where a rule matched, and the part of it that is reported: half-open spans in the rule's subject."""

    start: int
    end: int
    told: int
    told_end: int


class Runner:
    """One rule. Each of its regexes is made ready at the first try.

    first: tries the plan's guard, else the match itself, at a place of the subject, up to an end. is_guarded: what
    `first` finds is still to be tried by `match`. alone: the plan's, where the automaton's text shows what stands
    before.
    """

    __slots__ = (
        "_checks",
        "_compiled",
        "_parts",
        "_search",
        "_starts",
        "alone",
        "first",
        "is_guarded",
        "match",
        "number",
        "on_text",
        "plan",
        "reach_chars",
    )

    def __init__(self, number: int, plan: Plan, *, view: str, validator: str | None, compiled: Compiled) -> None:
        """compiled: gives a regex of the rule of a number."""
        self.number = number
        self.plan = plan
        self._compiled = compiled
        self.reach_chars = plan.reach_chars
        self.on_text = view == "text"
        # Where the automaton reads the very text the regex does, a place inside a word need not be tried.
        self.alone = plan.alone if plan.how == "tokens" or not self.on_text else ""
        self.is_guarded = bool(plan.guard)
        self.first: _Try = self._first_guard if plan.guard else self._first_match
        self.match: _Try = self._first_match
        self._search: _Try = self._first_search
        self._starts: re.Pattern[str] | None = None
        self._parts: dict[int, _Part] = {}
        self._checks = tuple(_check(name) for name in (validator or "").split("+") if name)

    def _compile(self) -> None:
        regex = self._compiled(self.number, self.plan.source)
        self.match, self._search = regex.match, regex.search
        if not self.is_guarded:
            self.first = regex.match

    def _first_guard(self, subject: str, start: int, end: int) -> re.Match[str] | None:
        self.first = self._compiled(self.number, self.plan.guard).match
        return self.first(subject, start, end)

    def _first_match(self, subject: str, start: int, end: int) -> re.Match[str] | None:
        self._compile()
        return self.match(subject, start, end)

    def _first_search(self, subject: str, start: int, end: int) -> re.Match[str] | None:
        self._compile()
        return self._search(subject, start, end)

    def part(self, number: int) -> _Part:
        """Return what tries whether what must stand after a lead's literal, or backwards from it, does."""
        match = self._parts.get(number)
        if match is None:
            match = self._parts[number] = self._compiled(self.number, self.plan.parts[number]).match
        return match

    def search(self, subject: str, low: int, high: int) -> list[Span]:
        """Return all matches that begin in low..high and do not overlap."""
        reach, starts = self.reach_chars, self._starts
        is_edge = self.plan.starts.startswith(EDGE)
        if starts is None and self.plan.starts:
            starts = self._starts = self._compiled(self.number, self.plan.starts)
        found = []
        place = max(low, 0)
        if place == 0 and is_edge:
            # Nothing stands before the first character.
            match = self.match(subject, 0, reach)
            kept = match and self.confirm(subject, match)
            if match and kept:
                found.append(kept)
                place = match.end()
            else:
                place = 1
        while place <= high:
            last = min(high, place + _PIECE_CHARS)
            if starts is None:
                match = self._search(subject, place, last + reach)
                if match is None or match.start() > last:
                    place = last + 1
                    continue
            else:
                # The edge of a word is searched for by the character before it.
                begun = starts.search(subject, place - is_edge, last + reach)
                if begun is None or begun.start("begin") > last:
                    place = last + 1
                    continue
                start = begun.start("begin")
                match = self.match(subject, start, start + reach)
                if match is None:
                    place = start + 1
                    continue
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
