"""Leases: one holder at a time, renewed by it, had by another when it is over, and no hostage of a wrong clock."""

import io
from dataclasses import dataclass

from gateway.clock import SystemIds
from gateway.log import Log
from gateway.services.leases import Leases
from gateway.store.store import open_store


@dataclass
class FakeClock:
    at: int = 1_800_000_000_000

    def now_at(self) -> int:
        return self.at

    def now_ns(self) -> int:
        return self.now_at() * 1_000_000

    def monotonic_seconds(self) -> float:
        return self.at / 1000


async def test_a_lease_has_one_holder_until_it_is_over() -> None:
    clock = FakeClock()
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
