"""Leases: one holder at a time, renewed by it, had by another when it is over, and no hostage of a wrong clock."""

import io

from fake_clock import FakeClock

from gateway.clock import SystemIds
from gateway.log import Log
from gateway.services.leases import Leases
from gateway.store.store import open_store


async def test_a_lease_has_one_holder_until_it_is_over() -> None:
    clock = FakeClock(1_800_000_000_000, None)
    ids = SystemIds(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    first, second = (Leases(store=store, clock=clock, ids=ids) for _ in range(2))
    try:
        assert await first.hold("sum", 10)
        assert not await second.hold("sum", 10)
        assert await second.hold("other", 10)
        clock.at += 8_000
        assert await first.hold("sum", 10)
        clock.at += 8_000
        assert not await second.hold("sum", 10)
        clock.at += 3_000
        assert await second.hold("sum", 10)
        assert not await first.hold("sum", 10)
        clock.at -= 3_600_000
        assert await first.hold("sum", 10)
    finally:
        await store.aclose()


async def test_a_lease_is_written_again_when_a_third_of_it_is_over() -> None:
    clock = FakeClock(1_800_000_000_000, None)
    ids = SystemIds(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    leases = Leases(store=store, clock=clock, ids=ids)
    ends = []
    try:
        for _ in range(8):
            assert await leases.hold("sum", 9)
            rows = await store.db.read(lambda tx: tx.query("SELECT until_at FROM leases"))
            ends.append(rows[0]["until_at"] - 1_800_000_000_000)
            clock.at += 1_000
    finally:
        await store.aclose()
    assert ends == [9_000, 9_000, 9_000, 12_000, 12_000, 12_000, 15_000, 15_000]
