"""The formulas of the posture score and the threat score."""

import pytest

from gateway.domain.alerts import Alert, AlertSource
from gateway.domain.posture import (
    DAY_MS,
    HALF_LIFE_MS,
    Activity,
    Check,
    CheckStatus,
    posture_score,
    threat_parts,
    threat_score,
)
from gateway.shield.detections import Severity

NOW_AT = 1_800_000_000_000


def check(status: CheckStatus, severity: Severity = Severity.MEDIUM) -> Check:
    return Check(id="x", title="x", category="x", severity=severity, status=status, evidence="x", why="x", fix="x")


def active(severity: Severity, last_seen_at: int) -> Alert:
    return Alert(
        id="alr_1",
        title="",
        description="",
        severity=severity,
        source=AlertSource.AUTH,
        rule="",
        fingerprint="",
        first_seen_at=last_seen_at,
        last_seen_at=last_seen_at,
    )


def test_posture_is_unknown_without_an_applicable_check() -> None:
    assert posture_score([]) is None
    assert posture_score([check(CheckStatus.NOT_APPLICABLE)]) is None


@pytest.mark.parametrize(
    ("checks", "score"),
    [
        ([check(CheckStatus.PASS)], 100),
        ([check(CheckStatus.WARN)], 50),
        ([check(CheckStatus.FAIL)], 0),
        ([check(CheckStatus.PASS), check(CheckStatus.NOT_APPLICABLE, Severity.CRITICAL)], 100),
        ([check(CheckStatus.PASS, Severity.CRITICAL), check(CheckStatus.FAIL, Severity.LOW)], 80),
        ([check(CheckStatus.PASS, Severity.HIGH), check(CheckStatus.FAIL, Severity.LOW)], 75),
    ],
)
def test_posture_weighs_each_check_by_its_severity(checks: list[Check], score: int) -> None:
    assert posture_score(checks) == score


def test_a_failing_critical_check_caps_the_posture_at_49() -> None:
    checks = [check(CheckStatus.FAIL, Severity.CRITICAL)] + [check(CheckStatus.PASS, Severity.HIGH)] * 20
    assert posture_score(checks) == 49
    assert posture_score([check(CheckStatus.WARN, Severity.CRITICAL)] + checks[1:]) == 97


def test_a_quiet_day_is_no_threat() -> None:
    assert threat_score(Activity(now_at=NOW_AT)) == 0


def test_the_limits_of_the_parts_add_up_to_one_hundred() -> None:
    parts = threat_parts(Activity(now_at=NOW_AT))
    assert [part.limit for part in parts] == [30, 25, 10, 15, 10, 10]


def test_everything_at_once_reaches_one_hundred_and_not_more() -> None:
    worst = Activity(
        now_at=NOW_AT,
        blocks_at=[NOW_AT] * 1000,
        alerts=[active(Severity.CRITICAL, NOW_AT)] * 100,
        auth_failures_at=[NOW_AT] * 1000,
        is_bypassed=True,
        budget_breaches_at=[NOW_AT] * 100,
        offline_share=1.0,
    )
    assert threat_score(worst) == 100


def test_a_flood_of_blocks_alone_gives_their_30_points_at_most() -> None:
    assert threat_score(Activity(now_at=NOW_AT, blocks_at=[NOW_AT] * 100_000)) == 30


def test_what_happened_six_hours_ago_counts_half() -> None:
    new = threat_parts(Activity(now_at=NOW_AT, blocks_at=[NOW_AT] * 10))[0]
    old = threat_parts(Activity(now_at=NOW_AT, blocks_at=[NOW_AT - HALF_LIFE_MS] * 20))[0]
    assert new.points == old.points == 15


def test_what_is_older_than_a_day_does_not_count() -> None:
    assert threat_score(Activity(now_at=NOW_AT, blocks_at=[NOW_AT - DAY_MS - 1] * 1000)) == 0


def test_times_in_the_future_count_as_now() -> None:
    later = threat_score(Activity(now_at=NOW_AT, blocks_at=[NOW_AT + DAY_MS] * 10))
    assert later == threat_score(Activity(now_at=NOW_AT, blocks_at=[NOW_AT] * 10))


def test_an_active_critical_alert_lifts_the_threat_to_51() -> None:
    assert threat_score(Activity(now_at=NOW_AT, alerts=[active(Severity.CRITICAL, NOW_AT - DAY_MS)])) == 51
    assert threat_score(Activity(now_at=NOW_AT, alerts=[active(Severity.HIGH, NOW_AT)])) < 51


def test_observing_instead_of_blocking_costs_15_points() -> None:
    assert threat_score(Activity(now_at=NOW_AT, is_bypassed=True)) == 15
