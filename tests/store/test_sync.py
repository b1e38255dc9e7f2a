"""When what was committed is on the disk, what the file beside it says then, and where brief works are done."""

import errno
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.audit import AuditEvent, ChainHead
from gateway.http.wakeups import Waiter, wakeups_here
from gateway.services.audit import Audit
from gateway.store import syncs, upkeep, writer
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.filelock import FileLock
from gateway.store.headfile import HeadFile
from gateway.store.store import Store

WORKS_OF_A_CROWD = 60


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What this process brought to the disk itself, and which end of the chain it noted then."""
    told: list[str] = []
    sync, write = os.fdatasync, HeadFile.write

    def note_sync(descriptor: int) -> None:
        sync(descriptor)
        told.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    def note_write(self: HeadFile, instance_id: str, head: ChainHead) -> None:
        told.append(f"head {head.seq}")
        write(self, instance_id, head)

    monkeypatch.setattr(os, "fdatasync", note_sync)
    monkeypatch.setattr(HeadFile, "write", note_write)
    return told


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes to the disk of itself."""
    monkeypatch.setattr(syncs, "SYNC_SECONDS", 60.0)


class SlowDisk:
    """The next way of the log to the disk hangs from `hang` until `go_on`; all others are as they are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_next, self._is_here, self._may_go = threading.Event(), threading.Event(), threading.Event()
        sync = os.fdatasync

        def wait(descriptor: int) -> None:
            if self._is_next.is_set():
                self._is_next.clear()
                self._is_here.set()
                self._may_go.wait(60)
            sync(descriptor)

        monkeypatch.setattr(os, "fdatasync", wait)
        self.hang = self._is_next.set
        self.is_hanging = self._is_here.is_set
        self.go_on = self._may_go.set


@pytest.fixture
def slow_disk(told: list[str], monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch)


def append(store: Store, threads: list[int] | None = None) -> Callable[[Transaction], None]:
    """Return a work that appends one event, and notes in which thread it was done."""
    id = store_ids.new("evt")
    event = AuditEvent(
        id=id,
        occurred_at=1,
        source="test",
        action="done",
        actor="me",
        actor_type="local",
        instance_id=store.instance_id,
    )

    def work(tx: Transaction) -> None:
        store.audit.append(tx, event)
        if threads is not None:
            threads.append(threading.get_ident())

    return work


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
    full, normal = 2, 1  # of SQLite: FULL brings the log to the disk with each commit, NORMAL only now and then
    store = await place.open()
    try:
        wishes = (True, False, True, True, False)
        modes = [
            await store.db.write(lambda tx: tx.query("PRAGMA synchronous")[0]["synchronous"], is_durable=wish)
            for wish in wishes
        ]
        assert modes == [full if wish else normal for wish in wishes]
        audit = Audit(store=store, clock=place.clock, ids=place.ids, instance_id=store.instance_id)
        assert await audit.commit_authority(lambda tx: tx.query("PRAGMA synchronous")[0]["synchronous"]) == full
    finally:
        await store.aclose()


@pytest.mark.parametrize("is_brief", [True, False])
async def test_what_a_power_cut_may_undo_is_seen_by_all_and_on_the_disk_soon_and_noted_only_then(
    place: Any, told: list[str], is_brief: bool
) -> None:
    store, other = await place.open(), await place.open()
    told.clear()
    await store.db.write(append(store))
    assert told == ["head 1"]  # SQLite itself has waited for the disk
    await store.db.write(append(store), is_durable=False, is_brief=is_brief)
    assert told == ["head 1"]
    seen = await other.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=1, limit=10))
    assert [event.seq for event in seen] == [2]
    await until(lambda: len(told) >= 3)
    assert told == ["head 1", "gateway.db-wal", "head 2"]
    assert noted(place.path, store) == 2
    await other.aclose()
    await store.aclose()


@pytest.mark.usefixtures("unhurried")
async def test_what_waits_for_the_disk_takes_along_what_did_not(place: Any, told: list[str]) -> None:
    store = await place.open()
    await store.db.write(append(store), is_durable=False, is_brief=True)
    told.clear()
    await store.db.write(append(store))
    assert told == ["gateway.db-wal", "head 2"]
    await store.aclose()


@pytest.mark.usefixtures("unhurried")
async def test_the_file_is_not_ahead_of_the_disk_when_what_waits_for_it_writes_nothing(
    place: Any, told: list[str]
) -> None:
    store = await place.open()
    await store.db.write(append(store), is_durable=False, is_brief=True)
    told.clear()
    await store.db.write(lambda tx: tx.execute("UPDATE meta SET value = value WHERE name = 'nothing'"))
    assert told == ["gateway.db-wal", "head 1"]
    await store.aclose()


@pytest.mark.usefixtures("unhurried")
async def test_a_start_notes_what_a_process_that_was_killed_has_committed(place: Any, told: list[str]) -> None:
    killed = await place.open()
    await killed.db.write(append(killed), is_durable=False, is_brief=True)
    assert noted(place.path, killed) == 0
    told.clear()
    store = await place.open()
    assert told[-2:] == ["gateway.db-wal", "head 1"]
    await store.aclose()
    await killed.aclose()


async def test_the_commit_that_begins_the_log_anew_is_not_done_in_the_event_loop(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_CHECKPOINT_CHANGES", 1)
    monkeypatch.setattr(upkeep, "_CHECKPOINT_GROUPS", 1)
    groups, carried = [0], [0]
    note, run = upkeep.Upkeep.note, upkeep.Upkeep.run

    def count(self: upkeep.Upkeep, tx: Any) -> None:
        groups[0] += 1
        note(self, tx)

    def tell(self: upkeep.Upkeep, *, is_pause: bool) -> bool:
        is_done = run(self, is_pause=is_pause)
        if is_done:
            carried[0] = groups[0]
        return is_done

    store = await place.open()
    threads: list[int] = []
    monkeypatch.setattr(upkeep.Upkeep, "note", count)
    monkeypatch.setattr(upkeep.Upkeep, "run", tell)
    await store.db.write(append(store))
    await until(lambda: carried == groups)  # and not what the start has written
    for _ in range(2):
        await store.db.write(append(store, threads), is_durable=False, is_brief=True)
    assert threads[0] != threading.get_ident()
    await store.aclose()


async def test_while_the_disk_does_not_take_the_log_commits_go_on_and_not_in_the_event_loop(
    place: Any, slow_disk: SlowDisk
) -> None:
    store = await place.open()
    threads: list[int] = []
    slow_disk.hang()
    await store.db.write(append(store, threads), is_durable=False, is_brief=True)
    await until(slow_disk.is_hanging)
    await anyio.sleep(syncs.SLOW_SECONDS * 2)
    with anyio.fail_after(30):
        await store.db.write(append(store, threads), is_durable=False, is_brief=True)
        store.db.write_behind(append(store, threads), is_brief=True)
        await until(lambda: len(threads) == 3)
    assert [thread == threading.get_ident() for thread in threads] == [True, False, False]
    assert noted(place.path, store) == 0  # the disk has none of it
    slow_disk.go_on()
    await until(lambda: noted(place.path, store) == 3)
    await store.aclose()


async def test_who_commits_when_the_disk_has_hung_for_long_waits_for_it(
    place: Any, slow_disk: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()
    monkeypatch.setattr(syncs, "HUNG_SECONDS", syncs.SLOW_SECONDS)
    threads: list[int] = []
    slow_disk.hang()
    await store.db.write(append(store, threads), is_durable=False, is_brief=True)
    await until(slow_disk.is_hanging)
    await anyio.sleep(syncs.SLOW_SECONDS * 2)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: store.db.write(append(store, threads), is_durable=False, is_brief=True))
        await anyio.sleep(0.1)
        assert len(threads) == 1
        slow_disk.go_on()
    assert [thread == threading.get_ident() for thread in threads] == [True, False]
    await store.aclose()


async def test_what_waits_for_the_disk_waits_for_what_is_on_its_way_there(
    place: Any, told: list[str], slow_disk: SlowDisk
) -> None:
    store = await place.open()
    slow_disk.hang()
    await store.db.write(append(store), is_durable=False, is_brief=True)
    await until(slow_disk.is_hanging)
    told.clear()
    await store.db.write(lambda tx: tx.execute("UPDATE meta SET value = value WHERE name = 'nothing'"))
    assert told == ["gateway.db-wal", "head 1"]  # by a way of its own, since it writes nothing that SQLite waits for
    slow_disk.go_on()
    await store.aclose()


async def test_who_closes_on_a_disk_that_does_not_answer_is_told_that_not_all_is_written(
    place: Any, slow_disk: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "STOP_SECONDS", 0.1)
    store = await place.open()
    slow_disk.hang()
    await store.db.write(append(store), is_durable=False, is_brief=True)
    await until(slow_disk.is_hanging)
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        await store.aclose()
    slow_disk.go_on()


async def test_a_disk_that_has_refused_is_asked_again_before_anything_is_left_to_it(
    place: Any, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", refuse)
        await store.db.write(append(store), is_durable=False, is_brief=True)
        await until(lambda: "store_sync_failed" in place.stream.getvalue())
    told.clear()
    await store.db.write(append(store), is_durable=False, is_brief=True)
    assert told == ["gateway.db-wal", "head 2"]  # though nobody had asked for that
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
        for is_brief in (True, False, True):
            await store.db.write(append(store), is_durable=False, is_brief=is_brief)
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
                    await store.db.write(append(store), is_durable=False, is_brief=True)
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
    await store.db.write(append(store), is_durable=False, is_brief=True)
    await store.aclose()
    assert noted(place.path, store) == 1


async def test_one_process_does_not_note_an_earlier_end_than_another(place: Any, told: list[str]) -> None:
    store, other = await place.open(), await place.open()
    await store.db.write(append(store), is_durable=False, is_brief=True)
    await other.db.write(append(other))
    assert noted(place.path, store) == 2
    await until(lambda: told[-1] == "head 1")
    assert noted(place.path, store) == 2
    await other.aclose()
    await store.aclose()


async def test_brief_works_of_one_turn_are_one_commit_in_the_event_loop_and_others_are_not(store: Store) -> None:
    threads: list[int] = []
    commits: list[None] = []

    def work(tx: Transaction) -> None:
        append(store, threads)(tx)
        tx.after_commit("commit", lambda: commits.append(None))

    with anyio.fail_after(10):
        while len(commits) != 1 or threads != [threading.get_ident()] * WORKS_OF_A_CROWD:
            threads.clear()  # the thread may have been about to note what opening has written, and have had the lock
            commits.clear()
            async with anyio.create_task_group() as tasks:
                for _ in range(WORKS_OF_A_CROWD):
                    tasks.start_soon(lambda: store.db.write(work, is_durable=False, is_brief=True))
    await store.db.write(work, is_durable=False)
    await store.db.write(work)
    assert threading.get_ident() not in threads[WORKS_OF_A_CROWD:]


async def test_a_task_whose_works_follow_each_other_lets_others_go_on(store: Store) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        for _ in range(100):
            await store.db.write(append(store), is_durable=False, is_brief=True)
        tasks.cancel_scope.cancel()
    assert turns >= 50


async def test_a_task_that_goes_on_alone_has_its_first_brief_work_done_at_once(store: Store) -> None:
    wakeups = wakeups_here()
    waiter = Waiter(wakeups)
    done: list[bool] = []

    async def go_on() -> None:
        await waiter
        for _ in range(2):
            writing = first_step(store.db.write(append(store), is_durable=False, is_brief=True))
            done.append(writing is None)
            if writing is not None:
                await writing

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go_on)
        await anyio.wait_all_tasks_blocked()
        waiter.call()
    assert done == [True, False]


def first_step(writing: Any) -> Any:
    """Return what is left of a write after its first step, None when it is done."""

    class Rest:
        def __init__(self, first: object) -> None:
            self.first = first

        def __await__(self) -> Any:
            yield self.first
            yield from writing.__await__()

    try:
        first = writing.send(None)
    except StopIteration:
        return None
    return Rest(first)


async def test_what_nobody_waits_for_is_not_gathered_beyond_a_group(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "GATHER_SECONDS", 3600.0)
    threads: list[int] = []
    for _ in range(3 * writer.GROUP_WORKS):
        store.db.write_behind(append(store, threads), is_brief=True)
    await until(lambda: len(threads) == 3 * writer.GROUP_WORKS)


async def test_a_brief_work_that_fails_is_refused_alone(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        append(store)(tx)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await store.db.write(fail, is_durable=False, is_brief=True)
    await store.db.write(append(store), is_durable=False, is_brief=True)
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=10))
    assert [event.seq for event in events] == [1]


async def test_the_event_loop_does_not_wait_for_another_process_that_writes(place: Any) -> None:
    store = await place.open()
    lock = FileLock(place.path + ".lock")
    threads: list[int] = []
    with lock:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: store.db.write(append(store, threads), is_durable=False, is_brief=True))
            await anyio.sleep(0.1)  # passes: the loop goes on
            assert threads == []
            lock.release()
            await until(lambda: len(threads) == 1)
            lock.acquire()
    assert threads != [threading.get_ident()]
    await store.aclose()


async def test_the_event_loop_does_not_wait_for_another_program_that_writes(place: Any) -> None:
    store = await place.open()
    other = sqlite3.connect(place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    threads: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: store.db.write(append(store, threads), is_durable=False, is_brief=True))
        await anyio.sleep(0.1)
        assert threads == []
        other.execute("ROLLBACK")
        await until(lambda: len(threads) == 1)
    assert threads != [threading.get_ident()]
    other.close()
    await store.db.write(append(store, threads), is_durable=False, is_brief=True)
    assert threads[1] == threading.get_ident()
    await store.aclose()


async def test_a_disk_that_does_not_take_the_log_is_waited_for_until_it_does(
    place: Any, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()
    threads: list[int] = []

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", refuse)
        await store.db.write(append(store, threads), is_durable=False, is_brief=True)
        await until(lambda: "store_sync_failed" in place.stream.getvalue())
    told.clear()
    await store.db.write(append(store, threads), is_durable=False, is_brief=True)
    assert told == ["gateway.db-wal", "head 2"]  # it has waited for the disk
    await store.db.write(append(store, threads), is_durable=False, is_brief=True)
    assert [thread == threading.get_ident() for thread in threads] == [True, False, True]
    await store.aclose()
