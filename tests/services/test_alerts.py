"""Alerts raised from scans: one for the same thing, a rising count, never a text."""

import io
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
import pytest
from fake_clock import FakeClock

from gateway.clock import Ids
from gateway.domain.alerts import Alert, AlertFilter, AlertSource, AlertStatus
from gateway.domain.principals import Caller, Principal, RequestContext, local
from gateway.errors import NotFound
from gateway.log import Log
from gateway.services.alerts import MOST_NAMED, Alerts
from gateway.services.core import Core
from gateway.services.findings import MOST_FINDINGS, described
from gateway.shield import Detection, Direction, ScanResult, Severity, Verdict
from gateway.store.database import Transaction
from gateway.store.store import Store, open_store

MINUTE_MS = 60_000
START_AT = 1_800_000_000_000
FOUND = Detection(
    rule="a-rule",
    name="A rule",
    category="secret",
    severity=Severity.HIGH,
    description="Something bad.",
    matched="word-that-matched",
    confidence=1.0,
    score=25,
    count=1,
    start=3,
    end=20,
    view="base64",
    place="messages[0].content",
    sha256="0" * 64,
    chars=20,
)
KEY = Principal(
    kind="key", id="key_1", name="app", scopes=frozenset(), permissions=frozenset(), key_prefix="svc_abcdef"
)


@dataclass
class Room:
    alerts: Alerts
    store: Store
    clock: FakeClock

    async def see(
        self,
        *detections: Detection,
        principal: Principal = KEY,
        agent: str | None = None,
        verdict: Verdict = Verdict.REVIEW,
    ) -> Alert | None:
        result = ScanResult(verdict, 25, detections)
        return await self.store.db.write(
            lambda tx: self.alerts.raise_from_scan(
                tx,
                result,
                caller=Caller(principal, RequestContext(request_id=f"req_{self.clock.at}", agent=agent)),
                origin="shield.scan",
                occurred_at=self.clock.at,
                direction=Direction.INBOUND,
            )
        )

    async def event(self, subject: str) -> Alert:
        return await self.store.db.write(
            lambda tx: self.alerts.raise_event(
                tx,
                source=AlertSource.PROVIDER,
                rule="provider-down",
                severity=Severity.HIGH,
                title="A provider is down",
                description="It refuses connections.",
                subject=subject,
                occurred_at=self.clock.at,
            )
        )

    async def end(self, subject: str) -> int:
        return await self.store.db.write(
            lambda tx: self.alerts.end_event(
                tx,
                source=AlertSource.PROVIDER,
                rule="provider-down",
                subject=subject,
                occurred_at=self.clock.at,
                resolution="It answers again.",
            )
        )

    async def all(self, **wanted: Any) -> tuple[Alert, ...]:
        return (await self.alerts.page(AlertFilter(**wanted))).items


@asynccontextmanager
async def room() -> AsyncGenerator[Room, None]:
    clock = FakeClock(START_AT, None)
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    try:
        yield Room(Alerts(Core(store, clock, ids)), store, clock)
    finally:
        await store.aclose()


async def test_a_find_becomes_an_open_alert_under_its_strongest_rule() -> None:
    async with room() as here:
        await here.see(FOUND, replace(FOUND, rule="weaker", severity=Severity.LOW))
        (alert,) = await here.all()
    assert (alert.rule, alert.severity, alert.status, alert.count) == ("a-rule", Severity.HIGH, AlertStatus.OPEN, 1)
    assert (alert.title, alert.description) == ("A rule: REVIEW", "Something bad.")
    assert (alert.key_prefix, alert.agent, alert.origin) == ("svc_abcdef", None, "shield.scan")
    assert alert.first_seen_at == alert.last_seen_at == START_AT


async def test_an_alert_never_holds_what_matched() -> None:
    async with room() as here:
        await here.see(replace(FOUND, category="injection"))
        assert "word-that-matched" not in repr(await here.all())


async def test_nothing_found_is_no_alert() -> None:
    async with room() as here:
        assert await here.see() is None
        assert await here.all() == ()


async def test_the_same_within_ten_minutes_raises_the_count() -> None:
    async with room() as here:
        first = await here.see(FOUND)
        here.clock.at += 9 * MINUTE_MS
        again = await here.see(FOUND)
        (alert,) = await here.all()
    assert first and again and first.id == again.id == alert.id
    assert (alert.count, alert.last_seen_at - alert.first_seen_at) == (2, 9 * MINUTE_MS)
    assert len(alert.evidence) == 2


async def test_the_same_after_ten_minutes_is_a_new_alert() -> None:
    async with room() as here:
        await here.see(FOUND)
        here.clock.at += 10 * MINUTE_MS
        await here.see(FOUND)
        assert [alert.count for alert in await here.all()] == [1, 1]


@pytest.mark.parametrize(
    "other",
    [
        {"principal": replace(KEY, id="key_2", key_prefix="svc_123456")},
        {"principal": local("cli")},
        {"agent": "agent-7"},
    ],
)
async def test_another_key_or_agent_has_an_alert_of_its_own(other: dict[str, Any]) -> None:
    async with room() as here:
        await here.see(FOUND)
        await here.see(FOUND, **other)
        assert len(await here.all()) == 2


async def test_another_rule_has_an_alert_of_its_own() -> None:
    async with room() as here:
        await here.see(FOUND)
        await here.see(replace(FOUND, rule="other"))
        assert len(await here.all()) == 2


async def test_a_long_agent_name_is_cut() -> None:
    async with room() as here:
        await here.see(FOUND, agent="a" * 5000)
        (alert,) = await here.all()
    assert alert.agent == "a" * 100


async def test_alerts_can_be_listed_by_severity() -> None:
    async with room() as here:
        await here.see(FOUND)
        await here.see(replace(FOUND, rule="other", severity=Severity.CRITICAL))
        assert [alert.rule for alert in await here.all(severity=Severity.CRITICAL)] == ["other"]


def test_what_may_be_kept_of_a_detection_is_bounded_and_without_its_text() -> None:
    kept = described((FOUND,) * 100)
    assert len(kept) == MOST_FINDINGS
    assert kept[0] == {
        "rule": "a-rule",
        "severity": "high",
        "category": "secret",
        "confidence": FOUND.confidence,
        "score": 25,
        "count": 1,
        "start": 3,
        "end": 20,
        "view": "base64",
        "place": "messages[0].content",
        "sha256": "0" * 64,
        "chars": 20,
        "matched": FOUND.matched,
    }
    assert "place" not in described((replace(FOUND, place=""),))[0]


async def test_an_event_is_one_alert_until_it_ends_by_itself_and_returns_to_it() -> None:
    async with room() as here:
        first = await here.event("prv_1")
        again = await here.event("prv_1")
        other = await here.event("prv_2")
        assert (first.id, again.count) == (again.id, 2)
        assert other.id != first.id
        assert await here.end("prv_1") == 1
        assert await here.end("prv_1") == 0
        (ended,) = await here.all(status=AlertStatus.RESOLVED)
        assert (ended.id, ended.resolution, ended.resolved_by) == (first.id, "It answers again.", "gateway")
        assert (await here.event("prv_1")).id == first.id
        assert len(await here.all(scope="active")) == 2


async def test_an_event_ends_every_alert_it_has_raised() -> None:
    async with room() as here:
        await here.event("prv_1")
        here.clock.at += 11 * MINUTE_MS
        await here.event("prv_1")
        assert len(await here.all(scope="active")) == 2
        assert await here.end("prv_1") == 2
        assert await here.all(scope="active") == ()


async def _together(*calls: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Have works written as one group."""
    async with anyio.create_task_group() as group:
        for call in calls:
            group.start_soon(call)


async def test_what_a_group_sees_again_counts_as_if_each_came_alone() -> None:
    async def seen(*, is_group: bool) -> Alert:
        async with room() as here:
            await here.see(FOUND)
            finds = [replace(FOUND, severity=severity, start=at) for at, severity in enumerate(Severity)]
            calls = [partial(here.see, one) for one in finds + finds]
            if is_group:
                await _together(*calls)
            else:
                for call in calls:
                    await call()
            (alert,) = await here.all()
            return replace(alert, id="", request_id="", incident="")

    alone = await seen(is_group=False)
    assert await seen(is_group=True) == alone
    assert (alone.count, alone.severity, len(alone.evidence)) == (9, Severity.CRITICAL, 5)


async def test_a_sighting_whose_work_fails_is_taken_back_alone() -> None:
    async with room() as here:
        await here.see(FOUND)

        def work(tx: Transaction) -> None:
            here.alerts.record(tx, replace(latest, id="alr_other", count=100, evidence=({"a": 1},)))
            raise NotFound("it went wrong")

        async def fail() -> None:
            with pytest.raises(NotFound):
                await here.store.db.write(work)

        (latest,) = await here.all()
        await _together(fail, partial(here.see, FOUND), fail, partial(here.see, FOUND), fail)
        (alert,) = await here.all()
    assert (alert.count, len(alert.evidence)) == (3, 3)


async def test_a_write_that_runs_again_counts_its_new_alert_once() -> None:
    def work(tx: Transaction) -> None:
        raise NotFound("it went wrong")

    async with room() as here:

        async def fail() -> None:
            with pytest.raises(NotFound):
                await here.store.db.write(work)

        for number in range(MOST_NAMED):
            await _together(partial(here.see, FOUND, agent=f"agent {number}"), fail)
        alerts = await here.all()
    assert len(alerts) == MOST_NAMED
    assert all(alert.agent for alert in alerts)


async def test_who_asks_within_a_group_finds_what_was_seen_before() -> None:
    async with room() as here:
        await here.see(FOUND)
        (first,) = await here.all()
        counts: list[int] = []

        def look(tx: Transaction) -> None:
            alert = here.store.alerts.by_id(tx, first.id)
            assert alert is not None
            counts.append(alert.count)
            counts.append(here.store.alerts.page(tx, AlertFilter()).items[0].count)

        asked = partial(here.store.db.write, look)
        await _together(partial(here.see, FOUND), asked, partial(here.see, FOUND), asked)
        (alert,) = await here.all()
    assert counts == [2, 2, 3, 3]
    assert alert.count == 3


async def test_evidence_that_was_kept_as_one_line_goes_on() -> None:
    async with room() as here:
        alert = await here.see(FOUND)
        assert alert is not None
        kept = json.dumps([{"sha256": "0"}, {"sha256": "1,\n2"}], separators=(",", ":"))
        params = {"kept": kept, "id": alert.id}
        sql = "UPDATE alerts SET evidence = :kept WHERE id = :id"
        await here.store.db.write(lambda tx: tx.execute(sql, params))
        await here.see(FOUND)
        await here.see(FOUND)
        (alert,) = await here.all()
    assert [one["sha256"] for one in alert.evidence] == ["0", "1,\n2", "0" * 64, "0" * 64]
    assert all(isinstance(one, dict) for one in alert.evidence)


async def test_names_made_up_for_each_text_do_not_bury_what_others_do() -> None:
    async with room() as here:
        for number in range(3 * MOST_NAMED):
            here.clock.at += 1
            await here.see(FOUND, agent=f"made up {number}")
        alerts = await here.all()
        assert len(alerts) == MOST_NAMED + 1
        assert sum(alert.count for alert in alerts) == 3 * MOST_NAMED
        (of_key,) = [alert for alert in alerts if alert.agent is None]
        assert (of_key.key_prefix, of_key.count) == (KEY.key_prefix, 2 * MOST_NAMED)
        # Who had an alert goes on with it, as does another key, and after a while everybody.
        known = await here.see(FOUND, agent="made up 3")
        other = await here.see(FOUND, agent="another", principal=replace(KEY, key_prefix="svc_another"))
        here.clock.at += 11 * MINUTE_MS
        later = await here.see(FOUND, agent="made up 900")
    assert known is not None and (known.agent, known.count) == ("made up 3", 2)
    assert other is not None and other.agent == "another"
    assert later is not None and later.agent == "made up 900"
