"""Whatever somebody does to the rows of the audit log, the check of the chain finds it."""

import io
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.clock import Clock, Ids
from gateway.domain.principals import RequestContext, local
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.store.audit import CHECKED_EVENTS
from gateway.store.store import Store, open_store

EVENT_COUNT = 4


class Chain:
    """A chain of four events with something in every column, and what is done to it."""

    def __init__(self, store: Store, audit: Audit) -> None:
        self.store = store
        self.audit = audit

    async def fill(self) -> None:
        context = RequestContext(request_id="req_1", ip="192.0.2.1", user_agent="agent/1.0 \x1f")
        events = [
            self.audit.event(
                "tested",
                source="test",
                outcome="failed",
                principal=replace(local("cli"), key_prefix="svc_abcdef"),
                request=context,
                resource_type="thing",
                resource_id=f"thing_{number}",
                reason="ünder test\x1f",
                before={"a": 1.5, "b": [None, True]},
                after={"a": 10**15},
                details={"number": number, "text": "\x1f é 😀 \\ \" '"},
            )
            for number in range(EVENT_COUNT)
        ]
        await self.audit.commit(lambda tx: [self.audit.append(tx, event) for event in events])

    async def query(self, sql: str) -> list[Any]:
        return await self.store.db.read(lambda tx: tx.query(sql))

    async def change(self, sql: str, **params: object) -> None:
        await self.store.db.write(lambda tx: tx.execute(sql, params))

    async def set(self, position: int, column: str, value: object) -> None:
        await self.change(f"UPDATE audit_events SET {column} = :value WHERE position = {position}", value=value)

    async def is_whole(self) -> bool:
        return (await self.audit.verify()).ok


@pytest.fixture
async def chain() -> AsyncIterator[Chain]:
    clock = Clock()
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    one = Chain(store, Audit(store=store, clock=clock, ids=ids))
    await one.fill()
    yield one
    await store.aclose()


@pytest.mark.parametrize("column", CHECKED_EVENTS.columns)
@pytest.mark.sqlite
async def test_a_flipped_bit_in_any_byte_of_any_row_is_found(chain: Chain, column: str) -> None:
    missed = []
    for row in await chain.query(f"SELECT position, {column} AS value FROM audit_events"):
        kept, flips = row["value"], flipped(row["value"])
        assert flips, f"{column} is empty, so nothing is tried"
        for value in flips:
            await chain.set(row["position"], column, value)
            if await chain.is_whole():
                missed.append((row["position"], value))
            await chain.set(row["position"], column, kept)
    assert missed == []
    assert await chain.is_whole()


def flipped(value: object) -> list[object]:
    """Return the value with one bit of one byte turned over, at every byte."""
    if isinstance(value, int):
        return [value ^ 1 << bit for bit in range(4, 40, 3)]
    raw = str(value).encode()
    changed = [raw[:i] + bytes((byte ^ mask,)) + raw[i + 1 :] for i, byte in enumerate(raw) for mask in (0x01, 0x20)]
    return [one.decode("utf-8", "replace") for one in changed]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM audit_events WHERE seq = 1",
        "DELETE FROM audit_events WHERE seq = 2",
        f"DELETE FROM audit_events WHERE seq = {EVENT_COUNT}",
        "DELETE FROM audit_events",
        "UPDATE audit_events SET seq = seq + 100 WHERE seq = 2",
        "UPDATE audit_events SET seq = CASE seq WHEN 2 THEN -3 WHEN 3 THEN -2 ELSE seq END WHERE seq IN (2, 3)",
        "UPDATE audit_heads SET seq = seq - 1",
        "UPDATE audit_heads SET seq = seq + 1",
        f"UPDATE audit_heads SET hash = '{'0' * 64}'",
        "DELETE FROM audit_heads",
        "UPDATE audit_heads SET first_seq = 2",
        "UPDATE audit_events SET reason = NULL WHERE seq = 3",
        "UPDATE audit_events SET key_prefix = '' WHERE seq = 3",
        "UPDATE audit_events SET details = '{}' WHERE seq = 1",
        "UPDATE audit_events SET details = details || ' ' WHERE seq = 1",
        "UPDATE audit_events SET details = CAST(X'FF' AS TEXT) WHERE seq = 1",
        "UPDATE audit_events SET instance_id = 'ins_other' WHERE seq = 2",
    ],
)
async def test_a_gap_a_swap_a_cut_or_a_changed_end_is_found(chain: Chain, sql: str) -> None:
    assert await chain.is_whole()
    await chain.change(sql)
    assert not await chain.is_whole()


async def test_two_events_that_changed_places_are_found(chain: Chain) -> None:
    for old, new in ((2, 20), (3, 2), (20, 3)):
        await chain.change("UPDATE audit_events SET seq = :new WHERE seq = :old", old=old, new=new)
    report = await chain.audit.verify()
    assert (report.ok, report.first_broken_seq) == (False, 2)
