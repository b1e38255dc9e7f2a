"""The windows of 60 seconds: exact, also over processes, bounded, and never locked or wrong when a process dies."""

import fcntl
import math
import os
import random
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from gateway.auth.ratelimit import Admission
from gateway.store.database import StoreUnavailable
from gateway.store.rate_windows import CELLS, SLOTS, RateWindows


@pytest.fixture
def windows() -> Iterator[RateWindows]:
    made = RateWindows(sets=1)
    yield made
    made.close()


def in_child(work: Callable[[], object]) -> int:
    """Start a process that does `work` and return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def test_the_first_call_is_admitted_and_counted(windows: RateWindows) -> None:
    assert windows.admit("key_a", 3, 1000.0) == Admission(True, 3, 2, 60, 0)


def test_the_call_after_the_last_is_refused_until_the_first_is_a_minute_old(windows: RateWindows) -> None:
    for second in (0.0, 10.0, 20.0):
        assert windows.admit("key_a", 3, second).admitted
    assert windows.admit("key_a", 3, 30.0) == Admission(False, 3, 0, 30, 30)
    assert not windows.admit("key_a", 3, 59.999).admitted
    assert windows.admit("key_a", 3, 60.0) == Admission(True, 3, 0, 10, 0)
    assert not windows.admit("key_a", 3, 69.0).admitted


def test_rejected_calls_do_not_count(windows: RateWindows) -> None:
    windows.admit("key_a", 1, 0.0)
    for tenth in range(1, 600):
        assert not windows.admit("key_a", 1, tenth / 10).admitted
    assert windows.admit("key_a", 1, 60.0).admitted


def test_waits_are_whole_seconds_from_1_to_60(windows: RateWindows) -> None:
    windows.admit("key_a", 1, 0.0)
    assert windows.admit("key_a", 1, 0.0).retry_after_seconds == 60
    assert windows.admit("key_a", 1, 59.9999).retry_after_seconds == 1


def test_a_limit_of_nothing_admits_nothing(windows: RateWindows) -> None:
    assert windows.admit("key_a", 0, 0.0) == Admission(False, 0, 0, 60, 60)


def test_keys_do_not_share_a_window(windows: RateWindows) -> None:
    assert windows.admit("key_a", 1, 0.0).admitted
    assert windows.admit("key_b", 1, 0.0).admitted
    assert not windows.admit("key_a", 1, 1.0).admitted


@pytest.mark.parametrize("seed", range(5))
def test_a_call_is_refused_only_when_it_must_be(windows: RateWindows, seed: int) -> None:
    chance = random.Random(seed)
    limit, now, admitted = chance.randint(1, CELLS), 0.0, []
    for _ in range(20_000):
        now += chance.choice((0.0, 0.001, 0.05, 0.3, 20.0 if chance.random() < 0.01 else 0.0))
        before = sum(1 for one in admitted[-limit:] if one > now - 60)
        answer = windows.admit("key_a", limit, now)
        assert answer.admitted == (before < limit)
        if answer.admitted:
            admitted.append(now)
    assert all(later - earlier >= 60 for earlier, later in zip(admitted, admitted[limit:], strict=False))


@pytest.mark.parametrize("seed", range(5))
def test_every_answer_is_what_a_list_of_all_calls_tells(windows: RateWindows, seed: int) -> None:
    chance = random.Random(seed)
    limit, now, admitted = 50, 1e6 * chance.random(), []
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
        assert windows.admit("key_a", limit, now) == Admission(
            is_good, limit, left, min(reset, 60), 0 if is_good else wait
        )


@pytest.mark.parametrize("limit", [1, 5, CELLS, CELLS + 1, 2000])
def test_no_minute_ever_holds_more_than_the_limit(windows: RateWindows, limit: int) -> None:
    chance = random.Random(limit)
    admitted: deque[float] = deque()
    now_seconds = 50.0
    for _ in range(20_000):
        now_seconds += chance.random() * 120 / limit
        if windows.admit("key_a", limit=limit, now_seconds=now_seconds).admitted:
            while admitted and admitted[0] <= now_seconds - 60:
                admitted.popleft()
            admitted.append(now_seconds)
            assert len(admitted) <= limit


def test_a_large_limit_is_used_to_the_last_call_and_frees_at_most_a_quarter_second_late(windows: RateWindows) -> None:
    for number in range(3000):
        assert windows.admit("key_a", limit=3000, now_seconds=number / 1000).remaining == 2999 - number
    refused = windows.admit("key_a", limit=3000, now_seconds=3.0)
    assert (refused.admitted, refused.retry_after_seconds) == (False, 58)
    assert windows.admit("key_a", limit=3000, now_seconds=60.25).admitted
    for _ in range(2999):
        assert windows.admit("key_a", limit=3000, now_seconds=63.25).admitted
    assert not windows.admit("key_a", limit=3000, now_seconds=63.25).admitted


def test_a_limit_that_was_lowered_waits_for_enough_calls_to_leave(windows: RateWindows) -> None:
    for number in range(10):
        windows.admit("key_a", limit=10, now_seconds=float(number))
    refused = windows.admit("key_a", limit=2, now_seconds=10.0)
    assert (refused.admitted, refused.reset_seconds, refused.retry_after_seconds) == (False, 50, 58)
    assert windows.admit("key_a", limit=2, now_seconds=68.0).admitted


def test_a_limit_that_was_raised_never_overruns_the_ring(windows: RateWindows) -> None:
    for number in range(CELLS):
        assert windows.admit("key_a", limit=CELLS, now_seconds=number / 10).admitted
    for number in range(744):
        assert windows.admit("key_a", limit=1000, now_seconds=30 + number / 25).admitted
    assert not windows.admit("key_a", limit=1000, now_seconds=59.9).admitted


def test_a_process_whose_clock_reading_is_older_changes_nothing_for_the_better(windows: RateWindows) -> None:
    assert windows.admit("key_a", limit=2, now_seconds=100.0).admitted
    assert windows.admit("key_a", limit=2, now_seconds=99.9).admitted
    assert not windows.admit("key_a", limit=2, now_seconds=159.95).admitted
    assert windows.admit("key_a", limit=2, now_seconds=160.0).admitted


def test_a_key_that_rests_gives_its_slot_and_too_many_at_once_are_refused(windows: RateWindows) -> None:
    for number in range(SLOTS):
        assert windows.admit(f"key_{number}", limit=1, now_seconds=0.0).admitted
    with pytest.raises(StoreUnavailable):
        windows.admit("key_more", limit=1, now_seconds=59.0)
    assert not windows.admit("key_3", limit=1, now_seconds=59.0).admitted
    for number in range(SLOTS):
        assert windows.admit(f"other_{number}", limit=2, now_seconds=60.0).remaining == 1
    assert windows.admit("other_7", limit=2, now_seconds=60.0).remaining == 0


def test_processes_share_one_limit_exactly() -> None:
    windows = RateWindows()
    limit = 500
    reading, writing = os.pipe()

    def work() -> None:
        answers = [windows.admit("key_a", limit=limit, now_seconds=time.monotonic()) for _ in range(1000)]
        os.write(writing, sum(answer.admitted for answer in answers).to_bytes(4, "big"))

    children = [in_child(work) for _ in range(4)]
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
    parts = os.read(reading, 100)
    sums = [int.from_bytes(parts[at : at + 4], "big") for at in range(0, len(parts), 4)]
    assert len(sums) == 4
    assert sum(sums) == limit
    os.close(reading)
    os.close(writing)
    windows.close()


def test_a_process_killed_in_the_middle_leaves_no_lock_and_no_call_too_many() -> None:
    windows = RateWindows(sets=1)

    def work() -> None:
        while True:
            windows.admit("key_a", limit=10_000_000, now_seconds=time.monotonic())

    for _ in range(30):
        before = windows.admit("key_a", limit=10_000_000, now_seconds=time.monotonic()).remaining
        pid = in_child(work)
        while windows.admit("key_a", limit=10_000_000, now_seconds=time.monotonic()).remaining > before - 200:
            os.sched_yield()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        first = windows.admit("key_a", limit=10_000_000, now_seconds=time.monotonic())
        second = windows.admit("key_a", limit=10_000_000, now_seconds=time.monotonic())
        assert second.remaining == first.remaining - 1
    windows.close()


def test_a_lock_that_is_never_given_back_is_an_error_and_no_standstill(windows: RateWindows) -> None:
    reading, writing = os.pipe()

    def work() -> None:
        fcntl.lockf(windows._descriptor, fcntl.LOCK_EX, 1, 0)
        os.write(writing, b"x")
        signal.pause()

    pid = in_child(work)
    os.read(reading, 1)
    with pytest.raises(StoreUnavailable):
        windows.admit("key_a", limit=1, now_seconds=0.0)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert windows.admit("key_a", limit=1, now_seconds=0.0).admitted
    os.close(reading)
    os.close(writing)
