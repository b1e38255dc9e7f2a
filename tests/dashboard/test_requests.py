"""Requests are narrowed down, acted on and copied in the browser; the frame says what gateway and what time it shows."""

import json
from collections.abc import Callable
from datetime import datetime

import pytest
from dashboard.browser import Page
from dashboard.site import Site
from dashboard.test_changes import make
from dashboard.test_findings import chat
from dashboard.test_forms import newest

pytestmark = pytest.mark.slow

ROWS = "document.querySelectorAll('tbody tr').length"
PANE = "document.querySelector('dialog.drawer')"


def choose(page: Page, name: str, value: str) -> None:
    """Choose an option of a filter."""
    page.run(
        f"(one => {{ one.value = '{value}'; one.dispatchEvent(new Event('change', {{ bubbles: true }})); }})"
        f"(document.querySelector('.filters [name={name}]'))"
    )


def test_requests_are_found_by_category_direction_and_status(opened: Callable[..., Page], site: Site) -> None:
    page = opened("traffic")
    for name, value in (("category", "secret"), ("direction", "outbound"), ("status", "200")):
        choose(page, name, value)
        wanted = site.ask("GET", f"/api/traffic?limit=1&{page.run('location.hash').partition('?')[2]}").json["page"]
        page.wait(f"document.querySelector('.pager')?.textContent.includes('of {wanted['total']}') || {ROWS} === 0")
        assert (page.run(ROWS) > 0) is (wanted["total"] > 0)
        assert page.run("location.hash").endswith(f"{name}={value}")
    rows = newest(site, "/api/traffic?category=secret&limit=50")
    assert rows
    assert all("secret" in {one["category"] for one in row["detections"]} for row in rows)
    outbound = newest(site, "/api/traffic?direction=outbound&limit=50")
    assert outbound
    assert all("outbound" in {one["direction"] for one in row["detections"]} for row in outbound)


def test_rows_name_keys_and_rules_as_far_as_the_role_may_read_them(opened: Callable[..., Page], site: Site) -> None:
    row = newest(site, "/api/traffic?verdict=BLOCK&limit=1")[0]
    key = next(one for one in newest(site, "/api/config/api-keys") if one["prefix"] == row["key_prefix"])
    names = {one["id"]: one["name"] for one in newest(site, "/api/shield/rules")}
    rule = (names | {"attack-model": "Resembles known attacks"})[row["detections"][0]["rule"]]
    for role, shown in (("admin", key["name"]), ("viewer", key["prefix"])):
        page = opened(f"traffic?search={row['request_id']}", role=role)
        page.wait(f"document.querySelector('tbody').textContent.includes({json.dumps(rule)})")
        assert page.run(f"document.querySelector('tbody [title={key['prefix']}]').textContent") == shown
        page.check()


def test_a_request_leads_to_its_neighbours_and_is_copied(opened: Callable[..., Page], site: Site) -> None:
    row = newest(site, "/api/traffic?limit=1")[0]
    page = opened(f"traffic/{row['id']}")
    page.run(
        "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { copied = text; } } })"
    )
    copies = {}
    for label in ("Copy id", "Copy as JSON", "Copy as curl"):
        page.run("var copied = null")
        page.say(label)
        page.wait("copied")
        copies[label] = page.run("copied")
    assert copies["Copy id"] == row["request_id"]
    assert json.loads(copies["Copy as JSON"])["id"] == row["id"]
    address = copies["Copy as curl"].split()[-1]
    assert site.ask("GET", address.removeprefix(site.base)).json["data"]["id"] == row["id"]
    page.say("Same agent, ±10 minutes")
    page.wait(f"location.hash.includes('agent={row['agent']}') && !document.querySelector('dialog') && {ROWS} > 0")
    page.settle()
    at = datetime.fromisoformat(row["occurred_at"])
    near = newest(site, f"/api/traffic?{page.run('location.hash').partition('?')[2]}")
    assert row["id"] in [one["id"] for one in near]
    assert all(abs((datetime.fromisoformat(one["occurred_at"]) - at).total_seconds()) <= 600 for one in near)


def test_the_agent_of_a_request_is_blocked_by_who_may(opened: Callable[..., Page], site: Site) -> None:
    key = make(site, "/api/config/api-keys", {"name": "to-block", "scopes": ["chat:completions", "shield:scan"]})
    chat(site, key, "blocked-bot")
    row = newest(site, "/api/traffic?agent=blocked-bot&limit=1")[0]
    page = opened(f"traffic/{row['id']}", role="viewer")
    page.wait(f"{PANE}?.textContent.includes('Copy id')")
    assert not page.run(f"/Block agent|Deny key|Revoke key/.test({PANE}.textContent)")
    page = opened(f"traffic/{row['id']}", role="operator")
    page.say("Block agent")
    page.wait("document.querySelectorAll('dialog[open]').length === 2")
    page.run("[...document.querySelectorAll('dialog[open]')].at(-1).querySelector('.danger').click()")
    page.wait("document.querySelector('.toast')?.textContent.includes('blocked')")
    assert newest(site, "/api/agents?search=blocked-bot")[0]["status"] == "blocked"
    page.check()


def test_the_frame_says_mode_and_demo_and_shows_utc(opened: Callable[..., Page]) -> None:
    page = opened("traffic")
    page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    page.run("location.reload()")
    for width in (1280, 360):
        page.size(width, 800)
        page.wait("/DEMO.*Blocking/.test(document.querySelector('.top').textContent)")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.size(1280, 800)
    cell = "document.querySelector('tbody time')"
    page.wait(cell)
    utc = f"{cell}.dateTime.slice(11, 19)"
    assert page.run(f"!{cell}.textContent.endsWith({utc})")
    choose(page, "zone", "UTC")
    page.wait(f"{cell}?.textContent.endsWith({utc}) && document.querySelector('.top').textContent.includes('UTC')")
    page.run("location.hash = '#/overview'")
    page.wait("document.querySelector('.tools [name=zone]')?.value === 'UTC'")
    page.run("location.hash = '#/fleet'")
    page.wait("location.hash === '#/settings/fleet' && document.querySelector('main .stat')")
    page.check()
