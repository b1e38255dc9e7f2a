"""The score can be added up by hand."""

import random
from dataclasses import replace

import pytest

from gateway.shield import Detection, Policy, Severity, combine, judge


def _detection(rule: str, severity: str = "high", start: int = 0, **fields: object) -> Detection:
    one = Detection(
        rule=rule,
        name=rule,
        category="injection",
        severity=Severity(severity),
        description="",
        matched="",
        confidence=0.9,
        score=0,
        count=1,
        start=start,
        end=start + 5,
        view="normalized",
    )
    return replace(one, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("severities", "score", "verdict"),
    [
        ([], 0, "ALLOW"),
        (["low"], 3, "ALLOW"),
        (["medium", "medium"], 20, "ALLOW"),
        (["high"], 25, "REVIEW"),
        (["high", "high"], 50, "REVIEW"),
        (["high", "high", "medium"], 60, "BLOCK"),
        (["high"] * 3, 75, "BLOCK"),
        (["critical"], 60, "BLOCK"),
        (["critical", "high", "medium", "low"], 98, "BLOCK"),
        (["critical", "critical"], 100, "BLOCK"),
    ],
)
def test_score_is_the_sum_of_the_severities(severities: list[str], score: int, verdict: str) -> None:
    result = judge(_detection(f"r{place}", name, place * 10) for place, name in enumerate(severities))
    assert (result.score, result.verdict) == (score, verdict)
    assert sum(one.score for one in result.detections) == score
    assert len(result.detections) == len(severities)


def test_overlapping_matches_of_one_category_count_as_the_strongest() -> None:
    weak, strong = _detection("weak", "medium", 3), _detection("strong", "high", 0)
    other = _detection("other", "medium", 3, category="jailbreak")
    result = judge([weak, other, strong])
    assert {one.rule: one.score for one in result.detections} == {"strong": 25, "other": 10, "weak": 0}
    assert [one.rule for one in result.detections] == ["strong", "other", "weak"]


def test_matches_side_by_side_both_count() -> None:
    assert judge([_detection("a", start=0), _detection("b", start=5)]).score == 50


def test_rule_counts_once_over_all_places() -> None:
    results = [
        judge([_detection("a", place="messages[0]")]),
        judge([_detection("a", place="messages[1]"), _detection("b", "medium", place="messages[1]")]),
    ]
    combined = combine(results)
    assert combined.score == 25
    assert sorted(one.score for one in combined.detections) == [0, 0, 25]


def test_accepted_match_does_not_count_but_stays() -> None:
    result = judge([_detection("a", "critical", accepted="ra_1")])
    assert (result.score, len(result.detections)) == (0, 1)


def test_policy_gives_categories_another_weight() -> None:
    one = [_detection("a", "medium")]
    for action, score in (("block", 60), ("review", 25), ("allow", 0), ("redact", 0)):
        assert judge(one, Policy(category_actions={"injection": action})).score == score  # type: ignore[dict-item]


def test_a_hint_keeps_its_three_points_under_a_policy_and_a_low_fact_does_not() -> None:
    hint, fact = [_detection("a", "low")], [_detection("mail", "low", category="pii")]
    for action, of_hint, of_fact in (("block", 3, 60), ("review", 3, 25), ("allow", 0, 0), ("redact", 0, 0)):
        policy = Policy(category_actions={"injection": action, "pii": action})  # type: ignore[dict-item]
        assert (judge(hint, policy).score, judge(fact, policy).score) == (of_hint, of_fact)


def test_policy_moves_the_thresholds() -> None:
    one = [_detection("a", "medium")]
    assert judge(one, Policy(block_at=10)).verdict == "BLOCK"
    assert judge(one, Policy(review_at=10)).verdict == "REVIEW"


def test_order_of_detections_changes_nothing() -> None:
    dice = random.Random(4)
    many = [
        _detection(f"r{dice.randrange(8)}", dice.choice(list(Severity)), dice.randrange(30), category=dice.choice("ab"))
        for _ in range(30)
    ]
    expected = judge(many)
    for _ in range(20):
        dice.shuffle(many)
        assert judge(many) == expected
