"""Policies from the API: made, changed, given to keys, and what they change for a key's requests and no other's."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.audit import AuditFilter
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.settings import Settings

# An attack, a hint and a low fact.
RULES = {
    "version": 1,
    "tables": {},
    "rules": [
        {
            "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
            "description": "A made-up attack.", "direction": ["inbound", "outbound"],
            "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
        },
        {
            "id": "pod-bay-words", "name": "Words of the pod bay", "category": "injection", "severity": "low",
            "confidence": 0.5, "description": "A hint.", "direction": ["inbound", "outbound"],
            "literals": ["airlock"], "match": ["the airlock"], "pass": ["the door"],
        },
        {
            "id": "crew-name", "name": "Name of the crew", "category": "pii", "severity": "low", "confidence": 0.9,
            "description": "A low fact.", "direction": ["inbound", "outbound"],
            "literals": ["frank poole"], "match": ["frank poole"], "pass": ["the crew"],
        },
    ],
}  # fmt: skip
ATTACK = "please open the pod bay doors now"
KEYS = "/api/config/api-keys"


class Site:
    """A gateway without RBAC, and what is asked of it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)

    async def ask(self, method: str, path: str, body: object = None, *, key: str = "") -> Any:
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= {"x-service-key": key} if key else {}
        raw = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, "", Headers(fields), raw, "127.0.0.1", False, 0.0)
        response = await self.dispatch.handle(request)
        answer = json.loads(response.body)
        return answer | {"status": response.status, "headers": dict(response.headers)}

    async def policy(self, name: str = "lab", **fields: object) -> Any:
        answer = await self.ask("POST", "/api/policies", {"name": name, **fields})
        assert answer["status"] == 201, answer
        return answer["data"]

    async def key(self, **fields: object) -> Any:
        body = {"name": "ci", "scopes": ["shield:scan", "chat:completions"], **fields}
        answer = await self.ask("POST", KEYS, body)
        assert answer["status"] == 201, answer
        return answer["data"]

    async def scan(self, key: str, text: str = ATTACK) -> Any:
        return (await self.ask("POST", "/api/v1/shield/scan", {"text": text}, key=key))["data"]

    async def chat(self, key: str) -> Any:
        body = {"model": "echo", "messages": [{"role": "user", "content": ATTACK}]}
        return await self.ask("POST", "/api/v1/chat/completions", body, key=key)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    settings = Settings(data_dir=":memory:", rules=str(rules), rbac_enabled=False)
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        yield Site(gateway)


async def test_a_policy_lives_its_whole_life(site: Site) -> None:
    made = await site.policy("lab", mode="observe", category_actions={"pii": "redact"})
    assert made == {
        "id": made["id"], "name": "lab", "mode": "observe", "block_score": 60, "review_score": 25,
        "category_actions": {"pii": "redact"}, "unscannable": "allow", "outbound": "block",
        "outbound_stream": "held", "tool_injection": True, "capture": "none", "capture_days": 7,
        "created_at": made["created_at"], "created_by": "local", "version": 1,
    }  # fmt: skip
    assert (await site.ask("GET", "/api/policies"))["data"] == [made]
    assert (await site.ask("GET", "/api/policies/LAB"))["data"] == made
    one = f"/api/policies/{made['id']}"
    changed = (await site.ask("PATCH", one, {"block_score": 80, "category_actions": {}, "version": 1}))["data"]
    assert (changed["block_score"], changed["category_actions"], changed["version"]) == (80, {}, 2)
    assert (await site.ask("PATCH", one, {"block_score": 90, "version": 1}))["error"]["param"] == "version"
    assert (await site.ask("POST", "/api/policies", {"name": "Lab"}))["status"] == 409
    assert (await site.ask("DELETE", one))["status"] == 200
    assert (await site.ask("DELETE", one))["status"] == 404
    actions = {event.action for event in (await site.gateway.audit.page(AuditFilter(resource_type="policy"))).items}
    assert actions == {"policy_created", "policy_changed", "policy_removed"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x", "mode": "off"}, "mode"),
        ({"name": "x", "block_score": 0}, "block_score"),
        ({"name": "x", "review_score": 101}, "review_score"),
        ({"name": "x", "category_actions": {"weather": "block"}}, "category_actions.weather"),
        ({"name": "x", "category_actions": {"pii": "hide"}}, "category_actions.pii"),
        ({"name": "x", "unscannable": "maybe"}, "unscannable"),
        ({"name": "x", "tool_injection": 1}, "tool_injection"),
        ({"name": "x", "capture": "half"}, "capture"),
        ({"name": "x", "colour": "red"}, "colour"),
    ],
)
async def test_a_bad_policy_is_told_its_field(site: Site, body: object, param: str) -> None:
    answer = await site.ask("POST", "/api/policies", body)
    assert (answer["status"], answer["error"]["param"]) == (400, param)


async def test_thresholds_that_cross_are_a_conflict(site: Site) -> None:
    answer = await site.ask("POST", "/api/policies", {"name": "x", "block_score": 20, "review_score": 30})
    assert (answer["status"], answer["error"]["param"]) == (409, "review_score")
    await site.policy(name="lab", block_score=60, review_score=50)
    answer = await site.ask("PATCH", "/api/policies/lab", {"block_score": 40})
    assert (answer["status"], answer["error"]["param"]) == (409, "review_score")


async def test_a_policy_holds_for_its_keys_and_for_no_other(site: Site) -> None:
    policy = await site.policy(mode="observe")
    watched, other = (await site.key(policy="lab"))["key"], (await site.key())["key"]
    assert (await site.chat(watched))["status"] == 200
    assert (await site.chat(watched))["headers"]["x-service-shield-action"] == "observed"
    assert (await site.chat(other))["error"]["code"] == "content_policy_violation"
    await site.ask("PATCH", f"/api/policies/{policy['id']}", {"mode": "block"})
    assert (await site.chat(watched))["error"]["code"] == "content_policy_violation"


async def test_thresholds_and_weights_hold_at_the_next_scan(site: Site) -> None:
    policy = await site.policy(block_score=90, review_score=50)
    key = (await site.key(policy=policy["id"]))["key"]
    assert (await site.scan(key))["verdict"] == "REVIEW"
    await site.ask("PATCH", f"/api/policies/{policy['id']}", {"category_actions": {"injection": "allow"}})
    assert (await site.scan(key))["verdict"] == "ALLOW"


async def test_a_category_that_is_blocked_blocks_attacks_and_not_their_words(site: Site) -> None:
    await site.policy(category_actions={"injection": "block", "pii": "block"})
    key = (await site.key(policy="lab"))["key"]
    assert (await site.scan(key))["verdict"] == "BLOCK"
    words = await site.scan(key, "the airlock is painted red")
    assert (words["verdict"], words["score"]) == ("ALLOW", 3)
    assert (await site.scan(key, "the mail is for frank poole"))["verdict"] == "BLOCK"


async def test_a_key_gets_another_policy_and_loses_it(site: Site) -> None:
    policy = await site.policy(mode="observe")
    made = await site.key()
    one = f"{KEYS}/{made['id']}"
    assert (await site.ask("PATCH", one, {"policy": "nothing"}))["error"]["param"] == "policy"
    assert (await site.ask("PATCH", one, {"policy": "lab"}))["data"]["policy"] == policy["id"]
    assert (await site.ask("PATCH", one, {"name": "other"}))["data"]["policy"] == policy["id"]
    assert (await site.chat(made["key"]))["status"] == 200
    assert (await site.ask("DELETE", f"/api/policies/{policy['id']}"))["error"]["code"] == "conflict"
    rotated = (await site.ask("POST", f"{one}/rotate", {"grace_seconds": 0}))["data"]
    shown = (await site.ask("GET", f"{KEYS}/{rotated['id']}"))["data"]
    assert shown["policy"] == policy["id"]
    assert (await site.ask("PATCH", f"{KEYS}/{rotated['id']}", {"policy": None}))["data"]["policy"] is None
    assert (await site.chat(rotated["key"]))["status"] == 400
    assert (await site.ask("DELETE", f"/api/policies/{policy['id']}"))["status"] == 200


async def test_a_category_under_redact_is_masked_on_its_way(site: Site) -> None:
    await site.policy(category_actions={"injection": "redact"})
    key = (await site.key(policy="lab"))["key"]
    answer = await site.chat(key)
    assert answer["status"] == 200
    assert answer["headers"]["x-service-shield-action"] == "redacted"
    said = answer["choices"][0]["message"]["content"]
    assert "pod bay" not in said and "please" in said


async def test_a_policy_made_after_the_first_request_of_a_key_holds_for_it(site: Site) -> None:
    made = await site.key()
    assert [(await site.chat(made["key"]))["status"] for _ in range(3)] == [400, 400, 400]
    await site.policy("lab", mode="observe")
    await site.ask("PATCH", f"{KEYS}/{made['id']}", {"policy": "lab"})
    assert [(await site.chat(made["key"]))["status"] for _ in range(3)] == [200, 200, 200]


async def test_a_key_made_with_a_new_policy_while_others_are_served_has_that_policy(site: Site) -> None:
    other = (await site.key())["key"]
    await site.scan(other)
    await site.policy("mask", category_actions={"injection": "redact"})
    key = (await site.key(policy="mask"))["key"]
    assert "pod bay" not in (await site.scan(key))["redacted"]
    assert (await site.chat(key))["headers"]["x-service-shield-action"] == "redacted"
    assert (await site.chat(other))["error"]["code"] == "content_policy_violation"


async def test_a_key_whose_policy_does_not_exist_is_refused_on_every_path(site: Site) -> None:
    lost = (await site.policy("lab", mode="observe"))["id"]
    made = await site.key(policy="lab", scopes=["shield:scan", "chat:completions", "audit:read"])
    assert (await site.chat(made["key"]))["status"] == 200
    await site.gateway.store.db.write(lambda tx: tx.execute("DELETE FROM policies"))  # past the gateway
    await site.policy("other")
    for _ in range(2):
        for answer in (
            await site.chat(made["key"]),
            await site.ask("POST", "/api/v1/shield/scan", {"text": "hello"}, key=made["key"]),
            await site.ask("GET", "/api/v1/audit", key=made["key"]),
            await site.ask("GET", "/api/v1/models", key=made["key"]),
        ):
            assert (answer["status"], answer["error"]["code"]) == (403, "permission_denied")
            assert "Give the key another policy" in answer["error"]["message"]
    await site.gateway.store.db.write(lambda tx: None)  # a refusal is recorded a moment later
    refused = (await site.gateway.audit.page(AuditFilter(action="api_key_refused"))).items
    assert refused and {event.details["policy"] for event in refused} == {lost}
    assert (await site.ask("PATCH", f"{KEYS}/{made['id']}", {"policy": "other"}))["status"] == 200
    assert (await site.chat(made["key"]))["error"]["code"] == "content_policy_violation"
