"""What is on the disk when a write returns, what the file beside the database says then, and who waits for what."""

import errno
import fcntl
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.audit import AuditEvent
from gateway.domain.principals import Caller, RequestContext, local
from gateway.services.audit import Audit
from gateway.store import writer
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.filelock import FileLock
from gateway.store.headfile import HeadFile
from gateway.store.store import Store

pytestmark = pytest.mark.sqlite

FULL, NORMAL = 2, 1  # FULL syncs the log at each commit, NORMAL only now and then


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is synced of itself."""
    monkeypatch.setattr(writer, "SYNC_SECONDS", 60.0)


def append(store: Store, threads: list[int] | None = None) -> Callable[[Transaction], int]:
    """Return a work that appends one event, notes in which thread it was done, and returns how it will be synced."""
    event = AuditEvent(
        id=store_ids.new("evt"),
        occurred_at=1,
        source="test",
        action="done",
        actor="me",
        actor_type="local",
        instance_id=store.instance_id,
    )

    def work(tx: Transaction) -> int:
        store.audit.append(tx, event)
        if threads is not None:
            threads.append(threading.get_ident())
        return sync_of(tx)

    return work


def sync_of(tx: Transaction) -> int:
    return int(tx.query("PRAGMA synchronous")[0]["synchronous"])


class _Ids:
    """Ids that count."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"


store_ids = _Ids()


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not is_so():  # noqa: ASYNC110  # what another thread does
            await anyio.sleep(0.005)


def noted(path: str, store: Store) -> int:
    head = HeadFile(path + ".head").read(store.instance_id)
    assert head is not None
    return head.seq


async def test_whoever_waits_for_the_disk_has_it_synced_by_the_commit_itself(place: Any) -> None:
    store = await place.open()
    wishes = (True, False, True, True, False)
    modes = [await store.db.write(sync_of, is_durable=wish) for wish in wishes]
    assert modes == [FULL if wish else NORMAL for wish in wishes]
    audit = Audit(store=store, clock=place.clock, ids=place.ids)
    assert await audit.commit_authority(Caller(local("cli"), RequestContext(request_id="req_1")), sync_of) == FULL
    await store.aclose()


@pytest.mark.usefixtures("unhurried")
async def test_what_waits_for_the_disk_is_noted_and_takes_along_what_did_not(place: Any) -> None:
    store = await place.open()
    await store.db.write(append(store), is_durable=False)
    assert noted(place.path, store) == 0
    await store.db.write(append(store))
    assert noted(place.path, store) == 2
    await store.db.write(append(store), is_durable=False)
    await store.db.write(lambda tx: tx.execute("UPDATE meta SET value = value WHERE name = 'nothing'"))
    assert noted(place.path, store) == 3
    await store.aclose()


async def test_what_a_power_cut_may_undo_is_seen_by_all_and_on_the_disk_soon_and_noted_only_then(place: Any) -> None:
    store, other = await place.open(), await place.open()
    await store.db.write(append(store))
    await store.db.write(append(store), is_durable=False)
    seen = await other.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=1, limit=10))
    assert [event.seq for event in seen] == [2]
    await until(lambda: noted(place.path, store) == 2)
    await other.aclose()
    await store.aclose()


async def test_in_a_busy_hour_one_of_many_commits_waits_for_the_disk(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SYNC_SECONDS", 0.2)
    store = await place.open()
    modes: list[int] = []
    with anyio.fail_after(20):
        while modes.count(FULL) < 2:
            modes.append(await store.db.write(append(store), is_durable=False))
    assert modes[0] == NORMAL
    assert modes.count(NORMAL) > 10
    await store.aclose()


@pytest.mark.usefixtures("unhurried")
async def test_after_a_write_that_the_disk_refused_the_next_one_waits_for_the_disk(store: Store) -> None:
    def refuse(tx: Transaction) -> None:
        raise StoreUnavailable("The disk is full.")

    with pytest.raises(StoreUnavailable):
        await store.db.write(refuse, is_durable=False)
    assert await store.db.write(append(store), is_durable=False) == FULL
    assert await store.db.write(append(store), is_durable=False) == NORMAL


@pytest.mark.usefixtures("unhurried")
async def test_a_start_notes_what_a_process_that_was_killed_has_committed(place: Any) -> None:
    killed = await place.open()
    await killed.db.write(append(killed), is_durable=False)
    assert noted(place.path, killed) == 0
    store = await place.open()
    assert noted(place.path, store) == 1
    await store.aclose()
    await killed.aclose()


async def test_who_closes_while_the_database_does_not_answer_is_told_that_not_all_is_written(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "STOP_SECONDS", 0.1)
    store = await place.open()
    with FileLock(place.path + ".lock"):
        store.db.write_behind(append(store))
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await store.aclose()


async def test_a_lock_that_cannot_be_given_back_is_had_again_and_what_was_done_is_done(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()
    flock = fcntl.flock

    def refuse(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_UN:
            raise OSError(errno.ENOLCK, "none left")
        flock(descriptor, how)

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", refuse)
        for _ in range(3):
            await store.db.write(append(store), is_durable=False)
    await store.db.write(append(store))
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=10))
    assert [event.seq for event in events] == [1, 2, 3, 4]
    await store.aclose()


async def test_whoever_is_taken_when_the_database_closes_is_answered(place: Any) -> None:
    for round in range(6):
        store, answers = await place.open(), []

        async def ask(store: Store = store, answers: list[bool] = answers) -> None:
            try:
                while True:
                    await store.db.write(append(store), is_durable=False)
                    answers.append(True)
            except StoreUnavailable:
                answers.append(False)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(ask)
                lock = FileLock(place.path + ".lock")
                for _ in range(round):
                    await anyio.lowlevel.checkpoint()
                with lock:
                    await anyio.sleep(0.005)
                await store.aclose()
        assert answers.count(False) == 8


async def test_an_orderly_end_notes_what_was_committed_last(place: Any) -> None:
    store = await place.open()
    await store.db.write(append(store), is_durable=False)
    await store.aclose()
    assert noted(place.path, store) == 1


async def test_one_process_does_not_note_an_earlier_end_than_another(place: Any) -> None:
    store, other = await place.open(), await place.open()
    await store.db.write(append(store), is_durable=False)
    await other.db.write(append(other))
    assert noted(place.path, store) == 2
    await store.aclose()
    assert noted(place.path, other) == 2
    await other.aclose()


async def test_what_nobody_waits_for_is_not_gathered_beyond_a_group(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BEHIND_SECONDS", 3600.0)
    threads: list[int] = []
    for _ in range(3 * writer.GROUP_WRITES):
        store.db.write_behind(append(store, threads))
    await until(lambda: len(threads) == 3 * writer.GROUP_WRITES)


async def test_the_event_loop_does_not_wait_for_another_process_that_writes(place: Any) -> None:
    store = await place.open()
    lock = FileLock(place.path + ".lock")
    threads: list[int] = []
    with lock:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: store.db.write(append(store, threads), is_durable=False))
            await anyio.sleep(0.1)  # passes: the loop goes on
            assert threads == []
            lock.release()
            await until(lambda: len(threads) == 1)
            lock.acquire()
    lock.close()
    assert threads != [threading.get_ident()]
    await store.aclose()


async def test_the_event_loop_does_not_wait_for_another_program_that_writes(place: Any) -> None:
    store = await place.open()
    other = sqlite3.connect(place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    threads: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: store.db.write(append(store, threads), is_durable=False))
        await anyio.sleep(0.1)
        assert threads == []
        other.execute("ROLLBACK")
        await until(lambda: len(threads) == 1)
    assert threads != [threading.get_ident()]
    other.close()
    await store.aclose()
