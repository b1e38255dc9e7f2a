"""Rows that are written first and indexed later: seen by everybody, once, in one order."""

import sqlite3
from typing import Any

import pytest

from gateway.clock import SystemClock, SystemIds
from gateway.domain.traffic import TrafficFilter, TrafficRow
from gateway.services.audit import Audit
from gateway.store.fresh import settle
from gateway.store.store import Store

TABLES = ("audit_events", "traffic")


class Busy:
    """A store whose chats are recorded."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.audit = Audit(
            store=store, clock=SystemClock(), ids=SystemIds(SystemClock()), instance_id=store.instance_id
        )
        self.chats = 0

    async def chat(self, count: int = 1) -> None:
        for _ in range(count):
            self.chats += 1
            await self.store.db.write(lambda tx, number=self.chats: self._record(tx, number))

    def _record(self, tx: Any, number: int) -> None:
        row = TrafficRow(
            id=f"trf_{number}", occurred_at=number, request_id=f"req_{number}", operation="shield.scan",
            principal_id="key_1", verdict="ALLOW", score=0,
        )  # fmt: skip
        self.store.traffic.insert(tx, row)
        self.audit.append(tx, self.audit.event("tested", source="test", details={"number": number}))

    async def ids(self) -> list[str]:
        page = await self.store.db.read(lambda tx: self.store.traffic.page(tx, TrafficFilter(limit=500)))
        return [row.id for row in page.items]

    async def places(self, table: str) -> list[int]:
        rows = await self.store.db.read(lambda tx: tx.query(f"SELECT position FROM {table} ORDER BY position"))
        return [row["position"] for row in rows]


@pytest.fixture
async def busy(store: Store) -> Busy:
    return Busy(store)


async def test_what_is_moved_keeps_its_place_and_what_comes_later_stands_behind_it(busy: Busy) -> None:
    await busy.chat(3)
    for table in TABLES:
        assert await busy.places(table) == []
    await busy.store.db.write(settle)
    await busy.chat(2)
    for table in TABLES:
        assert await busy.places(table) == [1, 2, 3]
        assert await busy.places(f"{table}_fresh") == [4, 5]
        assert await busy.places(f"{table}_all") == [1, 2, 3, 4, 5]
    assert await busy.ids() == [f"trf_{number}" for number in (5, 4, 3, 2, 1)]
    assert (await busy.audit.verify()).events == 5
    assert await busy.store.db.read(busy.store.audit.newest_position) == 5


async def test_rows_are_moved_when_some_hundred_have_come_together(busy: Busy) -> None:
    await busy.chat(600)
    for table in TABLES:
        moved = await busy.places(table)
        assert 400 < len(moved) < 600
        assert await busy.places(f"{table}_all") == list(range(1, 601))
    assert (await busy.audit.verify()).ok


async def test_a_database_that_is_closed_has_moved_its_rows(place: Any) -> None:
    store = await place.open()
    await Busy(store).chat(2)
    await store.aclose()
    with sqlite3.connect(place.path) as connection:
        for table in TABLES:
            assert connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (2,)
            assert connection.execute(f"SELECT COUNT(*) FROM {table}_fresh").fetchone() == (0,)
    connection.close()


async def test_a_chain_whose_fresh_end_was_cut_off_is_found(place: Any) -> None:
    store = await place.open()
    busy = Busy(store)
    await busy.chat(2)
    await store.db.write(settle)
    await busy.chat(3)
    await store.db.write(lambda tx: tx.execute("DELETE FROM audit_events_fresh WHERE seq = 5"))
    assert (await busy.audit.verify()).first_broken_seq == 5
    await store.aclose()


async def test_both_tables_have_the_same_columns(store: Store) -> None:
    for table in TABLES:
        both = [
            [row["name"] for row in await store.db.read(lambda tx, name=name: tx.query(f"PRAGMA table_info({name})"))]
            for name in (table, f"{table}_fresh")
        ]
        assert both[0] == both[1]


async def test_one_commit_writes_a_page_for_a_table_and_none_for_an_index(place: Any) -> None:
    store = await place.open()
    busy = Busy(store)
    await busy.chat()
    with sqlite3.connect(place.path, isolation_level=None) as other:

        def pages() -> int:
            return int(other.execute("PRAGMA wal_checkpoint").fetchone()[1])

        before = pages()
        await busy.chat()
        assert pages() in (before + 2, 2)  # after a checkpoint the log may begin anew
    other.close()
    await store.aclose()
