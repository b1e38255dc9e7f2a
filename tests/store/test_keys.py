"""The table of API keys."""

from dataclasses import replace

import pytest
from seeding import seed

from gateway.domain.keys import KeyRecord
from gateway.domain.principals import Scope
from gateway.errors import Conflict
from gateway.store.keys import BY_DIGEST, MARK_USED, REVOKE
from gateway.store.store import Store

RECORD = KeyRecord(
    id="key_1",
    name="Größe",
    prefix="svc_012345",
    digest="d" * 64,
    scopes=(Scope.SHIELD_SCAN, Scope.AUDIT_READ),
    rate_limit=10_000_000,
    created_at=1_700_000_000_000,
    created_by="cli",
    expires_at=1_800_000_000_000,
    rotated_from="key_0",
    models=("gpt-*", "echo"),
    lineage="key_0",
)


async def test_a_record_reads_back_as_it_was_inserted(store: Store) -> None:
    await seed(store, lambda tx: store.keys.insert(tx, RECORD))
    assert await store.db.read(lambda tx: store.keys.by_digest(tx, "d" * 64)) == RECORD
    assert await store.db.read(lambda tx: store.keys.by_id(tx, "key_1")) == RECORD
    assert await store.db.read(lambda tx: store.keys.by_prefix(tx, "svc_012345")) == (RECORD,)
    assert await store.db.read(store.keys.all) == (RECORD,)
    assert await store.db.read(store.keys.count) == 1


async def test_what_is_not_there_is_none(store: Store) -> None:
    assert await store.db.read(lambda tx: store.keys.by_digest(tx, "e" * 64)) is None
    assert await store.db.read(lambda tx: store.keys.by_id(tx, "key_1")) is None
    assert await store.db.read(lambda tx: store.keys.by_prefix(tx, "svc_%")) == ()


async def test_two_keys_cannot_have_one_digest(store: Store) -> None:
    await seed(store, lambda tx: store.keys.insert(tx, RECORD))
    with pytest.raises(Conflict):
        await seed(store, lambda tx: store.keys.insert(tx, replace(RECORD, id="key_2")))


async def test_a_key_is_revoked_once_and_the_generation_moves(store: Store) -> None:
    await seed(store, lambda tx: store.keys.insert(tx, RECORD))
    before = store.generation.value()
    assert await seed(store, lambda tx: store.keys.revoke(tx, "key_1", now_at=5))
    assert store.generation.value() != before
    assert not await seed(store, lambda tx: store.keys.revoke(tx, "key_1", now_at=6))
    record = await store.db.read(lambda tx: store.keys.by_id(tx, "key_1"))
    assert record is not None
    assert record.revoked_at == 5


async def test_a_use_is_first_once_and_never_goes_back(store: Store) -> None:
    await seed(store, lambda tx: store.keys.insert(tx, RECORD))
    assert await store.db.write(lambda tx: store.keys.mark_first_used(tx, "key_1", now_at=50))
    assert not await store.db.write(lambda tx: store.keys.mark_first_used(tx, "key_1", now_at=60))
    await store.db.write(lambda tx: store.keys.mark_used(tx, "key_1", now_at=40))
    record = await store.db.read(lambda tx: store.keys.by_id(tx, "key_1"))
    assert record is not None
    assert record.last_used_at == 50


@pytest.mark.parametrize("statement", [BY_DIGEST, "WHERE id = :id", MARK_USED, REVOKE])
@pytest.mark.sqlite
async def test_among_any_number_of_keys_one_is_found_by_an_index(store: Store, statement: str) -> None:
    """So that a request costs the same with ten thousand keys as with one."""
    values = dict.fromkeys(("digest", "prefix", "id", "now_at", "revoked_at"), "x")
    if statement.startswith("WHERE"):
        statement = store.keys.select(statement)
    plan = await store.db.read(lambda tx: tx.query(f"EXPLAIN QUERY PLAN {statement}", values))
    assert all("SEARCH" in row["detail"] and "INDEX" in row["detail"] for row in plan)
