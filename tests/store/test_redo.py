"""Chats that are noted, answered and committed a moment later: who sees them, and what becomes of them after a kill."""

import json
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from gateway.domain.audit import AuditEvent
from gateway.domain.traffic import TrafficFilter, TrafficRow
from gateway.errors import Conflict
from gateway.store import driver, notes, redo, redone, writer
from gateway.store.commits import Commits
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.exchange import held, put_in_place
from gateway.store.filelock import FileLock
from gateway.store.store import Store
from gateway.store.syncs import Syncs
from gateway.store.traffic import ROWS
from gateway.store.upkeep import Upkeep
from gateway.store.works import Work

FEW = 1
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is committed of itself, and the last commit is always a moment ago."""
    monkeypatch.setattr(writer, "NOTED_SECONDS", 60.0)
    monkeypatch.setattr(notes, "RECENT_SECONDS", 60.0)


def event(store: Store, number: int, **fields: Any) -> AuditEvent:
    given: dict[str, Any] = {
        "id": f"evt_{number}",
        "occurred_at": number,
        "source": "chat",
        "action": "chat_completed",
        "actor": "me",
        "actor_type": "key",
        "instance_id": store.instance_id,
        "details": {"model": "größer", "n": number},
    }
    return AuditEvent(**given | fields)


def row(number: int, **fields: Any) -> TrafficRow:
    given: dict[str, Any] = {
        "id": f"trf_{number}",
        "occurred_at": number,
        "request_id": f"req_{number}",
        "operation": "chat.completions",
        "principal_id": "key_1",
        "verdict": "ALLOW",
        "score": 0,
        "model": "größer\n",
        "cost_microusd": 2**40,
    }
    return TrafficRow(**given | fields)


def note(store: Store, number: int, *, chats: int = FEW, **fields: Any) -> bool:
    return store.plain_chats.note(store.plain_chats.chat(event(store, number), row(number, **fields)), chats=chats)


def both(store: Store, number: int) -> Callable[[Transaction], None]:
    """Return the work that commits a chat at once."""

    def work(tx: Transaction) -> None:
        store.audit.append(tx, event(store, number))
        store.traffic.insert(tx, row(number))

    return work


async def begin(store: Store) -> None:
    """Commit something brief, since nobody notes before."""
    await store.db.write(lambda tx: None, is_durable=False, is_brief=True)


async def seen(store: Store) -> list[int]:
    """Return the numbers of the chats that are in the database, in the order of the chain."""
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=1000))
    rows = await store.db.read(lambda tx: store.traffic.page(tx, TrafficFilter(limit=500)))
    numbers = [int(one.id.removeprefix("evt_")) for one in events]
    assert sorted(numbers) == sorted(int(one.id.removeprefix("trf_")) for one in rows.items)
    assert [one.seq for one in events] == list(range(1, len(events) + 1))
    return numbers


def committed(path: str) -> int:
    """Return how many events the file has, past the program."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM audit_events_all").fetchone()[0])


def logs(place: Any) -> dict[str, int]:
    """Return the redo logs and how many lines each has."""
    folder = Path(place.path).parent
    return {one.name: one.read_bytes().count(b"\n") for one in sorted(folder.glob("*.redo-*"))}


def lines(place: Any, number: int = 0) -> list[bytes]:
    return Path(f"{place.path}.redo-{number}").read_bytes().splitlines(keepends=True)


def leave(place: Any, left: bytes) -> None:
    """Have a log as if a process had left it."""
    Path(place.path + ".redo-0").write_bytes(left)


def size(place: Any) -> int:
    return Path(place.path + ".redo-0").stat().st_size


def line(name: str, record: object) -> bytes:
    """Return a line of a log."""
    rest = f"{name} {record if isinstance(record, str) else json.dumps(record)}".encode()
    return b"%08x %b\n" % (zlib.crc32(rest), rest)


def killed(place: Any, numbers: range) -> None:
    """Have another process note chats in the log and end without a commit."""
    program = f"""
import anyio, os
from tests.store.conftest import Place
from tests.store.test_redo import begin, note
from gateway.store import writer
writer.NOTED_SECONDS = 60.0
async def main():
    store = await Place({place.path!r}).open()
    await begin(store)
    for number in range({numbers.start}, {numbers.stop}):
        assert note(store, number)
    os.kill(os.getpid(), 9)
anyio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr


async def test_a_chat_that_is_noted_is_committed_before_anybody_reads(place: Any) -> None:
    store = await place.open()
    await begin(store)
    assert all(note(store, number) for number in (1, 2, 3))
    assert (committed(place.path), logs(place)) == (0, {"gateway.db.redo-0": 3})
    assert await seen(store) == [1, 2, 3]
    assert (committed(place.path), logs(place)) == (3, {"gateway.db.redo-0": 0})
    assert note(store, 4)
    assert logs(place) == {"gateway.db.redo-0": 1}
    await store.aclose()
    assert (committed(place.path), logs(place)) == (4, {})


async def test_what_is_noted_comes_before_what_is_written_afterwards(place: Any) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    await store.db.write(both(store, 2))
    assert note(store, 3)
    assert await seen(store) == [1, 2, 3]
    await store.aclose()


async def test_it_is_committed_a_moment_later_or_when_it_is_much(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await place.open()
    await begin(store)
    for number in range(writer.NOTED_WORKS):
        assert note(store, number)
    await until_committed(place.path, writer.NOTED_WORKS)
    monkeypatch.setattr(writer, "NOTED_SECONDS", 0.02)
    assert note(store, 1000)
    await until_committed(place.path, writer.NOTED_WORKS + 1)
    assert logs(place) == {"gateway.db.redo-0": 0}
    await store.aclose()


async def until_committed(path: str, events: int) -> None:
    with anyio.fail_after(10):
        while committed(path) < events:  # noqa: ASYNC110  # what a timer does
            await anyio.sleep(0.005)


async def test_nothing_is_noted_long_after_a_commit_or_where_many_are_at_work_or_in_memory(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1, chats=writer.FEW_CALLERS)
    assert note(store, 2, chats=writer.FEW_CALLERS + 1)  # many are waiting, but this one alone was woken
    await anyio.lowlevel.checkpoint()
    assert not note(store, 3, chats=writer.FEW_CALLERS + 1)
    monkeypatch.setattr(notes, "RECENT_SECONDS", 0.0)
    assert not note(store, 3)
    assert await seen(store) == [1, 2]
    await store.aclose()
    place.path = ":memory:"
    monkeypatch.setattr(notes, "RECENT_SECONDS", 60.0)
    store = await place.open()
    await begin(store)
    assert not note(store, 1)
    await store.aclose()


async def test_what_a_process_that_was_killed_had_noted_is_there_for_whoever_opens_next_in_its_order(
    place: Any,
) -> None:
    killed(place, range(1, 6))
    assert (committed(place.path), logs(place)) == (0, {"gateway.db.redo-0": 5})
    store = await place.open()
    assert await seen(store) == [1, 2, 3, 4, 5]
    assert logs(place) == {}
    found = await store.db.read(lambda tx: store.traffic.find(tx, "trf_3"))
    assert found == row(3, origin="production")
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=2, limit=1))
    assert events[0].details == {"model": "größer", "n": 3}
    await store.aclose()
    assert '"event": "redo_log_done", "records": 5, "redone": 5' in place.stream.getvalue()


async def test_what_was_committed_before_the_end_is_not_done_twice(place: Any) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    assert note(store, 2)
    left = lines(place)
    await store.aclose()
    killed(place, range(3, 5))
    mixed = left + lines(place)
    leave(place, b"".join(mixed))  # as if the end had come before the log was emptied
    store = await place.open()
    assert await seen(store) == [1, 2, 3, 4]
    assert logs(place) == {}
    await store.aclose()


async def test_a_line_that_was_cut_off_was_never_answered_and_the_others_are_done(place: Any) -> None:
    killed(place, range(1, 4))
    leave(place, b"".join(lines(place))[:-9])
    store = await place.open()
    assert await seen(store) == [1, 2]
    assert logs(place) == {}
    await store.aclose()
    assert "redo_log_damaged" not in place.stream.getvalue()


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage\n",
        b"00000000 trf_9 [1, [], []]\n",
        line("trf_9", [1, [], []]),
        line("trf_9", "no JSON"),
        line("trf_9", "[" * 100_000),
        line("trf_9", [2, ["x"] * 19, ["x"] * 24]),
        line("trf_9", {}),
        line("trf_9", [[], [], []]),
        line("trf_\x80", [1, [], []]),
        b"\x00" * 4096 + b"\n",
    ],
)
async def test_what_nobody_can_read_is_put_aside_and_told_and_the_others_are_done(place: Any, bad: bytes) -> None:
    killed(place, range(1, 4))
    first, *others = lines(place)
    leave(place, first + bad + b"".join(others))
    store = await place.open()
    assert await seen(store) == [1, 2, 3]
    assert logs(place) == {"gateway.db.redo-unread-0": 4}
    assert "redo_log_damaged" in place.stream.getvalue()
    assert "trf_9" not in place.stream.getvalue()  # what is in the file is not told
    await store.aclose()
    store = await place.open()  # it is not looked at again
    assert await seen(store) == [1, 2, 3]
    await store.aclose()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("score", 2**80),
        ("score", 1.5),
        ("score", ["x"]),
        ("score", True),
        ("score", "7"),
        ("verdict", None),
        ("verdict", 7),
        ("model", "\ud800"),
        ("id", "trf_9"),
    ],
)
async def test_a_value_that_no_row_can_have_costs_that_record_alone(place: Any, column: str, value: object) -> None:
    killed(place, range(1, 4))
    raw = lines(place)
    shape, of_event, of_row = json.loads(raw[1].split(b" ", 2)[2])
    of_row[ROWS.columns.index(column)] = value
    leave(place, raw[0] + line("trf_2", [shape, of_event, of_row]) + raw[2])
    store = await place.open()
    assert await seen(store) == [1, 3]
    assert logs(place) == {"gateway.db.redo-unread-0": 3}
    await store.aclose()


async def test_a_record_that_is_there_twice_or_under_another_name_is_done_once(place: Any) -> None:
    killed(place, range(1, 3))
    first, second = lines(place)
    other = line("trf_9", second.split(b" ", 2)[2].decode().strip())
    leave(place, first + second + first + other + second)
    store = await place.open()
    assert await seen(store) == [1, 2]
    assert logs(place) == {"gateway.db.redo-unread-0": 5}
    await store.aclose()


async def test_what_was_pruned_since_is_not_done_again(place: Any) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    left = lines(place)
    assert await seen(store) == [1]

    def prune(tx: Transaction) -> int:
        store.traffic.add(tx, store.traffic.pending(tx, limit=10))
        return store.traffic.prune(tx, before=10, limit=10)

    await store.db.write(both(store, 2))
    assert await store.db.write(prune) == 1
    await store.aclose()
    leave(place, b"".join(left))
    store = await place.open()
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=10))
    assert [one.id for one in events] == ["evt_1", "evt_2"]
    assert logs(place) == {}
    await store.aclose()


async def test_the_records_of_another_database_are_not_taken(place: Any, tmp_path: Path) -> None:
    killed(place, range(1, 3))
    for one in Path(place.path).parent.iterdir():
        if ".redo-" not in one.name:
            one.unlink()
    store = await place.open()
    assert await seen(store) == []
    assert logs(place) == {"gateway.db.redo-unread-0": 2}
    await store.aclose()


async def test_each_process_has_a_log_of_its_own_which_no_other_touches_while_it_lives(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await place.open(), await place.open()
    await begin(first)
    await begin(second)
    assert note(first, 1)
    assert note(second, 2)
    third = await place.open()
    assert logs(place) == {"gateway.db.redo-0": 1, "gateway.db.redo-1": 1}
    monkeypatch.setattr(redone, "OTHERS_SECONDS", 0.0)
    assert await seen(third) == []
    assert await seen(second) == [2]
    assert await seen(first) == [2, 1]
    assert note(first, 3)
    assert await seen(first) == [2, 1, 3]
    for store in (first, second, third):
        await store.aclose()
    assert logs(place) == {}


async def test_what_a_process_has_left_since_is_not_written_over(place: Any) -> None:
    store = await place.open()
    killed(place, range(1, 3))
    await begin(store)
    assert note(store, 3)
    assert logs(place) == {"gateway.db.redo-0": 2, "gateway.db.redo-1": 1}
    await store.aclose()
    store = await place.open()
    assert await seen(store) == [3, 1, 2]
    await store.aclose()


async def test_who_reads_waits_for_what_another_process_has_noted(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redone, "OTHERS_SECONDS", 20.0)
    monkeypatch.setattr(writer, "NOTED_SECONDS", 0.1)
    first, second = await place.open(), await place.open()
    for number in range(5):
        await begin(first)
        assert note(first, number)
        assert len(await seen(second)) == number + 1
    await first.aclose()
    await second.aclose()


async def test_who_reads_commits_what_a_process_has_left_since(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redone, "LEFT_SECONDS", 0.0)
    store = await place.open()
    killed(place, range(1, 3))
    assert await seen(store) == [1, 2]
    assert logs(place) == {}
    await store.aclose()


async def test_who_reads_does_not_wait_for_ever(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await place.open(), await place.open()
    await begin(first)
    assert note(first, 1)
    with anyio.fail_after(10):
        assert await seen(second) == []
    monkeypatch.setattr(redone, "OTHERS_SECONDS", 60.0)
    with anyio.fail_after(10):
        assert await seen(second) == []  # and not for the same again
    third = await place.open()
    await begin(third)
    assert note(third, 2)
    monkeypatch.setattr(redone, "OTHERS_SECONDS", 0.0)
    assert await seen(second) == []
    monkeypatch.setattr(redone, "OTHERS_SECONDS", 60.0)
    with anyio.fail_after(10):
        assert await seen(second) == []  # however many they are
    await third.aclose()
    await first.aclose()
    assert await seen(second) == [2, 1]
    await second.aclose()


async def test_what_was_waited_for_in_vain_is_committed_when_its_process_has_ended(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redone, "OTHERS_SECONDS", 0.0)
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.2)
    store = await place.open()
    killed(place, range(1, 3))
    with sqlite3.connect(place.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(redone, "LEFT_SECONDS", 0.0)
        assert await seen(store) == []  # in vain: it cannot be written
        other.execute("ROLLBACK")
    other.close()
    assert "redo_log_failed" in place.stream.getvalue()
    assert await seen(store) == [1, 2]
    assert logs(place) == {}
    await store.aclose()


async def test_a_database_that_cannot_be_written_is_opened_and_its_log_is_left_for_later(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(place, range(1, 3))
    commit = Commits.commit

    def full(self: Commits, works: Sequence[Work], is_durable: bool) -> None:
        if len(works) == 2:
            raise StoreUnavailable("The disk is full.")
        commit(self, works, is_durable)

    with monkeypatch.context() as patched:
        patched.setattr(Commits, "commit", full)
        store = await place.open()
    assert logs(place) == {"gateway.db.redo-0": 2}
    monkeypatch.setattr(redone, "LEFT_SECONDS", 0.0)
    assert await seen(store) == [1, 2]
    await store.aclose()


async def test_while_the_database_is_locked_what_was_noted_waits_and_no_more_is_taken(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CATCH_UP_SECONDS", 0.1)
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.2)
    store = await place.open()
    await begin(store)
    with sqlite3.connect(place.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert note(store, 1)
        with pytest.raises(StoreUnavailable):
            await store.db.write(both(store, 2), is_durable=False)
        assert not note(store, 3)
        assert logs(place) == {"gateway.db.redo-0": 1}
        with anyio.fail_after(10):
            assert await seen(store) == []  # who reads is not kept waiting
        other.execute("ROLLBACK")
    other.close()
    await until_committed(place.path, 1)
    assert await seen(store) == [1]
    await begin(store)
    assert note(store, 3)
    await store.aclose()


async def test_what_could_not_be_committed_before_the_end_is_left_for_the_next(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.2)
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    with sqlite3.connect(place.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        await store.aclose()
        assert logs(place) == {"gateway.db.redo-0": 1}
        other.execute("ROLLBACK")
    other.close()
    store = await place.open()
    assert await seen(store) == [1]
    await store.aclose()


async def test_where_the_log_cannot_be_written_chats_are_committed_at_once(place: Any) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    before = size(place)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before + 100, hard))  # half of a line still goes in
    try:
        assert not note(store, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert logs(place) == {"gateway.db.redo-0": 1}
    assert size(place) == before
    assert not note(store, 2)  # not before a commit
    await begin(store)
    assert note(store, 2)
    assert await seen(store) == [1, 2]
    await store.aclose()


async def test_a_log_that_is_full_takes_no_more_until_all_is_committed(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redo, "MOST_BYTES", 2_000)
    store = await place.open()
    await begin(store)
    number = 0
    while note(store, number):
        number += 1
    assert 2 <= number <= 6
    assert await seen(store) == list(range(number))
    assert note(store, number)
    await store.aclose()


async def test_a_log_that_somebody_has_removed_is_made_anew(place: Any) -> None:
    store = await place.open()
    await begin(store)
    for number in (1, 2):
        assert note(store, number)
        assert await seen(store) == [*range(1, number + 1)]
        os.unlink(place.path + ".redo-0")
    assert note(store, 3)
    assert logs(place) == {"gateway.db.redo-0": 1}
    await store.aclose()


async def test_who_closes_removes_no_log_of_somebody_else(place: Any) -> None:
    first, second = await place.open(), await place.open()
    await begin(first)
    assert note(first, 1)
    assert await seen(first) == [1]
    os.unlink(place.path + ".redo-0")
    await begin(second)
    assert note(second, 2)
    await first.aclose()
    assert logs(place) == {"gateway.db.redo-0": 1}
    await second.aclose()
    assert logs(place) == {}


async def test_what_only_has_the_name_of_a_log_is_left_alone(place: Any) -> None:
    killed(place, range(1, 2))
    os.mkdir(place.path + ".redo-1")
    os.mkfifo(place.path + ".redo-2")
    os.symlink("nowhere", place.path + ".redo-3")
    os.mkdir(place.path + ".redo-no-number")
    store = await place.open()
    await store.db.redo(lambda: store.plain_chats)
    assert await seen(store) == [1]
    assert sorted(one.name for one in Path(place.path).parent.glob("*.redo-*")) == [
        "gateway.db.redo-1",
        "gateway.db.redo-2",
        "gateway.db.redo-3",
        "gateway.db.redo-no-number",
    ]
    await store.aclose()


async def test_while_the_disk_hangs_the_event_loop_does_not_cut_the_log(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    monkeypatch.setattr(Syncs, "are_slow", lambda self: True)
    assert await seen(store) == [1]
    assert logs(place) == {"gateway.db.redo-0": 1}
    assert note(store, 2)
    monkeypatch.undo()
    await store.db.write(both(store, 3))
    assert logs(place) == {"gateway.db.redo-0": 0}
    await store.aclose()


async def test_a_work_of_a_group_that_cannot_be_done_takes_no_other_with_it(place: Any) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    assert note(store, 2, principal_id=None)  # which no row may be without
    assert note(store, 3)
    assert await seen(store) == [1, 3]
    assert "store_write_failed" in place.stream.getvalue()
    assert logs(place) == {"gateway.db.redo-unread-0": 3}  # it was answered: somebody has to see it
    assert '"redo_log_kept"' in place.stream.getvalue()
    await begin(store)
    assert note(store, 4)
    assert await seen(store) == [1, 3, 4]
    await store.aclose()


async def test_nobody_notes_what_could_not_be_committed_a_moment_ago(place: Any) -> None:
    store = await place.open()
    await begin(store)
    assert note(store, 1)
    with sqlite3.connect(place.path) as other:
        other.execute("CREATE TRIGGER broken BEFORE INSERT ON traffic_fresh BEGIN SELECT raise(ABORT, 'no'); END")
    assert await store.db.read(lambda tx: store.audit.instances(tx)) == ()
    assert not note(store, 2)
    await store.db.write(lambda tx: None)  # which says nothing of chats
    assert not note(store, 2)
    with pytest.raises(Conflict):
        await store.db.write(both(store, 2), is_durable=False, is_brief=True)
    assert not note(store, 2)
    with sqlite3.connect(place.path) as other:
        other.execute("DROP TRIGGER broken")
    await store.db.write(both(store, 2), is_durable=False, is_brief=True)
    assert note(store, 3)
    assert await seen(store) == [2, 3]
    await store.aclose()


async def test_a_work_that_fails_among_others_keeps_nobody_from_noting(place: Any) -> None:
    store = await place.open()
    await begin(store)
    groups: list[int] = []

    def good(tx: Transaction) -> None:
        groups.append(id(tx))
        both(store, 1)(tx)

    def bad(tx: Transaction) -> None:
        groups.append(id(tx))
        both(store, 2)(tx)
        raise LookupError

    async def fail() -> None:
        with pytest.raises(LookupError):
            await store.db.write(bad, is_durable=False, is_brief=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(store.db.write, good, is_durable=False, is_brief=True))
        tasks.start_soon(fail)
    assert len(groups) == 2
    assert groups[0] == groups[1]
    assert note(store, 3)
    assert await seen(store) == [1, 3]
    await fail()
    assert not note(store, 4)
    await store.aclose()


async def test_works_that_wait_for_the_database_one_by_one_stay_in_their_order(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.2)
    store = await place.open()
    await begin(store)
    commit, calls = Commits.commit, 0

    def commit_one(self: Commits, works: Sequence[Work], is_durable: bool) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:  # the group, its first work, and then
            raise StoreUnavailable("It is locked now.")
        commit(self, works, is_durable)

    monkeypatch.setattr(Commits, "commit", commit_one)
    assert note(store, 1, principal_id=None)
    assert all(note(store, number) for number in (2, 3, 4, 5))
    await store.db.read(lambda tx: None)
    await until_committed(place.path, 4)
    assert await seen(store) == [2, 3, 4, 5]
    await store.aclose()


async def test_a_database_that_is_replaced_takes_its_logs_with_it(place: Any, tmp_path: Path) -> None:
    killed(place, range(1, 3))
    new = type(place)(str(tmp_path / "data" / "new.db"))
    await (await new.open()).aclose()
    with held(place.path):
        put_in_place(new.path, place.path, place.path + ".replaced-1")
    assert logs(place) == {"gateway.db.replaced-1.redo-0": 2}
    store = await place.open()
    assert await seen(store) == []
    await store.aclose()


def test_only_its_owner_may_read_a_log(place: Any) -> None:
    killed(place, range(1, 2))
    assert Path(place.path + ".redo-0").stat().st_mode & 0o777 == 0o600


async def together(store: Store, numbers: range) -> None:
    """Have so many chats at once, none of which is noted before it is known that it would have to wait."""
    async with anyio.create_task_group() as group:
        for number in numbers:
            record = partial(store.plain_chats.record, store.plain_chats.chat(event(store, number), row(number)))
            work = partial(store.db.write, both(store, number), is_durable=False, is_brief=True, record=record)
            group.start_soon(work)


async def test_who_would_have_to_wait_for_another_process_is_noted(place: Any) -> None:
    store = await place.open()
    await begin(store)
    lock = FileLock(place.path + ".lock")
    with lock, anyio.fail_after(10):
        await together(store, range(64))
        assert logs(place) == {"gateway.db.redo-0": 64}
        await together(store, range(64, 128))  # and who comes while the thread waits
        assert logs(place) == {"gateway.db.redo-0": 128}
        assert committed(place.path) == 0
    lock.close()
    assert sorted(await seen(store)) == [*range(128)]
    assert logs(place) == {"gateway.db.redo-0": 0}
    await store.aclose()


async def test_who_would_have_to_wait_waits_where_nothing_was_committed_a_moment_ago(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()
    await begin(store)
    monkeypatch.setattr(notes, "RECENT_SECONDS", -1.0)
    lock = FileLock(place.path + ".lock")
    with lock:
        with anyio.move_on_after(0.3) as scope:
            await together(store, range(8))
        assert scope.cancelled_caught
        assert logs(place) == {}
    lock.close()
    await until_committed(place.path, 8)
    assert sorted(await seen(store)) == [*range(8)]  # who was cancelled has been recorded all the same
    await store.aclose()


async def test_who_would_have_to_wait_for_the_log_is_noted_for_a_while(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_at_work, may_end = threading.Event(), threading.Event()

    def run(self: Upkeep, *, is_pause: bool) -> bool:
        is_at_work.set()
        return may_end.wait(60) and False

    store = await place.open()
    await begin(store)
    monkeypatch.setattr(Upkeep, "is_due", lambda self, **_: not may_end.is_set())
    monkeypatch.setattr(Upkeep, "run", run)
    await together(store, range(1))
    assert await anyio.to_thread.run_sync(is_at_work.wait, 60)
    before = logs(place).get("gateway.db.redo-0", 0)
    with anyio.fail_after(30):
        await together(store, range(1, 9))
    assert logs(place) == {"gateway.db.redo-0": before + 8}

    monkeypatch.setattr(notes, "RECENT_SECONDS", -1.0)
    with anyio.move_on_after(0.2) as scope:
        await together(store, range(9, 11))
    assert scope.cancelled_caught
    assert logs(place) == {"gateway.db.redo-0": before + 8}

    may_end.set()
    await until_committed(place.path, 11)
    assert sorted(await seen(store)) == [*range(11)]
    await store.aclose()


async def test_who_was_told_that_it_took_too_long_is_not_noted_afterwards(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open()
    await begin(store)
    refused: list[int] = []

    async def ask(number: int) -> None:
        try:
            await together(store, range(number, number + 1))
        except* StoreUnavailable:
            refused.append(number)

    lock = FileLock(place.path + ".lock")
    with lock:
        monkeypatch.setattr(notes, "RECENT_SECONDS", -1.0)
        monkeypatch.setattr(writer, "WAIT_SECONDS", 0.1)
        async with anyio.create_task_group() as group:
            group.start_soon(ask, 1)
            await anyio.sleep(0.05)  # the thread waits with this one
            group.start_soon(ask, 2)
        assert sorted(refused) == [1, 2]
        monkeypatch.setattr(notes, "RECENT_SECONDS", 60.0)
        monkeypatch.setattr(writer, "WAIT_SECONDS", 30.0)
        await ask(3)
        assert [one.split()[1] for one in lines(place)] == [b"trf_3"]
    lock.close()
    assert await seen(store) == [3]
    await store.aclose()


async def test_who_waits_and_cannot_be_noted_is_told_when_it_is_committed(place: Any) -> None:
    store = await place.open()
    await begin(store)
    lock = FileLock(place.path + ".lock")
    done: list[int] = []

    async def durable(number: int) -> None:
        await store.db.write(both(store, number))
        done.append(number)

    async with anyio.create_task_group() as group:
        with lock:
            group.start_soon(durable, 1000)
            await together(store, range(64))
            assert done == []
            group.start_soon(durable, 1001)
            await together(store, range(64, 70))
            await anyio.sleep(0.1)
            assert done == []
    lock.close()
    assert done == [1000, 1001]
    assert sorted(await seen(store)) == [*range(70), 1000, 1001]
    await store.aclose()


async def test_the_log_that_is_full_has_the_others_wait(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redo, "MOST_BYTES", 5_000)
    store = await place.open()
    await begin(store)
    lock = FileLock(place.path + ".lock")
    async with anyio.create_task_group() as group:
        with lock:
            group.start_soon(together, store, range(64))
            await until_noted(place)
            noted = logs(place)["gateway.db.redo-0"]
            assert 2 <= noted < 20
    lock.close()
    assert sorted(await seen(store)) == [*range(64)]
    await store.aclose()


async def until_noted(place: Any) -> None:
    with anyio.fail_after(10):
        while not any(logs(place).values()):  # noqa: ASYNC110  # what the event loop does in its own time
            await anyio.sleep(0.005)
    await anyio.sleep(0.05)
