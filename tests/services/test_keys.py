"""API keys: made, listed, shown, revoked, and audited."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from entrance import open_entrance
from fake_clock import FakeClock

from gateway.auth.keyhash import hash_key
from gateway.clock import Ids
from gateway.domain.audit import AuditFilter
from gateway.domain.keys import ChangedKey, NewKey
from gateway.domain.principals import Caller, Permission, Principal, RequestContext, Scope, local
from gateway.errors import AuditUnavailable, Conflict, InvalidRequest, KeyRevoked, NotFound, PermissionDenied
from gateway.log import Log
from gateway.services.core import Core
from gateway.services.keys import Keys
from gateway.store.keys import BY_DIGEST
from gateway.store.store import Store, open_store
from gateway.strict_json import LAST_AT

CONTEXT = RequestContext(request_id="req_1", user_agent="cli")
CLI = local("cli")
CALLER = Caller(CLI, CONTEXT)
NEW = NewKey(name="ci", scopes=(Scope.SHIELD_SCAN,))


# Who may manage keys and nothing else.
CLERK = Principal("user", "usr_1", "clerk", frozenset({Scope.SHIELD_SCAN}), frozenset({Permission.API_KEYS_MANAGE}))


class House:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.clock = clock
        core = Core(store, clock, Ids(clock))
        self.store = store
        self.audit = core.audit
        self.keys = Keys(core)
        self.authentication = open_entrance(core)

    async def enter(self, key: str) -> str:
        return (await self.authentication.authenticate(key, CONTEXT)).id

    async def actions(self) -> list[str]:
        return [event.action for event in (await self.audit.page(AuditFilter())).items]


def contents(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock = FakeClock(seconds=None)
    store = await open_store(tmp_path / "gateway.db", clock=clock, ids=Ids(clock), log=Log(io.StringIO(), clock))
    yield House(store, clock)
    await store.aclose()


async def test_a_new_key_is_shown_once_and_stored_as_its_hash(house: House, tmp_path: Path) -> None:
    created = await house.keys.create(CALLER, NEW)
    record = created.record
    assert created.key.startswith(record.prefix)
    assert record.digest == hash_key(created.key)
    assert (record.name, record.scopes, record.rate_limit, record.created_by) == ("ci", (Scope.SHIELD_SCAN,), 60, "cli")
    assert record.status_at(house.clock.now_at()) == "active"
    await house.store.aclose()
    for content in contents(tmp_path):
        assert created.key.removeprefix("svc_").encode() not in content


async def test_a_new_key_and_its_event_are_one(house: House) -> None:
    created = await house.keys.create(CALLER, NEW)
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
        await house.keys.create(CALLER, NEW)
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
        (NewKey(name="ci", scopes=NEW.scopes, rate_limit=0), "rate_limit"),
        (NewKey(name="ci", scopes=NEW.scopes, rate_limit=10_000_001), "rate_limit"),
        (NewKey(name="ci", scopes=NEW.scopes, rate_limit=-(2**70)), "rate_limit"),
        (NewKey(name="ci", scopes=NEW.scopes, expires_at=1), "expires_at"),
        (NewKey(name="ci", scopes=NEW.scopes, expires_at=2**70), "expires_at"),
    ],
)
async def test_a_bad_field_is_refused_by_name_and_nothing_is_made(house: House, new: NewKey, param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        await house.keys.create(CALLER, new)
    assert refusal.value.param == param
    assert await house.keys.list() == ()
    assert await house.actions() == []


async def test_scopes_are_kept_once_each_in_the_order_of_the_table(house: House) -> None:
    scopes = (Scope.FLEET_READ, Scope.SHIELD_SCAN, Scope.FLEET_READ)
    created = await house.keys.create(CALLER, NewKey(name=" ci ", scopes=scopes))
    assert created.record.scopes == (Scope.SHIELD_SCAN, Scope.FLEET_READ)
    assert created.record.name == "ci"


async def test_keys_are_listed_newest_first_and_found_by_id_and_prefix(house: House) -> None:
    one = (await house.keys.create(CALLER, NEW)).record
    two = (await house.keys.create(CALLER, NEW)).record
    assert await house.keys.list() == (two, one)
    assert await house.keys.show(one.id) == one
    assert await house.keys.show(two.prefix) == two


@pytest.mark.parametrize("name", ["", "key_", "key_0", "svc_", "svc_zzzzzz", "'; DROP TABLE api_keys; --", "%"])
async def test_a_key_that_is_not_there_is_not_found(house: House, name: str) -> None:
    await house.keys.create(CALLER, NEW)
    with pytest.raises(NotFound):
        await house.keys.show(name)
    with pytest.raises(NotFound):
        await house.keys.revoke(CALLER, name)


async def test_a_prefix_of_two_keys_is_not_enough(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter((bytes(20), bytes(19) + b"\1"))
    monkeypatch.setattr(house.keys.ids, "random_bytes", lambda count: next(taken) if count == 20 else bytes(count))
    record = (await house.keys.create(CALLER, NEW)).record
    await house.keys.create(CALLER, NEW)
    with pytest.raises(Conflict, match="by its id"):
        await house.keys.revoke(CALLER, record.prefix)


async def test_a_key_is_revoked_once_with_its_event(house: House) -> None:
    record = (await house.keys.create(CALLER, NEW)).record
    before = house.store.generation.value()
    revoked = await house.keys.revoke(CALLER, record.id)
    assert revoked.status_at(house.clock.now_at()) == "revoked"
    assert house.store.generation.value() != before
    assert await house.actions() == ["api_key_revoked", "api_key_created"]
    with pytest.raises(Conflict, match="already"):
        await house.keys.revoke(CALLER, record.id)
    assert len(await house.actions()) == 2


async def test_a_revocation_whose_event_cannot_be_written_does_not_hold(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = (await house.keys.create(CALLER, NEW)).record

    def fail(tx: Any, event: Any) -> None:
        raise AuditUnavailable("no")

    monkeypatch.setattr(house.store.audit, "append", fail)
    with pytest.raises(AuditUnavailable):
        await house.keys.revoke(CALLER, record.id)
    assert (await house.keys.show(record.id)).revoked_at is None


async def test_the_rotation_procedure_works_step_by_step(house: House) -> None:
    old = await house.keys.create(CALLER, NEW)
    assert await house.enter(old.key) == old.record.id
    # 1. Create the new key. 2. Move integrations to it.
    new = await house.keys.create(CALLER, NEW)
    assert (await house.keys.show(new.record.id)).last_used_at is None
    house.clock.at += 3_600_000
    assert await house.enter(new.key) == new.record.id
    # 3. Confirm its use, and that the old one is used no more.
    assert (await house.keys.show(new.record.id)).last_used_at == house.clock.at
    assert (await house.keys.show(old.record.id)).last_used_at == house.clock.at - 3_600_000
    # 4. Revoke the old key.
    await house.keys.revoke(CALLER, old.record.id)
    with pytest.raises(KeyRevoked):
        await house.enter(old.key)
    assert await house.enter(new.key) == new.record.id


async def test_a_rotated_key_works_until_its_grace_is_over(house: House) -> None:
    old = await house.keys.create(CALLER, NewKey("ci", NEW.scopes, 7, house.clock.at + 90 * 86_400_000))
    house.clock.at += 86_400_000
    new = await house.keys.rotate(CALLER, old.record.prefix)
    record = new.record
    assert (record.name, record.scopes, record.rate_limit) == ("ci", NEW.scopes, 7)
    assert record.rotated_from == old.record.id
    assert record.expires_at == house.clock.at + 90 * 86_400_000
    house.clock.at += 86_400_000 - 1
    assert await house.enter(old.key) == old.record.id
    assert (await house.keys.show(old.record.id)).status_at(house.clock.at) == "active"
    house.clock.at += 1
    with pytest.raises(KeyRevoked):
        await house.enter(old.key)
    assert await house.enter(new.key) == record.id
    (event,) = (await house.audit.page(AuditFilter(action="api_key_rotated"))).items
    assert event.after == {"rotated_to": record.id, "revoked_at": house.clock.at}
    assert new.key not in repr(event)


async def test_no_grace_is_a_revocation_and_a_grace_can_be_cut_short(house: House) -> None:
    one, two = await house.keys.create(CALLER, NEW), await house.keys.create(CALLER, NEW)
    await house.keys.rotate(CALLER, one.record.id, grace_seconds=0)
    await house.keys.rotate(CALLER, two.record.id, grace_seconds=60)
    await house.keys.revoke(CALLER, two.record.id)
    for key in (one.key, two.key):
        with pytest.raises(KeyRevoked):
            await house.enter(key)


async def test_what_is_no_longer_good_or_rotated_already_is_not_rotated(house: House) -> None:
    rotated, revoked = await house.keys.create(CALLER, NEW), await house.keys.create(CALLER, NEW)
    expired = await house.keys.create(CALLER, NewKey("x", NEW.scopes, expires_at=house.clock.at + 1))
    await house.keys.rotate(CALLER, rotated.record.id)
    await house.keys.revoke(CALLER, revoked.record.id)
    house.clock.at += 1
    count = len(await house.keys.list())
    for created in (rotated, revoked, expired):
        with pytest.raises(Conflict):
            await house.keys.rotate(CALLER, created.record.id)
    for grace_seconds in (-1, 30 * 86_400 + 1, 2**70):
        with pytest.raises(InvalidRequest):
            await house.keys.rotate(CALLER, rotated.record.id, grace_seconds=grace_seconds)
    assert len(await house.keys.list()) == count


async def test_a_key_for_ever_and_a_day_can_be_rotated(house: House) -> None:
    created = await house.keys.create(CALLER, NewKey("x", NEW.scopes, expires_at=LAST_AT))
    house.clock.at += 86_400_000
    assert (await house.keys.rotate(CALLER, created.record.id)).record.expires_at == LAST_AT


async def test_a_change_holds_on_the_next_request_and_raises_the_version(house: House) -> None:
    created = await house.keys.create(CALLER, NEW)
    await house.enter(created.key)
    wanted = ChangedKey(name=" other ", scopes=(Scope.AUDIT_READ,), rate_limit=9, expires_at=house.clock.at + 5)
    changed = await house.keys.change(CALLER, created.record.id, wanted)
    assert (changed.name, changed.rate_limit, changed.version) == ("other", 9, 2)
    who = await house.authentication.authenticate(created.key, CONTEXT)
    assert who.scopes == {Scope.AUDIT_READ}
    (event,) = (await house.audit.page(AuditFilter(action="api_key_changed"))).items
    assert event.before is not None
    assert event.after is not None
    assert (event.before["name"], event.after["name"]) == ("ci", "other")
    assert (await house.keys.change(CALLER, created.record.id, ChangedKey(expires_at=None))).expires_at is None


async def test_a_change_that_changes_nothing_is_none(house: House) -> None:
    record = (await house.keys.create(CALLER, NEW)).record
    assert await house.keys.change(CALLER, record.id, ChangedKey(name="ci", scopes=NEW.scopes)) == record
    assert await house.actions() == ["api_key_created"]


async def test_a_lost_update_is_a_conflict(house: House) -> None:
    record = (await house.keys.create(CALLER, NEW)).record
    await house.keys.change(CALLER, record.id, ChangedKey(name="mine", version=1))
    with pytest.raises(Conflict, match="version 2") as refusal:
        await house.keys.change(CALLER, record.id, ChangedKey(name="yours", version=1))
    assert refusal.value.param == "version"
    assert (await house.keys.show(record.id)).name == "mine"


@pytest.mark.parametrize(
    ("wanted", "param"),
    [
        (ChangedKey(name=" "), "name"),
        (ChangedKey(scopes=()), "scopes"),
        (ChangedKey(rate_limit=0), "rate_limit"),
        (ChangedKey(expires_at=1), "expires_at"),
        (ChangedKey(expires_at=LAST_AT + 1), "expires_at"),
    ],
)
async def test_a_bad_change_is_refused_by_name(house: House, wanted: ChangedKey, param: str) -> None:
    record = (await house.keys.create(CALLER, NEW)).record
    with pytest.raises(InvalidRequest) as refusal:
        await house.keys.change(CALLER, record.id, wanted)
    assert refusal.value.param == param
    assert await house.keys.show(record.id) == record


async def test_a_revoked_key_is_not_changed(house: House) -> None:
    record = (await house.keys.create(CALLER, NEW)).record
    await house.keys.revoke(CALLER, record.id)
    with pytest.raises(Conflict):
        await house.keys.change(CALLER, record.id, ChangedKey(name="x"))


async def test_nobody_grants_scopes_they_do_not_hold(house: House) -> None:
    audit_read = (Scope.SHIELD_SCAN, Scope.AUDIT_READ)
    broad = (await house.keys.create(CALLER, NewKey("broad", audit_read))).record
    narrow = (await house.keys.create(Caller(CLERK, CONTEXT), NEW)).record
    with pytest.raises(PermissionDenied, match="audit:read") as refusal:
        await house.keys.create(Caller(CLERK, CONTEXT), NewKey("x", audit_read))
    assert refusal.value.param == "scopes"
    with pytest.raises(PermissionDenied):
        await house.keys.change(Caller(CLERK, CONTEXT), narrow.id, ChangedKey(scopes=audit_read))
    # The answer of a rotation is a key with all that the old one may do.
    with pytest.raises(PermissionDenied):
        await house.keys.rotate(Caller(CLERK, CONTEXT), broad.id)
    assert (await house.keys.change(Caller(CLERK, CONTEXT), broad.id, ChangedKey(name="renamed"))).scopes == audit_read
    await house.keys.revoke(Caller(CLERK, CONTEXT), broad.id)


@pytest.mark.sqlite
async def test_ten_thousand_keys_cost_a_request_what_one_does(house: House) -> None:
    created = await house.keys.create(CALLER, NEW)

    def fill(tx: Any) -> None:
        for number in range(10_000):
            tx.execute(
                "INSERT INTO api_keys (id, name, prefix, digest, scopes, rate_limit, created_at, created_by)"
                " VALUES (:id, 'n', 'svc_000000', :digest, '[\"shield:scan\"]', 60, 0, 'x')",
                {"id": f"key_{number:026d}", "digest": f"{number:064x}"},
            )

    await house.store.db.write(fill)
    assert await house.enter(created.key) == created.record.id
    statement = "EXPLAIN QUERY PLAN " + house.store.keys.select(BY_DIGEST)
    plan = await house.store.db.read(lambda tx: tx.query(statement, {"digest": "x"}))
    assert [row["detail"].split(" USING ")[0] for row in plan] == ["SEARCH api_keys"]
    house.store.db.read = lambda work, **how: pytest.fail("a known key is not looked up again")  # type: ignore[method-assign]
    assert await house.enter(created.key) == created.record.id
