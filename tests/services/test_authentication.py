"""From a credential to a principal: refusals, caching, revocation, windows and scopes."""

import gc
import io
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from entrance import open_entrance
from fake_clock import FakeClock

from gateway.auth.ratelimit import RateExceeded
from gateway.clock import Ids
from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.keys import CreatedKey, NewKey
from gateway.domain.principals import Caller, Permission, Principal, RequestContext, Scope, local
from gateway.errors import (
    AuditUnavailable,
    InsufficientScope,
    InvalidApiKey,
    KeyExpired,
    KeyRevoked,
    MissingApiKey,
    PermissionDenied,
    RateLimited,
)
from gateway.log import Log
from gateway.services.core import Core
from gateway.services.keys import Keys
from gateway.services.refusals import AT_ONCE, KINDS, NAMED, WINDOW_SECONDS
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store, open_store

CONTEXT = RequestContext(request_id="req_1", ip="192.0.2.1", user_agent="curl/8")
UNKNOWN = "svc_" + "0123456789" * 4
CLI = local("cli")
CALLER = Caller(CLI, CONTEXT)


class House:
    """One process: a store, and the services over it."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.clock = clock
        core = Core(store, clock, Ids(clock))
        self.store = store
        self.audit = core.audit
        self.keys = Keys(core)
        self.authentication = open_entrance(core)

    async def key(self, **changes: Any) -> CreatedKey:
        return await self.keys.create(CALLER, NewKey(**{"name": "ci", "scopes": (Scope.SHIELD_SCAN,)} | changes))

    async def enter(self, credential: str | None) -> Principal:
        return await self.authentication.authenticate(credential, CONTEXT)

    async def events(self, action: str) -> list[AuditEvent]:
        await self.store.db.write(lambda tx: None)  # so that what was written behind is there
        return list((await self.audit.page(AuditFilter(action=action))).items)


async def open_house(path: Path, clock: FakeClock) -> House:
    log = Log(io.StringIO(), clock)
    return House(await open_store(path / "gateway.db", clock=clock, ids=Ids(clock), log=log), clock)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    one = await open_house(tmp_path, FakeClock())
    yield one
    await one.store.aclose()


async def test_a_good_key_is_its_principal(house: House) -> None:
    created = await house.key(rate_limit=7)
    who = await house.enter(created.key)
    assert (who.kind, who.id, who.name, who.rate_limit) == ("key", created.record.id, "ci", 7)
    assert who.scopes == {Scope.SHIELD_SCAN}
    assert await house.enter(created.key) is who


@pytest.mark.parametrize("credential", [None, ""])
async def test_no_key_is_missing(house: House, credential: str | None) -> None:
    with pytest.raises(MissingApiKey):
        await house.enter(credential)


@pytest.mark.parametrize(
    "credential", [UNKNOWN, "x", UNKNOWN.upper(), UNKNOWN + " ", "svc_é", "\ud800", "Bearer " + UNKNOWN]
)
async def test_an_unknown_key_or_another_form_is_invalid(house: House, credential: str) -> None:
    await house.key()
    with pytest.raises(InvalidApiKey) as refusal:
        await house.enter(credential)
    assert credential not in refusal.value.message
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__


async def test_a_revoked_key_is_refused_on_the_next_request(house: House) -> None:
    created = await house.key()
    await house.enter(created.key)
    await house.keys.revoke(CALLER, created.record.id)
    with pytest.raises(KeyRevoked):
        await house.enter(created.key)


async def test_a_key_revoked_by_another_process_is_refused_on_the_next_request(house: House, tmp_path: Path) -> None:
    created = await house.key()
    await house.enter(created.key)
    other = await open_house(tmp_path, house.clock)
    await other.keys.revoke(CALLER, created.record.id)
    with pytest.raises(KeyRevoked):
        await house.enter(created.key)
    await other.store.aclose()


async def test_a_change_that_nobody_told_is_seen_within_a_second(house: House) -> None:
    created = await house.key()
    await house.enter(created.key)
    await house.store.db.write(lambda tx: tx.execute("UPDATE api_keys SET revoked_at = 1"))
    await house.enter(created.key)
    house.clock.pass_seconds(1)
    with pytest.raises(KeyRevoked):
        await house.enter(created.key)


async def test_a_change_without_its_bump_is_told_to_every_process_within_a_second(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await house.key()
    await house.enter(created.key)
    other = await open_house(tmp_path, house.clock)
    with monkeypatch.context() as patch:
        patch.setattr(other.store.generation, "bump", lambda: None)
        await other.key(name="second")
    before = other.store.generation.value()
    await house.enter(created.key)
    assert other.store.generation.value() == before
    house.clock.pass_seconds(1)
    await house.enter(created.key)
    told = other.store.generation.value()
    assert told != before
    for _ in range(3):  # and once is enough
        house.clock.pass_seconds(1)
        await house.enter(created.key)
    assert other.store.generation.value() == told
    await other.store.aclose()


async def test_a_key_that_was_removed_is_unknown_within_a_second(house: House) -> None:
    created = await house.key()
    await house.enter(created.key)
    await house.store.db.write(lambda tx: tx.execute("DELETE FROM api_keys"))
    house.clock.pass_seconds(1)
    with pytest.raises(InvalidApiKey):
        await house.enter(created.key)
    assert not house.authentication._cached


async def test_a_key_expires_by_the_clock(house: House) -> None:
    created = await house.key(expires_at=house.clock.at + 500)
    await house.enter(created.key)
    house.clock.pass_seconds(0.5)
    with pytest.raises(KeyExpired):
        await house.enter(created.key)


async def test_a_known_key_needs_no_database_and_never_waits(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    created = await house.key()
    await house.enter(created.key)
    house.clock.pass_seconds(0.9)

    def fail(*arguments: object) -> None:
        raise AssertionError("the database was asked")

    for name in ("read", "write", "write_behind"):
        monkeypatch.setattr(house.store.db, name, fail)
    call = house.enter(created.key)
    with pytest.raises(StopIteration) as done:
        call.send(None)
    assert done.value.value.id == created.record.id


async def test_unknown_keys_take_no_memory(house: House) -> None:
    for number in range(3000):
        with pytest.raises(InvalidApiKey):
            await house.enter(f"svc_{number:040x}")
    assert not house.authentication._cached
    assert len(house.authentication.refusals._window) <= KINDS + 1


async def test_a_database_that_cannot_be_read_lets_nobody_in(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    created = await house.key()

    async def fail(work: object, **how: bool) -> None:
        raise StoreUnavailable("no")

    monkeypatch.setattr(house.store.db, "read", fail)
    with pytest.raises(AuditUnavailable):
        await house.enter(created.key)


async def test_the_first_use_is_recorded_once(house: House, tmp_path: Path) -> None:
    created = await house.key()
    other = await open_house(tmp_path, house.clock)
    async with anyio.create_task_group() as tasks:
        for one in (house, house, other):
            tasks.start_soon(one.enter, created.key)
    await house.enter(created.key)
    (event,) = await house.events("api_key_first_used")
    assert (event.actor, event.resource_id, event.ip) == ("ci", created.record.id, "192.0.2.1")
    assert (await house.keys.show(created.record.id)).last_used_at == house.clock.at
    await other.store.aclose()


async def test_a_first_use_that_cannot_be_recorded_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    created = await house.key()

    async def fail(work: object, **how: bool) -> None:
        raise StoreUnavailable("no")

    with monkeypatch.context() as patch:
        patch.setattr(house.store.db, "write", fail)
        with pytest.raises(AuditUnavailable):
            await house.enter(created.key)
    await house.enter(created.key)
    assert len(await house.events("api_key_first_used")) == 1


async def test_the_last_use_is_noted_at_most_once_a_minute(house: House) -> None:
    created = await house.key()
    times = []
    for seconds in (0, 30, 29, 1, 59, 1):
        house.clock.pass_seconds(seconds)
        await house.enter(created.key)
        await house.store.db.write(lambda tx: None)
        times.append((await house.keys.show(created.record.id)).last_used_at)
    start = times[0] or 0
    assert [(time or 0) - start for time in times] == [0, 0, 0, 60_000, 60_000, 120_000]


async def test_refusals_are_recorded_with_prefix_and_address(house: House) -> None:
    created = await house.key()
    await house.keys.revoke(CALLER, created.record.id)
    for credential in (None, "x", UNKNOWN, created.key):
        with pytest.raises((MissingApiKey, InvalidApiKey, KeyRevoked)):
            await house.enter(credential)
    events = await house.events("api_key_refused")
    assert [(event.reason, event.key_prefix, event.actor) for event in reversed(events)] == [
        ("missing_api_key", None, "unknown"),
        ("invalid_api_key", None, "unknown"),
        ("invalid_api_key", UNKNOWN[:10], "unknown"),
        ("key_revoked", created.record.prefix, "ci"),
    ]
    assert {(event.outcome, event.ip, event.source) for event in events} == {("refused", "192.0.2.1", "auth")}
    assert UNKNOWN not in repr(events)


async def test_a_flood_of_wrong_keys_is_told_in_a_few_events(house: House) -> None:
    for number in range(500):
        with pytest.raises(InvalidApiKey):
            await house.enter(f"svc_{number:06x}" + "0" * 34)
    assert len(await house.events("api_key_refused")) == AT_ONCE
    house.clock.pass_seconds(WINDOW_SECONDS)
    await house.enter((await house.key()).key)
    events = await house.events("api_key_refused")
    assert len(events) == AT_ONCE + 1
    told: Any = events[0].details
    assert sum(one["count"] for one in told["refusals"]) + told["others"] + AT_ONCE == 500
    assert (len(told["refusals"]), len(told["others_request_ids"])) == (KINDS - AT_ONCE, NAMED)


async def test_repeated_refusals_are_told_at_the_end(house: House) -> None:
    for _ in range(5):
        with pytest.raises(InvalidApiKey):
            await house.enter(UNKNOWN)
    house.authentication.refusals.flush()
    newest = (await house.events("api_key_refused"))[0]
    assert newest.reason == "repeated"
    assert newest.details["refusals"] == [
        {
            "reason": "invalid_api_key",
            "ip": "192.0.2.1",
            "key_prefix": UNKNOWN[:10],
            "count": 4,
            "request_ids": ["req_1"] * 4,
        }
    ]


async def test_the_next_refusal_tells_of_the_window_before(house: House) -> None:
    for seconds in (0, 1, WINDOW_SECONDS):
        house.clock.pass_seconds(seconds)
        with pytest.raises(InvalidApiKey):
            await house.enter("x")
    reasons = [event.reason for event in await house.events("api_key_refused")]
    assert reasons == ["invalid_api_key", "repeated", "invalid_api_key"]


async def test_a_use_that_cannot_be_noted_is_let_in_and_noted_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await house.key()
    await house.enter(created.key)
    house.clock.pass_seconds(60)

    def fail(work: object, **how: bool) -> None:
        raise StoreUnavailable("no")

    with monkeypatch.context() as patch:
        patch.setattr(house.store.db, "write_behind", fail)
        await house.enter(created.key)
    await house.enter(created.key)
    await house.store.db.write(lambda tx: None)
    assert (await house.keys.show(created.record.id)).last_used_at == house.clock.at


async def test_a_refusal_stands_even_if_it_cannot_be_recorded(house: House) -> None:
    await house.store.aclose()
    with pytest.raises(MissingApiKey):
        await house.enter(None)


async def test_the_window_admits_as_many_as_the_key_may(house: House) -> None:
    who = await house.enter((await house.key(rate_limit=2)).key)
    assert [(await house.authentication.admit(Caller(who, CONTEXT))).remaining for _ in range(2)] == [1, 0]
    with pytest.raises(RateLimited) as refusal:
        await house.authentication.admit(Caller(who, CONTEXT))
    assert isinstance(refusal.value, RateExceeded)
    assert refusal.value.retry_after_seconds == refusal.value.admission.retry_after_seconds == 60
    assert (refusal.value.admission.limit, refusal.value.admission.remaining) == (2, 0)
    house.clock.pass_seconds(60)
    assert (await house.authentication.admit(Caller(who, CONTEXT))).admitted
    (event,) = await house.events("rate_limit_exceeded")
    assert (event.key_prefix, event.reason) == (who.key_prefix, "rate_limited")
    assert await house.events("api_key_refused") == []


async def test_a_local_program_has_no_window(house: House) -> None:
    assert all([(await house.authentication.admit(CALLER)).admitted for _ in range(100)])


async def test_a_scope_that_the_key_lacks_is_refused_and_recorded(house: House) -> None:
    who = await house.enter((await house.key()).key)
    house.authentication.require(Caller(who, CONTEXT), Scope.SHIELD_SCAN)
    with pytest.raises(InsufficientScope, match="audit:read"):
        house.authentication.require(Caller(who, CONTEXT), Scope.AUDIT_READ)
    (event,) = await house.events("api_key_refused")
    assert (event.reason, event.actor) == ("insufficient_scope", "ci")


async def test_a_scope_is_no_permission_of_the_same_text(house: House) -> None:
    who = await house.enter((await house.key(scopes=(Scope.AUDIT_READ,))).key)
    with pytest.raises(PermissionDenied):
        house.authentication.require(Caller(who, CONTEXT), Permission.AUDIT_READ)
    house.authentication.require(CALLER, Permission.AUDIT_READ)


@pytest.mark.parametrize("credential", [None, "nonsense", UNKNOWN, "revoked"])
async def test_what_a_refused_request_held_does_not_wait_for_the_collector(
    house: House, credential: str | None
) -> None:
    if credential == "revoked":
        key = await house.key()
        await house.keys.revoke(CALLER, key.record.id)
        credential = key.key
    refused: weakref.ref[BaseException] | None = None
    gc.disable()
    try:
        try:
            await house.enter(credential)
        except (MissingApiKey, InvalidApiKey, KeyRevoked) as error:
            refused = weakref.ref(error)
        assert refused is not None and refused() is None
    finally:
        gc.enable()
