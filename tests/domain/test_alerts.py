"""States of an alert, and when a sighting is a new one."""

from dataclasses import replace

import pytest

from gateway.domain.alerts import (
    ACTIVE,
    MAX_EVIDENCE,
    MERGE_WITHIN_MS,
    REOPEN_WITHIN_MS,
    TERMINAL,
    Alert,
    AlertSource,
    AlertStatus,
    fingerprint,
    fold,
    move,
)
from gateway.errors import Conflict
from gateway.shield.detections import Severity

AT = 1_700_000_000_000


def alert(**changes: object) -> Alert:
    one = Alert(
        id="alr_1",
        title="Prompt blocked",
        description="",
        severity=Severity.HIGH,
        source=AlertSource.SHIELD,
        rule="ignore-previous",
        fingerprint=fingerprint("shield", "ignore-previous", "key_1"),
        first_seen_at=AT,
        last_seen_at=AT,
        request_id="req_1",
        evidence=({"n": 1},),
    )
    return replace(one, **changes)  # type: ignore[arg-type]


def seen(after_ms: int, **changes: object) -> Alert:
    at = AT + after_ms
    return alert(id="alr_2", first_seen_at=at, last_seen_at=at, request_id="req_2", evidence=({"n": 2},), **changes)


def test_a_first_sighting_is_the_alert() -> None:
    assert fold(None, seen(0)) == seen(0)


@pytest.mark.parametrize("status", [*ACTIVE, AlertStatus.FALSE_POSITIVE])
def test_a_sighting_within_ten_minutes_raises_the_count(status: AlertStatus) -> None:
    stands = fold(alert(status=status), seen(MERGE_WITHIN_MS - 1, severity=Severity.CRITICAL))
    assert (stands.id, stands.count, stands.status) == ("alr_1", 2, status)
    assert (stands.first_seen_at, stands.last_seen_at) == (AT, AT + MERGE_WITHIN_MS - 1)
    assert (stands.severity, stands.request_id) == (Severity.CRITICAL, "req_2")
    assert stands.evidence == ({"n": 1}, {"n": 2})


def test_a_milder_sighting_does_not_soften_an_alert() -> None:
    assert fold(alert(), seen(1, severity=Severity.LOW)).severity is Severity.HIGH


@pytest.mark.parametrize("status", [*ACTIVE, AlertStatus.FALSE_POSITIVE])
def test_a_sighting_after_ten_minutes_is_a_new_alert(status: AlertStatus) -> None:
    assert fold(alert(status=status), seen(MERGE_WITHIN_MS)).id == "alr_2"


def test_a_resolved_alert_reopens_within_a_day_of_its_resolution() -> None:
    resolved = alert(status=AlertStatus.RESOLVED, resolved_by="ann", resolved_at=AT + 1000, resolution="fixed")
    again = fold(resolved, seen(1000 + REOPEN_WITHIN_MS - 1))
    assert (again.id, again.status, again.count) == ("alr_1", AlertStatus.OPEN, 2)
    assert (again.resolved_by, again.resolved_at, again.resolution) == (None, None, None)


def test_a_resolved_alert_stays_resolved_after_a_day() -> None:
    resolved = alert(status=AlertStatus.RESOLVED, resolved_at=AT)
    assert fold(resolved, seen(REOPEN_WITHIN_MS)).id == "alr_2"


def test_a_suppressed_alert_counts_in_silence_until_its_end() -> None:
    quiet = alert(status=AlertStatus.SUPPRESSED, suppressed_until_at=AT + 10 * MERGE_WITHIN_MS)
    still = fold(quiet, seen(5 * MERGE_WITHIN_MS))
    assert (still.id, still.status, still.count) == ("alr_1", AlertStatus.SUPPRESSED, 2)
    over = fold(still, seen(10 * MERGE_WITHIN_MS))
    assert (over.id, over.status, over.count, over.suppressed_until_at) == ("alr_1", AlertStatus.OPEN, 3, None)


def test_an_alert_suppressed_without_end_never_opens_by_itself() -> None:
    assert fold(alert(status=AlertStatus.SUPPRESSED), seen(10**12)).status is AlertStatus.SUPPRESSED


def test_evidence_is_bounded_and_the_newest_is_kept() -> None:
    stands = alert()
    for number in range(MAX_EVIDENCE * 2):
        stands = fold(stands, seen(0) if number == 0 else replace(seen(0), evidence=({"n": number},)))
    assert len(stands.evidence) == MAX_EVIDENCE
    assert stands.evidence[-1] == {"n": MAX_EVIDENCE * 2 - 1}
    assert stands.count == 1 + MAX_EVIDENCE * 2


def test_a_clock_that_goes_back_does_not_move_the_last_sighting_back() -> None:
    assert fold(alert(), seen(-5000)).last_seen_at == AT


def test_an_alert_is_acknowledged_investigated_and_resolved() -> None:
    one = move(alert(), AlertStatus.ACKNOWLEDGED, who="ann", at=AT)
    two = move(one, AlertStatus.INVESTIGATING, who="bob", at=AT)
    three = move(two, AlertStatus.RESOLVED, who="cyd", at=AT + 5, note="fixed")
    assert (three.acknowledged_by, three.assigned_to, three.resolved_by) == ("ann", "bob", "cyd")
    assert (three.resolved_at, three.resolution) == (AT + 5, "fixed")


@pytest.mark.parametrize("status", ACTIVE)
@pytest.mark.parametrize("closed", TERMINAL)
def test_any_active_alert_can_be_closed(status: AlertStatus, closed: AlertStatus) -> None:
    assert move(alert(status=status), closed, who="ann", at=AT).status is closed


@pytest.mark.parametrize("closed", TERMINAL)
def test_a_closed_alert_can_be_opened_again_by_hand(closed: AlertStatus) -> None:
    again = move(alert(status=closed, resolved_by="ann", suppressed_until_at=AT), AlertStatus.OPEN, who="bob", at=AT)
    assert (again.status, again.resolved_by, again.suppressed_until_at) == (AlertStatus.OPEN, None, None)


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (AlertStatus.OPEN, AlertStatus.OPEN),
        (AlertStatus.ACKNOWLEDGED, AlertStatus.OPEN),
        (AlertStatus.INVESTIGATING, AlertStatus.ACKNOWLEDGED),
        (AlertStatus.RESOLVED, AlertStatus.ACKNOWLEDGED),
        (AlertStatus.FALSE_POSITIVE, AlertStatus.RESOLVED),
    ],
)
def test_a_step_that_is_not_in_the_table_is_a_conflict(status: AlertStatus, wanted: AlertStatus) -> None:
    with pytest.raises(Conflict) as refusal:
        move(alert(status=status), wanted, who="ann", at=AT)
    assert refusal.value.param == "status"


def test_every_state_is_either_active_or_terminal() -> None:
    assert set(ACTIVE) | set(TERMINAL) == set(AlertStatus)
    assert not set(ACTIVE) & set(TERMINAL)


def test_fingerprints_differ_by_each_of_their_parts() -> None:
    made = {fingerprint(*parts) for parts in (("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("a", "b", "\ud800"))}
    assert len(made) == 4
