"""The sums of traffic: who makes them, and how many at a time."""

import io
from collections.abc import AsyncIterator

import pytest

from gateway.clock import Clock, Ids
from gateway.domain.traffic import TrafficRow
from gateway.log import Log
from gateway.services import traffic
from gateway.services.core import Core
from gateway.services.traffic import Traffic
from gateway.store.database import Transaction
from gateway.store.store import Store, open_store

ROWS = 4 * traffic._ROWS_AT_ONCE + 1


@pytest.fixture
async def store(tmp_path: object) -> AsyncIterator[Store]:
    clock = Clock()
    opened = await open_store(f"{tmp_path}/gateway.db", clock=clock, ids=Ids(clock), log=Log(io.StringIO(), clock))
    yield opened
    await opened.aclose()


def row(number: int, agent: str) -> TrafficRow:
    return TrafficRow(
        id=f"trf_{number}",
        occurred_at=number,
        request_id=f"req_{number}",
        operation="chat.completions",
        principal_id="key_1",
        verdict="ALLOW",
        score=0,
        agent=agent,
    )


async def put(store: Store, rows: int, agents: int) -> None:
    def work(tx: Transaction) -> None:
        for number in range(rows):
            store.traffic.insert(tx, row(number, f"agent-{number % agents}"))

    await store.db.write(work)


async def requests(store: Store) -> int:
    sums = await store.db.read(lambda tx: store.traffic.by_value(tx, "all", origin="production", since=0, until=10**9))
    return sum(one.requests for one in sums.values())


async def test_rows_that_came_all_at_once_are_added_a_part_at_a_time_within_a_second_or_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, ROWS, agents=3)
    size = traffic._ROWS_AT_ONCE
    summed: list[int] = []
    pauses: list[float] = []
    sums = Traffic(Core(store, Clock(), Ids(Clock())))

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await sums.keep_up()  # who else wants to finds that it is done already
        summed.append(await store.db.read(store.traffic.summed))

    monkeypatch.setattr(traffic.anyio, "sleep", pause)
    await sums.keep_up()
    assert summed == [size, 2 * size, 3 * size]
    assert pauses == [traffic._BEHIND_SECONDS / parts for parts in (3, 2, 1)]
    assert await requests(store) == 4 * size
    assert await sums.is_behind()
    await sums.keep_up()
    assert await requests(store) == ROWS
    assert not await sums.is_behind()


async def test_who_keeps_up_leaves_the_rest_for_later_when_time_is_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, ROWS, agents=3)
    monkeypatch.setattr(traffic, "_KEEP_UP_SECONDS", 0.0)
    sums = Traffic(Core(store, Clock(), Ids(Clock())))
    await sums.keep_up()
    assert await requests(store) == traffic._ROWS_AT_ONCE
    assert await sums.advance() == ROWS - traffic._ROWS_AT_ONCE
    assert await requests(store) == ROWS
