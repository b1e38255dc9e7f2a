"""Ids: their form, and that they sort in the order in which they were made."""

import sys
import threading

from fake_clock import FakeClock

from gateway.clock import Ids

ALPHABET = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def test_an_id_is_a_prefix_and_a_ulid_of_its_time() -> None:
    made = Ids(FakeClock()).new("req")
    assert made.startswith("req_01HF7YAT00")  # the time, by the reference implementation
    assert len(made) == 30
    assert set(made[4:]) <= ALPHABET


def test_ids_of_one_millisecond_are_different_and_in_order_even_when_there_are_too_many() -> None:
    ids = Ids(FakeClock())
    made = [ids.new("a") for _ in range(1_100_000)]
    assert made == sorted(set(made))
    assert {one[:12] for one in made} == {"a_01HF7YAT00"}


def test_ids_stay_in_order_when_the_clock_goes_back() -> None:
    clock = FakeClock()
    ids = Ids(clock)
    made = [ids.new("a")]
    for move in (-60_000, -1, 60_001, 1, 0):
        clock.at += move
        made.append(ids.new("a"))
    assert made == sorted(set(made))


def test_two_processes_make_different_ids() -> None:
    clock = FakeClock()
    assert Ids(clock).new("a")[:-4] != Ids(clock).new("a")[:-4]


def test_threads_never_make_the_same_id_and_each_has_its_own_in_order() -> None:
    clock = FakeClock()
    ids = Ids(clock)
    made: list[list[str]] = [[] for _ in range(4)]

    def make(into: list[str]) -> None:
        for turn in range(50_000):
            clock.at += turn % 100 == 0
            into.append(ids.new("a"))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=make, args=(into,)) for into in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert all(into == sorted(into) for into in made)
    assert len({one for into in made for one in into}) == 200_000
