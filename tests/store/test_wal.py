"""When what was committed is carried from the log into the file, and what is left of what was deleted."""

import os
import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from gateway.clock import SystemClock, SystemIds
from gateway.errors import Conflict
from gateway.services.audit import Audit
from gateway.store import driver, upkeep, wal, writer
from gateway.store.audit_pruning import prune_chain
from gateway.store.database import Transaction
from gateway.store.store import Store

PAGES_4 = "x" * 16_000


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def put_behind_a_link(path: str, real: Path) -> None:
    Path(path).rename(real)
    Path(path).symlink_to(real)


async def put(store: Store, name: str, value: str) -> None:
    await store.db.write(
        lambda tx: tx.execute(
            "INSERT INTO meta (name, value) VALUES (:name, :value)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            {"name": name, "value": value},
        )
    )


def audit_of(store: Store) -> Audit:
    clock = SystemClock()
    return Audit(store=store, clock=clock, ids=SystemIds(clock), instance_id=store.instance_id)


def test_pages_are_written_again_from_the_log_as_long_as_it_has_not_begun_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "probe.db")
    log = path + "-wal"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE probes (value)")
    connection.execute("INSERT INTO probes VALUES (?)", ("first" * 2000,))
    connection.execute("UPDATE probes SET value = ?", ("second" * 2000,))
    salt, frames = wal.salt(log), connection.execute("PRAGMA wal_checkpoint").fetchone()[2]
    carried = content(path)
    descriptor = os.open(path, os.O_RDWR)
    for count in (frames, frames + 100):
        os.ftruncate(descriptor, 100)
        wal.write_again(log, descriptor, salt, count)
        assert content(path)[100:] == carried[100:]
    connection.execute("UPDATE probes SET value = ?", ("third" * 2000,))  # which begins the log anew
    os.ftruncate(descriptor, 100)
    wal.write_again(log, descriptor, salt, 1)
    assert len(content(path)) == 100
    os.close(descriptor)
    connection.close()


async def test_what_was_committed_is_carried_into_the_file_in_a_pause(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_CHECKPOINT_CHANGES", 3)
    monkeypatch.setattr(writer, "PAUSE_SECONDS", 0.001)
    store = await place.open()
    for number in range(3):
        await put(store, "probe", f"{number}{PAGES_4}")
    with anyio.fail_after(10):
        while PAGES_4[:4000].encode() not in content(place.path):
            await anyio.lowlevel.checkpoint()
    await store.aclose()


async def test_in_a_busy_hour_what_was_committed_is_carried_over_before_the_log_is_long(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_CHECKPOINT_CHANGES", 1)
    monkeypatch.setattr(upkeep, "_CHECKPOINT_GROUPS", 1_000_000)
    monkeypatch.setattr(upkeep, "_LOOK_GROUPS", 1)
    monkeypatch.setattr(upkeep, "_WAL_BYTES", 600_000)
    monkeypatch.setattr(writer, "PAUSE_SECONDS", 60.0)
    store = await place.open()
    for number in range(200):
        await put(store, "probe", str(number % 10) * 16_000)
    assert 590_000 < len(content(place.path + "-wal")) < 650_000  # and not 4.5 MB
    await store.aclose()


async def test_few_rows_that_are_long_are_carried_over_in_a_pause_too_where_the_database_is_behind_a_link(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_PAUSE_BYTES", 100_000)
    monkeypatch.setattr(writer, "PAUSE_SECONDS", 0.001)
    real = Path(place.path).with_name("real.db")
    await (await place.open()).aclose()
    put_behind_a_link(place.path, real)
    store = await place.open()
    await put(store, "probe", PAGES_4 * 10)
    with anyio.fail_after(10):
        while PAGES_4[:4000].encode() not in content(str(real)):
            await anyio.lowlevel.checkpoint()
    await store.aclose()


async def test_the_writer_goes_on_when_rows_cannot_be_moved(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tx: Transaction, table: str) -> None:
        raise Conflict("The record conflicts with one that exists.")

    monkeypatch.setattr(upkeep, "_FRESH_ROWS", 1)
    store = await place.open()
    audit = audit_of(store)
    with monkeypatch.context() as damaged:
        damaged.setattr(upkeep, "settle_table", refuse)
        await audit.record(audit.event("tested", source="test"))
        await put(store, "probe", "while rows cannot be moved")
    await audit.record(audit.event("tested", source="test"))
    assert (await audit.verify()).ok
    await store.aclose()


async def test_a_log_that_a_long_look_has_made_large_is_not_waited_for_and_is_cut_when_that_has_ended(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_CHECKPOINT_CHANGES", 1), ("_WAL_BYTES", 600_000), ("_TRUNCATE_BYTES", 1_000_000)):
        monkeypatch.setattr(upkeep, name, value)
    monkeypatch.setattr(driver, "BUSY_SECONDS", 60.0)
    store = await place.open()
    log = place.path + "-wal"
    looking, seen = threading.Event(), threading.Event()

    def look(tx: Transaction) -> None:
        tx.query("SELECT name FROM meta")
        looking.set()
        seen.wait(20)

    async with anyio.create_task_group() as group:
        group.start_soon(store.db.read, look)
        await to_thread.run_sync(looking.wait)
        with anyio.fail_after(20):
            for number in range(80):
                await put(store, "probe", str(number % 10) * 16_000)
        assert len(content(log)) > 1_300_000
        seen.set()
    await put(store, "probe", "")
    with anyio.fail_after(10):
        while len(content(log)) > 1_000_000:
            await put(store, "probe", "")
    await store.aclose()


async def test_events_that_were_moved_and_pruned_are_not_left_in_the_file(place: Any) -> None:
    store = await place.open()
    audit = audit_of(store)
    for number in range(18):
        async with anyio.create_task_group() as group:
            for other in range(100):
                details = {"mark": f"[kept by nobody {number} {other}]"}
                group.start_soon(audit.record, audit.event("tested", source="test", details=details))
    await store.db.write(lambda tx: prune_chain(store.audit, tx, store.instance_id, before=2**60, limit=100_000))
    await store.aclose()
    assert set(re.findall(rb"\[kept by nobody [0-9]+ [0-9]+\]", content(place.path))) == {b"[kept by nobody 17 99]"}


async def test_what_is_deleted_is_not_left_in_the_file_also_after_rows_were_moved(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_FRESH_ROWS", 1)
    store = await place.open()
    audit = audit_of(store)
    await put(store, "secret", "that nobody keeps " * 1000)
    await audit.record(audit.event("tested", source="test"))
    await store.db.write(lambda tx: tx.execute("DELETE FROM meta WHERE name = 'secret'"))
    await store.aclose()
    assert b"that nobody keeps" not in content(place.path)
