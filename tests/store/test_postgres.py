"""What is PostgreSQL's own: lost links, doubtful commits, the turn of writers on several hosts, and whose database it is."""

import io
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from postgres_server import PostgresServer

from gateway.clock import Clock, Ids
from gateway.errors import SetupError
from gateway.log import Log
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.postgres_address import Address
from gateway.store.postgres_link import Link, LinkLost
from gateway.store.store import Store, open_store

pytestmark = pytest.mark.anyio
COUNT = "SELECT COUNT(*) AS count FROM meta WHERE name LIKE 'note-%'"


class Host:
    """A gateway's store on one of several hosts."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.log = io.StringIO()

    async def open(self) -> Store:
        clock = Clock()
        self.folder.mkdir(exist_ok=True)
        return await open_store(
            self.folder / "gateway.db", clock=clock, ids=Ids(clock), log=Log(self.log, clock),
            address=Address.parse(self.url), seal_key="ab" * 32,
        )  # fmt: skip


def note(store: Store, name: str) -> Any:
    """Return a write of one row."""
    return lambda tx: store.meta.set(tx, f"note-{name}", "x")


def count(tx: Transaction) -> int:
    return int(tx.query(COUNT)[0]["count"])


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
async def store(url: str, tmp_path: Path) -> AsyncIterator[Store]:
    one = await Host(url, tmp_path / "one").open()
    yield one
    await one.aclose()


@pytest.mark.parametrize("was_done", [True, False])
async def test_a_commit_whose_answer_is_lost_is_done_once_or_not_at_all(
    store: Store, monkeypatch: pytest.MonkeyPatch, was_done: bool
) -> None:
    run, lost = Link.run, []

    def breaking(self: Link, batch: Any, **more: Any) -> Any:
        if batch[0][0] == "COMMIT" and not lost:
            lost.append(self)
            if was_done:
                run(self, batch, **more)
            self.close()
            raise LinkLost("the cable was cut")
        return run(self, batch, **more)

    monkeypatch.setattr(Link, "run", breaking)
    if was_done:
        await store.db.write(note(store, "one"))
    else:
        with pytest.raises(StoreUnavailable):
            await store.db.write(note(store, "one"))
    assert lost
    assert await store.db.read(count) == was_done
    await store.db.write(note(store, "two"))
    assert await store.db.read(count) == was_done + 1


async def test_what_nobody_waits_for_is_written_once_though_the_server_was_away(
    store: Store, postgres: PostgresServer
) -> None:
    store.db.write_behind(lambda tx: tx.execute("INSERT INTO meta (name, value) VALUES ('note-first', 'x')"))
    await store.db.write(note(store, "second"))
    await to_thread.run_sync(postgres.kill)
    store.db.write_behind(lambda tx: tx.execute("INSERT INTO meta (name, value) VALUES ('note-third', 'x')"))
    with pytest.raises(StoreUnavailable):
        await store.db.write(note(store, "refused"))
    with pytest.raises(StoreUnavailable) as away:
        await store.db.read(count)
    assert str(postgres.port) not in away.value.message, "a caller learns nothing of where the database is"
    assert not store.db.is_writable
    await to_thread.run_sync(postgres.start)
    begin = time.monotonic()
    while True:
        try:
            await store.db.write(note(store, "fourth"))
            break
        except StoreUnavailable:
            assert time.monotonic() < begin + 5
            await anyio.sleep(0.1)
    assert await store.db.read(count) == 4


async def test_hosts_write_one_after_the_other_and_one_that_stands_still_loses_its_turn(
    store: Store, url: str, tmp_path: Path
) -> None:
    other = await Host(url, tmp_path / "other").open()
    try:
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(store.db.write, note(store, f"a{number}"))
                tasks.start_soon(other.db.write, note(other, f"b{number}"))
        assert await store.db.read(count) == 80
        standing = Link(Address.parse(url), Address.parse(url).password())
        limit = "SET LOCAL idle_in_transaction_session_timeout = '500ms'"
        turn = "SELECT name FROM gateway_turn FOR UPDATE"
        await to_thread.run_sync(standing.run, [("BEGIN", ()), (limit, ()), (turn, ())])
        await other.db.write(note(other, "later"))  # waits until the server has ended the other transaction
        with pytest.raises(LinkLost):
            await to_thread.run_sync(standing.run, [("COMMIT", ())])
        standing.close()
    finally:
        await other.aclose()


async def test_the_database_of_another_program_and_of_a_newer_version_is_refused(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    strange = postgres.new_database()
    postgres.query("CREATE TABLE orders (id INTEGER)", database=strange.rpartition("/")[2])
    with pytest.raises(SetupError, match="another program"):
        await Host(strange, tmp_path / "one").open()
    newer = postgres.new_database()
    await (await Host(newer, tmp_path / "two").open()).aclose()
    postgres.query("INSERT INTO schema_migrations VALUES (9999, 'later', 0)", database=newer.rpartition("/")[2])
    postgres.query("UPDATE meta SET value = '9999' WHERE name = 'oldest_schema'", database=newer.rpartition("/")[2])
    with pytest.raises(SetupError, match="schema version 9999"):
        await Host(newer, tmp_path / "two").open()


@pytest.mark.parametrize(
    ("change", "told"),
    [(lambda url: url.replace("gateway:", "gateway:wrong"), "28P01"), (lambda url: f"{url}-none", "3D000")],
)
async def test_a_login_that_is_refused_says_why_and_shows_no_password(
    postgres: PostgresServer, url: str, tmp_path: Path, change: Any, told: str
) -> None:
    with pytest.raises(SetupError) as refused:
        await Host(change(url), tmp_path / "one").open()
    assert told in refused.value.message
    assert postgres.password not in refused.value.message
