"""The dispatch over the real services and a real store: what is answered, recorded and listed again."""

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
from gateway.domain.keys import NewKey
from gateway.domain.principals import Caller, RequestContext, Scope, local
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.services.shield_tests import RunShieldTests
from gateway.settings import Settings

RULES = {
    "version": 1,
    "tables": {},
    "rules": [
        {
            "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
            "description": "A made-up attack.", "direction": ["inbound"], "literals": ["open the pod bay doors"],
            "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
        }
    ],
}  # fmt: skip
OPERATOR = Caller(local("test"), RequestContext("req_test"))
ATTACK = "Please OPEN the pod bay doors."


class Client:
    """Sends requests with one key."""

    def __init__(self, dispatch: Dispatch, key: str) -> None:
        self.dispatch = dispatch
        self.key = key

    async def ask(self, method: str, target: str, body: object = None) -> tuple[int, Any, dict[str, str]]:
        path, _, query = target.partition("?")
        headers = Headers({"authorization": f"Bearer {self.key}", "content-type": "application/json"})
        raw = b"" if body is None else json.dumps(body).encode()
        response = await self.dispatch.handle(Request(method, path, query, headers, raw, "192.0.2.1", False, 0.0))
        return response.status, json.loads(response.body), dict(response.headers)


async def make_caller(gateway: Gateway, scopes: tuple[Scope, ...] = tuple(Scope), rate_limit: int = 1000) -> Client:
    made = await gateway.keys.create(OPERATOR, NewKey("k", scopes, rate_limit))
    return Client(Dispatch(gateway), made.key)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    settings = Settings(data_dir=":memory:", rules=str(rules))
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as opened:
        yield opened


async def test_blocked_scan_is_answered_audited_and_alerted(gateway: Gateway) -> None:
    caller = await make_caller(gateway)
    status, body, headers = await caller.ask("POST", "/api/v1/shield/scan", {"text": ATTACK})
    assert (status, body["data"]["verdict"], body["data"]["score"]) == (200, "BLOCK", 60)
    assert body["data"]["detections"][0]["matched"] == "OPEN the pod bay doors"
    _, events, _ = await caller.ask("GET", "/api/v1/audit?action=shield_scan_block")
    assert [event["request_id"] for event in events["data"]] == [headers["x-request-id"]]
    _, alerts, _ = await caller.ask("GET", "/api/v1/alerts?severity=critical&scope=active&since=1h")
    assert [(alert["rule"], alert["status"]) for alert in alerts["data"]] == [("say-please", "open")]
    assert ATTACK not in json.dumps([events, alerts])


async def test_last_run_of_the_validation_suite_is_shown(gateway: Gateway) -> None:
    caller = await make_caller(gateway)
    _, before, _ = await caller.ask("GET", "/api/v1/shield/tests")
    run = await gateway.shield_tests.run(OPERATOR, RunShieldTests(category="c2"))
    status, after, _ = await caller.ask("GET", "/api/v1/shield/tests")
    assert before["data"] == {"last": None}
    assert status == 200
    assert (after["data"]["last"]["category"], after["data"]["last"]["tag"]) == ("c2", "shield-test")
    assert after["data"]["last"]["report"]["detection_rate"] == run.report.detection_rate


async def test_revoked_key_is_refused_on_the_next_request(gateway: Gateway) -> None:
    caller = await make_caller(gateway)
    assert (await caller.ask("GET", "/api/v1/alerts"))[0] == 200
    record = (await gateway.keys.list())[0]
    await gateway.keys.revoke(OPERATOR, record.id)
    status, body, _ = await caller.ask("GET", "/api/v1/alerts")
    assert (status, body["error"]["code"]) == (403, "key_revoked")


async def test_rate_limit_of_a_key_is_exact(gateway: Gateway) -> None:
    caller = await make_caller(gateway, rate_limit=3)
    answers = [await caller.ask("GET", "/api/v1/alerts") for _ in range(5)]
    assert [status for status, _, _ in answers] == [200, 200, 200, 429, 429]
    assert [headers["x-ratelimit-remaining"] for _, _, headers in answers] == ["2", "1", "0", "0", "0"]
    assert 1 <= int(answers[-1][2]["retry-after"]) <= 60


async def test_key_without_the_scope_is_refused_and_audited(gateway: Gateway) -> None:
    caller = await make_caller(gateway, scopes=(Scope.AUDIT_READ,))
    status, body, headers = await caller.ask("POST", "/api/v1/shield/scan", {"text": "x"})
    assert (status, body["error"]["code"]) == (403, "insufficient_scope")
    await gateway.store.db.write(lambda tx: None)  # what was queued before is committed before
    _, events, _ = await caller.ask("GET", "/api/v1/audit?action=api_key_refused&since=1h")
    assert [(event["reason"], event["ip"]) for event in events["data"]] == [("insufficient_scope", "192.0.2.1")]
    assert events["data"][0]["request_id"] == headers["x-request-id"]


async def test_health_of_a_good_key_names_every_service(gateway: Gateway) -> None:
    caller = await make_caller(gateway, scopes=(Scope.AGENTS_READ,))
    _, body, _ = await caller.ask("GET", "/api/v1/health")
    assert body["status"] == "ok"
    assert set(body["checks"]) == {"shield", "database", "upstream"}


async def test_health_of_a_known_key_is_counted_told_more_while_it_may_be_and_never_refused(gateway: Gateway) -> None:
    caller = await make_caller(gateway, scopes=(Scope.AGENTS_READ,), rate_limit=4)
    told = []
    for number in range(6):
        status, body, headers = await caller.ask("GET", "/api/v1/health")
        told.append((status, "checks" in body, headers["x-ratelimit-remaining"]))
        if not number:
            gateway.store.generation.bump()  # the key is looked up again, and is then one that was used before
    assert told == [(200, True, "3"), (200, True, "2"), (200, True, "1"), (200, True, "0"), *[(200, False, "0")] * 2]
    await gateway.keys.revoke(OPERATOR, caller.key[:10])
    status, body, headers = await caller.ask("GET", "/api/v1/health")
    assert (status, "checks" in body, "x-ratelimit-limit" in headers) == (200, False, False)


async def test_rules_in_use_are_listed(gateway: Gateway) -> None:
    caller = await make_caller(gateway)
    _, body, _ = await caller.ask("GET", "/api/v1/shield/rules")
    assert [rule["id"] for rule in body["data"]] == ["say-please"]


async def test_text_over_the_limit_is_refused_by_name(gateway: Gateway) -> None:
    caller = await make_caller(gateway)
    status, body, _ = await caller.ask("POST", "/api/v1/shield/scan", {"text": "x" * 500_001})
    assert (status, body["error"]["param"]) == (400, "text")
