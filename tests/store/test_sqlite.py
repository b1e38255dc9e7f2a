"""The SQLite database: files, groups, faults and other processes."""

import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from gateway.domain.audit import AuditEvent, ChainHead
from gateway.errors import Conflict, InvalidRequest, SetupError
from gateway.store import writer
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.meta import OLDEST_SCHEMA, MetaRepository
from gateway.store.migrations import MIGRATIONS, schema_number
from gateway.store.store import Store

ROOT = Path(__file__).resolve().parents[2]


def put(path: str, content: bytes) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_bytes(content)


def content_of(path: str) -> bytes:
    return Path(path).read_bytes()


def put_songs(path: str) -> bytes:
    Path(path).parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE songs (title TEXT)")
    other.commit()
    other.close()
    return content_of(path)


def names(tx: Transaction) -> list[str]:
    """Return the names that a test has set."""
    rows = tx.query("SELECT name FROM meta WHERE name NOT IN ('instance_id', 'oldest_schema') ORDER BY name")
    return [row["name"] for row in rows]


def setter(name: str, value: str = "x") -> Any:
    return lambda tx: tx.execute(
        "INSERT INTO meta (name, value) VALUES (:name, :value)", {"name": name, "value": value}
    )


def note(groups: list[Transaction], name: str) -> Any:
    """Return a work that sets a name and notes which group it was in."""

    def work(tx: Transaction) -> None:
        groups.append(tx)
        setter(name)(tx)

    return work


@asynccontextmanager
async def held(store: Store) -> AsyncIterator[threading.Event]:
    """Keep the writer busy, from the beginning of the block on, until the event is set."""
    begun, go = threading.Event(), threading.Event()

    def work(tx: Transaction) -> None:
        begun.set()
        go.wait(10)

    try:
        store.db.write_behind(work)
        await to_thread.run_sync(begun.wait, 10)
        yield go
    finally:
        go.set()


@contextmanager
def full_disk(path: str) -> Iterator[None]:
    """Let no file of this process grow beyond what the WAL has now, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(os.stat(path + "-wal").st_size, 1), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.sqlite
async def test_the_folder_and_the_files_are_for_their_owner_alone(place: Any) -> None:
    store = await place.open()
    folder = Path(place.path).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert "gateway.db" in modes
    await store.aclose()


@pytest.mark.sqlite
async def test_an_old_file_that_others_may_read_is_closed_to_them(place: Any) -> None:
    await (await place.open()).aclose()
    os.chmod(place.path, 0o644)
    await (await place.open()).aclose()
    assert stat.S_IMODE(os.stat(place.path).st_mode) == 0o600


async def test_what_was_written_is_there_after_reopening(place: Any) -> None:
    first = await place.open()
    await first.db.write(setter("a"))
    await first.aclose()
    again = await place.open()
    assert await again.db.read(names) == ["a"]
    assert again.instance_id == first.instance_id
    await again.aclose()


@pytest.mark.parametrize(
    "content", [b"x", b"not a database at all, but somebody's notes\n" * 100, b"SQLite format 2\0" * 64]
)
@pytest.mark.sqlite
async def test_a_file_that_is_no_database_is_refused_and_left_alone(place: Any, content: bytes) -> None:
    put(place.path, content)
    with pytest.raises(SetupError, match="not a database"):
        await place.open()
    assert content_of(place.path) == content


@pytest.mark.sqlite
async def test_a_damaged_database_is_refused_and_left_alone(place: Any) -> None:
    content = b"SQLite format 3\0" + b"\xff" * 5000
    put(place.path, content)
    with pytest.raises(SetupError, match="cannot be used"):
        await place.open()
    assert content_of(place.path) == content


@pytest.mark.sqlite
async def test_the_database_of_another_program_is_refused_and_left_alone(place: Any) -> None:
    before = put_songs(place.path)
    with pytest.raises(SetupError, match="another program"):
        await place.open()
    assert content_of(place.path) == before


def later(tx: Transaction, *, oldest: int) -> None:
    """Change the schema as a later release does, for which programs need to know schema `oldest`."""
    tx.execute("INSERT INTO schema_migrations (number, name, applied_at) VALUES (999, 'later', 0)")
    MetaRepository().set(tx, OLDEST_SCHEMA, str(oldest))


async def test_a_newer_schema_is_refused_in_one_sentence(place: Any) -> None:
    store = await place.open()
    await store.db.write(lambda tx: later(tx, oldest=999))
    await store.aclose()
    with pytest.raises(SetupError) as refusal:
        await place.open()
    assert "999" in refusal.value.message
    assert refusal.value.message.count(".") == 1


async def test_a_newer_schema_that_the_release_before_can_use_is_opened_and_left_as_it_is(place: Any) -> None:
    store = await place.open()
    await store.db.write(lambda tx: later(tx, oldest=len(MIGRATIONS)))
    await store.aclose()
    store = await place.open()
    assert await store.db.read(schema_number) == 999
    await store.aclose()


@pytest.mark.sqlite
async def test_chats_that_an_earlier_build_left_beside_the_database_refuse_the_start(place: Any) -> None:
    store = await place.open()
    await store.aclose()
    left = f"{place.path}.redo-0"
    put(left, b"a chat\n")
    before = content_of(place.path)
    with pytest.raises(SetupError, match=r"redo-0 may hold chats .* start that build once"):
        await place.open()
    assert (content_of(left), content_of(place.path)) == (b"a chat\n", before)
    os.rename(left, f"{left}.unread")  # so a build names what it could not commit
    store = await place.open()
    await store.aclose()


@pytest.mark.sqlite
async def test_a_path_that_cannot_be_is_refused_with_the_reason(place: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place.path = str(tmp_path / "file" / "gateway.db")
    with pytest.raises(SetupError, match="choose a writable data folder"):
        await place.open()
    place.path = str(tmp_path)
    with pytest.raises(SetupError):
        await place.open()


async def test_readers_see_what_is_committed_and_nothing_else(store: Store) -> None:
    seen: list[object] = []

    async def look() -> None:
        seen.append(await store.db.read(names))

    def work(tx: Transaction) -> None:
        setter("a")(tx)
        assert names(tx) == ["a"]

    await store.db.write(work)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
    assert seen == [["a"]]
    assert await store.db.read(names) == ["a"]


@pytest.mark.sqlite
async def test_a_reader_cannot_write(place: Any) -> None:
    store = await place.open()
    with pytest.raises(StoreUnavailable, match="readonly"):
        await store.db.read(setter("a"))
    await store.aclose()


async def test_writes_that_wait_together_are_committed_together(store: Store) -> None:
    groups: list[Transaction] = []

    async def write(number: int) -> None:
        def work(tx: Transaction) -> None:
            groups.append(tx)
            setter(f"{number:02}")(tx)

        await store.db.write(work)

    async with held(store) as go:
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(write, number)
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert len({id(tx) for tx in groups}) == 1
    assert len(await store.db.read(names)) == 40


async def test_a_caller_who_is_alone_does_not_wait_for_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CALLERS_SECONDS", 60.0)
    monkeypatch.setattr(writer, "BEHIND_SECONDS", 60.0)
    with anyio.fail_after(30):
        for number in range(3):
            await store.db.write(setter(f"{number}"), is_durable=False)
    assert await store.db.read(names) == ["0", "1", "2"]


async def test_callers_who_come_back_are_committed_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CALLERS_SECONDS", 60.0)
    groups: list[Transaction] = []
    async with held(store) as go:
        for number in range(3):
            async with anyio.create_task_group() as tasks:
                for letter in "abc":
                    tasks.start_soon(lambda name=f"{number}{letter}": store.db.write(note(groups, name)))
                await anyio.wait_all_tasks_blocked()
                go.set()
    assert [groups[number] is groups[number - number % 3] for number in range(9)] == [True] * 9
    assert len({id(tx) for tx in groups}) == 3


async def test_an_exception_takes_back_its_own_work_alone(store: Store) -> None:
    errors: list[str] = []
    noted: list[int] = []

    def work(tx: Transaction, number: int) -> None:
        setter(f"{number}")(tx)
        tx.after_commit(lambda: noted.append(number))
        if number % 2:
            raise LookupError(number)

    async def write(number: int) -> None:
        try:
            await store.db.write(lambda tx: work(tx, number))
        except LookupError as error:
            errors.append(str(error))

    async with held(store) as go:
        async with anyio.create_task_group() as tasks:
            for number in (1, 2, 3, 4):
                tasks.start_soon(write, number)
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert sorted(errors) == ["1", "3"]
    assert await store.db.read(names) == ["2", "4"]
    assert noted == [2, 4]


async def test_a_statement_that_is_defer_and_conflicts_takes_back_its_own_event_alone(store: Store) -> None:
    errors: list[int] = []

    async def write(number: int, name: str) -> None:
        event = AuditEvent(id=f"evt_{number}", occurred_at=number, source="test", instance_id=store.instance_id)

        def work(tx: Transaction) -> None:
            store.audit.append(tx, event)
            tx.defer("INSERT INTO meta (name, value) VALUES (:name, 'x')", {"name": name})

        try:
            await store.db.write(work)
        except Conflict:
            errors.append(number)

    async with held(store) as go:
        async with anyio.create_task_group() as tasks:
            for number, name in enumerate("abac"):
                tasks.start_soon(write, number, name)
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert errors == [2]
    assert await store.db.read(names) == ["a", "b", "c"]
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=10))
    assert [(event.seq, event.occurred_at) for event in events] == [(1, 0), (2, 1), (3, 3)]
    assert all(later.prev_hash == earlier.hash for earlier, later in zip(events, events[1:], strict=False))
    assert await store.db.read(lambda tx: store.audit.head(tx, store.instance_id)) == ChainHead(3, events[2].hash)


async def test_a_broken_constraint_is_a_conflict_and_a_huge_number_a_bad_request(store: Store) -> None:
    await store.db.write(setter("a"))
    with pytest.raises(Conflict):
        await store.db.write(setter("a"))
    for value in (2**63, "\ud800"):
        with pytest.raises(InvalidRequest):
            await store.db.write(setter("b", value))  # type: ignore[arg-type]
    assert await store.db.read(names) == ["a"]


async def test_writes_behind_are_kept_in_order_and_before_later_writes(store: Store) -> None:
    for number in range(50):
        store.db.write_behind(lambda tx, number=number: store.meta.set(tx, "last", str(number)))
    assert await store.db.write(lambda tx: store.meta.get(tx, "last")) == "49"


async def test_a_write_behind_that_fails_is_logged_and_stops_nothing(store: Store, place: Any) -> None:
    store.db.write_behind(lambda tx: 1 / 0)
    await store.db.write(setter("a"))
    assert "ZeroDivisionError" in place.stream.getvalue()


async def test_a_full_queue_refuses_and_takes_again_when_it_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_WRITES", 20)
    entered = threading.Event()
    go = threading.Event()
    store.db.write_behind(lambda tx: (entered.set(), go.wait(10)))
    await anyio.to_thread.run_sync(entered.wait, 10)
    for number in range(20):
        store.db.write_behind(setter(str(number)))
    with pytest.raises(StoreUnavailable):
        store.db.write_behind(setter("too much"))
    with pytest.raises(StoreUnavailable):
        await store.db.write(setter("too much"))
    go.set()
    while len(await store.db.read(names)) < 20:
        await anyio.lowlevel.checkpoint()
    await store.db.write(setter("again"))


async def test_a_write_that_waits_too_long_is_refused_and_never_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WAIT_SECONDS", 0.01)
    async with held(store) as go:
        with pytest.raises(StoreUnavailable, match="in time"):
            await store.db.write(setter("late"))
        go.set()
    monkeypatch.setattr(writer, "WAIT_SECONDS", 10)
    await store.db.write(setter("next"))
    assert await store.db.read(names) == ["next"]


async def test_writes_that_wait_behind_others_are_refused_as_well(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "GROUP_WRITES", 1)
    monkeypatch.setattr(writer, "WAIT_SECONDS", 0.01)
    refused: list[str] = []

    async def write(name: str) -> None:
        try:
            await store.db.write(setter(name))
        except StoreUnavailable:
            refused.append(name)

    async with held(store) as go:
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(write, name)
        go.set()
    assert sorted(refused) == ["a", "b", "c"]
    monkeypatch.setattr(writer, "WAIT_SECONDS", 10)
    await store.db.write(setter("next"))
    assert await store.db.read(names) == ["next"]


async def test_the_work_of_a_cancelled_caller_is_still_done(store: Store) -> None:
    async with held(store) as go:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.db.write, setter("a"))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        go.set()
    await store.db.write(setter("b"))
    assert await store.db.read(names) == ["a", "b"]


@pytest.mark.sqlite
async def test_a_full_disk_refuses_writes_until_there_is_room(place: Any) -> None:
    store = await place.open()
    with full_disk(place.path):
        with pytest.raises(StoreUnavailable):
            await store.db.write(setter("big", "x" * 200_000))
        assert await store.db.read(names) == []
        assert not store.db.is_writable
    await store.db.write(setter("small"))
    assert store.db.is_writable
    assert await store.db.read(names) == ["small"]
    await store.aclose()


@pytest.mark.sqlite
async def test_writes_behind_survive_a_full_disk_and_no_more_are_taken_meanwhile(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.01)
    store = await place.open()
    with full_disk(place.path):
        store.db.write_behind(setter("kept", "x" * 200_000))
        with pytest.raises(StoreUnavailable):
            await store.db.write(setter("refused", "x" * 200_000))
        with pytest.raises(StoreUnavailable):
            store.db.write_behind(setter("not taken"))
    with anyio.fail_after(60):
        while "kept" not in await store.db.read(names):
            await anyio.lowlevel.checkpoint()
    await store.db.write(setter("later"))
    assert await store.db.read(names) == ["kept", "later"]
    await store.aclose()


async def test_a_closed_database_refuses_and_may_be_closed_again(store: Store) -> None:
    store.db.write_behind(setter("a"))
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreUnavailable):
        await store.db.write(setter("b"))
    with pytest.raises(StoreUnavailable):
        store.db.write_behind(setter("b"))


async def test_what_is_queued_is_written_before_closing(place: Any) -> None:
    store = await place.open()
    for number in range(100):
        store.db.write_behind(setter(f"{number:02}"))
    await store.aclose()
    again = await place.open()
    assert len(await again.db.read(names)) == 100
    await again.aclose()


async def test_two_gateways_on_one_file_take_turns(place: Any) -> None:
    one, two = await place.open(), await place.open()

    async def write(store: Store, letter: str) -> None:
        for number in range(50):
            await store.db.write(setter(f"{letter}{number:02}"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write, one, "a")
        tasks.start_soon(write, two, "b")
    assert len(await one.db.read(names)) == 100
    await one.aclose()
    await two.aclose()


@pytest.mark.sqlite
async def test_a_database_file_that_is_gone_or_replaced_takes_nothing(place: Any) -> None:
    store = await place.open()
    await store.db.write(setter("a"))
    os.rename(place.path, place.path + ".away")
    with pytest.raises(StoreUnavailable, match="gone"):
        await store.db.write(setter("b"))
    put(place.path, b"")
    with pytest.raises(StoreUnavailable, match="replaced"):
        await store.db.write(setter("b"))
    os.rename(place.path + ".away", place.path)
    await store.db.write(setter("c"))
    assert await store.db.read(names) == ["a", "c"]
    await store.aclose()


@pytest.mark.sqlite
async def test_a_folder_that_is_gone_takes_nothing(place: Any) -> None:
    store = await place.open()
    folder = os.path.dirname(place.path)
    os.rename(folder, folder + ".away")
    with pytest.raises(StoreUnavailable):
        await store.db.write(setter("a"))
    os.rename(folder + ".away", folder)
    await store.db.write(setter("b"))
    assert await store.db.read(names) == ["b"]
    await store.aclose()


@pytest.mark.sqlite
async def test_a_mistake_in_a_statement_is_raised_as_it_is_and_harms_no_other(store: Store) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await store.db.write(lambda tx: tx.execute("DELETE FROM nowhere"))
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await store.db.read(lambda tx: tx.query("SELECT * FROM nowhere"))
    await store.db.write(setter("a"))
    assert await store.db.read(names) == ["a"]


@pytest.mark.sqlite
async def test_a_lock_file_that_cannot_be_made_takes_nothing(place: Any) -> None:
    store = await place.open()
    os.unlink(place.path + ".lock")
    os.mkdir(place.path + ".lock")
    with pytest.raises(StoreUnavailable, match="lock file"):
        await store.db.write(setter("a"))
    os.rmdir(place.path + ".lock")
    await store.db.write(setter("b"))
    assert await store.db.read(names) == ["b"]
    await store.aclose()


async def test_a_broken_file_beside_the_database_refuses_the_start(place: Any) -> None:
    await (await place.open()).aclose()
    os.unlink(place.path + ".generation")
    os.mkdir(place.path + ".generation")
    with pytest.raises(SetupError, match="beside"):
        await place.open()


@pytest.mark.sqlite
async def test_a_removed_lock_file_is_made_again(place: Any) -> None:
    store = await place.open()
    os.unlink(place.path + ".lock")
    await store.db.write(setter("a"))
    assert ".lock" in {Path(name).suffix for name in os.listdir(Path(place.path).parent)}
    await store.aclose()


WRITE_MANY = """
import sys, anyio
from gateway.clock import Clock, Ids
from gateway.log import Log
from gateway.store.store import open_store
from gateway.domain.audit import AuditEvent

async def main():
    clock = Clock()
    ids = Ids(clock)
    store = await open_store(sys.argv[1], clock=clock, ids=ids, log=Log(sys.stderr, clock))
    for _ in range(100):
        event = AuditEvent(id=ids.new("evt"), occurred_at=clock.now_at(), source="test", action="written",
                           actor=sys.argv[2], actor_type="local", instance_id=store.instance_id)
        await store.db.write(lambda tx: store.audit.append(tx, event))
    await store.aclose()

anyio.run(main)
"""


@pytest.mark.sqlite
async def test_two_processes_append_to_one_chain(place: Any) -> None:
    async def run(name: str) -> None:
        await anyio.run_process([sys.executable, "-c", WRITE_MANY, place.path, name], cwd=ROOT, stderr=subprocess.PIPE)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "one")
        tasks.start_soon(run, "two")
    store = await place.open()
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=1000))
    assert [event.seq for event in events] == list(range(1, 201))
    assert {event.actor for event in events} == {"one", "two"}
    assert all(later.prev_hash == earlier.hash for earlier, later in zip(events, events[1:], strict=False))
    await store.aclose()
