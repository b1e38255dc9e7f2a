"""What holds over hosts, whose changes only the count in the database tells, and while the database does not answer."""

import io
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import pytest
from entrance import open_entrance
from fake_clock import FakeClock

from gateway.app import Gateway
from gateway.clock import Ids
from gateway.domain.keys import CreatedKey, NewKey
from gateway.domain.principals import Caller, Principal, RequestContext, Scope, local
from gateway.errors import AuditUnavailable, KeyRevoked
from gateway.jobs import FOLLOWING, run_job
from gateway.log import Log
from gateway.services.core import Core
from gateway.services.keys import Keys
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.followed_authority import FRESH_SECONDS, POLL_SECONDS, FollowedAuthority
from gateway.store.generation import Generation
from gateway.store.store import Store, open_store

T = TypeVar("T")
CONTEXT = RequestContext(request_id="req_1")
CLI = local("cli")
CALLER = Caller(CLI, CONTEXT)


class Host:
    """A gateway with a counter of its own, as on another host. gate: holds back its reads until it is set."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        ids = Ids(clock)
        self.store, self.clock, self.reads = store, clock, 0
        self.gate = anyio.Event()
        self.gate.set()
        self._read = store.db.read
        store.db.read = self._gated  # type: ignore[method-assign,assignment]
        store.generation = Generation(None)
        store.authority = FollowedAuthority(store.db, store.generation, clock)
        core = Core(store, clock, ids)
        self.keys = Keys(core)
        self.authentication = open_entrance(core)

    async def _gated(self, work: Callable[[Transaction], T], **how: bool) -> T:
        self.reads += 1
        await self.gate.wait()
        return await self._read(work, **how)

    async def enter(self, created: CreatedKey) -> Principal:
        return await self.authentication.authenticate(created.key, CONTEXT)


@pytest.fixture
async def hosts(tmp_path: Path) -> AsyncIterator[tuple[Host, Host, CreatedKey]]:
    """Two hosts on one database, and a key that both know."""
    clock, path = FakeClock(), tmp_path / "gateway.db"
    ids, log = Ids(clock), Log(io.StringIO(), clock)
    one, other = [Host(await open_store(path, clock=clock, ids=ids, log=log), clock) for _ in range(2)]
    key = await one.keys.create(CALLER, NewKey(name="ci", scopes=(Scope.SHIELD_SCAN,)))
    await one.enter(key)
    await other.enter(key)
    yield one, other, key
    for host in (one, other):
        await host.store.aclose()


async def test_a_key_revoked_on_one_host_is_refused_on_another_after_the_next_poll(hosts: Any) -> None:
    one, other, key = hosts
    before = other.store.generation.value()
    await one.keys.revoke(CALLER, key.record.id)
    await other.enter(key)
    one.clock.pass_seconds(POLL_SECONDS)
    await run_job(FOLLOWING[0], cast(Gateway, other))
    with pytest.raises(KeyRevoked):
        await other.enter(key)
    assert other.store.generation.value() == before + 1, "the other workers of the host are told"
    await other.store.authority.poll()
    await other.store.authority.poll()
    assert other.store.generation.value() == before + 1, "once"


async def test_a_request_asks_itself_when_no_poll_was_answered_for_a_second(hosts: Any) -> None:
    one, other, key = hosts
    await one.keys.revoke(CALLER, key.record.id)
    other.clock.pass_seconds(FRESH_SECONDS / 2)
    reads = other.reads
    await other.enter(key)
    assert other.reads == reads, "what was read a moment ago holds"
    other.clock.pass_seconds(FRESH_SECONDS / 2)
    with pytest.raises(KeyRevoked):
        await other.enter(key)


async def test_nothing_is_decided_while_the_database_does_not_answer(hosts: Any) -> None:
    _, other, key = hosts
    other.clock.pass_seconds(FRESH_SECONDS)
    other.gate = anyio.Event()
    other.store.authority.answer_seconds = 0.05
    refused = []

    async def ask() -> None:
        with pytest.raises(AuditUnavailable) as caught:
            await other.enter(key)
        refused.append(caught.value.retry_after_seconds)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(other.store.authority.poll)
            for _ in range(3):
                group.start_soon(ask)
    assert refused == [5, 5, 5], "each says when to come again"
    other.gate.set()
    await other.enter(key)


async def test_requests_that_meet_a_change_together_share_one_load_and_each_sees_it(hosts: Any) -> None:
    one, _, key = hosts
    before = one.store.authority.now
    await one.keys.revoke(CALLER, key.record.id)
    one.gate, reads, found = anyio.Event(), one.reads, []

    async def follow() -> None:
        found.append(await one.store.authority.follow())

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        one.gate.set()
    assert one.reads == reads + 1
    assert set(found) == {one.store.authority.now} and before not in found
    with pytest.raises(KeyRevoked):
        await one.enter(key)


async def test_a_key_that_was_read_before_its_revocation_is_not_kept_after_it(hosts: Any) -> None:
    one, _, _ = hosts
    key = await one.keys.create(CALLER, NewKey(name="late", scopes=(Scope.SHIELD_SCAN,)))
    await one.store.authority.follow()
    read, has_read, may_go_on = one._read, anyio.Event(), anyio.Event()

    async def slow(work: Callable[[Transaction], T], **how: bool) -> T:
        found = await read(work, **how)
        one._read = read
        has_read.set()
        await may_go_on.wait()
        return found

    one._read = slow
    async with anyio.create_task_group() as group:
        group.start_soon(one.enter, key)
        await has_read.wait()
        await one.keys.revoke(CALLER, key.record.id)
        with pytest.raises(KeyRevoked):
            await one.enter(key)
        may_go_on.set()
    with pytest.raises(KeyRevoked):
        await one.enter(key)


async def test_long_reads_hold_up_no_request(hosts: Any) -> None:
    one, _, key = hosts
    one.clock.pass_seconds(FRESH_SECONDS)
    end = threading.Event()
    try:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one.store.db.read, lambda tx: end.wait(30))
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(5):
                await one.enter(key)
            end.set()
    finally:
        end.set()


async def test_before_anything_was_read_nothing_is_known(tmp_path: Path) -> None:
    clock = FakeClock()
    log = Log(io.StringIO(), clock)
    store = await open_store(tmp_path / "gateway.db", clock=clock, ids=Ids(clock), log=log)
    with pytest.raises(StoreUnavailable):
        _ = store.authority.now
    await store.aclose()
