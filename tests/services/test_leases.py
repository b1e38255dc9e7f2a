"""Leases: one holder at a time, renewed by it, had by another when it is over, and no hostage of a wrong clock."""

import io

import anyio
import pytest
from anyio.abc import TaskStatus
from fake_clock import FakeClock

from gateway.clock import Ids
from gateway.log import Log
from gateway.services.leases import Leases
from gateway.store.database import LeaseLost
from gateway.store.store import open_store


async def test_a_lease_has_one_holder_until_it_is_over() -> None:
    clock = FakeClock(1_800_000_000_000, None)
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    first, second = (Leases(store=store, ids=ids) for _ in range(2))
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
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    leases = Leases(store=store, ids=ids)
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


async def test_the_number_of_a_lease_rises_with_each_other_holder_alone() -> None:
    clock = FakeClock(1_800_000_000_000, None)
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    numbers = []
    try:
        first, second = (Leases(store=store, ids=ids) for _ in range(2))
        for holder in (first, first, second, first):
            lease = await holder.hold("sum", 10)
            numbers.append(lease and lease.number)
            clock.at += 10_000
    finally:
        await store.aclose()
    assert numbers == [1, 1, 2, 3]


async def test_a_process_that_wakes_up_after_another_took_its_lease_writes_nothing() -> None:
    clock = FakeClock(1_800_000_000_000, None)
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    paused, other = (Leases(store=store, ids=ids) for _ in range(2))

    async def write(name: str) -> None:
        await store.db.write(lambda tx: store.meta.set(tx, name, "written"))

    async def in_a_task(*, task_status: TaskStatus[None]) -> None:
        await write("in a task")

    try:
        lease = await paused.hold("sum", 10)
        assert lease is not None
        with paused.guard(lease):
            await write("before")
            clock.at += 10_000
            assert await other.hold("sum", 10)
            with pytest.raises(LeaseLost, match="sum"):
                await write("after")
            store.db.write_behind(lambda tx: store.meta.set(tx, "behind", "written"))
            async with anyio.create_task_group() as group:
                with pytest.raises(LeaseLost):
                    await group.start(in_a_task)
            assert await paused.hold("sum", 10) is None
            clock.at += 10_000
            assert await paused.hold("sum", 10) is None  # what this round knows is old: the next round may take it
        assert await paused.hold("sum", 10)
        await write("outside")
        rows = await store.db.read(lambda tx: tx.query("SELECT name FROM meta WHERE value = 'written' ORDER BY name"))
    finally:
        await store.aclose()
    assert [row["name"] for row in rows] == ["before", "outside"]
