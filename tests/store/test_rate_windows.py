"""The windows that processes share: exact over processes, bounded, and never left locked or wrong by who dies."""

import fcntl
import os
import random
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from gateway.auth.ratelimit import LocalRateLimiter
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


def test_it_says_what_the_window_of_one_process_says(windows: RateWindows) -> None:
    local = LocalRateLimiter()
    chance = random.Random(7)
    now_seconds = 1000.0
    for _ in range(5000):
        now_seconds += chance.choice((0.0, 0.01, 0.5, 3.0, 20.0))
        key_id, limit = chance.choice((("key_a", 3), ("key_b", 60), ("key_c", CELLS)))
        shared = windows.admit(key_id, limit=limit, now_seconds=now_seconds)
        assert shared == local.admit(key_id, limit=limit, now_seconds=now_seconds)


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
