"""One rule, ready to be tried on a text: its regexes, what must stand near a match, and its checks. Finds no place."""

import re
from collections.abc import Callable
from typing import NamedTuple

from gateway.shield.anchors import Gate
from gateway.shield.literals import ALONE
from gateway.shield.plan import GATE_CHARS, Plan
from gateway.shield.validators import VALIDATORS

Check = Callable[[str], bool]
Compiled = Callable[[int, Callable[[Plan], str]], re.Pattern[str]]
Try = Callable[[str, int, int], re.Match[str] | None]
# A long text is searched in pieces, so that another thread never waits for long.
_PIECE_CHARS = 65_536


class Lead(NamedTuple):
    """What a literal leads to: a rule, how far before the literal its match may begin, and what must stand around it.

    literal: what must be compared, since the anchor does not say it all; else empty. rest, back: numbers of parts of
    the plan.
    """

    runner: "Runner"
    literal: str
    low: int
    high: int
    rest: int
    back: int


class Step(NamedTuple):
    """One thing to do where an anchor stands: a regex to be tried, and what to do if it matches.

    ahead: how far before the anchor's last character it is tried. then: pieces of which one must stand right behind the
    anchor, or None; end: where they end, behind its last character. Text beyond ASCII is in none of them. edge:
    characters of which none may be among the `far` before that place, or None. match: tries the regex, or is None when
    there is none to be tried first. reach_chars: how far the regex may read. lead: what it is tried for, or a signal
    word.
    """

    ahead: int
    then: Gate | None
    end: int
    edge: frozenset[str] | None
    far: int
    match: Try | None
    reach_chars: int
    lead: Lead | str


PlainStep = tuple[int, Gate | None, int, frozenset[str] | None, int, Try | None, int, Lead | str]


class Span(NamedTuple):
    """Where a rule matched, and the part of it that is reported: half-open spans in the rule's subject."""

    start: int
    end: int
    told: int
    told_end: int


class Runner:
    """One rule. Each of its regexes is made ready when it is first asked for, and their texts are not kept.

    plan: without its regexes. is_led_by_words: its plan
    says ``words``. alone: characters of which none stands before a match that begins with one of them. wanted_chars: as
    `Plan.value_chars`, of a rule that words lead to.
    """

    __slots__ = (
        "_are_at_word", "_checks", "_compiled", "_parts", "_regex",
        "alone", "is_led_by_words", "number", "on_text", "plan", "reach_chars",
        "wanted_chars",
    )  # fmt: skip

    def __init__(self, number: int, plan: Plan, *, view: str, validator: str | None, compiled: Compiled) -> None:
        """compiled: gives a regex of the rule of a number. It is told which one of the rule's plan."""
        self.number = number
        self.plan = plan.without_regexes()
        self._compiled = compiled
        self.reach_chars = plan.reach_chars
        self.on_text = view == "text"
        self.is_led_by_words = plan.how == "words"
        self.wanted_chars = plan.value_chars if self.on_text and self.is_led_by_words else 0
        self.alone = ALONE[plan.alone]
        self._are_at_word = tuple(part.startswith(r"\b") for part in plan.parts)
        self._regex: re.Pattern[str] | None = None
        self._parts: dict[int, Try] = {}
        self._checks = tuple(_check(name) for name in (validator or "").split("+") if name)

    @property
    def regex(self) -> re.Pattern[str]:
        """The rule's regex."""
        if self._regex is None:
            self._regex = self._compiled(self.number, lambda plan: plan.source)
        return self._regex

    @property
    def match(self) -> Try:
        """What tries the rule's regex at a place of the subject, up to an end."""
        return self.regex.match

    def part(self, number: int) -> Try:
        """Return what tries whether what must stand after a lead's literal, or backwards from it, does."""
        match = self._parts.get(number)
        if match is None:
            match = self._parts[number] = self._compiled(self.number, lambda plan: plan.parts[number]).match
        return match

    def before(self, number: int, letter: str) -> tuple[frozenset[str] | None, int]:
        """Return what may not stand before a letter from which a part is read backwards, None if anything may, and
        among how many characters.
        """
        is_at_word = self._are_at_word[number] and letter in ALONE["word"]
        edge, chars = ("word", 1) if is_at_word else self.plan.edges[number]
        return ALONE[edge] or None, chars

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


def _check(name: str) -> Check:
    kind, _, argument = name.partition(":")
    check = VALIDATORS[kind]
    return lambda value: check(value, argument)
