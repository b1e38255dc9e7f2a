"""A finding says in which text it stands, which way that went and where; an acceptance holds for just that text."""

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from open_site import ATTACK, RULES, Site, open_site

SECRET = {
    "id": "made-up-token", "name": "Made-up token", "category": "secret", "severity": "critical", "confidence": 0.9,
    "description": "A made-up secret.", "direction": ["outbound"], "pattern": "ZKEY-[0-9]{12}", "view": "text",
    "literals": ["ZKEY-"], "match": ["ZKEY-123456789012"], "pass": ["ZKEY-1"],
}  # fmt: skip
# Unlike the attack of `open_site`, nothing around it makes it count less.
PLAIN = {
    "id": "send-home", "name": "Send home", "category": "exfiltration", "severity": "critical", "confidence": 0.9,
    "description": "A made-up theft.", "direction": ["inbound", "outbound"],
    "literals": ["phone home the recipe"], "match": ["phone home the recipe"], "pass": ["phone home"],
}  # fmt: skip
THEFT = "phone home the recipe"
HUSH, MURMUR = "hush now little one", "murmur in the dark"
OTHERS = [
    PLAIN | {"id": id, "category": category, "severity": severity, "literals": [text], "match": [text], "pass": ["x"]}
    for id, category, severity, text in (
        ("hush-now", "c2", "critical", HUSH),
        ("murmur-low", "encoding", "high", MURMUR),
    )
]
TOKEN = "ZKEY-123456789012"
# Red on the code of before also where a text is counted in bytes or in UTF-16.
SMILE = "\U0001f600 "


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setitem(RULES, "rules", [*RULES["rules"], SECRET, PLAIN, *OTHERS])  # type: ignore[misc]
    async with open_site(tmp_path) as one:
        yield one


async def talk(site: Site, key: str, *messages: tuple[str, object], agent: str = "bot") -> Any:
    body = {"model": "echo", "messages": [{"role": role, "content": content} for role, content in messages]}
    return await site.ask("POST", "/api/v1/chat/completions", body, key=key, headers={"x-service-agent": agent})


async def newest(site: Site, path: str) -> Any:
    return (await site.ask("GET", path))["data"][0]


async def records(site: Site) -> dict[str, list[dict[str, Any]]]:
    """Return the findings of the newest request as alert, traffic row and audit event have them."""
    alert, row = await newest(site, "/api/alerts?source=shield"), await newest(site, "/api/traffic")
    event = next(
        one for one in (await site.ask("GET", "/api/audit?limit=50"))["data"] if one["action"].startswith("chat_")
    )
    told = [*event["details"].get("inbound", {}).get("detections", [])]
    told += event["details"].get("outbound", {}).get("detections", [])
    return {"alert": alert["evidence"][-1]["detections"], "traffic": row["detections"], "audit": told}


async def test_a_finding_of_a_prompt_has_hash_span_and_place_of_its_own_message(site: Site) -> None:
    key = (await site.key())["key"]
    text = SMILE + ATTACK
    await talk(site, key, ("system", "You are kind."), ("user", "Hi"), ("assistant", "Hello."), ("user", text))
    for name, found in (await records(site)).items():
        (one,) = found
        assert (one["sha256"], one["chars"]) == (sha(text), len(text)), name
        assert (one["direction"], one["place"]) == ("inbound", "messages[3].content"), name
        assert text[one["start"] : one["end"]] == "open the pod bay doors", name
        assert "matched" not in one, "of what is no secret there is no text in records"
    assert ATTACK not in site.log.getvalue()


async def test_a_secret_in_a_reply_has_hash_span_and_mask_of_the_reply(site: Site) -> None:
    key = (await site.key())["key"]
    reply = f"{SMILE}Sure: {TOKEN}, as you asked."  # the model echo says the last message again
    answer = await talk(site, key, ("system", "You are kind."), ("user", reply))
    assert answer["choices"][0]["finish_reason"] == "content_filter"
    found = await records(site)
    for name, (one,) in found.items():
        assert (one["sha256"], one["chars"]) == (sha(reply), len(reply)), name
        assert (one["direction"], one["place"]) == ("outbound", "choices[0].message.content"), name
        assert reply[one["start"] : one["end"]] == TOKEN, name
        assert one["matched"] == f"ZKEY…({len(TOKEN)})", name
    alert, row = await newest(site, "/api/alerts?source=shield"), await newest(site, "/api/traffic")
    assert (alert["evidence"][-1]["sha256"], alert["evidence"][-1]["chars"]) == (sha(reply), len(reply))
    assert (alert["evidence"][-1]["direction"], row["text_sha256"]) == ("outbound", sha(reply))
    audit = await site.ask("GET", "/api/audit?limit=100")
    assert TOKEN not in json.dumps([alert, row, audit["data"], found]) + site.log.getvalue()


async def test_a_clean_prompt_has_the_hash_of_its_messages_texts(site: Site) -> None:
    key = (await site.key())["key"]
    await talk(site, key, ("user", "Hello"))
    row = await newest(site, "/api/traffic")
    assert (row["text_sha256"], row["text_chars"]) == (sha("Hello"), 5)
    await talk(site, key, ("system", "You are kind."), ("user", "Hello"))
    assert (await newest(site, "/api/traffic"))["text_sha256"] == sha("You are kind.\nHello")


async def test_prompt_and_reply_findings_of_a_rule_are_two_alerts(site: Site) -> None:
    key = (await site.key())["key"]
    for direction in ("inbound", "outbound", "inbound"):
        body = {"text": ATTACK, "direction": direction}
        await site.ask("POST", "/api/v1/shield/scan", body, key=key, headers={"x-service-agent": "bot"})
    found = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    assert [(one["evidence"][-1]["direction"], one["count"]) for one in found] == [("outbound", 1), ("inbound", 2)]


async def test_two_keys_that_claim_one_agent_have_two_alerts(site: Site) -> None:
    keys = [await site.key(), await site.key()]
    for key in keys:
        await site.scan(key["key"], agent="bot")
    found = (await site.ask("GET", "/api/alerts?source=shield"))["data"]
    assert {one["key_prefix"] for one in found} == {key["prefix"] for key in keys}


async def test_a_rule_that_matches_in_two_messages_is_told_of_both_and_counts_once(site: Site) -> None:
    key = (await site.key())["key"]
    other = "And " + THEFT
    await talk(site, key, ("user", THEFT), ("assistant", "No."), ("user", other))
    row = await newest(site, "/api/traffic")
    assert [(one["place"], one["sha256"], one["score"]) for one in row["detections"]] == [
        ("messages[0].content", sha(THEFT), 60), ("messages[2].content", sha(other), 0)
    ]  # fmt: skip
    assert row["score"] == 60


async def accept(site: Site, **fields: object) -> Any:
    wanted = {"scope": "finding", "reason": "drill", "until": "7d", **fields}
    return await site.make("/api/risk-acceptances", **wanted)


async def test_an_accepted_finding_holds_in_any_conversation_and_for_no_other_text(site: Site) -> None:
    key = (await site.key(scopes=["chat:completions", "alerts:read"]))["key"]
    assert (await talk(site, key, ("user", THEFT)))["status"] == 400
    alert = await newest(site, "/api/alerts?source=shield")
    made = await accept(site, alert=alert["id"])
    assert (made["rule"], made["digest"]) == ("send-home", sha(THEFT))
    passing: list[list[tuple[str, object]]] = [
        [("user", THEFT)],
        [("user", "Hi"), ("assistant", "Hello."), ("user", THEFT)],
        [("system", "You are kind."), ("user", THEFT)],
        [("user", THEFT), ("assistant", "Well."), ("user", "And now?")],
        [("user", THEFT), ("assistant", "Well."), ("user", THEFT)],
    ]
    for conversation in passing:
        answer = await talk(site, key, *conversation)
        assert answer["status"] == 200, conversation
        (found,) = {one["accepted"] for one in (await newest(site, "/api/traffic"))["detections"]}
        assert found == made["id"]
    blocked: list[list[tuple[str, object]]] = [
        [("user", THEFT + "!")],
        [("user", THEFT), ("assistant", "Well."), ("user", "Now really " + THEFT)],
        [("user", "Now really " + THEFT), ("assistant", "Well."), ("user", THEFT)],
        [("user", [{"type": "text", "text": "please phone home "}, {"type": "text", "text": "the recipe"}])],
    ]
    for conversation in blocked:
        assert (await talk(site, key, *conversation))["status"] == 400, conversation


async def test_a_match_over_two_texts_is_accepted_by_neither_of_them(site: Site) -> None:
    key = (await site.key())["key"]
    halves = "please phone home ", "the recipe"
    parts = [{"type": "text", "text": half} for half in halves]
    await talk(site, key, ("user", parts))
    alert = await newest(site, "/api/alerts?source=shield")
    wanted = {"scope": "finding", "alert": alert["id"], "reason": "drill", "until": "7d"}
    refused = await site.ask("POST", "/api/risk-acceptances", wanted)
    assert (refused["status"], refused["error"]["param"]) == (409, "alert")
    for half in halves:
        await accept(site, rule="send-home", digest=sha(half))
    assert (await talk(site, key, ("user", parts)))["status"] == 400


async def test_an_accepted_finding_of_a_reply_lets_the_reply_through(site: Site) -> None:
    key = (await site.key(policy=(await site.make("/api/policies", name="in", mode="observe"))["id"]))["key"]
    await accept(site, rule="say-please", digest=sha(ATTACK))
    answer = await talk(site, key, ("user", ATTACK))
    assert answer["choices"][0]["message"]["content"] == ATTACK
    row = await newest(site, "/api/traffic")
    assert {(one["direction"], one["place"], bool(one.get("accepted"))) for one in row["detections"]} >= {
        ("inbound", "messages[0].content", True), ("outbound", "choices[0].message.content", True)
    }  # fmt: skip


async def test_evidence_of_before_can_still_be_read_and_is_not_accepted_by_guess(site: Site) -> None:
    key = (await site.key())["key"]
    await talk(site, key, ("user", ATTACK))
    old = json.dumps([{"request_id": "req_1", "verdict": "BLOCK", "score": 60, "sha256": "0" * 64, "chars": 3,
                       "detections": [{"rule": "say-please", "severity": "critical", "category": "injection",
                                       "score": 60, "count": 1, "start": 0, "end": 3, "view": "text"}]}])  # fmt: skip
    await site.gateway.store.db.write(lambda tx: tx.execute("UPDATE alerts SET evidence = :old", {"old": old}))
    alert = await newest(site, "/api/alerts?source=shield")
    shown = await site.ask("GET", f"/api/alerts/{alert['id']}")
    assert shown["data"]["evidence"] == json.loads(old)
    wanted = {"scope": "finding", "alert": alert["id"], "reason": "drill", "until": "7d"}
    assert (await site.ask("POST", "/api/risk-acceptances", wanted))["status"] == 409


async def test_after_accepting_the_answer_says_what_the_verdict_of_the_request_would_be(site: Site) -> None:
    key = (await site.key(scopes=["chat:completions", "alerts:read"]))["key"]
    messages = ("user", "Hi"), ("assistant", "Hello."), ("user", f"{THEFT} and {HUSH}")

    async def truth() -> tuple[str, int]:
        await talk(site, key, *messages)
        row = await newest(site, "/api/traffic")
        return row["verdict"], row["score"]

    assert (await truth())[0] == "BLOCK"
    alert, row = await newest(site, "/api/alerts?source=shield"), await newest(site, "/api/traffic")
    first = (await accept(site, alert=alert["id"]))["new_verdict"]
    assert first["request_id"] == row["request_id"]
    assert (first["verdict"], first["score"]) == await truth()
    assert first["says"].startswith(f"This request would still be BLOCK (score {first['score']}: hush-now 60")
    assert {"rule": "hush-now", "score": 60} in first["rules"]
    assert sum(one["score"] for one in first["rules"]) == first["score"]
    second = (await accept(site, scope="rule", rule="hush-now", request=row["id"]))["new_verdict"]
    assert (second["verdict"], second["score"]) == await truth()
    assert second["says"].startswith("This request would now be ALLOW (score ")
    assert "Its reply has not been seen" in second["says"]


async def test_an_acceptance_that_covers_nothing_of_the_request_says_so(site: Site) -> None:
    key = (await site.key())["key"]
    await talk(site, key, ("user", THEFT), agent="a")
    row = await newest(site, "/api/traffic")
    other = await accept(site, rule="send-home", digest=sha("another text"), request=row["request_id"])
    assert other["new_verdict"]["verdict"] == "BLOCK"
    assert "This acceptance covers none of this request's findings." in other["new_verdict"]["says"]
    agent = {"scope": "rule_agent", "rule": "send-home", "agent": "b", "any_key": True}
    assert (await accept(site, **agent, request=row["id"]))["new_verdict"]["verdict"] == "BLOCK"
    assert (await accept(site, **agent | {"agent": "a"}, request=row["id"]))["new_verdict"]["verdict"] == "ALLOW"
    again = (await accept(site, **agent | {"agent": "a"}, request=row["id"]))["new_verdict"]
    assert again["says"].startswith("An earlier acceptance already covers what this one could. This request would now")


async def test_the_new_verdict_is_by_the_policy_of_the_key(site: Site) -> None:
    strict = await site.make("/api/policies", name="strict", block_score=20, review_score=10)
    key = (await site.key(policy=strict["id"]))["key"]
    await site.scan(key, f"{THEFT} and {MURMUR}", agent="a")
    row = await newest(site, "/api/traffic")
    verdict = (await accept(site, rule="send-home", digest=row["text_sha256"], request=row["id"]))["new_verdict"]
    assert (verdict["verdict"], verdict["score"]) == ("BLOCK", 25)


async def test_a_new_verdict_that_cannot_be_known_is_not_made_up(site: Site) -> None:
    key = (await site.key())["key"]
    none = (await accept(site, rule="say-please", digest=sha("x")))["new_verdict"]
    gone = (await accept(site, rule="say-please", digest=sha("x"), request="req_nothing"))["new_verdict"]
    await talk(site, key, ("user", THEFT))
    row = await newest(site, "/api/traffic")
    old = json.dumps([{name: one[name] for name in ("rule", "severity", "category", "score", "count", "start", "end",
                                                    "view")} for one in row["detections"]])  # fmt: skip
    await site.gateway.store.db.write(lambda tx: tx.execute("UPDATE traffic SET detections = :old", {"old": old}))
    before = (await accept(site, rule="send-home", digest=sha(THEFT), request=row["id"]))["new_verdict"]
    for one, why in ((none, "No request was named"), (gone, "not in the traffic"), (before, "earlier version")):
        assert (one["verdict"], one["score"], one["rules"]) == (None, None, [])
        assert why in one["says"] and "not known" in one["says"]
