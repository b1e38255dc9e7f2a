"""Scan a text: its normalized view and every decoded one, rules over each, one detection a rule, one score."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.shield.detections import Detection, Direction, ScanResult, Severity
from gateway.shield.matcher import Matcher
from gateway.shield.normalize import Normalizer
from gateway.shield.redact import MASKED_CATEGORIES, matched_of, redact_spans
from gateway.shield.rules import Rule, RuleSet
from gateway.shield.scoring import DEFAULT_POLICY, Policy, judge

BUDGET_RULE = "scan-budget"


@dataclass(frozen=True, slots=True)
class _Place:
    """A span in the text as sent where a rule matched, and the view it matched in."""

    start: int
    end: int
    view: str


class Shield:
    """A rule set, ready to scan. Immutable in effect: threads may share it."""

    __slots__ = ("_matcher", "_normalizer", "_ruleset")

    def __init__(self, ruleset: RuleSet, *, native: bool | None = None) -> None:
        """native: True for the C matcher, False for the one in Python, None for the first that is there."""
        self._ruleset = ruleset
        self._normalizer = Normalizer()
        self._matcher = Matcher(ruleset.rules, ruleset.plans, native=native)

    @property
    def rules(self) -> Sequence[Rule]:
        """Every rule, in the file's order."""
        return self._ruleset.rules

    @property
    def digest(self) -> str:
        """SHA-256 of the rule file."""
        return self._ruleset.digest

    @property
    def matcher(self) -> str:
        """``native`` or ``python``: which automaton runs."""
        return self._matcher.kind

    def scan(self, text: str, direction: Direction, policy: Policy = DEFAULT_POLICY) -> ScanResult:
        """Scan one text. Any `str` will do; the time is bounded by its length.

        Does not wait, does not keep the text.
        """
        places: dict[int, list[_Place]] = {}
        view = self._normalizer.normalize(text)
        matches = self._matcher.scan(view)
        for match in matches.found:
            rule = self.rules[match.rule]
            if direction in rule.direction and (policy.categories is None or rule.category in policy.categories):
                places.setdefault(match.rule, []).append(_Place(match.start, match.end, rule.view))
        detections = [self._detection(number, found, text) for number, found in places.items()]
        if matches.is_cut_short:
            detections.append(_over_budget(text))
        return judge(detections, policy, redacted=self._redacted(places, text, policy))

    def _detection(self, number: int, places: list[_Place], text: str) -> Detection:
        rule = self.rules[number]
        first = places[0]
        return Detection(
            rule=rule.id,
            name=rule.name,
            category=rule.category,
            severity=rule.severity,
            description=rule.description,
            matched=matched_of(text[first.start : first.end], rule.category),
            confidence=rule.confidence,
            score=0,
            count=len({(place.start, place.end) for place in places}),
            start=first.start,
            end=first.end,
            view=first.view,
            standards=rule.standards,
        )

    def _redacted(self, places: dict[int, list[_Place]], text: str, policy: Policy) -> str | None:
        spans = []
        for number, found in places.items():
            category = self.rules[number].category
            if category in MASKED_CATEGORIES or policy.category_actions.get(category) == "redact":
                spans += [(place.start, place.end) for place in found]
        return redact_spans(text, spans)


def _over_budget(text: str) -> Detection:
    return Detection(
        rule=BUDGET_RULE,
        name="Scan budget exceeded",
        category="encoding",
        severity=Severity.HIGH,
        description="The text holds so many beginnings of matches that not all of them could be tried.",
        matched="",
        confidence=1.0,
        score=0,
        count=1,
        start=0,
        end=len(text),
        view="text",
    )
