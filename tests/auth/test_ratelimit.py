"""The exact sliding window of 60 seconds."""

import math
import random

import pytest

from gateway.auth.ratelimit import EXACT_CALLS, Admission, LocalRateLimiter, RateWindow


def test_the_first_call_is_admitted_and_counted() -> None:
    assert RateWindow().admit(1000.0, 3) == Admission(True, 3, 2, 60, 0)


def test_the_call_after_the_last_is_refused_until_the_first_is_a_minute_old() -> None:
    window = RateWindow()
    for second in (0.0, 10.0, 20.0):
        assert window.admit(second, 3).admitted
    assert window.admit(30.0, 3) == Admission(False, 3, 0, 30, 30)
    assert not window.admit(59.999, 3).admitted
    assert window.admit(60.0, 3) == Admission(True, 3, 0, 10, 0)
    assert not window.admit(69.0, 3).admitted


def test_rejected_calls_do_not_count() -> None:
    window = RateWindow()
    window.admit(0.0, 1)
    for tenth in range(1, 600):
        assert not window.admit(tenth / 10, 1).admitted
    assert window.admit(60.0, 1).admitted


def test_waits_are_whole_seconds_from_1_to_60() -> None:
    window = RateWindow()
    window.admit(0.0, 1)
    assert window.admit(0.0, 1).retry_after_seconds == 60
    assert window.admit(59.9999, 1).retry_after_seconds == 1


def test_a_lowered_limit_waits_for_as_many_calls_to_leave_as_it_needs() -> None:
    window = RateWindow()
    for second in range(5):
        window.admit(float(second), 5)
    refused = window.admit(10.0, 2)
    assert (refused.reset_seconds, refused.retry_after_seconds) == (50, 53)
    assert not window.admit(62.9, 2).admitted
    assert window.admit(63.0, 2).admitted


def test_a_limit_of_nothing_admits_nothing() -> None:
    assert RateWindow().admit(0.0, 0) == Admission(False, 0, 0, 60, 60)


@pytest.mark.parametrize("seed", range(5))
def test_no_interval_of_sixty_seconds_ever_holds_more_than_the_limit(seed: int) -> None:
    chance = random.Random(seed)
    window, limit, now, admitted = RateWindow(), chance.randint(1, 700), 0.0, []
    for _ in range(20_000):
        now += chance.choice((0.0, 0.001, 0.05, 0.3, 20.0 if chance.random() < 0.01 else 0.0))
        before = sum(1 for one in admitted[-limit:] if one > now - 60)
        answer = window.admit(now, limit)
        assert answer.admitted == (before < limit)  # exact: refused only when it must be
        if answer.admitted:
            admitted.append(now)
    assert all(later - earlier >= 60 for earlier, later in zip(admitted, admitted[limit:], strict=False))


@pytest.mark.parametrize("seed", range(5))
def test_every_answer_is_what_a_list_of_all_calls_tells(seed: int) -> None:
    chance = random.Random(seed)
    window, limit, now, admitted = RateWindow(), 50, 1e6 * chance.random(), []
    for _ in range(5_000):
        now += chance.choice((0.0, 0.001, 0.3, chance.random(), 30.0 if chance.random() < 0.02 else 0.0))
        limit = chance.choice((0, 20, 50, 70)) if chance.random() < 0.01 else limit
        admitted = [one for one in admitted if one > now - 60]
        used = len(admitted)
        if used < limit:
            admitted.append(now)
        reset = math.ceil((admitted or [now])[0] + 60 - now)
        wait = math.ceil(admitted[used - limit] + 60 - now) if 0 < limit <= used else reset
        is_good = used < limit
        left = limit - used - 1 if is_good else 0
        assert window.admit(now, limit) == Admission(is_good, limit, left, min(reset, 60), 0 if is_good else wait)


def test_a_window_keeps_only_the_calls_of_the_last_minute() -> None:
    window = RateWindow()
    for call in range(100_000):
        window.admit(call * 0.1, 10_000_000)
    assert len(window._cells) < 3 * 600 + 600


def test_a_high_limit_takes_no_more_memory_for_more_calls_and_is_never_passed() -> None:
    window, limit, admitted = RateWindow(), EXACT_CALLS + 2_000, []
    for call in range(60_000):
        now = call * 0.002
        answer = window.admit(now, limit)
        if answer.admitted:
            admitted.append(now)
    assert len(window._cells) < 600
    assert all(later - earlier >= 60 for earlier, later in zip(admitted, admitted[limit:], strict=False))
    assert len(admitted) >= 2 * limit - 200  # a quarter of a second late at most


def test_keys_do_not_share_a_window() -> None:
    limiter = LocalRateLimiter()
    assert limiter.admit("key_a", limit=1, now_seconds=0.0).admitted
    assert limiter.admit("key_b", limit=1, now_seconds=0.0).admitted
    assert not limiter.admit("key_a", limit=1, now_seconds=1.0).admitted


def test_windows_without_a_call_of_the_last_minute_are_dropped() -> None:
    limiter = LocalRateLimiter()
    for number in range(5_000):
        limiter.admit(f"key_{number}", limit=5, now_seconds=float(number))
    assert len(limiter._windows) < 600


def test_a_full_window_survives_the_sweep() -> None:
    limiter = LocalRateLimiter()
    limiter.admit("key_full", limit=1, now_seconds=0.0)
    for number in range(1_000):
        limiter.admit(f"key_{number}", limit=1, now_seconds=1.0)
    assert not limiter.admit("key_full", limit=1, now_seconds=2.0).admitted
