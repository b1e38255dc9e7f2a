"""Risk acceptances from the API: what is accepted stays visible and adds nothing, and nothing else gets through."""

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from open_site import ATTACK, Site, open_site

ACCEPTANCES = "/api/risk-acceptances"
DIGEST = hashlib.sha256(ATTACK.encode()).hexdigest()


def days(count: float) -> str:
    return (datetime.now(UTC) + timedelta(days=count)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as one:
        yield one


async def accept(site: Site, **fields: object) -> Any:
    return await site.make(ACCEPTANCES, **{"reason": "known", "until": days(7), "rule": "say-please", **fields})


async def test_an_acceptance_lives_its_whole_life(site: Site) -> None:
    made = await accept(site, scope="rule")
    assert {name: value for name, value in made.items() if name != "new_verdict"} == {
        "id": made["id"], "scope": "rule", "rule": "say-please", "agent": None, "key": None, "digest": None,
        "reason": "known", "status": "active", "accepted_at": made["accepted_at"], "accepted_by": "local",
        "until": made["until"], "revoked_at": None, "revoked_by": None, "version": 1,
        "policy": None, "request": None, "proposed_by": None,
    }  # fmt: skip
    one = f"{ACCEPTANCES}/{made['id']}"
    changed = (await site.ask("PATCH", one, {"reason": "still known", "until": days(30), "version": 1}))["data"]
    assert (changed["reason"], changed["version"]) == ("still known", 2)
    assert (await site.ask("PATCH", one, {"reason": "x", "version": 1}))["status"] == 409
    assert (await site.ask("GET", one))["data"] == changed
    revoked = (await site.ask("DELETE", one))["data"]
    assert (revoked["status"], revoked["revoked_by"]) == ("revoked", "local")
    assert (await site.ask("DELETE", one))["error"]["code"] == "conflict"
    assert (await site.ask("PATCH", one, {"reason": "x"}))["error"]["code"] == "conflict"
    gone = await site.ask("GET", one)
    assert (gone["status"], gone["error"]["param"]) == (404, "id")
    assert (await site.ask("GET", ACCEPTANCES))["data"] == [revoked]
    assert (await site.ask("GET", f"{ACCEPTANCES}/ra_nothing"))["status"] == 404
    key = (await site.key())["key"]
    assert (await site.ask("GET", "/api/v1/risk-acceptances", key=key))["data"] == [revoked]
    weak = (await site.key(scopes=["shield:scan"]))["key"]
    assert (await site.ask("GET", "/api/v1/risk-acceptances", key=weak))["error"]["code"] == "insufficient_scope"
    assert await site.actions("risk_acceptance") == [
        "risk_accepted", "risk_acceptance_changed", "risk_acceptance_revoked",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "scope"),
        ({"scope": "all"}, "scope"),
        ({"scope": "rule", "rule": None}, "rule"),
        ({"scope": "rule", "rule": "a b"}, "rule"),
        ({"scope": "rule", "reason": " "}, "reason"),
        ({"scope": "rule", "reason": "a\nb"}, "reason"),
        ({"scope": "rule", "until": days(91)}, "until"),
        ({"scope": "rule", "until": days(-1)}, "until"),
        ({"scope": "rule", "until": "never"}, "until"),
        ({"scope": "rule", "agent": "x"}, "agent"),
        ({"scope": "rule", "digest": DIGEST}, "digest"),
        ({"scope": "rule", "key": "svc_1"}, "key"),
        ({"scope": "rule_agent"}, "agent"),
        ({"scope": "rule_agent", "agent": "x"}, "any_key"),
        ({"scope": "rule_agent", "agent": "x", "any_key": False}, "any_key"),
        ({"scope": "rule_agent", "agent": "x", "any_key": "yes"}, "any_key"),
        ({"scope": "rule_agent", "agent": "x", "key": "svc_1", "any_key": True}, "any_key"),
        ({"scope": "rule", "any_key": True}, "any_key"),
        ({"scope": "rule", "rule": "say-pleese"}, "rule"),
        ({"scope": "rule_agent", "agent": "x", "any_key": True, "rule": "nope"}, "rule"),
        ({"scope": "finding", "digest": DIGEST, "rule": "nope"}, "rule"),
        ({"scope": "rule", "until": "91d"}, "until"),
        ({"scope": "rule", "until": "0d"}, "until"),
        ({"scope": "rule_agent", "agent": "a\u202eb", "any_key": True}, "agent"),
        ({"scope": "rule_agent", "agent": "x", "key": ""}, "key"),
        ({"scope": "finding"}, "digest"),
        ({"scope": "finding", "digest": DIGEST.upper()}, "digest"),
        ({"scope": "finding", "alert": "alr_nothing"}, "alert"),
        ({"scope": "rule", "severity": "low"}, "severity"),
    ],
)
async def test_a_bad_acceptance_is_told_its_field(site: Site, fields: dict[str, object], param: str) -> None:
    body = {"reason": "known", "until": days(7), "rule": "say-please", **fields}
    answer = await site.ask("POST", ACCEPTANCES, {name: value for name, value in body.items() if value is not None})
    assert (answer["status"], answer["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"scope": "rule_agent", "rule": "say-please", "agent": "x", "key": "svc_000000"}, "key"),
        ({"scope": "finding", "alert": "alr_nothing"}, "alert"),
    ],
)
async def test_an_acceptance_that_names_what_is_not_there_is_a_conflict(
    site: Site, fields: dict[str, object], param: str
) -> None:
    answer = await site.ask("POST", ACCEPTANCES, {"reason": "known", "until": "7d", **fields})
    assert (answer["status"], answer["error"]["code"], answer["error"]["param"]) == (409, "conflict", param)


async def test_the_end_of_an_acceptance_may_be_told_from_now_on(site: Site) -> None:
    earliest = days(90)
    made = await accept(site, scope="rule", until="90d")
    assert earliest[:19] <= made["until"][:19] <= days(90)[:19]
    changed = await site.ask("PATCH", f"{ACCEPTANCES}/{made['id']}", {"until": "1s"})
    assert changed["data"]["until"] < days(1)


async def test_what_is_accepted_stays_visible_and_adds_nothing(site: Site) -> None:
    key = (await site.key())["key"]
    assert (await site.scan(key))["verdict"] == "BLOCK"
    made = await accept(site, scope="rule")
    answer = await site.scan(key)
    assert (answer["verdict"], answer["score"]) == ("ALLOW", 0)
    assert [(found["rule"], found["score"], found["accepted"]) for found in answer["detections"]] == [
        ("say-please", 0, made["id"])
    ]
    chat = await site.chat(key, ATTACK)
    assert (chat["status"], chat["headers"]["x-service-shield-verdict"]) == (200, "ALLOW")
    await site.ask("DELETE", f"{ACCEPTANCES}/{made['id']}")
    assert (await site.scan(key))["verdict"] == "BLOCK"
    assert (await site.chat(key, ATTACK))["error"]["code"] == "content_policy_violation"


async def test_an_acceptance_for_an_agent_is_for_no_other_and_may_be_for_one_key_alone(site: Site) -> None:
    made, other = await site.key(), (await site.key())["key"]
    key = made["key"]
    await accept(site, scope="rule_agent", agent="crawler", key=made["prefix"])
    assert (await site.scan(key, agent="crawler"))["verdict"] == "ALLOW"
    assert (await site.scan(key, agent="writer"))["verdict"] == (await site.scan(key))["verdict"] == "BLOCK"
    assert (await site.scan(other, agent="crawler"))["verdict"] == "BLOCK"
    assert (await site.chat(key, ATTACK, agent="crawler"))["status"] == 200
    assert (await site.chat(key, ATTACK, user="crawler"))["status"] == 200
    assert (await site.chat(other, ATTACK, agent="crawler"))["status"] == 400
    rotated = (await site.ask("POST", f"/api/config/api-keys/{made['id']}/rotate", {}))["data"]["key"]
    assert (await site.scan(rotated, agent="crawler"))["verdict"] == "ALLOW"


async def test_an_agent_alone_is_accepted_only_when_every_key_is_meant(site: Site) -> None:
    mine, other = (await site.key())["key"], (await site.key())["key"]
    body = {"scope": "rule_agent", "rule": "say-please", "agent": "crawler", "reason": "known", "until": "7d"}
    refused = await site.ask("POST", ACCEPTANCES, body)
    assert (refused["status"], refused["error"]["param"]) == (400, "any_key")
    assert "Anyone may claim the name" in refused["error"]["message"]
    assert (await site.ask("GET", ACCEPTANCES))["data"] == []
    assert (await site.scan(mine, agent="crawler"))["verdict"] == "BLOCK"
    made = await site.make(ACCEPTANCES, **body, any_key=True)
    assert (made["agent"], made["key"]) == ("crawler", None)
    for key in (mine, other):
        assert (await site.scan(key, agent="crawler"))["verdict"] == "ALLOW"
        assert (await site.scan(key, agent="writer"))["verdict"] == "BLOCK"


async def test_a_rule_that_is_not_there_is_refused_with_the_nearest_names(site: Site) -> None:
    answer = await site.ask("POST", ACCEPTANCES, {"scope": "rule", "rule": "say-pleese", "reason": "x", "until": "7d"})
    assert (answer["status"], answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "rule")
    assert "say-please" in answer["error"]["message"]
    assert (await site.ask("GET", ACCEPTANCES))["data"] == []


async def test_an_accepted_finding_lapses_when_its_evidence_changes(site: Site) -> None:
    key = (await site.key())["key"]
    await accept(site, scope="finding", digest=DIGEST)
    assert (await site.scan(key))["verdict"] == "ALLOW"
    assert (await site.scan(key, ATTACK + "!"))["verdict"] == "BLOCK"


async def test_an_accepted_prompt_passes_and_one_with_more_in_it_does_not(site: Site) -> None:
    key = (await site.key(scopes=["chat:completions", "alerts:read"]))["key"]
    assert (await site.chat(key, ATTACK))["status"] == 400
    (alert,) = (await site.ask("GET", "/api/v1/alerts?source=shield", key=key))["data"]
    await site.make(ACCEPTANCES, scope="finding", alert=alert["id"], reason="drill", until=days(1))
    # The reply says just this text again.
    answer = await site.chat(key, ATTACK)
    assert (answer["status"], answer["choices"][0]["finish_reason"]) == (200, "stop")
    assert (await site.chat(key, ATTACK + " please"))["status"] == 400


async def test_a_finding_is_accepted_by_the_alert_that_shows_it(site: Site) -> None:
    key = (await site.key(scopes=["shield:scan", "alerts:read"]))["key"]
    await site.scan(key)
    (alert,) = (await site.ask("GET", "/api/v1/alerts?source=shield", key=key))["data"]
    made = await site.make(ACCEPTANCES, scope="finding", alert=alert["id"], reason="drill", until=days(1))
    assert (made["rule"], made["digest"]) == ("say-please", DIGEST)
    assert (await site.scan(key))["verdict"] == "ALLOW"


async def test_an_acceptance_that_is_over_covers_nothing(site: Site) -> None:
    key = (await site.key())["key"]
    made = await accept(site, scope="rule")
    assert (await site.scan(key))["verdict"] == "ALLOW"
    # The clock of a running gateway cannot be moved, so the end is.
    await site.gateway.store.db.write(lambda tx: tx.execute("UPDATE risk_acceptances SET until_at = accepted_at + 1"))
    await accept(site, scope="rule", rule="attack-model")
    assert (await site.scan(key))["verdict"] == "BLOCK"
    assert (await site.ask("GET", f"{ACCEPTANCES}/{made['id']}"))["data"]["status"] == "expired"


async def test_what_is_accepted_is_not_masked_either(site: Site) -> None:
    await site.make("/api/policies", name="mask", category_actions={"injection": "redact"})
    key = (await site.key(policy="mask"))["key"]
    assert ATTACK not in (await site.chat(key, ATTACK))["choices"][0]["message"]["content"]
    await accept(site, scope="rule")
    assert (await site.chat(key, ATTACK))["choices"][0]["message"]["content"] == ATTACK


async def test_acceptances_are_listed_page_by_page(site: Site) -> None:
    made = [(await accept(site, scope="rule"))["id"] for _ in range(3)]
    first = await site.ask("GET", f"{ACCEPTANCES}?limit=2")
    rest = await site.ask("GET", f"{ACCEPTANCES}?limit=2&cursor={first['page']['next']}")
    assert [one["id"] for one in first["data"] + rest["data"]] == made[::-1]
    assert rest["page"]["next"] is None
