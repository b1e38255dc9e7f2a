"""A request marked as a false positive closes the alerts that it added to, and no other."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from open_site import ATTACK, Site, open_site, sign_in

from gateway.domain.principals import Role


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as one:
        yield one


async def requests_of(site: Site, agent: str) -> list[Any]:
    """Return an agent's requests, newest first."""
    rows: list[Any] = (await site.ask("GET", f"/api/traffic?agent={agent}"))["data"]
    return rows


async def mark(site: Site, request: str, note: object = "harmless") -> Any:
    return await site.ask("POST", f"/api/traffic/{request}/false-positive", {"note": note})


async def states(site: Site) -> dict[str, str]:
    found = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    return {alert["agent"]: alert["status"] for alert in found}


@pytest.mark.parametrize("by", ["id", "request_id"])
async def test_an_early_request_closes_its_own_alert_and_not_the_newest_of_its_rule(site: Site, by: str) -> None:
    key = (await site.key())["key"]
    await site.chat(key, ATTACK, agent="design-bot")
    await site.chat(key, ATTACK + "!", agent="design-bot")  # the alert keeps this one's id
    await site.chat(key, ATTACK, agent="evil-bot")
    first = (await requests_of(site, "design-bot"))[-1]
    answer = await mark(site, first[by])
    assert answer["status"] == 200
    (alert,) = answer["data"]["alerts"]
    assert (alert["agent"], alert["status"], alert["resolution"]) == ("design-bot", "false_positive", "harmless")
    assert await states(site) == {"design-bot": "false_positive", "evil-bot": "open"}
    (step,) = (await site.ask("GET", f"/api/alerts/{alert['id']}"))["data"]["timeline"][1:]
    assert (step["action"], step["note"]) == ("alert_false_positive", "harmless")
    (event,) = (await site.ask("GET", "/api/audit?action=alert_false_positive"))["data"]
    assert event["details"] == {"note": "harmless", "marked_request": first["request_id"]}


async def test_a_request_says_which_alerts_it_added_to(site: Site) -> None:
    key = (await site.key())["key"]
    await site.chat(key, ATTACK, agent="design-bot")
    await site.chat(key, "hello", agent="quiet-bot")
    (row,), (quiet,) = await requests_of(site, "design-bot"), await requests_of(site, "quiet-bot")
    (alert,) = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    shown = (await site.ask("GET", f"/api/traffic/{row['id']}"))["data"]
    assert shown["alerts"] == [
        {"id": alert["id"], "title": alert["title"], "rule": "say-please", "status": "open", "count": 1,
         "agent": "design-bot", "key_prefix": alert["key_prefix"], "last_seen": alert["last_seen"]}
    ]  # fmt: skip
    assert (await site.ask("GET", f"/api/traffic/{quiet['id']}"))["data"]["alerts"] == []


async def test_a_request_without_an_active_alert_of_its_own_changes_nothing(site: Site) -> None:
    key = (await site.key())["key"]
    await site.chat(key, ATTACK, agent="design-bot")
    await site.chat(key, ATTACK, agent="evil-bot")
    await site.chat(key, "hello", agent="design-bot")
    quiet, loud = await requests_of(site, "design-bot")
    none = await mark(site, quiet["id"])
    assert (none["status"], none["error"]["code"]) == (409, "conflict")
    assert "no alert" in none["error"]["message"]
    assert await states(site) == {"design-bot": "open", "evil-bot": "open"}
    await mark(site, loud["id"])
    again = await mark(site, loud["id"])
    assert (again["status"], again["error"]["code"]) == (409, "conflict")
    assert "false_positive" in again["error"]["message"]
    assert await states(site) == {"design-bot": "false_positive", "evil-bot": "open"}
    assert (await mark(site, "trf_nothing"))["status"] == 404


async def test_a_request_whose_alert_opened_anew_closes_only_the_one_it_added_to(site: Site) -> None:
    key = (await site.key())["key"]
    await site.chat(key, ATTACK, agent="design-bot")
    # An hour passes: the next sighting is another alert.
    await site.gateway.store.db.write(lambda tx: tx.execute("UPDATE alerts SET last_seen_at = last_seen_at - 3600000"))
    await site.chat(key, ATTACK, agent="design-bot")
    first = (await requests_of(site, "design-bot"))[-1]
    assert (await mark(site, first["id"]))["status"] == 200
    found = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    assert [alert["status"] for alert in found] == ["open", "false_positive"]


async def test_a_scan_may_be_marked_as_a_chat_may(site: Site) -> None:
    key = (await site.key())["key"]
    await site.scan(key, agent="design-bot")
    (row,) = await requests_of(site, "design-bot")
    assert (await mark(site, row["id"]))["data"]["alerts"][0]["status"] == "false_positive"


@pytest.mark.parametrize(("note", "status"), [(None, 400), ("", 400), (" ", 400), ("x" * 1001, 400), (7, 400)])
async def test_a_mark_needs_its_reason(site: Site, note: object, status: int) -> None:
    key = (await site.key())["key"]
    await site.chat(key, ATTACK, agent="design-bot")
    (row,) = await requests_of(site, "design-bot")
    answer = await mark(site, row["id"], note)
    assert (answer["status"], answer["error"]["param"]) == (status, "note")
    assert await states(site) == {"design-bot": "open"}


async def test_only_those_who_manage_alerts_may_mark(tmp_path: Path) -> None:
    async with open_site(tmp_path, rbac_enabled=True) as site:
        viewer, operator = await sign_in(site, Role.VIEWER), await sign_in(site, Role.OPERATOR)
        assert (await viewer.ask("POST", "/api/traffic/trf_1/false-positive", {"note": "x"}))["status"] == 403
        assert (await operator.ask("POST", "/api/traffic/trf_1/false-positive", {"note": "x"}))["status"] == 404


async def test_a_text_that_was_not_marked_is_an_alert_of_its_own_afterwards(site: Site) -> None:
    key = (await site.key())["key"]
    await site.chat(key, ATTACK, agent="design-bot")
    (row,) = await requests_of(site, "design-bot")
    await mark(site, row["id"])
    await site.chat(key, ATTACK, agent="design-bot")  # the marked text again
    assert await states(site) == {"design-bot": "false_positive"}
    await site.chat(key, ATTACK + "!", agent="design-bot")
    found = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    assert sorted(alert["status"] for alert in found) == ["false_positive", "open"]
    newest = (await requests_of(site, "design-bot"))[0]
    (alert,) = (await site.ask("GET", f"/api/alerts?request_id={newest['request_id']}"))["data"]
    assert alert["status"] == "open"


async def test_an_alert_that_an_accepted_finding_suppresses_hides_no_other_text(site: Site) -> None:
    key = (await site.key())["key"]
    await site.chat(key, ATTACK, agent="design-bot")
    (alert,) = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    wanted = {"scope": "finding", "alert": alert["id"], "reason": "drill", "until": "7d"}
    accepted = (await site.ask("POST", "/api/risk-acceptances", wanted))["data"]["id"]
    change = {"status": "suppressed", "acceptance": accepted}
    assert (await site.ask("PATCH", f"/api/alerts/{alert['id']}", change))["status"] == 200
    await site.chat(key, ATTACK + "!", agent="design-bot")
    found = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    assert sorted(one["status"] for one in found) == ["open", "suppressed"]
