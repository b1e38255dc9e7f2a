"""How the log is carried over in a busy hour: most of it while others commit, and nothing is lost by it."""

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

from gateway.errors import SetupError
from gateway.store import checkpoints, sqlite, upkeep, wal, writer
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

PAGES_4 = "x" * 16_000


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def spoil(path: str) -> None:
    Path(path).write_bytes(b"something else")


class Disk:
    """What becomes of the next way of the database file to the disk, in this process; all others are as they are."""

    def __init__(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self._sync, self._mend = os.fdatasync, os.fsync
        self._act: Callable[[int], object] | None = None
        self._refusals = 0
        self._may_go = threading.Event()
        self.priorities: list[int] = []  # of who was at it
        self.passes = 0  # since the disk did something
        self.salts: list[bytes] = []  # that the log had when something was refused
        monkeypatch.setattr(os, "fdatasync", self._take)
        monkeypatch.setattr(os, "fsync", self._take_again)

    def hang(self) -> None:
        self._act = lambda _: self._may_go.wait(60)

    def go_on(self) -> None:
        self._may_go.set()

    def lose(self, refusals: int) -> None:
        """Lose all that was written to the file since now, say so when it is to be on the disk, and refuse it after."""
        before = content(self._path)

        def act(descriptor: int) -> None:
            os.ftruncate(descriptor, len(before))
            os.pwrite(descriptor, before, 0)
            raise OSError(errno.EIO, "the disk has lost it")

        self._act, self._refusals = act, refusals

    def is_used(self) -> bool:
        return bool(self.priorities)

    def has_refused(self) -> bool:
        return self.is_used() and not self._refusals

    def _is_file(self, descriptor: int) -> bool:
        return os.readlink(f"/proc/self/fd/{descriptor}") == self._path

    def _take(self, descriptor: int) -> None:
        if self._is_file(descriptor):
            self.passes += 1
            if self._act is not None:
                act, self._act, self.passes = self._act, None, 1
                self.priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
                act(descriptor)
        self._sync(descriptor)

    def _take_again(self, descriptor: int) -> None:
        if self._refusals and self._is_file(descriptor):
            self._refusals -= 1
            self.salts.append(wal.salt(self._path + "-wal"))
            raise OSError(errno.EIO, "the disk takes nothing")
        self._mend(descriptor)


@pytest.fixture
def disk(place: Any, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(place.path, monkeypatch)


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no pause, and the log is due after every few groups."""
    monkeypatch.setattr(writer, "PAUSE_SECONDS", 60.0)
    monkeypatch.setattr(upkeep, "_CHECKPOINT_CHANGES", 1)
    monkeypatch.setattr(upkeep, "_CHECKPOINT_GROUPS", 4)


def putting(number: int, threads: list[int] | None = None) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        if threads is not None:
            threads.append(threading.get_ident())
        tx.execute(
            "INSERT OR REPLACE INTO meta (name, value) VALUES (:name, :value)",
            {"name": f"probe {number}", "value": f"{number} {PAGES_4}"},
        )

    return work


async def put_until(store: Store, is_it_so: Callable[[], bool], first: int = 0) -> int:
    """Put rows until it is so, and return how many there are."""
    with anyio.fail_after(30):
        while not is_it_so():
            await store.db.write(putting(first))
            first += 1
    return first


def log_begins_anew(place: Any) -> Callable[[], bool]:
    before = wal.salt(place.path + "-wal")
    return lambda: wal.salt(place.path + "-wal") != before


def frames(path: str) -> int:
    """Return how many pages were written to the log since it began anew."""
    log = content(path + "-wal")
    return sum(log[at + 8 : at + 16] == log[16:24] for at in range(32, len(log), 24 + 4096))


async def until_others_may(place: Any) -> None:
    """Wait until another process may carry over the log."""
    descriptor = os.open(place.path + ".checkpoint", os.O_RDWR)
    with anyio.fail_after(10):
        while not can_lock(descriptor):
            await anyio.lowlevel.checkpoint()
    os.close(descriptor)


def can_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def rows(path: str) -> int:
    """Return how many rows were put, all of which must be there, in a database that is sound."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = connection.execute("SELECT value FROM meta WHERE name LIKE 'probe %' ORDER BY rowid").fetchall()
    connection.close()
    assert sorted(int(value.split()[0]) for (value,) in found) == [*range(len(found))]
    return len(found)


async def test_others_commit_in_the_event_loop_while_a_thread_of_low_priority_carries_over_the_log(
    place: Any, disk: Disk
) -> None:
    store = await place.open()
    disk.hang()
    count = await put_until(store, disk.is_used)
    threads: list[int] = []
    with anyio.fail_after(30):
        for number in range(8):
            await store.db.write(putting(count + number, threads), is_durable=False, is_brief=True)
    assert threads[-1] == threading.get_ident()
    assert disk.priorities == [os.getpriority(os.PRIO_PROCESS, 0) + 10]
    is_anew = log_begins_anew(place)
    disk.go_on()
    count = await put_until(store, is_anew, count + 8)
    await store.aclose()
    assert rows(place.path) == count


async def test_the_log_is_carried_over_once_in_so_many_groups(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_CHECKPOINT_GROUPS", 40)
    store = await place.open()
    first = await put_until(store, log_begins_anew(place))
    second = await put_until(store, log_begins_anew(place), first)
    assert second - first >= 30
    await store.aclose()


async def test_what_nobody_commits_after_is_carried_over_all_the_same(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_COMMIT_SECONDS", 0.001)
    monkeypatch.setattr(upkeep, "_CHECKPOINT_GROUPS", 1)
    store = await place.open()
    for number in range(5):
        await store.db.write(putting(number))
        with anyio.fail_after(10):
            while f"{number} xxx".encode() not in content(place.path):
                await anyio.lowlevel.checkpoint()
    await store.aclose()


async def test_a_pass_begins_after_something_was_written_to_the_log_also_where_nothing_is_changed(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the log might begin anew in just that moment, which SQLite before 3.51.3 cannot bear."""
    monkeypatch.setattr(checkpoints, "_COMMIT_SECONDS", 60.0)
    begun, passed = [0], [0]
    begin, go_on = checkpoints.Checkpoints.begin, checkpoints.Checkpoints._pass

    def note_begin(self: checkpoints.Checkpoints) -> None:
        begin(self)
        begun.append(frames(place.path))

    def note_pass(self: checkpoints.Checkpoints) -> None:
        passed.append(frames(place.path))
        go_on(self)

    def change_nothing(tx: Transaction) -> None:
        tx.execute("UPDATE meta SET value = value WHERE name = 'probe 0'")

    store = await place.open()
    await put_until(store, log_begins_anew(place))
    monkeypatch.setattr(checkpoints.Checkpoints, "begin", note_begin)
    monkeypatch.setattr(checkpoints.Checkpoints, "_pass", note_pass)
    with anyio.fail_after(10):
        while len(passed) < 2:
            await store.db.write(change_nothing)
    assert passed[1] > begun[1] > 0
    await store.aclose()


async def test_a_log_that_gets_long_is_left_alone_while_the_thread_is_at_it(
    place: Any, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_LOOK_GROUPS", 1)
    monkeypatch.setattr(upkeep, "_WAL_BYTES", 300_000)
    store = await place.open()
    disk.hang()
    count = await put_until(store, disk.is_used)
    is_anew = log_begins_anew(place)
    count = await put_until(store, iter([False] * 60 + [True]).__next__, count)
    assert not is_anew()
    disk.go_on()
    await put_until(store, is_anew, count)
    assert disk.passes == 1  # where it would be two
    await store.aclose()


async def test_the_log_is_left_alone_while_another_process_carries_it_over(place: Any) -> None:
    store = await place.open()
    await put_until(store, log_begins_anew(place))
    descriptor = os.open(place.path + ".checkpoint", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    is_anew = log_begins_anew(place)
    count = await put_until(store, iter([False] * 60 + [True]).__next__)
    assert not is_anew()
    os.close(descriptor)
    await put_until(store, is_anew, count)
    await store.aclose()


async def test_who_ends_a_round_without_a_connection_leaves_the_log_to_other_processes(place: Any, disk: Disk) -> None:
    def refuse(tx: Transaction) -> None:
        raise StoreUnavailable("The disk is full.")

    store = await place.open()
    disk.hang()
    await put_until(store, disk.is_used)
    with pytest.raises(StoreUnavailable):
        await store.db.write(refuse)  # which gives up the connection
    disk.go_on()
    await until_others_may(place)
    await store.aclose()


async def test_where_no_thread_can_be_had_the_log_is_carried_over_when_it_gets_long(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_LOOK_GROUPS", 1)
    monkeypatch.setattr(upkeep, "_WAL_BYTES", 1_000_000)
    start = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        if self.name == "store-checkpoint":
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    store = await place.open()
    count = await put_until(store, log_begins_anew(place))
    count = await put_until(store, log_begins_anew(place), count)
    await store.aclose()
    assert rows(place.path) == count


@pytest.mark.parametrize("refusals", [0, 2])
async def test_what_the_disk_has_lost_though_it_counts_as_carried_over_is_written_again_before_the_log_begins_anew(
    place: Any, disk: Disk, refusals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_RETRY_SECONDS", 0.01)
    store = await place.open()
    count = await put_until(store, log_begins_anew(place))
    is_anew, salt = log_begins_anew(place), wal.salt(place.path + "-wal")
    disk.lose(refusals)
    count = await put_until(store, disk.is_used, count)
    await until_others_may(place)  # though nobody commits any more
    count = await put_until(store, is_anew, count)
    assert disk.salts == [salt] * refusals
    assert "store_checkpoint_failed" in place.stream.getvalue()
    await store.aclose()
    assert rows(place.path) == count


async def test_a_process_that_ends_writes_again_what_the_disk_has_lost(
    place: Any, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_RETRY_SECONDS", 60.0)
    store = await place.open()
    count = await put_until(store, log_begins_anew(place))
    disk.lose(1)
    count = await put_until(store, disk.has_refused, count)
    await store.aclose()
    assert rows(place.path) == count


async def test_a_pass_that_hangs_is_not_waited_for_for_ever_and_the_next_process_has_all(
    place: Any, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "STOP_SECONDS", 0.05)
    store = await place.open()
    disk.hang()
    count = await put_until(store, disk.is_used)
    with anyio.fail_after(20), pytest.raises(StoreUnavailable):
        await store.aclose()
    disk.go_on()
    assert rows(place.path) == count


async def test_no_file_stays_open(place: Any) -> None:
    for _ in range(2):  # the first may open what stays for the process
        store = await place.open()
        await put_until(store, log_begins_anew(place))
        await store.aclose()
        is_open = sorted(os.listdir("/proc/self/fd"))
    store = await place.open()
    await put_until(store, log_begins_anew(place))
    await store.aclose()
    spoil(place.path)
    with pytest.raises(SetupError):
        await place.open()
    assert sorted(os.listdir("/proc/self/fd")) == is_open
