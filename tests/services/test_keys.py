"""API keys: made, listed, shown, revoked, and audited."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.keyhash import hash_key
from gateway.clock import SystemClock, SystemIds
from gateway.domain.audit import AuditFilter
from gateway.domain.keys import NewKey
from gateway.domain.principals import RequestContext, Scope, local
from gateway.errors import AuditUnavailable, Conflict, InvalidRequest, NotFound
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.services.keys import Keys
from gateway.store.store import Store, open_store

CONTEXT = RequestContext(request_id="req_1", user_agent="cli")
CLI = local("cli")
NEW = NewKey(name="ci", scopes=(Scope.SHIELD_SCAN,))


class House:
    def __init__(self, store: Store) -> None:
        clock = SystemClock()
        self.clock = clock
        ids = SystemIds(clock)
        self.store = store
        self.audit = Audit(store=store, clock=clock, ids=ids, instance_id=store.instance_id)
        self.keys = Keys(store=store, clock=clock, ids=ids, audit=self.audit)

    async def actions(self) -> list[str]:
        return [event.action for event in (await self.audit.page(AuditFilter())).items]


def contents(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock = SystemClock()
    store = await open_store(tmp_path / "gateway.db", clock=clock, ids=SystemIds(clock), log=Log(io.StringIO(), clock))
    yield House(store)
    await store.aclose()


async def test_a_new_key_is_shown_once_and_stored_as_its_hash(house: House, tmp_path: Path) -> None:
    created = await house.keys.create(CLI, NEW, CONTEXT)
    record = created.record
    assert created.key.startswith(record.prefix)
    assert record.digest == hash_key(created.key)
    assert (record.name, record.scopes, record.rate_limit, record.created_by) == ("ci", (Scope.SHIELD_SCAN,), 60, "cli")
    assert record.status(house.clock.now_at()) == "active"
    await house.store.aclose()
    for content in contents(tmp_path):
        assert created.key.removeprefix("svc_").encode() not in content


async def test_a_new_key_and_its_event_are_one(house: House) -> None:
    created = await house.keys.create(CLI, NEW, CONTEXT)
    (event,) = (await house.audit.page(AuditFilter(action="api_key_created"))).items
    assert (event.actor, event.source, event.resource_type, event.resource_id) == (
        "cli",
        "cli",
        "api_key",
        created.record.id,
    )
    assert event.after is not None
    assert event.after["scopes"] == ["shield:scan"]
    assert created.key not in repr(event)


async def test_a_key_whose_event_cannot_be_written_is_not_made(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tx: Any, event: Any) -> None:
        raise AuditUnavailable("no")

    monkeypatch.setattr(house.store.audit, "append", fail)
    with pytest.raises(AuditUnavailable):
        await house.keys.create(CLI, NEW, CONTEXT)
    assert await house.keys.list() == ()


@pytest.mark.parametrize(
    ("new", "param"),
    [
        (NewKey(name="", scopes=NEW.scopes), "name"),
        (NewKey(name="  \t", scopes=NEW.scopes), "name"),
        (NewKey(name="x" * 101, scopes=NEW.scopes), "name"),
        (NewKey(name="two\nlines", scopes=NEW.scopes), "name"),
        (NewKey(name="\ud800", scopes=NEW.scopes), "name"),
        (NewKey(name="a\0b", scopes=NEW.scopes), "name"),
        (NewKey(name="ci", scopes=()), "scopes"),
        (NewKey(name="ci", scopes=(Scope.AUDIT_READ, "shield:everything")), "scopes[1]"),  # type: ignore[arg-type]
        (NewKey(name="ci", scopes=NEW.scopes, rate_limit=0), "rate_limit"),
        (NewKey(name="ci", scopes=NEW.scopes, rate_limit=10_000_001), "rate_limit"),
        (NewKey(name="ci", scopes=NEW.scopes, rate_limit=-(2**70)), "rate_limit"),
        (NewKey(name="ci", scopes=NEW.scopes, expires_at=1), "expires_at"),
        (NewKey(name="ci", scopes=NEW.scopes, expires_at=2**70), "expires_at"),
    ],
)
async def test_a_bad_field_is_refused_by_name_and_nothing_is_made(house: House, new: NewKey, param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        await house.keys.create(CLI, new, CONTEXT)
    assert refusal.value.param == param
    assert await house.keys.list() == ()
    assert await house.actions() == []


async def test_scopes_are_kept_once_each_in_the_order_of_the_table(house: House) -> None:
    scopes: Any = ("fleet:read", "shield:scan", "fleet:read")
    created = await house.keys.create(CLI, NewKey(name=" ci ", scopes=scopes), CONTEXT)
    assert created.record.scopes == (Scope.SHIELD_SCAN, Scope.FLEET_READ)
    assert created.record.name == "ci"


async def test_keys_are_listed_newest_first_and_found_by_id_and_prefix(house: House) -> None:
    one = (await house.keys.create(CLI, NEW, CONTEXT)).record
    two = (await house.keys.create(CLI, NEW, CONTEXT)).record
    assert await house.keys.list() == (two, one)
    assert await house.keys.show(one.id) == one
    assert await house.keys.show(two.prefix) == two


@pytest.mark.parametrize("name", ["", "key_", "key_0", "svc_", "svc_zzzzzz", "'; DROP TABLE api_keys; --", "%"])
async def test_a_key_that_is_not_there_is_not_found(house: House, name: str) -> None:
    await house.keys.create(CLI, NEW, CONTEXT)
    with pytest.raises(NotFound):
        await house.keys.show(name)
    with pytest.raises(NotFound):
        await house.keys.revoke(CLI, name, CONTEXT)


async def test_a_prefix_of_two_keys_is_not_enough(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter((bytes(20), bytes(19) + b"\1"))
    monkeypatch.setattr(house.keys._ids, "random_bytes", lambda count: next(taken))
    record = (await house.keys.create(CLI, NEW, CONTEXT)).record
    await house.keys.create(CLI, NEW, CONTEXT)
    with pytest.raises(Conflict, match="by its id"):
        await house.keys.revoke(CLI, record.prefix, CONTEXT)


async def test_a_key_is_revoked_once_with_its_event(house: House) -> None:
    record = (await house.keys.create(CLI, NEW, CONTEXT)).record
    before = house.store.generation.value()
    revoked = await house.keys.revoke(CLI, record.id, CONTEXT)
    assert revoked.status(house.clock.now_at()) == "revoked"
    assert house.store.generation.value() != before
    assert await house.actions() == ["api_key_revoked", "api_key_created"]
    with pytest.raises(Conflict, match="already"):
        await house.keys.revoke(CLI, record.id, CONTEXT)
    assert len(await house.actions()) == 2


async def test_a_revocation_whose_event_cannot_be_written_does_not_hold(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = (await house.keys.create(CLI, NEW, CONTEXT)).record

    def fail(tx: Any, event: Any) -> None:
        raise AuditUnavailable("no")

    monkeypatch.setattr(house.store.audit, "append", fail)
    with pytest.raises(AuditUnavailable):
        await house.keys.revoke(CLI, record.id, CONTEXT)
    assert (await house.keys.show(record.id)).revoked_at is None
