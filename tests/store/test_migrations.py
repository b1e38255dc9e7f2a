"""Numbered changes of the schema."""

import time
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import SetupError
from gateway.store import migrations, store, writer
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.migrations import MIGRATIONS, migrate, schema_number

pytestmark = pytest.mark.sqlite


def test_migrations_are_numbered_without_gaps() -> None:
    folder = Path(migrations.__file__).parent / "migrations"
    assert sorted(MIGRATIONS) == [*MIGRATIONS] == sorted(file.stem for file in folder.glob("*.sql"))


async def test_opening_again_changes_nothing(place: Any) -> None:
    schema = "SELECT sql FROM sqlite_master ORDER BY name"
    first = await place.open()
    before = [row["sql"] for row in await first.db.read(lambda tx: tx.query(schema))]
    await first.aclose()
    again = await place.open()
    assert [row["sql"] for row in await again.db.read(lambda tx: tx.query(schema))] == before
    await again.aclose()


async def test_a_start_that_is_cut_short_before_there_are_tables_says_why_and_the_next_one_makes_them(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(*given: object, **named: object) -> None:
        raise TimeoutError("cut short")

    with monkeypatch.context() as patch:
        patch.setattr(store, "migrate", cut_short)
        with pytest.raises(SetupError, match="A file beside"):
            await place.open()
    assert "failed" not in place.stream.getvalue()
    await (await place.open()).aclose()


async def test_a_change_of_a_large_schema_may_take_longer_than_who_writes_would_wait(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(tx: Transaction, *, now_at: int) -> None:
        time.sleep(1.5)
        migrate(tx, now_at=now_at)

    monkeypatch.setattr(writer, "WAIT_SECONDS", 0.5)
    monkeypatch.setattr("gateway.store.store.migrate", slow)
    store = await place.open()
    assert await store.db.read(schema_number) == len(MIGRATIONS)
    await store.aclose()


async def test_a_change_that_could_not_be_made_leaves_no_copy_of_the_database(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(tx: Transaction, *, now_at: int) -> None:
        raise StoreUnavailable("The disk is full.")

    with monkeypatch.context() as patch:
        for module in ("migrations", "store"):
            patch.setattr(f"gateway.store.{module}.MIGRATIONS", MIGRATIONS[:-1])
        await (await place.open()).aclose()
    folder = Path(place.path).parent
    with monkeypatch.context() as patch:
        patch.setattr("gateway.store.store.migrate", refuse)
        for _ in range(2):
            with pytest.raises(SetupError, match="full"):
                await place.open()
    assert not [*folder.glob("*.schema-*")]
    await (await place.open()).aclose()
    assert len([*folder.glob("*.schema-*")]) == 1


async def test_what_a_change_of_the_schema_sorts_lies_beside_the_database_and_not_in_memory(
    tmp_path: Path, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite takes some 200 bytes of memory for each row of an index that it builds otherwise."""

    def told(tx: Transaction) -> list[object]:
        return [[*row][0] for name in ("", "_directory") for row in tx.query(f"PRAGMA temp_store{name}")]

    def noted(tx: Transaction, *, now_at: int) -> None:
        within.extend(told(tx))
        migrate(tx, now_at=now_at)

    within: list[object] = []
    monkeypatch.setattr("gateway.store.store.migrate", noted)
    folder = tmp_path / "o'clock"
    store = await type(place)(str(folder / "gateway.db")).open()
    in_files, in_memory = 1, 2
    assert within == [in_files, str(folder)]
    assert await store.db.write(told) == [in_memory]
    await store.aclose()
