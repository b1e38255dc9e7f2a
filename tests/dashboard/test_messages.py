"""A message of success has the state behind it that it tells of, and a field that was emptied is empty afterwards."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from dashboard.browser import Page
from dashboard.site import Site
from dashboard.test_changes import make, say_at
from dashboard.test_forms import FORM, fill, newest, send

pytestmark = pytest.mark.slow

TOAST = "[...document.querySelectorAll('.toast')].at(-1)?.textContent"


def test_what_is_emptied_is_saved_as_empty(opened: Callable[..., Page], site: Site) -> None:
    agent = make(site, "/api/agents", {"name": "emptied", "owner": "us", "role": "clerk", "model": "echo"})
    entry = make(site, "/api/access", {"list": "deny", "type": "IP", "value": "203.0.113.88", "reason": "why"})
    budget = make(site, "/api/budgets", {"name": "emptied", "limit": 5, "scope": "agent", "scope_value": "nobody-else"})
    page = opened(f"agents/{agent['id']}")
    page.say("Change")
    send(page, {"owner": "", "role": "", "model": "other"})
    found = newest(site, f"/api/agents/{agent['id']}")
    assert (found["owner"], found["role"], found["model"]) == (None, None, "other")
    page = opened("settings/access")
    say_at(page, "203.0.113.88", "Edit")
    send(page, {"reason": ""})
    assert newest(site, f"/api/access/{entry['id']}")["reason"] is None
    page = opened("cost")
    say_at(page, "emptied", "Change")
    send(page, {"name": ""})
    assert newest(site, f"/api/budgets/{budget['id']}")["name"] == ""
    page.check()


def test_a_number_that_is_emptied_is_asked_for_and_not_said_to_be_saved(
    opened: Callable[..., Page], site: Site
) -> None:
    provider = make(site, "/api/providers", {"name": "numbered", "type": "echo", "models": ["numbered"], "priority": 9})
    page = opened("settings/providers")
    say_at(page, "numbered", "Edit")
    fill(page, {"priority": ""})
    page.run(f"{FORM}.requestSubmit()")
    page.wait("document.querySelector('.wrong [name=priority]')")
    assert newest(site, f"/api/providers/{provider['id']}")["priority"] == 9
    site.ask("DELETE", f"/api/providers/{provider['id']}")


def test_a_provider_without_its_key_and_a_gateway_that_does_not_answer_are_told(
    opened: Callable[..., Page], site: Site
) -> None:
    page = opened("settings/providers")
    page.say("Add provider")
    place = {
        "name": "keyless",
        "base_url": "https://models.example.com/v1",
        "api_key": "env:GATEWAY_PROVIDER_NOT_THERE",
    }
    send(page, {**place, "models": "keyless"})
    page.wait(f"{TOAST}?.includes('no key')")
    made = next(one for one in newest(site, "/api/providers") if one["name"] == "keyless")
    assert made["problem"] and not made["has_api_key"]
    as_by_api = make(site, "/api/providers", {**place, "name": "by-api", "models": ["by-api"]})
    chosen = ("timeout_seconds", "max_retries", "priority", "weight", "enabled", "allow_private")
    assert {name: made[name] for name in chosen} == {name: as_by_api[name] for name in chosen}
    page.run("location.hash = '#/settings/fleet'")
    page.settle()
    page.say("Add a gateway")
    send(page, {"name": "silent", "url": "https://127.0.0.1:9", "api_key": "svc_" + "b" * 40, "allow_private": True})
    page.wait(f"{TOAST}?.includes('does not answer')")
    assert next(one for one in newest(site, "/api/fleet/peers") if one["name"] == "silent")["problem"]
    for one in (made, as_by_api):
        site.ask("DELETE", f"/api/providers/{one['id']}")
    page.check()


def test_a_policy_made_by_form_is_the_one_made_without_a_word(opened: Callable[..., Page], site: Site) -> None:
    page = opened("shield/policies")
    page.say("New policy")
    send(page, {"name": "by form"})
    plain = make(site, "/api/policies", {"name": "plain"})
    formed = next(one for one in newest(site, "/api/policies") if one["name"] == "by form")
    own = {"id", "name", "created_at", "created_by", "version"}
    assert {name: formed[name] for name in formed if name not in own} == {
        name: plain[name] for name in plain if name not in own
    }
    for one in (formed, plain):
        site.ask("DELETE", f"/api/policies/{one['id']}")


def test_a_key_that_is_denied_or_revoked_where_it_was_seen_is_refused(opened: Callable[..., Page], site: Site) -> None:
    def row_of(key: str) -> Any:
        assert site.served.ask("POST", "/api/v1/shield/scan", {"text": "hello"}, key=key).status == 200
        end = time.monotonic() + 20
        while not (found := newest(site, f"/api/traffic?key={key[:10]}&limit=1")):
            assert time.monotonic() < end, "the request is not in the traffic"
        return found[0]

    page = opened("overview")
    for label in ("Deny key", "Revoke key"):
        key = make(site, "/api/config/api-keys", {"name": label, "scopes": ["shield:scan"]})["key"]
        row = row_of(key)
        page.run(f"location.hash = '#/traffic/{row['id']}'")
        page.say(label)
        if label.startswith("Deny"):
            send(page, {"reason": "seen"})
        else:
            page.wait("document.querySelectorAll('dialog[open]').length === 2")
            page.run("[...document.querySelectorAll('dialog[open]')].at(-1).querySelector('.danger').click()")
        page.wait(f"{TOAST}?.includes('{'denied' if label.startswith('Deny') else 'revoked'}')")
        assert site.served.ask("POST", "/api/v1/shield/scan", {"text": "hello"}, key=key).status == 403, label
        page.run("[...document.querySelectorAll('dialog[open]')].forEach(one => one.close())")
    page.check()


def test_an_agent_that_is_blocked_is_refused_until_it_is_let_in(opened: Callable[..., Page], site: Site) -> None:
    key = make(site, "/api/config/api-keys", {"name": "of agents", "scopes": ["chat:completions"]})["key"]
    agent = make(site, "/api/agents", {"name": "blocked-here"})
    model = next(one for one in newest(site, "/api/providers") if one["enabled"])["models"][0]

    def chats() -> int:
        body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
        headers = {"X-Service-Agent": "blocked-here"}
        return site.served.ask("POST", "/api/v1/chat/completions", body, key=key, headers=headers).status

    page = opened(f"agents/{agent['id']}")
    for label, told, status in (("Block", "Agent blocked", 403), ("Unblock", "may use", 200)):
        page.say(label)
        if page.run("document.querySelector('dialog[open] footer .danger') !== null"):
            page.run("[...document.querySelectorAll('dialog[open]')].at(-1).querySelector('.danger').click()")
        page.wait(f"{TOAST}?.includes('{told}')")
        page.wait("[...document.querySelectorAll('dialog[open]')].length === 1")
        assert chats() == status
    page.check()
