"""One pattern of a rule, ready to be tried on a text: its regex, what must stand near a match, and its checks."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from gateway.shield.plan import GATE_CHARS, Plan
from gateway.shield.validators import VALIDATORS

# A long text is searched in pieces, so that another thread never waits for long.
_PIECE_CHARS = 65_536


class Span(NamedTuple):
    """Where a rule matched, and the part of it that is reported: half-open spans in the rule's subject."""

    start: int
    end: int
    told: int
    told_end: int


class Runner:
    """One pattern. Its regex is made when it is first tried, and its text is not kept.

    number: of its plan. plan: without the regex. on_text: whether it is tried on the text as sent. alone: as of `Plan`.
    """

    __slots__ = ("_checks", "_read", "_regex", "alone", "number", "on_text", "plan", "reach_chars")

    def __init__(
        self, number: int, plan: Plan, *, view: str, validator: str | None, read: Callable[[int], str]
    ) -> None:
        """read: returns the regex of the plan of a number."""
        self.number = number
        self.plan = replace(plan, source="")
        self.on_text = view == "text"
        self.reach_chars = plan.reach_chars
        self.alone = frozenset(plan.alone)
        self._read = read
        self._regex: re.Pattern[str] | None = None
        self._checks = tuple(_check(name) for name in (validator or "").split("+") if name)

    @property
    def regex(self) -> re.Pattern[str]:
        """The regex."""
        if self._regex is None:
            self._regex = compile_regex(self._read(self.number))
        return self._regex

    def search(self, subject: str, low: int, high: int) -> list[Span]:
        """Return all matches that begin in low..high and do not overlap."""
        reach, searches = self.reach_chars, self.regex.search
        found, place = list[Span](), max(low, 0)
        while place <= high:
            last = min(high, place + _PIECE_CHARS)
            match = searches(subject, place, last + reach)
            if match is None or match.start() > last:
                place = last + 1
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


def compile_regex(source: str) -> re.Pattern[str]:
    """Compile the regex of a plan."""
    return re.compile(source, re.ASCII)


def _check(name: str) -> Callable[[str], bool]:
    kind, _, argument = name.partition(":")
    check = VALIDATORS[kind]
    return lambda value: check(value, argument)
