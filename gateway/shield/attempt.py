"""What one scan of one view has tried and found so far, and what is left of its budget. Finds no literal."""

import re
from typing import NamedTuple

from gateway.shield.detections import Direction
from gateway.shield.layout import CHARS_PER_TRY
from gateway.shield.normalize import LONGEST_FOLD_CHARS, View
from gateway.shield.patterns import LEAST_VALUE_CHARS, is_value_char
from gateway.shield.runner import Lead, Runner, Span
from gateway.shield.shapes import Shapes

_DIGITS_PER_TRY = 256
_VALUES = bytes(48 if is_value_char(chr(byte)) else 46 for byte in range(256))
_LONG_VALUE = b"0" * LEAST_VALUE_CHARS


class Match(NamedTuple):
    """One match of the rule at place `rule` of the rule set; start, end: its half-open span in the view's source."""

    rule: int
    start: int
    end: int


class Matches(NamedTuple):
    """Every match in one view, by rule and place. signals: signal words that stand there.

    is_cut_short: the budget ran out somewhere, so that matches may be missing.
    """

    found: tuple[Match, ...]
    signals: frozenset[str]
    is_cut_short: bool


_NOTHING_FOUND = Matches((), frozenset(), False)


class Attempt:
    """One scan under way.

    direction: which rules are wanted, or None for all. budget: for each block. left: what may still be spent on the
    one at hand; below 0 it is cut short. windows: where the matches of a rule may begin, to be searched at the end.
    has_digits, has_values: whether a digit, or a long value, may stand somewhere in the view.
    """

    __slots__ = (
        "_matches",
        "_with_text_rules",
        "budget",
        "direction",
        "has_digits",
        "has_values",
        "is_cut_short",
        "left",
        "signals",
        "subject",
        "view",
        "windows",
    )

    def __init__(
        self,
        view: View,
        shapes: Shapes | None = None,
        *,
        with_text_rules: bool,
        direction: Direction | None = None,
        budget: int = 0,
    ) -> None:
        """shapes: of `view.source`, if they are known."""
        self.view = view
        self.direction = direction
        self.subject = view.text
        self.left = 0
        self.budget = budget
        self.signals: set[str] = set()
        self.is_cut_short = False
        self.has_digits = self.has_values = True
        if shapes is not None and view.is_even and not view.others:
            # Where all is ASCII and nothing was left out, the view has what its source has.
            self.has_digits, self.has_values = shapes.has_digits, shapes.has_values
        self._with_text_rules = with_text_rules
        self._matches: dict[Runner, list[Span]] = {}
        self.windows: dict[Runner, list[tuple[int, int]]] = {}

    def follow(self, lead: Lead, place: int) -> None:
        """Try the rule that a literal at a place leads to."""
        runner, subject = lead.runner, self.subject
        if runner.on_text:
            if not self._with_text_rules:
                return
            if runner.is_led_by_words:
                chars = runner.wanted_chars
                if chars and not (self.has_values and self.holds_value(place, max(lead.high, 0), chars - lead.low)):
                    return
                place = self.view.position(place)
            subject = self.view.source
        self.left -= 1
        if lead.low != lead.high:
            if not lead.rest or runner.part(lead.rest)(subject, place, place + runner.reach_chars):
                self.lead_within(lead, subject, place)
            return
        start = place - lead.low
        if start < 0 or (start and subject[start] in runner.alone and subject[start - 1] in runner.alone):
            return
        match = runner.match(subject, start, start + runner.reach_chars)
        if match:
            self.keep(runner, subject, match)

    def holds_value(self, place: int, before: int, behind: int) -> bool:
        """Tell whether a long value stands so far before or behind a place of the normalized view.

        There a match is no longer than in the text as sent, but for characters that fold to several.
        """
        widest = LONGEST_FOLD_CHARS if self.view.others else 1
        start, end = place - widest * before, place + widest * max(behind, 0)
        near = self.subject[start if start > 0 else 0 : end]
        return near.encode("ascii", "replace").translate(_VALUES).find(_LONG_VALUE) >= 0

    def keep(self, runner: Runner, subject: str, match: re.Match[str]) -> None:
        """Note a match of a rule's regex, unless the rule wants more than that."""
        found = runner.confirm(subject, match)
        if found:
            self._matches.setdefault(runner, []).append(found)

    def lead_within(self, lead: Lead, subject: str, place: int) -> None:
        """Note that a match may begin low..high characters before a literal, if what stands before it fits too."""
        runner, low, high = lead.runner, lead.low, lead.high
        if lead.back and not runner.part(lead.back)(_backwards(subject, place, high), 1, high + 2):
            return
        windows = self.windows.setdefault(runner, [])
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
        subject = self.subject
        if runner.on_text:
            subject = self.view.source
            if runner.plan.how == "digits":
                start, end = self.view.span(start, end)
        self._matches.setdefault(runner, []).extend(runner.search(subject, start, end))

    def finish(self) -> Matches:
        """Search the windows, drop overlapping matches of one rule, and lead all spans back to the source."""
        if not (self.windows or self._matches or self.signals or self.is_cut_short):
            return _NOTHING_FOUND
        for runner, windows in self.windows.items():
            subject = self.view.source if runner.on_text else self.subject
            for low, high in merge_windows(windows):
                self._matches.setdefault(runner, []).extend(runner.search(subject, low, high))
        if not self._matches:
            return Matches((), frozenset(self.signals), self.is_cut_short)
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


def _backwards(subject: str, place: int, chars: int) -> str:
    """Return what stands at a place, and up to `chars` + 1 characters before it, the last first."""
    end = place - chars - 2
    return subject[place : end if end >= 0 else None : -1]


def merge_windows(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join windows that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(windows):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
