"""An incident is found, handled with others at once, stopped and exported, in the browser."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from dashboard.browser import Page
from dashboard.site import Site
from dashboard.test_changes import make
from dashboard.test_findings import ATTACK, chat
from dashboard.test_forms import fill, newest, send

pytestmark = pytest.mark.slow


@pytest.fixture
def key(site: Site) -> Any:
    """A key that may chat and scan."""
    return make(site, "/api/config/api-keys", {"name": "incidents", "scopes": ["chat:completions", "shield:scan"]})


def incident(site: Site, agent: str) -> Any:
    """Return the newest incident of an agent."""
    return newest(site, f"/api/incidents?scope=all&agent={agent}")[0]


def test_several_incidents_are_resolved_at_once(opened: Callable[..., Page], site: Site, key: Any) -> None:
    for agent in ("bulk-one", "bulk-two", "bulk-three"):
        chat(site, key, agent)
    page = opened(f"incidents?key={key['prefix']}", role="operator")
    rows = "[...document.querySelectorAll('tbody tr')]"
    page.wait(f"{rows}.length === 3")
    for agent in ("bulk-one", "bulk-three"):
        page.run(f"{rows}.find(one => one.textContent.includes('{agent}')).querySelector('.tick input').click()")
    assert "2 selected" in page.run("document.querySelector('.bulk').textContent")
    page.say("Resolve")
    send(page, {"note": "a drill of ours"})
    page.wait(f"{rows}.length === 1")
    assert page.run(f"{rows}[0].textContent.includes('bulk-two')")
    states = [incident(site, agent)["status"] for agent in ("bulk-one", "bulk-two", "bulk-three")]
    assert states == ["closed", "open", "closed"]
    page.run("document.querySelector('thead .tick input').click()")
    page.say("Assign")
    send(page, {"assigned_to": "operator"})
    page.wait("document.querySelector('.toast')")
    assert incident(site, "bulk-two")["assigned_to"] == "operator"
    page.check()


def test_what_an_incident_is_about_is_stopped_in_one_act(opened: Callable[..., Page], site: Site, key: Any) -> None:
    chat(site, key, "stopped-bot")
    found = incident(site, "stopped-bot")
    page = opened(f"incidents/{found['id']}", role="security_manager")
    page.wait("document.querySelector('dialog .timeline')")
    page.say("Stop this")
    fill(page, {"reason": "it leaks"})
    for act in ("deny_key", "block_agent"):
        page.run(f"[...document.querySelectorAll('dialog[open] input')].find(one => one.value === '{act}').click()")
    send(page, {})
    page.wait("document.querySelector('.toast.good')?.textContent === 'Done: deny key, block agent.'")
    refused = site.served.ask("POST", "/api/v1/shield/scan", {"text": "hi"}, key=key["key"])
    assert refused.code == "access_denied"
    assert newest(site, "/api/agents?search=stopped-bot")[0]["status"] == "blocked"
    page.check()


def test_evidence_is_saved_as_a_file(opened: Callable[..., Page], site: Site, key: Any) -> None:
    row = chat(site, key, "evident-bot", ATTACK + " As evidence.")
    found = incident(site, "evident-bot")
    page = opened(f"incidents/{found['id']}")
    page.wait("document.querySelector('dialog .timeline')")
    page.run(
        "window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = blob => { saved.push(blob); return make(blob) }"
    )
    page.say("JSON")
    page.wait("window.saved.length")
    evidence = json.loads(page.run("saved[0].text()"))
    requests = next(one["rows"] for one in evidence["sections"] if one["title"] == "Requests")
    assert [one["request"] for one in requests] == [row["request_id"]]
    page.check()


def test_a_viewer_reads_incidents_and_changes_none(opened: Callable[..., Page], site: Site, key: Any) -> None:
    chat(site, key, "viewed-bot")
    page = opened(f"incidents/{incident(site, 'viewed-bot')['id']}", role="viewer")
    page.wait("document.querySelector('dialog .timeline')")
    assert page.run("document.querySelector('.tick')") is None
    labels = page.run("[...document.querySelectorAll('dialog button')].map(one => one.textContent)")
    assert not {"Resolve", "Stop this", "This was harmless", "JSON"} & set(labels)
    page.check()
