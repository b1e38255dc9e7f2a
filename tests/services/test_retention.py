"""Retention: what is too old goes in batches, what is left of the audit chain still holds, and for ever means for ever."""

from dataclasses import replace
from typing import Any

import pytest
from gateway_site import Site, open_site

from gateway.domain.alerts import AlertFilter
from gateway.domain.audit import AuditFilter
from gateway.domain.traffic import TrafficFilter
from gateway.services import retention
from gateway.services.demo_data import DemoData
from gateway.services.retention import Days, Retention

DAY_MS = 86_400_000
REQUESTS = 300


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH_ROWS", 20)
    monkeypatch.setattr(retention, "_PAUSE_SECONDS", 0)


async def fill(site: Site, age_days: int) -> None:
    gateway = site.gateway
    until_at = gateway.clock.now_at() - age_days * DAY_MS
    await DemoData(store=gateway.store, shield=gateway.shield, seed=3, until_at=until_at, requests=REQUESTS).write()


def keeper(site: Site, **days: int) -> Retention:
    gateway = site.gateway
    kept = replace(Days(0, 0, 0), **days)
    return Retention(gateway, days=lambda tx: kept)


async def counts(site: Site) -> tuple[int, int, int]:
    gateway = site.gateway
    return (
        len((await gateway.traffic.page(TrafficFilter(limit=500))).items),
        len((await gateway.alerts.page(AlertFilter(limit=500))).items),
        len((await gateway.audit.page(AuditFilter(limit=1000))).items),
    )


async def test_what_is_too_old_goes_and_the_chain_still_holds() -> None:
    async with open_site() as site:
        await fill(site, age_days=100)
        before = await counts(site)
        active = len((await site.gateway.alerts.page(AlertFilter(scope="active", limit=500))).items)
        assert before[0] == REQUESTS and before[1] > active
        await keeper(site, traffic=30, alerts=90, audit=99).prune()
        assert (await counts(site))[:2] == (1, active)
        report = await site.gateway.audit.verify()
        assert (report.ok, report.events) == (True, 2)
        (event,) = (await site.gateway.audit.page(AuditFilter(action="audit_pruned"))).items
        assert event.details["events"] == before[2] - 1
        await site.key("shield:scan")
        assert (await site.gateway.audit.verify()).ok
        await keeper(site, traffic=30, alerts=90, audit=99).prune()
        assert (await counts(site))[:2] == (1, active)


async def test_what_is_young_enough_stays() -> None:
    async with open_site() as site:
        await fill(site, age_days=20)
        before = await counts(site)
        await keeper(site, traffic=30, alerts=90, audit=365).prune()
        assert await counts(site) == before


async def test_nought_keeps_everything_for_ever() -> None:
    async with open_site() as site:
        await fill(site, age_days=3000)
        before = await counts(site)
        await keeper(site).prune()
        assert await counts(site) == before


async def test_an_event_dated_ahead_keeps_what_stands_after_it_and_a_cut_is_still_seen() -> None:
    async with open_site() as site:
        await fill(site, age_days=100)
        store = site.gateway.store
        ahead = site.gateway.clock.now_at() + DAY_MS
        event = replace(site.gateway.audit.event("clock_test", source="test"), occurred_at=ahead)
        await site.gateway.audit.record(event)
        await keeper(site, audit=30).prune()
        assert (await site.gateway.audit.verify()).ok
        await store.db.write(lambda tx: tx.execute("DELETE FROM audit_events WHERE action = 'clock_test'"))
        assert not (await site.gateway.audit.verify()).ok


async def test_rows_that_are_not_summed_yet_are_not_lost_to_the_charts() -> None:
    async with open_site() as site:
        await fill(site, age_days=40)
        summary: Any = await site.get("/api/traffic/summary?since=60d&bucket=day")
        total = summary["totals"]["requests"]
        await keeper(site, traffic=30).prune()
        summary = await site.get("/api/traffic/summary?since=60d&bucket=day")
        assert summary["totals"]["requests"] == total == REQUESTS
