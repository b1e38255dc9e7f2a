"""The two scores of the security state: posture (the configuration) and threat (the events). Pure.

Posture = 100 x sum(weight x share) / sum(weight) over the applicable checks. The weight depends on the severity; the
share is 1 for pass, one half for warn and 0 for fail. A failing critical check caps the score at 49.

Threat has six parts, from the last 24 hours, whose limits add up to 100. Each event counts ``2 ** -(age / 6 h)``. A
part that counts events approaches its limit as ``1 - 2 ** -(sum / half)``, where `half` is the sum that gives half of
the limit. So many events of one kind cannot hide the absence of another kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.alerts import Alert
from gateway.shield.detections import Severity

DAY_MS = 86_400_000
MAX_RUNS = 100
KEPT_RUNS = 1000
HALF_LIFE_MS = 6 * 3_600_000
CRITICAL_FAILURE_CAP = 49
CRITICAL_ALERT_FLOOR = 51


class CheckStatus(StrEnum):
    """The result of a posture check."""

    PASS = "pass"  # noqa: S105 - a result, not a password
    WARN = "warn"
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Check:
    """One posture check with its result.

    evidence: the observation, without secrets. why: the risk. fix: the remedy. refs: standards or documentation.
    """

    id: str
    title: str
    category: str
    severity: Severity
    status: CheckStatus
    evidence: str
    why: str
    fix: str
    refs: tuple[str, ...] = ()


WEIGHTS: Mapping[Severity, float] = {
    Severity.CRITICAL: 10.0,
    Severity.HIGH: 7.5,
    Severity.MEDIUM: 5.0,
    Severity.LOW: 2.5,
}
_SHARES = {CheckStatus.PASS: 1.0, CheckStatus.WARN: 0.5, CheckStatus.FAIL: 0.0}


def posture_score(checks: Iterable[Check]) -> int | None:
    """Return the posture score 0 to 100, or None when no check applies."""
    checks = [check for check in checks if check.status is not CheckStatus.NOT_APPLICABLE]
    if not checks:
        return None
    reached = sum(WEIGHTS[check.severity] * _SHARES[check.status] for check in checks)
    score = round(100 * reached / sum(WEIGHTS[check.severity] for check in checks))
    if any(check.status is CheckStatus.FAIL and check.severity is Severity.CRITICAL for check in checks):
        return min(score, CRITICAL_FAILURE_CAP)
    return score


@dataclass(frozen=True, slots=True)
class Activity:
    """The events of the last 24 hours.

    blocks_at, auth_failures_at, budget_breaches_at: the time of each. alerts: the active ones. is_bypassed: whether the
    shield only observes or is bypassed. offline_share: of the instances, 0 to 1.
    """

    now_at: int
    blocks_at: Sequence[int] = ()
    alerts: Sequence[Alert] = ()
    auth_failures_at: Sequence[int] = ()
    is_bypassed: bool = False
    budget_breaches_at: Sequence[int] = ()
    offline_share: float = 0.0


@dataclass(frozen=True, slots=True)
class ThreatPart:
    """One part of the threat score. points: at most `limit`."""

    name: str
    points: float
    limit: int


_ALERT_WEIGHTS = {Severity.CRITICAL: 4.0, Severity.HIGH: 2.0, Severity.MEDIUM: 1.0, Severity.LOW: 0.5}


def threat_parts(activity: Activity) -> tuple[ThreatPart, ...]:
    """Return the six parts of the threat score, in the order of the contract."""
    now_at = activity.now_at
    alerts = sum(_ALERT_WEIGHTS[alert.severity] * _freshness(alert.last_seen_at, now_at) for alert in activity.alerts)
    shares = (
        ("blocks", 30, _saturated(_fresh_sum(activity.blocks_at, now_at), half=10)),
        ("active_alerts", 25, _saturated(alerts, half=4)),
        ("auth_failures", 10, _saturated(_fresh_sum(activity.auth_failures_at, now_at), half=20)),
        ("bypass", 15, 1.0 if activity.is_bypassed else 0.0),
        ("budget_breaches", 10, _saturated(_fresh_sum(activity.budget_breaches_at, now_at), half=3)),
        ("offline_instances", 10, min(max(activity.offline_share, 0.0), 1.0)),
    )
    return tuple(ThreatPart(name=name, points=round(limit * share, 2), limit=limit) for name, limit, share in shares)


def threat_score(activity: Activity) -> int:
    """Return the threat score 0 to 100. An active critical alert raises it to at least 51."""
    score = round(sum(part.points for part in threat_parts(activity)))
    if any(alert.severity is Severity.CRITICAL for alert in activity.alerts):
        score = max(score, CRITICAL_ALERT_FLOOR)
    return min(score, 100)


def _freshness(at: int, now_at: int) -> float:
    age_ms = max(now_at - at, 0)  # after a clock was set back, events count as new
    return 0.0 if age_ms > DAY_MS else float(2.0 ** -(age_ms / HALF_LIFE_MS))


def _fresh_sum(times_at: Iterable[int], now_at: int) -> float:
    return sum(_freshness(at, now_at) for at in times_at)


def _saturated(amount: float, *, half: float) -> float:
    return float(1.0 - 2.0 ** -(amount / half))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustAudit:
    """One run of all checks. score: the posture score, None when no check applied.

    settings_of: the id of the gateway whose settings were checked, or `this shell` when none ran; such a run is not
    stored. Empty in runs of earlier versions.
    """

    id: str
    occurred_at: int
    started_by: str
    settings_of: str
    score: int | None
    passed: int
    warned: int
    failed: int
    skipped: int
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class PosturePoint:
    """Both scores at one time. posture_score: None before the first trust audit."""

    occurred_at: int
    threat_score: int
    posture_score: int | None
