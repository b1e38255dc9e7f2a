"""The validation suite: attacks and benign texts with the verdict that each should have, run through a shield.

The texts lie in ``suite.json``. They are none of the rules' own examples, and no rule is made for them, so that they
tell how a rule set does on texts it has not seen. A case that today's rules are known to miss says `known_gap`: it is
counted only when asked for, and never a failure. Beside them, every rule's own true and false examples. Knows no store
and no console.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.shield import data_files
from gateway.shield.detections import Direction, Verdict
from gateway.shield.engine import Shield
from gateway.shield.obfuscate import OBFUSCATIONS

SUITE_FILE = "gateway/shield/suite.json"


class Expectation(StrEnum):
    """Which verdict a case should have: found is REVIEW or BLOCK, blocked is BLOCK, passes is ALLOW."""

    FOUND = "found"
    BLOCKED = "blocked"
    PASSES = "passes"


@dataclass(frozen=True, slots=True)
class Case:
    """One text of the suite.

    text: before the disguise. obfuscation: its name in `OBFUSCATIONS`, or None. language: ISO 639-1.
    """

    id: str
    category: str
    language: str
    expect: Expectation
    text: str
    direction: Direction = Direction.INBOUND
    obfuscation: str | None = None
    known_gap: bool = False

    @property
    def is_attack(self) -> bool:
        """Whether the text should be found; else it is a benign control."""
        return self.expect is not Expectation.PASSES

    def sent(self) -> str:
        """Return the text as it is scanned, disguised if the case says so."""
        return self.text if self.obfuscation is None else OBFUSCATIONS[self.obfuscation](self.text)

    def holds(self, verdict: Verdict) -> bool:
        """Tell whether a verdict is the expected one."""
        match self.expect:
            case Expectation.FOUND:
                return verdict is not Verdict.ALLOW
            case Expectation.BLOCKED:
                return verdict is Verdict.BLOCK
            case Expectation.PASSES:
                return verdict is Verdict.ALLOW


@dataclass(frozen=True, slots=True)
class SuiteFailure:
    """A case whose verdict is not the expected one, and the rules that matched."""

    case: str
    category: str
    language: str
    expected: Expectation
    verdict: Verdict
    score: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SuiteGroup:
    """What became of the cases of one category, or of one language."""

    name: str
    attacks: int
    found: int
    controls: int
    flagged: int


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """What one run of the suite brought.

    detection_rate: attacks with REVIEW or BLOCK, 0 to 1; false_positive_rate: controls with REVIEW or BLOCK. None when
    there was no such case. failures: without the known gaps, which are open or, by these rules, closed.
    unexercised: rules that no case matched, of the chosen category if there is one. p50_us, p95_us: of one scan.
    """

    cases: int
    attacks: int
    found: int
    detection_rate: float | None
    controls: int
    flagged: int
    false_positive_rate: float | None
    categories: tuple[SuiteGroup, ...]
    languages: tuple[SuiteGroup, ...]
    failures: tuple[SuiteFailure, ...]
    open_gaps: tuple[str, ...]
    closed_gaps: tuple[str, ...]
    unexercised: tuple[str, ...]
    p50_us: int
    p95_us: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    case: Case
    verdict: Verdict
    score: int
    rules: tuple[str, ...]
    elapsed_us: int

    @property
    def is_flagged(self) -> bool:
        return self.verdict is not Verdict.ALLOW

    @property
    def holds(self) -> bool:
        return self.case.holds(self.verdict)


def load_suite() -> tuple[Case, ...]:
    """Read the cases that come with the gateway, from a folder or from an archive.

    Raises:
        OSError: there is no such file.
    """
    rows = json.loads(data_files.read(SUITE_FILE))["cases"]
    return tuple(
        Case(**row | {"expect": Expectation(row["expect"]), "direction": Direction(row.get("direction", "inbound"))})
        for row in rows
    )


def chosen(category: str | None, *, include_known_gaps: bool, cases: Sequence[Case] | None = None) -> Sequence[Case]:
    """Return the cases, or those that come along, without other categories and known gaps."""
    return [
        case
        for case in (load_suite() if cases is None else cases)
        if (category is None or case.category == category) and (include_known_gaps or not case.known_gap)
    ]


def run_suite(
    shield: Shield,
    category: str | None = None,
    *,
    monotonic_seconds: Callable[[], float],
    include_known_gaps: bool = False,
    cases: Sequence[Case] | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> SuiteReport:
    """Scan every case, or those of one category, and compare the verdicts with the expected ones.

    cases: instead of those that come along. report: called before each with how many are done, and of how many.
    Nothing is recorded.
    """
    wanted = chosen(category, include_known_gaps=include_known_gaps, cases=cases)
    outcomes = []
    for done, case in enumerate(wanted):
        report(done, len(wanted))
        outcomes.append(_scan(shield, case, monotonic_seconds))
    exercised = {rule for outcome in outcomes for rule in outcome.rules}
    total = _group("", outcomes)
    elapsed_us = sorted(outcome.elapsed_us for outcome in outcomes)
    return SuiteReport(
        cases=len(outcomes),
        attacks=total.attacks,
        found=total.found,
        detection_rate=_rate(total.found, total.attacks),
        controls=total.controls,
        flagged=total.flagged,
        false_positive_rate=_rate(total.flagged, total.controls),
        categories=_groups(outcomes, lambda case: case.category),
        languages=_groups(outcomes, lambda case: case.language),
        failures=tuple(_failure(one) for one in outcomes if not one.holds and not one.case.known_gap),
        open_gaps=tuple(one.case.id for one in outcomes if one.case.known_gap and not one.holds),
        closed_gaps=tuple(one.case.id for one in outcomes if one.case.known_gap and one.holds),
        unexercised=tuple(
            rule.id for rule in shield.rules if rule.id not in exercised and category in (None, rule.category)
        ),
        p50_us=percentile(elapsed_us, 50),
        p95_us=percentile(elapsed_us, 95),
    )


def _scan(shield: Shield, case: Case, monotonic_seconds: Callable[[], float]) -> _Outcome:
    text = case.sent()
    shield.scan(text, case.direction)  # so that the time is not that of compiling a pattern at its first use
    started_seconds = monotonic_seconds()
    result = shield.scan(text, case.direction)
    elapsed_us = round((monotonic_seconds() - started_seconds) * 1_000_000)
    return _Outcome(case, result.verdict, result.score, tuple(one.rule for one in result.detections), elapsed_us)


def _failure(outcome: _Outcome) -> SuiteFailure:
    case = outcome.case
    return SuiteFailure(
        case.id, case.category, case.language, case.expect, outcome.verdict, outcome.score, outcome.rules
    )


def _groups(outcomes: Sequence[_Outcome], name_of: Callable[[Case], str]) -> tuple[SuiteGroup, ...]:
    parts: dict[str, list[_Outcome]] = {}
    for outcome in outcomes:
        parts.setdefault(name_of(outcome.case), []).append(outcome)
    return tuple(_group(name, parts[name]) for name in sorted(parts))


def _group(name: str, outcomes: Sequence[_Outcome]) -> SuiteGroup:
    attacks = [outcome.is_flagged for outcome in outcomes if outcome.case.is_attack]
    controls = [outcome.is_flagged for outcome in outcomes if not outcome.case.is_attack]
    return SuiteGroup(name, len(attacks), sum(attacks), len(controls), sum(controls))


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the smallest value that `percent` of all do not exceed; 0 of none."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0


@dataclass(frozen=True, slots=True)
class ExampleFailure:
    """An example that does not hold. must_match: whether it is one of `match` (else one of `pass`)."""

    rule: str
    example: str
    must_match: bool


@dataclass(frozen=True, slots=True)
class ExampleReport:
    """How many examples of how many rules were run, and which failed."""

    rules: int
    examples: int
    failures: tuple[ExampleFailure, ...]


def run_examples(shield: Shield) -> ExampleReport:
    """Scan every `match` and `pass` of every rule, in each direction the rule is for."""
    failures = []
    examples = 0
    for rule in shield.rules:
        for example, must_match in [(text, True) for text in rule.match] + [(text, False) for text in rule.passes]:
            examples += 1
            for direction in rule.direction:
                matched = any(one.rule == rule.id for one in shield.scan(example, direction).detections)
                if matched is not must_match:
                    failures.append(ExampleFailure(rule.id, example, must_match))
                    break
    return ExampleReport(len(shield.rules), examples, tuple(failures))
