"""Policies in a second process, and what holds for whom."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from entrance import open_entrance

from gateway.clock import Clock, Ids
from gateway.domain.keys import ChangedKey, NewKey
from gateway.domain.policies import ShieldMode, ShieldPolicy
from gateway.domain.principals import Caller, Permission, Principal, RequestContext, Scope, local
from gateway.errors import PermissionDenied
from gateway.log import Log
from gateway.services.core import Core
from gateway.services.keys import Keys
from gateway.services.policies import Policies, WantedPolicy
from gateway.store.store import Store, open_store

CLI = local("cli")
CONTEXT = RequestContext(request_id="req_1")
CALLER = Caller(CLI, CONTEXT)
DEFAULT = ShieldPolicy(tool_injection=False)


class Process:
    """One process over the database."""

    def __init__(self, store: Store) -> None:
        clock = Clock()
        core = Core(store, clock, Ids(clock))
        self.store = store
        self.keys = Keys(core)
        self.policies = Policies(core)
        self.authentication = open_entrance(core, policies=self.policies)

    async def holds(self, key: str) -> ShieldPolicy:
        return self.policies.of(await self.authentication.authenticate(key, CONTEXT), DEFAULT)


async def open_process(path: Path) -> Process:
    clock = Clock()
    log = Log(io.StringIO(), clock)
    return Process(await open_store(path / "gateway.db", clock=clock, ids=Ids(clock), log=log))


async def test_what_one_process_changes_another_obeys_at_its_next_request(tmp_path: Path) -> None:
    one, other = await open_process(tmp_path), await open_process(tmp_path)
    try:
        created = await one.keys.create(CALLER, NewKey(name="ci", scopes=tuple(Scope)))
        assert await other.holds(created.key) is DEFAULT
        await one.policies.create(CALLER, WantedPolicy(name="lab", mode=ShieldMode.OBSERVE))
        await one.keys.change(CALLER, created.record.id, ChangedKey(policy="lab"))
        assert (await other.holds(created.key)).mode is ShieldMode.OBSERVE
        await one.policies.change(CALLER, "lab", WantedPolicy(mode=ShieldMode.BLOCK))
        assert (await other.holds(created.key)).mode is ShieldMode.BLOCK
        await one.keys.change(CALLER, created.record.id, ChangedKey(policy=None))
        assert await other.holds(created.key) is DEFAULT
    finally:
        await one.store.aclose()
        await other.store.aclose()


async def test_whoever_may_not_write_a_policy_gives_none_to_a_key(tmp_path: Path) -> None:
    clerk = Principal("user", "usr_1", "clerk", frozenset(Scope), frozenset({Permission.API_KEYS_MANAGE}))
    new = NewKey(name="ci", scopes=(Scope.SHIELD_SCAN,))
    one = await open_process(tmp_path)
    try:
        await one.policies.create(CALLER, WantedPolicy(name="lab", mode=ShieldMode.OBSERVE))
        with pytest.raises(PermissionDenied):
            await one.keys.create(Caller(clerk, CONTEXT), replace(new, policy="lab"))
        made = (await one.keys.create(Caller(clerk, CONTEXT), new)).record
        with pytest.raises(PermissionDenied) as caught:
            await one.keys.change(Caller(clerk, CONTEXT), made.id, ChangedKey(policy="lab"))
        assert caught.value.param == "policy"
        await one.keys.change(CALLER, made.id, ChangedKey(policy="lab"))
        assert (await one.keys.change(Caller(clerk, CONTEXT), made.id, ChangedKey(name="other"))).policy is not None
        with pytest.raises(PermissionDenied):
            await one.keys.change(Caller(clerk, CONTEXT), made.id, ChangedKey(policy=None))
    finally:
        await one.store.aclose()
