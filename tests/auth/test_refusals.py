"""How many refusals are worth a record of their own."""

from dataclasses import replace

from gateway.auth.refusals import AT_ONCE, KINDS, NAMED, WINDOW_SECONDS, Refusal, RefusalCounter

WRONG = Refusal("api_key_refused", "invalid_api_key", "192.0.2.1", "svc_012345")


def test_the_first_of_a_kind_is_recorded_at_once_and_the_others_are_summed() -> None:
    counter = RefusalCounter()
    assert [counter.add(WRONG, second, f"req_{second}") for second in (5.0, 6.0, 7.0)] == [True, False, False]
    assert counter.due_seconds == 5.0 + WINDOW_SECONDS
    total = counter.take()
    assert total is not None
    assert (total.repeated, total.others) == (((WRONG, 2, ("req_6.0", "req_7.0")),), 0)


def test_a_single_refusal_has_no_sum() -> None:
    counter = RefusalCounter()
    counter.add(WRONG, 0.0)
    assert counter.take() is None
    assert counter.due_seconds == float("inf")
    assert counter.take() is None


def test_a_new_window_records_at_once_again() -> None:
    counter = RefusalCounter()
    counter.add(WRONG, 0.0)
    counter.take()
    assert counter.add(WRONG, 10.0)
    assert counter.due_seconds == 20.0


def test_a_flood_of_kinds_takes_bounded_memory_and_few_records() -> None:
    counter = RefusalCounter()
    at_once = sum(counter.add(replace(WRONG, key_prefix=f"svc_{number:06x}"), 0.0) for number in range(10_000))
    total = counter.take()
    assert total is not None
    assert at_once == AT_ONCE
    assert len(total.repeated) == KINDS - AT_ONCE
    assert total.count + at_once == 10_000


def test_a_sum_names_the_first_requests_of_a_flood_and_no_more() -> None:
    counter = RefusalCounter()
    for number in range(10_000):
        counter.add(replace(WRONG, key_prefix=f"svc_{number % 100:06x}"), 0.0, f"req_{number}")
    total = counter.take()
    assert total is not None
    assert max(len(ids) for _, _, ids in total.repeated) == NAMED == len(total.others_ids)
