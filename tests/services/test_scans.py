"""The one way to the shield: what is answered, what is recorded, and what happens when either fails."""

import hashlib
import io
import json
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest

from gateway.clock import Clock, Ids
from gateway.domain.alerts import AlertFilter
from gateway.domain.audit import AuditFilter
from gateway.domain.policies import MASKING, Capture, ShieldPolicy
from gateway.domain.principals import Caller, Principal, RequestContext, local
from gateway.errors import AuditUnavailable, InvalidRequest, Shed, ShieldUnavailable
from gateway.log import Log
from gateway.schema import decode
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.services.core import Core
from gateway.services.policies import Policies
from gateway.services.risk_acceptances import RiskAcceptances
from gateway.services.scanner import THREAD_CHARS, THREADS, TextScanner
from gateway.services.scans import ScanAnswer, Scans, ScanText, scan_schema
from gateway.shield import Detection, Direction, Policy, ScanResult, Severity, Shield, Verdict
from gateway.store import writer
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store, open_store

TEXT = "a text that nobody may keep"
CONTEXT = RequestContext(request_id="req_1", ip="127.0.0.1", agent="agent-7")
FOUND = Detection(
    rule="a-rule",
    name="A rule",
    category="injection",
    severity=Severity.CRITICAL,
    description="Something bad.",
    matched="nobody may",
    confidence=0.9,
    score=60,
    count=2,
    start=12,
    end=22,
    view="normalized",
    standards=("OWASP LLM01:2025",),
)
ALLOWED = ScanResult(Verdict.ALLOW, 0)
BLOCKED = ScanResult(Verdict.BLOCK, 60, (FOUND,), "a text that [...] keep")
REVIEWED = ScanResult(Verdict.REVIEW, 25, (FOUND,))


@dataclass
class ScriptedShield:
    """Answers what it is told to, and remembers what it was asked."""

    answer: ScanResult | Exception = ALLOWED
    asked: list[tuple[str, Direction, Policy]] = field(default_factory=list)

    def scan(self, text: str, direction: Direction, policy: Policy) -> ScanResult:
        self.asked.append((text, direction, policy))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Room:
    scans: Scans
    shield: ScriptedShield
    store: Store
    audit: Audit

    async def scan(self, text: str = TEXT, principal: Principal | None = None, **fields: Any) -> ScanAnswer:
        return await self.scans.scan(Caller(principal or local("test"), CONTEXT), ScanText(text, **fields))

    async def rows(self) -> list[dict[str, Any]]:
        await self.store.db.write(lambda tx: None)  # what was queued before is committed before this
        found = await self.store.db.read(lambda tx: tx.query("SELECT * FROM traffic"))
        return [{name: row[name] for name in ("verdict", "text_sha256", "text_chars", "detections")} for row in found]


@asynccontextmanager
async def room(
    policy: ShieldPolicy | None = None, *, max_wait_seconds: float | None = None, **more: Any
) -> AsyncGenerator[Room, None]:
    clock = Clock()
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    await store.authority.follow()
    shield = ScriptedShield()
    core = Core(store, clock, ids)
    scans = Scans(
        core,
        scanner=TextScanner(cast(Shield, shield), store, ids, rules=None, max_wait_seconds=max_wait_seconds),
        alerts=Alerts(core),
        policy=policy or ShieldPolicy(),
        policies=Policies(core),
        acceptances=RiskAcceptances(core),
        **more,
    )
    try:
        yield Room(scans, shield, store, core.audit)
    finally:
        await store.aclose()


async def test_the_answer_has_the_fields_of_the_contract_and_no_others() -> None:
    async with room() as here:
        here.shield.answer = BLOCKED
        data = (await here.scan()).data()
    assert set(data) == {"verdict", "score", "detections", "stats", "action", "elapsed_ms", "redacted"}
    assert (data["verdict"], data["score"], data["action"]) == ("BLOCK", 60, "redacted")
    assert data["stats"] == {
        "total": 1, "critical": 1, "high": 0, "medium": 0, "low": 0, "categories": {"injection": 1}
    }  # fmt: skip
    assert data["detections"] == [
        {
            "rule": "a-rule",
            "severity": "critical",
            "description": "Something bad.",
            "matched": "nobody may",
            "name": "A rule",
            "category": "injection",
            "confidence": 0.9,
            "score": 60,
            "count": 2,
            "start": 12,
            "end": 22,
            "view": "normalized",
            "standards": ["OWASP LLM01:2025"],
            "accepted": None,
        }
    ]
    assert json.loads(json.dumps(data)) == data


async def test_redacted_is_there_only_when_something_is_masked() -> None:
    async with room() as here:
        here.shield.answer = REVIEWED
        data = (await here.scan()).data()
    assert "redacted" not in data and data["action"] == "none"


async def test_the_answer_fits_its_schema() -> None:
    schema = cast(dict[str, Any], scan_schema())
    async with room() as here:
        here.shield.answer = BLOCKED
        full = (await here.scan()).data()
        here.shield.answer = ALLOWED
        least = (await here.scan()).data()
    detection = cast(list[dict[str, object]], full["detections"])[0]
    assert set(least) == set(schema["required"]) and set(full) == set(schema["properties"])
    item = schema["properties"]["detections"]["items"]
    assert set(detection) == set(item["required"]) == set(item["properties"]) - {"place"}


async def test_an_allowed_text_leaves_one_traffic_row_and_nothing_else() -> None:
    async with room() as here:
        await here.scan()
        rows = await here.rows()
        events = await here.audit.page(AuditFilter())
        alerts = await here.store.db.read(lambda tx: here.store.alerts.page(tx, AlertFilter()))
    assert [(row["verdict"], row["text_chars"], len(row["text_sha256"])) for row in rows] == [("ALLOW", len(TEXT), 64)]
    assert events.items == () and alerts.items == ()


@pytest.mark.parametrize(("answer", "action"), [(BLOCKED, "shield_scan_block"), (REVIEWED, "shield_scan_review")])
async def test_what_is_found_is_committed_before_the_answer(answer: ScanResult, action: str) -> None:
    async with room() as here:
        here.shield.answer = answer
        await here.scan()
        event = (await here.audit.page(AuditFilter())).items[0]
        alert = (await here.store.db.read(lambda tx: here.store.alerts.page(tx, AlertFilter()))).items[0]
        rows = await here.rows()
    assert (event.action, event.request_id, event.source) == (action, "req_1", "shield")
    assert event.details["detections"] == [
        {
            "rule": "a-rule",
            "severity": "critical",
            "category": "injection",
            "confidence": 0.9,
            "score": 60,
            "count": 2,
            "start": 12,
            "end": 22,
            "view": "normalized",
            "direction": "inbound",
            "place": "text",
            "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
            "chars": len(TEXT),
        }
    ]
    assert (alert.rule, alert.severity, alert.agent, alert.origin) == (
        "a-rule", Severity.CRITICAL, "agent-7", "shield.scan"
    )  # fmt: skip
    assert len(rows) == 1


async def test_neither_the_text_nor_what_matched_is_kept_anywhere() -> None:
    async with room() as here:
        here.shield.answer = BLOCKED
        await here.scan()
        event = (await here.audit.page(AuditFilter())).items[0]
        alert = (await here.store.db.read(lambda tx: here.store.alerts.page(tx, AlertFilter()))).items[0]
        kept = repr((event, alert, await here.rows()))
    for secret in (TEXT, "nobody may", "keep"):
        assert secret not in kept


async def test_the_same_find_again_raises_the_count_of_one_alert() -> None:
    async with room() as here:
        here.shield.answer = BLOCKED
        for _ in range(3):
            await here.scan()
        alerts = (await here.store.db.read(lambda tx: here.store.alerts.page(tx, AlertFilter()))).items
        events = (await here.audit.page(AuditFilter())).items
    assert [alert.count for alert in alerts] == [3]
    assert len(events) == 3


@pytest.mark.parametrize("fault", [ValueError(TEXT), RecursionError(), ZeroDivisionError(), KeyError(TEXT)])
@pytest.mark.parametrize("length", [10, THREAD_CHARS + 1])
async def test_a_shield_that_fails_lets_nothing_through(fault: Exception, length: int) -> None:
    async with room() as here:
        here.shield.answer = fault
        with pytest.raises(ShieldUnavailable) as caught:
            await here.scan("x" * length)
        assert TEXT not in caught.value.message
        assert await here.rows() == []


async def test_a_find_that_cannot_be_recorded_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with room() as here:
        here.shield.answer = BLOCKED

        async def refuse(work: Any, **how: bool) -> None:
            raise StoreUnavailable("The disk is full.")

        with monkeypatch.context() as patched:
            patched.setattr(here.store.db, "write", refuse)
            with pytest.raises(AuditUnavailable):
                await here.scan()


async def test_a_text_over_the_limit_is_refused_by_the_name_of_its_field() -> None:
    async with room(max_text_chars=10) as here:
        await here.scan("x" * 10)
        with pytest.raises(InvalidRequest) as caught:
            await here.scan("x" * 11)
    assert caught.value.param == "text"
    assert len(here.shield.asked) == 1


async def test_the_policy_of_the_operator_is_the_one_that_judges() -> None:
    strict = Policy(block_at=10, review_at=5)
    async with room(ShieldPolicy(scoring=strict)) as here:
        await here.scan(direction=Direction.OUTBOUND)
    assert here.shield.asked == [(TEXT, Direction.OUTBOUND, strict)]


async def test_a_text_of_any_characters_can_be_scanned() -> None:
    async with room() as here:
        await here.scan("\ud800\x00é\U0001f512")
        assert len(await here.rows()) == 1


async def test_a_long_text_is_scanned_while_others_are_answered() -> None:
    """The shield waits for an event that only the event loop can set."""
    async with room() as here:
        may_end = anyio.Event()

        class Waiting(ScriptedShield):
            def scan(self, text: str, direction: Direction, policy: Policy) -> ScanResult:
                anyio.from_thread.run(may_end.wait)
                return ALLOWED

        here.scans.scanner._shield = cast(Shield, Waiting())
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(here.scan, "x" * (THREAD_CHARS + 1))
                await anyio.lowlevel.checkpoint()
                may_end.set()


async def test_long_texts_take_two_threads_however_many_processors_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread takes its turn before the event loop gets another, so many of them would hold up everybody."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    async with room() as here:
        running: set[int] = set()
        most = 0

        class Counting(ScriptedShield):
            def scan(self, text: str, direction: Direction, policy: Policy) -> ScanResult:
                nonlocal most
                running.add(threading.get_ident())
                anyio.from_thread.run(anyio.wait_all_tasks_blocked)
                most = max(most, len(running))
                running.discard(threading.get_ident())
                return ALLOWED

        here.scans.scanner._shield = cast(Shield, Counting())
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(3 * THREADS):
                    group.start_soon(here.scan, "x" * (THREAD_CHARS + 1))
        assert 1 <= most <= 2


async def test_a_long_text_that_waits_too_long_for_its_turn_is_shed_and_a_reply_of_a_model_is_not() -> None:
    async with room(max_wait_seconds=0.01) as here:
        go, answered = threading.Event(), []

        class Held(ScriptedShield):
            def scan(self, text: str, direction: Direction, policy: Policy) -> ScanResult:
                assert go.wait(30)
                return ALLOWED

        here.scans.scanner._shield = cast(Shield, Held())
        long = "x" * (THREAD_CHARS + 1)

        async def reply() -> None:
            answered.append(await here.scans.scanner.scan(long, Direction.OUTBOUND, Policy()))

        try:
            async with anyio.create_task_group() as group:
                for _ in range(THREADS):
                    group.start_soon(here.scan, long)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(reply)
                for direction in Direction:
                    with pytest.raises(Shed) as shed:
                        await here.scan(long, direction=direction)
                    assert shed.value.retry_after_seconds
                assert answered == []
                go.set()
        finally:
            go.set()
        assert [one.verdict for one in answered] == [Verdict.ALLOW]
        assert len(await here.rows()) == THREADS


async def test_what_was_found_is_recorded_though_no_thread_is_free_to_mask_what_is_kept_of_it() -> None:
    async with room(ShieldPolicy(capture=Capture.REDACTED), max_wait_seconds=0.01) as here:
        go, answered = threading.Event(), []
        async with anyio.create_task_group() as group:

            async def reply() -> None:
                answered.append(await here.scans.scanner.scan("y" * len(bad), Direction.OUTBOUND, Policy()))

            async def take_all_threads() -> None:
                for _ in range(THREADS):
                    group.start_soon(reply)
                await anyio.wait_all_tasks_blocked()

            async def let_go_later() -> None:
                await anyio.sleep(0.1)
                go.set()

            class Held(ScriptedShield):
                def scan(self, text: str, direction: Direction, policy: Policy) -> ScanResult:
                    if direction is Direction.INBOUND and policy is not MASKING:
                        anyio.from_thread.run(take_all_threads)
                        anyio.from_thread.run_sync(group.start_soon, let_go_later)
                        return BLOCKED
                    assert go.wait(30)
                    return ALLOWED

            here.scans.scanner._shield = cast(Shield, Held())
            bad = "x" * (THREAD_CHARS + 1)
            try:
                assert (await here.scan(bad)).verdict is Verdict.BLOCK
            finally:
                go.set()
        assert [one.verdict for one in answered] == [Verdict.ALLOW] * THREADS
        assert [row["verdict"] for row in await here.rows()] == ["BLOCK"]
        assert [event.action for event in (await here.audit.page(AuditFilter())).items] == ["shield_scan_block"]


def test_a_request_says_text_and_direction_and_nothing_more() -> None:
    assert decode(ScanText, {"text": "a"}) == ScanText("a", Direction.INBOUND)
    assert decode(ScanText, {"text": "a", "direction": "outbound"}).direction is Direction.OUTBOUND
    for value, param in (({}, "text"), ({"text": 5}, "text"), ({"text": "a", "mode": "x"}, "mode")):
        with pytest.raises(InvalidRequest) as caught:
            decode(ScanText, value)
        assert caught.value.param == param


async def test_who_comes_faster_than_is_written_is_kept_waiting_and_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "QUEUE_WRITES", 50)
    monkeypatch.setattr(writer, "BUSY_WRITES", 10)
    go = threading.Event()
    answered: list[int] = []
    async with room() as here:

        async def come_again(caller: int) -> None:
            for number in range(20):
                await here.scan(f"{TEXT} {caller} {number}")
                answered.append(number)

        here.store.db.write_behind(lambda tx: go.wait(20))
        try:
            async with anyio.create_task_group() as tasks:
                for caller in range(10):
                    tasks.start_soon(come_again, caller)
                while here.store.db.write_behind(lambda tx: None) is False:
                    await anyio.lowlevel.checkpoint()
                await anyio.wait_all_tasks_blocked()
                assert len(answered) < 50
                go.set()
        finally:
            go.set()
        assert len(answered) == 200
        assert len(await here.rows()) == 200


async def test_nobody_is_kept_waiting_for_long_by_a_writer_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BUSY_WRITES", 0)
    monkeypatch.setattr("gateway.services.scans.CROWD_SECONDS", 0.01)
    go = threading.Event()
    async with room() as here:
        here.store.db.write_behind(lambda tx: go.wait(20))
        try:
            assert (await here.scan()).verdict is Verdict.ALLOW
            assert not go.is_set()
        finally:
            go.set()
