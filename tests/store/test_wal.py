"""What is left in the database file of what was deleted, and how large its log grows."""

import os
import re
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from gateway.clock import Clock, Ids
from gateway.services.audit import Audit
from gateway.store.database import Transaction
from gateway.store.store import Store

pytestmark = pytest.mark.sqlite


def content(path: str) -> bytes:
    return Path(path).read_bytes()


async def put(store: Store, name: str, value: str) -> None:
    await store.db.write(
        lambda tx: tx.execute(
            "INSERT INTO meta (name, value) VALUES (:name, :value)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            {"name": name, "value": value},
        )
    )


def audit_of(store: Store) -> Audit:
    clock = Clock()
    return Audit(store=store, clock=clock, ids=Ids(clock))


async def test_the_log_of_changes_does_not_grow_without_end(place: Any) -> None:
    store = await place.open()
    for _ in range(40):
        await store.db.write(lambda tx: [store.meta.set(tx, f"{n}", "x" * 500) for n in range(200)])
    assert os.stat(place.path + "-wal").st_size < 4_000_000
    await store.aclose()


async def test_a_log_that_a_long_read_has_made_large_is_cut_after_that_read(place: Any) -> None:
    store = await place.open()
    log = place.path + "-wal"
    reading, done = threading.Event(), threading.Event()

    def read(tx: Transaction) -> None:
        tx.query("SELECT name FROM meta")
        reading.set()
        done.wait(60)

    async with anyio.create_task_group() as group:
        group.start_soon(store.db.read, read)
        await to_thread.run_sync(reading.wait)
        with anyio.fail_after(60):
            for number in range(12):
                await put(store, "probe", str(number % 10) * 1_000_000)
        assert os.stat(log).st_size > 12_000_000
        done.set()
    for number in range(3):
        await put(store, "probe", str(number))
    assert os.stat(log).st_size < 9_000_000
    await store.aclose()


async def test_events_that_were_pruned_are_not_left_in_the_file(place: Any) -> None:
    store = await place.open()
    audit = audit_of(store)
    for number in range(18):
        async with anyio.create_task_group() as group:
            for other in range(100):
                details = {"mark": f"[kept by nobody {number} {other}]"}
                group.start_soon(audit.record, audit.event("tested", source="test", details=details))
    await store.db.write(lambda tx: store.audit.prune(tx, store.instance_id, before=2**60, limit=100_000))
    await store.aclose()
    assert set(re.findall(rb"\[kept by nobody [0-9]+ [0-9]+\]", content(place.path))) == {b"[kept by nobody 17 99]"}


async def test_what_is_deleted_is_not_left_in_the_file(place: Any) -> None:
    store = await place.open()
    audit = audit_of(store)
    await put(store, "secret", "that nobody keeps " * 1000)
    await audit.record(audit.event("tested", source="test"))
    await store.db.write(lambda tx: tx.execute("DELETE FROM meta WHERE name = 'secret'"))
    await store.aclose()
    assert b"that nobody keeps" not in content(place.path)
