"""A made-up day: the same for one seed, whole, tagged, and never in a database that holds anything."""

from typing import Any

import pytest
from gateway_site import Site, open_site

from gateway.domain.traffic import DEMO
from gateway.errors import Conflict
from gateway.services.demo_data import DemoData, DemoReport

UNTIL_AT = 1_893_456_000_000
REQUESTS = 3000


async def fill(site: Site, seed: int = 7) -> DemoReport:
    gateway = site.gateway
    until_at = gateway.clock.now_at()
    maker = DemoData(store=gateway.store, shield=gateway.shield, seed=seed, until_at=until_at, requests=REQUESTS)
    return await maker.write()


async def story(seed: int) -> list[Any]:
    async with open_site() as site:
        gateway = site.gateway
        maker = DemoData(store=gateway.store, shield=gateway.shield, seed=seed, until_at=UNTIL_AT, requests=300)
        await maker.write()
        rows = await gateway.store.db.read(
            lambda tx: tx.query("SELECT id, agent, key_prefix, model, score, elapsed_us FROM traffic ORDER BY position")
        )
        return [tuple(row) for row in rows]  # type: ignore[arg-type]


async def test_one_seed_tells_one_story_and_another_seed_another() -> None:
    first = await story(1)
    assert len(first) == 300
    assert await story(1) == first
    second = await story(2)
    assert second != first and max(row[4] for row in second) > 60, "the attack is blocked"


async def test_the_day_is_in_every_view_and_its_chain_holds() -> None:
    async with open_site() as site:
        report = await fill(site)
        assert (report.requests, report.agents, report.keys, report.providers) == (REQUESTS, 40, 12, 3)
        summary = await site.get("/api/traffic/summary?since=25h")
        assert (summary["origin"], summary["totals"]["requests"]) == (DEMO, REQUESTS)
        assert (summary["totals"]["blocks"], summary["totals"]["reviews"]) == (report.blocks, report.reviews)
        assert report.blocks > 0 and summary["totals"]["failures"] > 0 and summary["totals"]["cost_microusd"] > 0
        agents = await site.get("/api/agents?limit=100")
        assert len(agents) == 40
        assert {agent["source"] for agent in agents} == {"manual", "import", "traffic"}
        statuses = {alert["status"] for alert in await site.get("/api/alerts?limit=500")}
        assert {"open", "acknowledged", "investigating", "resolved", "false_positive", "suppressed"} <= statuses
        sources = {alert["source"] for alert in await site.get("/api/alerts?limit=500")}
        assert {"shield", "auth", "access", "provider"} <= sources
        assert (await site.gateway.audit.verify()).ok
        assert (await site.get("/api/traffic?origin=production")) == []
        with pytest.raises(Conflict):
            await fill(site)


@pytest.mark.parametrize("hour", range(0, 24, 4))
async def test_the_attack_and_the_outage_are_seen_at_whatever_hour_the_day_is_made(hour: int) -> None:
    async with open_site() as site:
        until_at = UNTIL_AT + hour * 3_600_000
        maker = DemoData(store=site.gateway.store, shield=site.gateway.shield, seed=7, until_at=until_at, requests=3000)
        assert (await maker.write()).blocks >= 5
        rows = await site.gateway.store.db.read(
            lambda tx: tx.query("SELECT occurred_at FROM traffic WHERE status = 502 ORDER BY occurred_at")
        )
        failed_at = [int(row["occurred_at"]) for row in rows]
        assert max(sum(0 <= one - at < 1_800_000 for one in failed_at) for at in failed_at) >= 5


async def test_a_database_in_use_is_left_alone() -> None:
    async with open_site() as site:
        await site.key("shield:scan")
        with pytest.raises(Conflict):
            await fill(site)
        assert (await site.get("/api/traffic/summary"))["origin"] == "production"
