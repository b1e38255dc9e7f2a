import pytest

from gateway.domain.policies import (
    UNSCANNABLE_RULE,
    ShieldPolicy,
    Unscannable,
    UnscannedPart,
    secrets_only,
    with_unscannable,
)
from gateway.shield.detections import Detection, Severity, Verdict
from gateway.shield.scoring import Policy, judge

HIGH = Detection("r", "R", "injection", Severity.HIGH, "d", "m", 1.0, 0, 1, 0, 1, "text")
NOTHING = judge(())
PARTS = (UnscannedPart("messages[0].content[1]", "image_url"), UnscannedPart("messages[2].content[0]", "file"))


@pytest.mark.parametrize(
    ("unscannable", "found", "verdict", "score"),
    [
        (Unscannable.ALLOW, (), Verdict.ALLOW, 0),
        (Unscannable.REVIEW, (), Verdict.REVIEW, 25),
        (Unscannable.REVIEW, (HIGH,), Verdict.REVIEW, 25),
        (Unscannable.BLOCK, (), Verdict.BLOCK, 60),
        (Unscannable.BLOCK, (HIGH,), Verdict.BLOCK, 60),
    ],
)
def test_parts_nobody_can_read_lift_the_verdict(
    unscannable: Unscannable, found: tuple[Detection, ...], verdict: Verdict, score: int
) -> None:
    result = with_unscannable(judge(found), PARTS, ShieldPolicy(unscannable=unscannable))
    assert (result.verdict, result.score) == (verdict, score)
    assert sum(detection.score for detection in result.detections) == score
    (part,) = [one for one in result.detections if one.rule == UNSCANNABLE_RULE]
    assert (part.place, part.count, part.view) == (PARTS[0].place, 2, "unread:file,image_url")


def test_a_text_without_such_parts_keeps_its_result() -> None:
    result = judge((HIGH,))
    assert with_unscannable(result, (), ShieldPolicy(unscannable=Unscannable.BLOCK)) is result


def test_the_thresholds_of_the_policy_hold() -> None:
    policy = ShieldPolicy(unscannable=Unscannable.REVIEW, scoring=Policy(block_at=40, review_at=10))
    assert with_unscannable(NOTHING, PARTS, policy).score == 10


def test_looking_for_secrets_alone_looks_for_nothing_a_policy_left_out() -> None:
    assert secrets_only(Policy()).categories == {"secret", "pii", "financial"}
    assert secrets_only(Policy(categories=frozenset({"secret", "injection"}))).categories == {"secret"}
