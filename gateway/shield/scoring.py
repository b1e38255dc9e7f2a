"""From detections to a score and a verdict, so that the total can be added up by hand. Finds nothing itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from gateway.shield.detections import Detection, Effect, ScanResult, Severity, Verdict

POINTS: Mapping[Severity, int] = {Severity.CRITICAL: 60, Severity.HIGH: 25, Severity.MEDIUM: 10, Severity.LOW: 3}
# It looks at the whole text, so it overlaps with no rule.
MODEL_RULE = "attack-model"
MODEL_SAYS = ("Resembles known attacks", "Its words are those of attacks.")
HIGHEST_SCORE = 100
# A low rule of these says which words a text has, and not what it means: the attack model weighs that.
WORDING = frozenset({"injection", "jailbreak", "extraction", "indirect", "social_engineering", "tool_abuse"})
Action = Literal["block", "review", "allow", "redact"]
_OF_NOTHING = {verdict: ScanResult(verdict, 0) for verdict in Verdict}
_ALLOWED = _OF_NOTHING[Verdict.ALLOW]
_ACTION_POINTS: Mapping[str, int] = {"block": 60, "review": 25, "allow": 0, "redact": 0}


@dataclass(frozen=True, slots=True)
class Policy:
    """What a score means for one key.

    block_at, review_at: least scores for BLOCK and REVIEW. category_actions: another weight for a category: ``block``
    60 points, ``review`` 25, ``allow`` and ``redact`` none; the matches of a category under ``redact`` are masked.
    A hint (a low rule of `WORDING`) is worth no more than its 3 points under any of them.
    categories: the only categories whose rules are scanned for, or None for all.
    """

    block_at: int = 60
    review_at: int = 25
    category_actions: Mapping[str, Action] = field(default_factory=dict)
    categories: frozenset[str] | None = None


DEFAULT_POLICY = Policy()


def judge(
    detections: Iterable[Detection], policy: Policy = DEFAULT_POLICY, *, redacted: str | None = None
) -> ScanResult:
    """Give every detection its share of the score and draw the verdict from the sum.

    A rule counts once over all places. Of detections of one category that overlap in one place the strongest counts;
    the attack model, which looks at the whole text, overlaps with none. What does not count, and what an acceptance
    covers, stays in the list with a score of 0. Last, a detection whose effect is REVIEW or VETO lifts the sum to that
    threshold. The answer does not depend on the order of `detections`.
    """
    weighed = sorted(((_points(detection, policy), detection) for detection in detections), key=_strength)
    total = 0
    rules: set[str] = set()
    taken: dict[tuple[str, str], list[tuple[int, int]]] = {}
    shares = []
    for points, detection in weighed:
        kind = MODEL_RULE if detection.rule == MODEL_RULE else detection.category
        spans = taken.setdefault((kind, detection.place), [])
        overlaps = any(detection.start < end and start < detection.end for start, end in spans)
        share = 0
        if points and not overlaps:
            spans.append((detection.start, detection.end))
            share = 0 if detection.rule in rules else min(points, HIGHEST_SCORE - total)
            rules.add(detection.rule)
            total += share
        shares.append(detection if share == detection.score else replace(detection, score=share))
    lifts = {Effect.VETO: policy.block_at, Effect.REVIEW: policy.review_at}
    for effect, least in lifts.items():
        at = next((at for at, one in enumerate(shares) if one.effect is effect and one.accepted is None), None)
        if at is not None and total < least:
            shares.insert(0, replace(shares.pop(at), score=least - total))
            total = least
    return ScanResult(verdict_of(total, policy), total, tuple(shares), redacted)


def nothing_found(policy: Policy) -> ScanResult:
    """Return what `judge` says of no detections."""
    if policy.block_at > 0 and policy.review_at > 0:
        return _ALLOWED
    return _OF_NOTHING[verdict_of(0, policy)]


def verdict_of(score: int, policy: Policy = DEFAULT_POLICY) -> Verdict:
    """Hold a score against the policy's two thresholds."""
    if score >= policy.block_at:
        return Verdict.BLOCK
    return Verdict.REVIEW if score >= policy.review_at else Verdict.ALLOW


def combine(results: Sequence[ScanResult], policy: Policy = DEFAULT_POLICY) -> ScanResult:
    """Judge the detections of several places together: each rule counts once over all of them.

    The detections must carry their places. Redacted texts belong to single results; the answer has none.
    """
    return judge((detection for result in results for detection in result.detections), policy)


def _points(detection: Detection, policy: Policy) -> int:
    if detection.accepted is not None:
        return 0
    if detection.effect is not None:
        return detection.points if detection.effect is Effect.POINTS else 0
    return points_of(detection.category, detection.severity, policy)


def points_of(category: str, severity: Severity, policy: Policy) -> int:
    """Return what one match of a rule counts for."""
    action = policy.category_actions.get(category)
    if action is None:
        return POINTS[severity]
    is_hint = severity is Severity.LOW and category in WORDING
    return min(_ACTION_POINTS[action], POINTS[severity]) if is_hint else _ACTION_POINTS[action]


def _strength(weighed: tuple[int, Detection]) -> tuple[int | float | str, ...]:
    """Sort key: strongest first, then by place in the text, then by rule so that no order is left to chance."""
    points, detection = weighed
    place = (detection.place, detection.start, detection.end)
    rule = (detection.rule, detection.category, detection.view)
    return -points, -POINTS[detection.severity], -detection.confidence, *place, *rule
