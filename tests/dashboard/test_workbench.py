"""The rule workbench: a rule is written, tried while typing, replayed, saved, changed, reverted; policies likewise."""

from collections.abc import Callable

import pytest
from dashboard.browser import Page
from dashboard.site import SCREENSHOTS, Site, quoted
from dashboard.test_changes import say_at
from dashboard.test_forms import newest, send

pytestmark = pytest.mark.slow

PHRASE = "open the garage doors"
ONE = "/api/shield/rules/local:garage"
STATES = "[...document.querySelectorAll('.example')].map(one => one.querySelector('.state')?.textContent)"
SUMMARY = "document.querySelector('.bench [role=status]').textContent"


def write(page: Page, label: str, text: str) -> None:
    """Type over what a labelled box of the newest dialog holds."""
    dialog = "[...document.querySelectorAll('dialog[open]')].at(-1)"
    find = f'{dialog}.querySelector(\'[name="{label}"], [aria-label="{label}"]\')'
    page.wait(find)
    page.run(f"(box => {{ box.focus(); box.select?.(); }})({find})")
    if page.run(f"{find}.tagName === 'SELECT'"):
        page.run(f"{find}.value = {quoted(text)}; {find}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    else:
        page.type(text)


def add(page: Page, group: str, *texts: str) -> None:
    for number, text in enumerate(texts, 1):
        page.run(f"document.querySelector('[aria-label=\"Add text: {group}\"]').click()")
        assert page.run("document.activeElement.ariaLabel") == f"{group}, text {number}"
        page.type(text)


def draft(page: Page, pattern: str = "") -> None:
    """Fill in the form of a new rule."""
    fields = {
        "id": "local:garage",
        "name": "Garage",
        "severity": "critical",
        "literals": PHRASE,
        "description": "Made up.",
    }
    for name, text in (fields | {"pattern": pattern}).items():
        if text:
            write(page, name, text)


def test_a_rule_is_tried_while_typing_saved_changed_and_reverted(opened: Callable[..., Page], site: Site) -> None:
    page = opened("shield/rules")
    page.say("New rule")
    draft(page)
    add(page, "Must match", f"please {PHRASE}", "0pen the g4rage doors")
    add(page, "Must not match", f"never {PHRASE}")
    add(page, "Other texts", "hello")
    page.wait(f"{SUMMARY} === '1 of 4 texts give the wrong result.'")
    assert page.run(STATES) == ["Matches", "Matches", "Matches", "Does not match"]
    assert page.run("[...document.querySelectorAll('.example mark')].map(one => one.textContent)") == [
        PHRASE, "0pen the g4rage doors", PHRASE,
    ]  # fmt: skip
    write(page, "Must not match, text 1", "close the garage")
    page.wait(f"{SUMMARY} === 'All texts give the right result.'")
    page.check()
    # As JSON, and what that changes stands in the form.
    page.say("JSON")
    page.run(
        "(box => { box.value = box.value.replace('Made up.', 'All made up.'); box.dispatchEvent(new Event('input', {bubbles: true})); })(document.querySelector('[name=json]'))"
    )
    write(page, "reason", "seen in tickets")
    page.say("Form")
    assert page.run("document.querySelector('[name=description]').value") == "All made up."
    page.run("document.querySelector('dialog[open] form').requestSubmit()")
    page.wait("location.hash.endsWith('local%3Agarage') && document.querySelector('dialog.drawer .facts')")
    stored = newest(site, f"{ONE}/history")
    assert [(one["version"], one["reason"]) for one in stored] == [(1, "seen in tickets")]
    assert (stored[0]["rule"]["literals"], stored[0]["rule"]["match"]) == ([PHRASE], [f"please {PHRASE}", "0pen the g4rage doors"])  # fmt: skip
    scan = site.ask("POST", "/api/shield/scan", {"text": PHRASE, "record": False})
    assert scan.json["data"]["verdict"] == "BLOCK"
    page.say("Edit")
    write(page, "severity", "high")
    write(page, "reason", "too strict")
    page.wait("document.querySelector('dialog.full .diff del')?.textContent.includes('critical')")
    assert "high" in page.run("document.querySelector('dialog.full .diff ins').textContent")
    page.run("document.querySelector('dialog.full form').requestSubmit()")
    page.wait("document.querySelector('dialog.drawer').textContent.includes('Version 2')")
    page.say("Revert")
    send(page, {"reason": "was right"})
    page.wait("document.querySelector('dialog.drawer').textContent.includes('Version 3')")
    assert newest(site, f"{ONE}/history")[0]["rule"] == stored[0]["rule"]
    page.say("Remove")
    send(page, {"reason": "not ours"})
    page.wait("!document.querySelector('dialog')")
    assert site.ask("GET", ONE).status == 404
    page.check()


def test_a_draft_that_is_wrong_is_told_at_its_field_and_replayed_once_it_is_right(
    opened: Callable[..., Page], site: Site
) -> None:
    page = opened("shield/rules")
    page.say("New rule")
    draft(page, "open (the")
    page.wait("document.querySelector('.wrong [name=pattern]')")
    write(page, "pattern", "open the (?:garage|barn) doors")
    page.wait("!document.querySelector('.wrong [name=pattern]')")
    page.say("What would change")
    page.wait("document.querySelector('dialog.full .stats')", 60)
    assert "Validation suite: 2,0" in page.run("document.querySelector('dialog.full').textContent")
    # What the gateway refuses, such as an example that does not hold, is told where it is sent.
    add(page, "Must match", "close the garage")
    add(page, "Must not match", "hello")
    write(page, "reason", "seen")
    page.run("document.querySelector('dialog[open] form').requestSubmit()")
    page.wait("document.querySelector('.form-error')?.textContent.includes('match[0]')")
    assert site.ask("GET", ONE).status == 404
    page.problems.clear()  # the browser tells of each answer that refuses


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_workbench_is_legible_and_fits_its_screen(
    opened: Callable[..., Page], rules: str, scheme: str, width: int
) -> None:
    page = opened("shield/rules")
    page.size(width, 900, dark=scheme == "dark")
    page.say("New rule")
    draft(page)
    add(page, "Must match", f"please {PHRASE}")
    add(page, "Must not match", f"never {PHRASE}")
    page.wait(f"{SUMMARY} === '1 of 2 texts give the wrong result.'")
    assert page.run(rules) == []
    body = "document.querySelector('dialog.full .dialog-body')"
    assert page.run(f"{body}.scrollWidth - {body}.clientWidth") <= 0
    page.screenshot(SCREENSHOTS / f"workbench-{width}-{scheme}.png", whole=False)
    page.check()


def test_who_may_not_change_rules_sees_them_and_no_workbench(opened: Callable[..., Page], site: Site) -> None:
    rule = {"id": "local:seen", "name": "Seen", "category": "injection", "severity": "low", "confidence": 0.9,
            "description": "Made up.", "direction": ["inbound"], "literals": ["lift the gates"],
            "match": ["lift the gates"], "pass": ["hello"]}  # fmt: skip
    assert site.ask("POST", "/api/shield/rules", {"rule": rule, "reason": "seen"}).status == 201
    page = opened("shield/rules/local:seen", "viewer")
    page.wait("document.querySelector('dialog.drawer')?.textContent.includes('Version 1')")
    labels = page.run("[...document.querySelectorAll('button')].map(one => one.textContent.trim())")
    assert not {"New rule", "Edit", "Remove", "Revert", "What would change without it"} & set(labels)
    page.check()


def test_a_policy_shows_its_changes_keys_and_history_and_is_reverted(opened: Callable[..., Page], site: Site) -> None:
    policy = site.ask("POST", "/api/policies", {"name": "compared"}).json["data"]
    one = f"/api/policies/{policy['id']}"
    key = {"name": "has it", "scopes": ["shield:scan"], "policy": policy["id"]}
    assert site.ask("POST", "/api/config/api-keys", key).status == 201
    page = opened("shield/policies")
    say_at(page, "compared", "Edit")
    page.wait("document.querySelector('dialog').textContent.includes('1 key has this policy')")
    write(page, "block_score", "80")
    page.wait("document.querySelector('dialog .diff ins')?.textContent.includes('80')")
    page.say("What would change")
    page.wait("document.querySelector('dialog .stats')", 60)
    send(page, {"block_score": "80"})
    assert newest(site, one)["block_score"] == 80
    page.settle()
    say_at(page, "compared", "Edit")
    page.wait("document.querySelector('dialog').textContent.includes('Version 2')")
    page.say("Revert")
    send(page, {})
    assert (newest(site, one)["block_score"], newest(site, one)["version"]) == (60, 3)
    page.check()


def test_the_audit_log_says_who_stored_which_rule(opened: Callable[..., Page], site: Site) -> None:
    rule = {"id": "local:told", "name": "Told", "category": "injection", "severity": "low", "confidence": 0.9,
            "description": "Made up.", "direction": ["inbound"], "literals": ["raise the anchor"],
            "match": ["raise the anchor"], "pass": ["hello"]}  # fmt: skip
    assert site.ask("POST", "/api/shield/rules", {"rule": rule, "reason": "seen"}).status == 201
    page = opened("audit?action=local_rule_created")
    page.wait("document.querySelector('tbody').textContent.includes('admin created the rule local:told')")
    page.check()
