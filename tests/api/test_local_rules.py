"""Rules of one's own in the database: stored, tried, replayed, changed, reverted and removed over the API."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.local_rules import LocalRule
from gateway.domain.principals import Caller, RequestContext, local
from gateway.errors import SetupError
from gateway.store.authority import AuthorityTransaction

DOORS = "open the garage doors"
REASON = "seen in our tickets"
Open = Callable[..., AbstractAsyncContextManager[Any]]


def draft(**more: object) -> dict[str, object]:
    return {
        "id": "local:garage", "name": "Garage", "category": "injection", "severity": "critical", "confidence": 0.9,
        "description": "A made-up attack.", "direction": ["inbound"], "literals": [DOORS],
        "match": [f"please {DOORS}"], "pass": ["close the garage"],
    } | more  # fmt: skip


@pytest.fixture
async def site(site_with: Open) -> AsyncIterator[Any]:
    async with site_with() as one:
        yield one


async def store(site: Any, **more: object) -> Any:
    answer = await site.ask("POST", "/api/shield/rules", {"rule": draft(**more), "reason": REASON})
    assert answer["status"] == 201, answer
    return answer["data"]


async def verdict(site: Any, text: str = DOORS) -> str:
    return str((await site.ask("POST", "/api/shield/scan", {"text": text, "record": False}))["data"]["verdict"])


async def event(site: Any, action: str) -> Any:
    (found,) = (await site.ask("GET", f"/api/audit?action={action}"))["data"]
    return found


async def test_a_stored_rule_scans_beside_the_others_and_is_listed(site: Any, attack: str) -> None:
    assert await verdict(site) == "ALLOW"
    made = await store(site)
    assert (made["id"], made["version"], made["rule"], made["reason"]) == ("local:garage", 1, draft(), REASON)
    assert await verdict(site) == await verdict(site, attack) == "BLOCK"
    listed = {one["id"]: one["source"] for one in (await site.ask("GET", "/api/shield/rules"))["data"]}
    assert listed == {"say-please": "rules", "local:garage": "stored"}
    about = (await site.ask("GET", "/api/about"))["data"]
    assert (about["rules"], about["local_rules"]) == (2, 1)
    found = await event(site, "local_rule_created")
    assert (found["resource_type"], found["resource_id"], found["before"]) == ("local_rule", "local:garage", None)
    assert found["after"] == {"rule": draft(), "reason": REASON}


async def test_a_clean_text_is_scanned_again_by_a_new_rule(site: Any) -> None:
    key = await site.key("shield:scan")
    for wanted in ("ALLOW", "BLOCK"):
        found = await site.ask("POST", "/api/v1/shield/scan", {"text": DOORS}, key=key)
        assert found["data"]["verdict"] == wanted
        if wanted == "ALLOW":
            await store(site)


async def test_a_text_that_was_clean_until_the_rules_were_built_again_is_scanned_again(site: Any, attack: str) -> None:
    gateway, key = site.gateway, await site.key("shield:scan")
    off = {"rule": "say-please", "enabled": False, "reason": "noisy"}
    assert (await site.ask("PATCH", "/api/shield/rules", off))["status"] == 200

    def by_another_process(tx: AuthorityTransaction) -> None:
        gateway.store.local_rules.insert(tx, LocalRule("local:garage", 1, draft(), REASON, 0, "ann"))
        gateway.audit.append_change(tx, "local_rule_created", None, "local_rule", "local:garage")

    await gateway.audit.commit_authority(Caller(local("cli"), RequestContext(request_id="req_1")), by_another_process)
    for wanted in ("ALLOW", "BLOCK"):
        found = await site.ask("POST", "/api/v1/shield/scan", {"text": DOORS}, key=key)
        assert found["data"]["verdict"] == wanted
        await gateway.rules.follow()
    assert await verdict(site, attack) == "ALLOW", "an override is of the new rules as well"


async def test_a_rule_is_changed_reverted_and_removed_and_every_version_stays(site: Any) -> None:
    await store(site)
    one = "/api/shield/rules/local:garage"
    milder = draft(severity="high")
    changed = await site.ask("PATCH", one, {"rule": milder, "reason": "too strict", "version": 1})
    assert (changed["status"], changed["data"]["version"]) == (200, 2)
    assert await verdict(site) == "REVIEW"
    stale = await site.ask("PATCH", one, {"rule": draft(), "reason": "x", "version": 1})
    assert (stale["status"], stale["error"]["param"]) == (409, "version")
    found = await event(site, "local_rule_changed")
    assert (found["before"]["rule"], found["after"]) == (draft(), {"rule": milder, "reason": "too strict"})
    back = await site.ask("PATCH", one, {"to": 1, "reason": "was right"})
    assert (back["data"]["version"], back["data"]["rule"]) == (3, draft())
    assert await verdict(site) == "BLOCK"
    assert (await site.ask("DELETE", one))["error"]["param"] == "reason"
    gone = await site.ask("DELETE", f"{one}?reason=no%20garage")
    assert (gone["status"], gone["data"]["version"], gone["data"]["rule"]) == (200, 4, None)
    assert await verdict(site) == "ALLOW"
    assert (await site.ask("GET", one))["status"] == 404
    history = (await site.ask("GET", f"{one}/history"))["data"]
    assert [(each["version"], each["reason"]) for each in history] == [
        (4, "no garage"), (3, "was right"), (2, "too strict"), (1, REASON),
    ]  # fmt: skip
    assert (await event(site, "local_rule_removed"))["before"]["rule"] == draft()
    assert (await site.ask("DELETE", f"{one}?reason=again"))["status"] == 404
    assert (await site.ask("PATCH", one, {"to": 2, "reason": "not there"}))["status"] == 404
    assert ((await store(site))["version"], await verdict(site)) == (5, "BLOCK")


async def test_a_stored_rule_is_overridden_as_any_other(site: Any) -> None:
    await store(site)
    change = {"rule": "local:garage", "enabled": False, "reason": "noisy"}
    assert (await site.ask("PATCH", "/api/shield/rules", change))["status"] == 200
    assert await verdict(site) == "ALLOW"
    await site.ask("PATCH", "/api/shield/rules/local:garage", {"rule": draft(severity="high"), "reason": "milder"})
    assert await verdict(site) == "ALLOW"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"id": "garage"}, "rule.id"),
        ({"id": "local:Garage!"}, "rule.id"),
        ({"severity": "grave"}, "rule.severity"),
        ({"pattern": "open (the"}, "rule.pattern"),
        ({"pattern": "(?:a{1,50}){1,50}b", "literals": []}, "rule.pattern"),
        ({"literals": ["x"]}, "rule.literals"),
        ({"match": []}, "rule.match"),
        ({"match": [DOORS, "nothing of the kind"]}, "rule.match[1]"),
        ({"pass": ["close it", f"never {DOORS}"]}, "rule.pass[1]"),
        ({"colour": "red"}, "rule.colour"),
    ],
)
async def test_a_bad_rule_is_told_its_field_and_not_stored(site: Any, more: dict[str, object], param: str) -> None:
    answer = await site.ask("POST", "/api/shield/rules", {"rule": draft(**more), "reason": REASON})
    assert (answer["status"], answer["error"]["param"]) == (400, param), answer
    assert len((await site.ask("GET", "/api/shield/rules"))["data"]) == 1


async def test_an_id_is_of_one_rule(site_with: Open, tmp_path: Path) -> None:
    extra = tmp_path / "extra.json"
    extra.write_text(json.dumps({"version": 1, "rules": [draft(id="local:of-a-file")]}))
    async with site_with(rules_extra=(str(extra),)) as site:
        await store(site)
        for rule in (draft(), draft(id="local:of-a-file")):
            answer = await site.ask("POST", "/api/shield/rules", {"rule": rule, "reason": REASON})
            assert (answer["status"], answer["error"]["param"]) == (409, "rule.id")
        moved = {"rule": draft(id="local:other"), "reason": REASON}
        assert (await site.ask("PATCH", "/api/shield/rules/local:garage", moved))["error"]["param"] == "rule.id"
        sources = {one["id"]: one["source"] for one in (await site.ask("GET", "/api/shield/rules"))["data"]}
        assert sources["local:of-a-file"] == "rules_extra"


async def test_a_start_uses_the_stored_rules_and_fails_for_one_that_is_broken(site_with: Open, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    async with site_with(data_dir=folder) as site:
        await store(site)
    async with site_with(data_dir=folder) as site:
        assert await verdict(site) == "BLOCK"
    # Since then, a file got a rule of the same id.
    extra = tmp_path / "extra.json"
    extra.write_text(json.dumps({"version": 1, "rules": [draft()]}))
    with pytest.raises(SetupError, match="local:garage: id: is given twice.*rules remove local:garage"):
        async with site_with(data_dir=folder, rules_extra=(str(extra),)):
            pass


async def test_a_draft_is_tried_on_texts_and_nothing_is_stored(site: Any, attack: str) -> None:
    body = {"rule": draft(severity="high"), "texts": [f"Ä {DOORS}, {DOORS}", "hello", attack, "0pen the garag3 doors"]}
    answer = await site.ask("POST", "/api/shield/rules/try", body)
    assert answer["status"] == 200, answer
    data = answer["data"]
    assert [one["matches"] for one in data["texts"]] == [True, False, False, True]
    assert data["texts"][0]["spans"] == [[2, 23], [25, 46]]
    assert [(one["before"], one["verdict"]) for one in data["texts"]] == [
        ("ALLOW", "REVIEW"), ("ALLOW", "ALLOW"), ("BLOCK", "BLOCK"), ("ALLOW", "REVIEW"),
    ]  # fmt: skip
    assert (await site.ask("GET", "/api/shield/rules/local:garage/history"))["status"] == 404
    assert (await site.ask("GET", "/api/traffic"))["data"] == []
    bad = await site.ask("POST", "/api/shield/rules/try", {"rule": draft(pattern="open (the"), "texts": []})
    assert (bad["status"], bad["error"]["param"]) == (400, "rule.pattern")


async def test_a_draft_of_a_stored_rule_is_tried_in_place_of_it(site: Any) -> None:
    await store(site)
    body = {"rule": draft(severity="low"), "texts": [DOORS]}
    (tried,) = (await site.ask("POST", "/api/shield/rules/try", body))["data"]["texts"]
    assert (tried["before"], tried["verdict"], tried["score"]) == ("BLOCK", "ALLOW", 3)


async def replay(site: Any, body: dict[str, object], path: str = "shield/rules") -> Any:
    answer = await site.ask("POST", f"/api/{path}/replay", body)
    assert answer["status"] == 200, answer
    return answer["data"]


async def policy_key(site: Any, capture: str, **more: object) -> tuple[str, str]:
    """Return the id of a policy, and a key that has it."""
    policy = await site.ask("POST", "/api/policies", {"name": f"keeps {capture}", "capture": capture} | more)
    body = {"name": capture, "scopes": ["shield:scan"], "policy": policy["data"]["id"]}
    return policy["data"]["id"], (await site.ask("POST", "/api/config/api-keys", body))["data"]["key"]


async def scan(site: Any, text: str, key: str) -> str:
    """Scan a text and return the id of its request."""
    answer = await site.ask("POST", "/api/v1/shield/scan", {"text": text}, key=key)
    assert answer["status"] == 200
    await site.gateway.store.db.write(lambda tx: None)  # what is written behind stands before it
    return str(answer["headers"]["x-request-id"])


async def test_a_replay_tells_which_kept_texts_a_draft_would_flip(site: Any, attack: str) -> None:
    _, key = await policy_key(site, "full")
    _, masked = await policy_key(site, "redacted")
    flipped = [await scan(site, f"please {DOORS}", key), await scan(site, f"do {DOORS}", masked)]
    await scan(site, "nothing at all", key)
    await scan(site, attack, key)
    found = await replay(site, {"rule": draft()})
    assert (found["texts"], found["masked"], found["flips"]) == (4, 1, {"ALLOW>BLOCK": 2})
    assert (found["is_stopped"], found["suite_flips"]) == (False, {}) and found["cases"] > 1000
    assert [one["request_id"] for one in found["examples"]] == flipped[::-1]
    assert await verdict(site) == "ALLOW", "nothing was stored"
    without = await replay(site, {"without": "say-please"})
    assert without["flips"] == {"BLOCK>ALLOW": 1}
    assert await verdict(site, attack) == "BLOCK"


async def test_a_replay_counts_what_the_suite_says_of_a_draft(site: Any) -> None:
    everywhere = draft(literals=["the "], match=["the end"], **{"pass": ["an end"]})
    added = await replay(site, {"rule": everywhere})
    assert added["attacks_newly_found"] > 100 and added["benign_newly_flagged"] > 100
    new = [count for flip, count in added["suite_flips"].items() if flip.startswith("ALLOW>")]
    assert sum(new) == added["attacks_newly_found"] + added["benign_newly_flagged"]
    await store(site, id="local:all", literals=["the "], match=["the end"], **{"pass": ["an end"]})
    gone = await replay(site, {"without": "local:all"})
    assert gone["attacks_newly_missed"] == added["attacks_newly_found"]
    assert gone["benign_newly_passed"] == added["benign_newly_flagged"]
    assert len(gone["examples"]) == 50 and gone["examples"][0]["case"]


async def test_a_replay_of_a_policy_is_of_the_texts_of_its_keys(site: Any, attack: str) -> None:
    policy, key = await policy_key(site, "full")
    _, other = await policy_key(site, "full", name="other")
    request = await scan(site, attack, key)
    await scan(site, attack, other)
    softer = {"policy": policy, "block_score": 80, "review_score": 50}
    found = await replay(site, softer, "policies")
    assert (found["texts"], found["masked"], found["flips"]) == (1, 0, {"BLOCK>REVIEW": 1})
    assert found["examples"][0]["request_id"] == request
    everyone = await replay(site, {"category_actions": {"injection": "allow"}}, "policies")
    assert everyone["flips"] == {"BLOCK>ALLOW": 2}


async def test_a_replay_that_runs_out_of_time_says_so(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.services.rule_trials.MOST_SECONDS", 0.0)
    found = await replay(site, {"rule": draft()})
    assert (found["is_stopped"], found["texts"], found["cases"]) == (True, 0, 0)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 409, "rule"),
        ({"rule": draft(), "without": "say-please"}, 409, "rule"),
        ({"without": "nothing"}, 404, "without"),
        ({"rule": draft(pattern="open (the")}, 400, "rule.pattern"),
    ],
)
async def test_a_bad_replay_is_told_its_field(site: Any, body: object, status: int, param: str) -> None:
    answer = await site.ask("POST", "/api/shield/rules/replay", body)
    assert (answer["status"], answer["error"]["param"]) == (status, param)


async def test_the_risk_of_a_stored_rule_is_accepted_as_that_of_any_other(site: Any) -> None:
    await store(site)
    until = datetime.now(UTC) + timedelta(days=1)
    risk = {"scope": "rule", "rule": "local:garage", "reason": "a test", "until": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
    made = await site.ask("POST", "/api/risk-acceptances", risk)
    assert made["status"] == 201, made
    assert await verdict(site) == "ALLOW"
