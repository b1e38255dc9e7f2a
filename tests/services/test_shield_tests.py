"""The validation suite as a service: kept, compared, audited, and in no count of traffic."""

import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest

from gateway.clock import Clock, Ids
from gateway.domain.alerts import AlertFilter
from gateway.domain.audit import AuditFilter
from gateway.domain.principals import Caller, RequestContext, local
from gateway.errors import AuditUnavailable, InvalidRequest
from gateway.log import Log
from gateway.services.core import Core
from gateway.services.shield_tests import TAG, RunShieldTests, ShieldTests, ShieldTestsRun
from gateway.shield import Shield, load_rules
from gateway.store.database import Transaction
from gateway.store.store import open_store

CONTEXT = RequestContext(request_id="req_1")
CLI = local("cli")
CALLER = Caller(CLI, CONTEXT)
INJECTIONS = RunShieldTests(category="injection")


class BrokenShield:
    """Fails at every text."""

    rules = ()
    digest = ""

    def scan(self, *_: object) -> object:
        raise ZeroDivisionError("a text that must not be repeated")


def shield(*phrases: str) -> Shield:
    rule = {
        "id": "phrases",
        "name": "Phrases",
        "category": "injection",
        "severity": "critical",
        "confidence": 0.9,
        "description": "A rule of the tests.",
        "direction": ["inbound"],
        "literals": phrases,
        "match": [phrases[0]],
        "pass": ["something else"],
    }
    return Shield(load_rules(json.dumps({"version": 1, "tables": {}, "rules": [rule]}).encode()))


@dataclass
class Room:
    core: Core
    tests: ShieldTests

    def other_rules(self, scanner: Any) -> ShieldTests:
        return ShieldTests(self.core, shield=scanner)

    async def events(self) -> Any:
        return (await self.core.audit.page(AuditFilter(action="shield_tests_run"))).items


@asynccontextmanager
async def room() -> AsyncGenerator[Room, None]:
    clock = Clock()
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    core = Core(store, clock, ids)
    scanner = shield("previous instructions", "rules above")
    try:
        yield Room(core, ShieldTests(core, shield=scanner))
    finally:
        await store.aclose()


async def test_before_the_first_run_there_is_none() -> None:
    async with room() as here:
        assert (await here.tests.last()).last is None


async def test_run_is_kept_as_it_was_answered() -> None:
    async with room() as here:
        run = await here.tests.run(CALLER, INJECTIONS)
        last = (await here.tests.last()).last
    assert isinstance(last, ShieldTestsRun)
    assert last == run
    assert (last.tag, last.ran_by, last.change) == (TAG, "cli", None)


async def test_second_run_with_other_rules_tells_which_cases_changed() -> None:
    async with room() as here:
        first = await here.tests.run(CALLER, INJECTIONS)
        second = await here.other_rules(shield("previous instructions")).run(CALLER, INJECTIONS)
        third = await here.tests.run(CALLER, INJECTIONS)
    assert second.change is not None and third.change is not None
    assert second.change.since_at == first.ran_at
    assert second.change.rules_changed
    assert second.change.newly_failing and not second.change.newly_holding
    assert second.change.detection_rate is not None and second.change.detection_rate < 0
    assert third.change.newly_holding == second.change.newly_failing


async def test_run_is_compared_with_the_last_of_the_same_choice() -> None:
    async with room() as here:
        await here.tests.run(CALLER, INJECTIONS)
        other = await here.tests.run(CALLER, RunShieldTests(category="c2"))
        again = await here.tests.run(CALLER, INJECTIONS)
        last = (await here.tests.last()).last
    assert other.change is None
    assert again.change is not None and not again.change.rules_changed
    assert last == again


async def test_run_is_audited_and_no_traffic() -> None:
    async with room() as here:
        run = await here.tests.run(CALLER, INJECTIONS)
        (event,) = await here.events()
        alerts = await here.core.store.db.read(lambda tx: here.core.store.alerts.page(tx, AlertFilter(scope="all")))
        every = (await here.core.audit.page(AuditFilter())).items
    assert event.details["cases"] == run.report.cases
    assert event.details["tag"] == TAG
    assert alerts.items == ()
    assert [one.action for one in every if one.action.startswith("shield")] == ["shield_tests_run"]


async def test_unknown_category_is_refused() -> None:
    async with room() as here:
        with pytest.raises(InvalidRequest) as caught:
            await here.tests.run(CALLER, RunShieldTests(category="weather"))
    assert caught.value.param == "category"


async def test_failing_shield_leaves_no_result() -> None:
    async with room() as here:
        with pytest.raises(ZeroDivisionError):
            await here.other_rules(cast(Shield, BrokenShield())).run(CALLER, INJECTIONS)
        assert (await here.tests.last()).last is None


async def test_run_that_cannot_be_audited_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tx: Transaction, event: object) -> object:
        raise AuditUnavailable("The audit log cannot be written.")

    async with room() as here:
        monkeypatch.setattr(here.core.audit, "append", fail)
        with pytest.raises(AuditUnavailable):
            await here.tests.run(CALLER, INJECTIONS)
        assert (await here.tests.last()).last is None


async def test_result_that_another_version_kept_counts_as_none() -> None:
    async with room() as here:
        await here.core.store.db.write(lambda tx: here.core.store.meta.set(tx, "shield_tests", '{"other": 1}'))
        assert (await here.tests.last()).last is None
