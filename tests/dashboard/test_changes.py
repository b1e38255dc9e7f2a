"""What is there is changed, raised, blocked and removed from the dashboard, and the API agrees afterwards."""

from collections.abc import Callable
from typing import Any

import pytest
from dashboard.browser import Page
from dashboard.site import PASSWORD, Site, quoted
from dashboard.test_forms import newest, send

pytestmark = pytest.mark.slow


def say_at(page: Page, text: str, label: str) -> None:
    """Click a button of the row or card in which a text stands."""
    find = (
        "[...document.querySelectorAll('main tbody tr, main .cards > .panel')]"
        f".filter(one => one.textContent.includes({quoted(text)})).flatMap(one => [...one.querySelectorAll('button')])"
        f".find(one => one.textContent.trim() === {quoted(label)})"
    )
    page.wait(find)
    page.run(f"{find}.click()")


def confirm(page: Page) -> None:
    """Say yes to what is asked, and see the question go."""
    page.wait("document.querySelector('dialog[open] footer .danger')")
    page.run("window.asked = document.querySelector('dialog:last-of-type'); asked.querySelector('.danger').click()")
    page.wait("!asked.isConnected")
    page.settle()


def make(site: Site, path: str, body: dict[str, object]) -> Any:
    answer = site.ask("POST", path, body)
    assert answer.status == 201, answer.body
    return answer.json["data"]


def test_a_budget_is_changed_raised_and_removed(opened: Callable[..., Page], site: Site) -> None:
    budget = make(
        site, "/api/budgets", {"name": "to be changed", "limit": 5, "scope": "agent", "scope_value": "nobody"}
    )
    one = f"/api/budgets/{budget['id']}"
    page = opened("cost")
    say_at(page, "to be changed", "Change")
    send(page, {"limit": "7.5", "soft_pct": "60"})
    assert (newest(site, one)["limit"], newest(site, one)["soft_pct"]) == (7.5, 60)
    page.settle()
    say_at(page, "to be changed", "Raise temporarily")
    send(page, {"limit": "9", "reason": "a busy day"})
    assert newest(site, one)["effective_limit"] == 9
    page.settle()
    say_at(page, "to be changed", "End")
    page.wait("!document.querySelector('.cards .banner')")
    assert newest(site, one)["effective_limit"] == 7.5
    say_at(page, "to be changed", "Remove")
    confirm(page)
    assert site.ask("GET", one).status == 404
    page.problems.clear()


def test_entries_providers_policies_and_acceptances_are_changed_and_removed(
    opened: Callable[..., Page], site: Site
) -> None:
    entry = make(site, "/api/access", {"list": "deny", "type": "IP", "value": "203.0.113.77"})
    provider = make(site, "/api/providers", {"name": "to-change", "type": "echo", "models": ["to-change"]})
    policy = make(site, "/api/policies", {"name": "to change"})
    rule = newest(site, "/api/shield/rules")[-1]["id"]
    risk = make(
        site,
        "/api/risk-acceptances",
        {"scope": "rule_agent", "rule": rule, "agent": "a", "any_key": True, "reason": "r", "until": site.soon(20)},
    )
    rows: list[tuple[str, str, str, dict[str, str | bool], str, dict[str, object], str]] = [
        ("settings/access", "203.0.113.77", "Edit", {"reason": "changed"}, f"/api/access/{entry['id']}", {"reason": "changed"}, "Remove"),
        ("settings/providers", "to-change", "Edit", {"weight": "3", "models": "to-change, more"}, f"/api/providers/{provider['id']}", {"weight": 3, "models": ["to-change", "more"]}, "Remove"),
        ("shield/policies", "to change", "Edit", {"block_score": "81"}, f"/api/policies/{policy['id']}", {"block_score": 81}, "Remove"),
        ("shield/acceptances", rule, "Change", {"reason": "changed"}, f"/api/risk-acceptances/{risk['id']}", {"reason": "changed"}, "Revoke"),
    ]  # fmt: skip
    page = opened()
    for path, text, label, values, one, wanted, end in rows:
        page.run(f"location.hash = {quoted('#/' + path)}")
        page.settle()
        say_at(page, text, label)
        send(page, values)
        found = newest(site, one)
        assert {name: found[name] for name in wanted} == wanted, path
        page.settle()
        say_at(page, text, end)
        confirm(page)
        gone = site.ask("GET", one)
        assert gone.status == 404 or gone.json["data"]["status"] == "revoked", path
    page.problems.clear()


def test_a_user_gets_another_role_and_password_and_is_disabled(opened: Callable[..., Page], site: Site) -> None:
    make(site, "/api/users", {"username": "to.change", "password": PASSWORD, "role": "viewer"})
    page = opened("settings/users")

    def user() -> Any:
        return next(one for one in newest(site, "/api/users") if one["username"] == "to.change")

    say_at(page, "to.change", "Role")
    send(page, {"role": "operator"})
    assert user()["role"] == "operator"
    page.settle()
    say_at(page, "to.change", "Password")
    send(page, {"password": "another long password"})
    page.settle()
    say_at(page, "to.change", "Disable")
    confirm(page)
    assert user()["status"] == "disabled"
    say_at(page, "to.change", "Enable")
    page.wait(
        "[...document.querySelectorAll('main tbody tr')].find(one => one.textContent.includes('to.change')).textContent.includes('Active')"
    )
    assert (
        site.ask(
            "POST", "/api/auth/login", {"username": "to.change", "password": "another long password"}, role=""
        ).status
        == 200
    )
    page.run("location.hash = '#/settings/sessions'")
    page.settle()
    say_at(page, "to.change", "End")
    page.wait("![...document.querySelectorAll('main tbody tr')].some(one => one.textContent.includes('to.change'))")
    page.check()


def test_an_agent_is_changed_blocked_and_let_in_again(opened: Callable[..., Page], site: Site) -> None:
    agent = make(site, "/api/agents", {"name": "agent-to-change"})
    one = f"/api/agents/{agent['id']}"
    page = opened(f"agents/{agent['id']}")
    page.say("Change")
    send(page, {"owner": "the lab", "tags": "new, seen"})
    assert (newest(site, one)["owner"], sorted(newest(site, one)["tags"])) == ("the lab", ["new", "seen"])
    page.wait("document.querySelector('dialog .facts').textContent.includes('the lab')")
    page.say("Block")
    confirm(page)
    assert newest(site, one)["status"] == "blocked"
    page.say("Unblock")
    page.wait("[...document.querySelectorAll('dialog button')].some(one => one.textContent === 'Block')")
    assert newest(site, one)["status"] != "blocked"
    page.check()


def test_an_alert_is_assigned_suppressed_and_opened_again(opened: Callable[..., Page], site: Site) -> None:
    alert = newest(site, "/api/alerts?status=open&limit=1")[0]
    one = f"/api/alerts/{alert['id']}"
    page = opened(f"alerts/{alert['id']}")
    page.wait("document.querySelector('dialog .timeline, dialog h3')")
    page.say("Assign")
    send(page, {"assigned_to": "night shift"})
    assert newest(site, one)["assigned_to"] == "night shift"
    page.wait("document.querySelector('dialog .facts').textContent.includes('night shift')")
    page.say("Suppress")
    send(page, {"suppressed_until": "7", "note": "known"})
    assert newest(site, one)["status"] == "suppressed"
    page.say("Reopen")
    page.wait("[...document.querySelectorAll('dialog button')].some(one => one.textContent === 'Suppress')")
    assert newest(site, one)["status"] == "open"
    page.check()


def test_schedules_and_other_gateways_are_removed(opened: Callable[..., Page], site: Site) -> None:
    make(site, "/api/report-schedules", {"type": "access_review", "every": "week"})
    make(
        site,
        "/api/fleet/peers",
        {"name": "to-remove", "url": "https://gateway.example.com:5002", "api_key": "svc_" + "b" * 40},
    )
    page = opened("audit/reports")
    say_at(page, "Access review", "Edit")
    send(page, {"every": "day"})
    assert newest(site, "/api/report-schedules")[-1]["every"] == "day"
    page.settle()
    say_at(page, "Access review", "Remove")
    confirm(page)
    assert all(one["type"] != "access_review" for one in newest(site, "/api/report-schedules"))
    page.run("location.hash = '#/settings/fleet'")
    page.settle()
    say_at(page, "to-remove", "Remove")
    confirm(page)
    assert all(one["name"] != "to-remove" for one in newest(site, "/api/fleet/peers"))
    page.check()
