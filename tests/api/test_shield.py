"""The shield from the internal API: a scan, a policy tried on a text, rules set otherwise, the validation suite."""

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


def rule(name: str, phrase: str, severity: str) -> dict[str, object]:
    return {
        "id": name, "name": name, "category": "injection", "severity": severity, "confidence": 0.9,
        "description": "A made-up attack.", "direction": ["inbound", "outbound"],
        "literals": [phrase], "match": [phrase], "pass": ["nothing of the kind"],
    }  # fmt: skip


RULES = {
    "version": 1,
    "tables": {},
    "rules": [rule("say-please", "open the pod bay doors", "critical"), rule("sing", "sing daisy bell", "high")],
}
ATTACK = "please open the pod bay doors now"


class Site:
    """A gateway without RBAC, and what is asked of it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"}) | headers
        raw = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, "", Headers(fields), raw, "127.0.0.1", False, 0.0)
        response = await self.dispatch.handle(request)
        return json.loads(response.body) | {"status": response.status}

    async def scan(self, text: str = ATTACK) -> Any:
        return (await self.ask("POST", "/api/shield/scan", {"text": text}))["data"]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    settings = Settings(data_dir=":memory:", rules=str(rules), rbac_enabled=False)
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        yield Site(gateway)


async def test_a_scan_from_the_dashboard_is_recorded_as_any_other(site: Site) -> None:
    answer = await site.scan()
    assert (answer["verdict"], answer["score"]) == ("BLOCK", 60)
    assert [one["rule"] for one in (await site.ask("GET", "/api/alerts"))["data"]] == ["say-please"]


async def test_a_policy_is_tried_on_a_text_and_nothing_is_recorded(site: Site) -> None:
    body = {"text": ATTACK, "block_score": 80, "review_score": 50}
    answer = await site.ask("POST", "/api/shield/dry-run", body)
    assert answer["data"]["verdict"] == "REVIEW"
    allowed = await site.ask(
        "POST", "/api/shield/dry-run", {"text": ATTACK, "category_actions": {"injection": "allow"}}
    )
    assert (allowed["data"]["verdict"], allowed["data"]["detections"][0]["score"]) == ("ALLOW", 0)
    assert (await site.ask("GET", "/api/alerts"))["data"] == []
    bad = await site.ask("POST", "/api/shield/dry-run", {"text": "x", "block_score": 0})
    assert (bad["status"], bad["error"]["param"]) == (400, "block_score")


async def test_a_rule_that_is_taken_out_matches_no_more_and_comes_back(site: Site) -> None:
    change = {"rule": "say-please", "enabled": False, "reason": "trips on our own texts"}
    changed = await site.ask("PATCH", "/api/shield/rules", change)
    assert (changed["data"]["enabled"], changed["data"]["version"]) == (False, 1)
    assert (await site.scan())["verdict"] == "ALLOW"
    listed = {one["id"]: one["enabled"] for one in (await site.ask("GET", "/api/shield/rules"))["data"]}
    assert listed == {"say-please": False, "sing": True}
    back = await site.ask("PATCH", "/api/shield/rules", {"rule": "say-please", "enabled": True, "version": 1})
    assert back["data"]["version"] == 2
    assert (await site.scan())["verdict"] == "BLOCK"


async def test_another_severity_is_what_a_match_counts_as(site: Site) -> None:
    await site.ask("PATCH", "/api/shield/rules", {"rule": "sing", "severity": "critical"})
    answer = await site.scan("sing daisy bell")
    assert (answer["verdict"], answer["detections"][0]["severity"]) == ("BLOCK", "critical")
    await site.ask("PATCH", "/api/shield/rules", {"rule": "sing", "severity": "default"})
    assert (await site.scan("sing daisy bell"))["verdict"] == "REVIEW"


async def test_what_is_set_holds_for_the_callers_of_the_public_api_and_after_a_reload(site: Site) -> None:
    await site.ask("PATCH", "/api/shield/rules", {"rule": "sing", "enabled": False, "reason": "a song"})
    made = await site.ask("POST", "/api/config/api-keys", {"name": "ci", "scopes": ["shield:scan"]})
    fields = {"host": "x", "content-type": "application/json", "x-service-key": made["data"]["key"]}
    request = Request(
        "POST", "/api/v1/shield/scan", "", Headers(fields), b'{"text": "sing daisy bell"}', "192.0.2.1", False, 0.0
    )
    assert json.loads((await site.dispatch.handle(request)).body)["data"]["verdict"] == "ALLOW"


async def test_an_unknown_rule_is_refused_with_the_nearest(site: Site) -> None:
    answer = await site.ask("PATCH", "/api/shield/rules", {"rule": "say-plaese", "enabled": True})
    assert (answer["status"], answer["error"]["message"]) == (404, "There is no such rule. Did you mean say-please?")


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"rule": "nothing"}, 404, "rule"),
        ({"rule": "sing", "enabled": False}, 400, "reason"),
        ({"rule": "sing", "severity": "grave"}, 400, "severity"),
        ({"rule": "sing", "reason": "a\nb"}, 400, "reason"),
        ({"rule": "sing", "version": 7}, 409, "version"),
        ({"rule": "sing", "category": "pii"}, 400, "category"),
    ],
)
async def test_a_bad_change_of_a_rule_is_told_its_field(site: Site, body: object, status: int, param: str) -> None:
    answer = await site.ask("PATCH", "/api/shield/rules", body)
    assert (answer["status"], answer["error"]["param"]) == (status, param)


async def test_a_change_of_a_rule_is_of_the_version_that_if_match_names(site: Site) -> None:
    change = {"rule": "sing", "enabled": False, "reason": "a song"}
    for sent, status in (("x", 400), ('"7"', 409), ('"0"', 200), ('"0"', 409), ("*", 200), ('"2"', 200)):
        answer = await site.ask("PATCH", "/api/shield/rules", change, **{"if-match": sent})
        assert answer["status"] == status, sent


async def test_why_a_rule_stays_taken_out_is_said_at_each_change(site: Site) -> None:
    await site.ask("PATCH", "/api/shield/rules", {"rule": "sing", "enabled": False, "reason": "a song"})
    answer = await site.ask("PATCH", "/api/shield/rules", {"rule": "sing", "severity": "low"})
    assert (answer["status"], answer["error"]["param"]) == (409, "reason")
    change = {"rule": "sing", "severity": "low", "reason": "still a song"}
    assert (await site.ask("PATCH", "/api/shield/rules", change))["data"]["reason"] == "still a song"


async def test_thresholds_that_cross_are_a_conflict(site: Site) -> None:
    answer = await site.ask("POST", "/api/shield/dry-run", {"text": "x", "block_score": 20})
    assert (answer["status"], answer["error"]["param"]) == (409, "review_score")


async def test_a_change_of_a_rule_is_audited_with_what_was_and_what_is(site: Site) -> None:
    await site.ask("PATCH", "/api/shield/rules", {"rule": "sing", "enabled": False, "reason": "a song"})
    event = (await site.gateway.audit.page(AuditFilter(action="rule_changed"))).items[0]
    assert (event.resource_type, event.resource_id, event.details) == ("rule", "sing", {"reason": "a song"})
    assert event.before == {"enabled": True, "severity": "high"}
    assert event.after == {"enabled": False, "severity": "high"}


async def test_a_rule_shows_its_examples(site: Site) -> None:
    shown = (await site.ask("GET", "/api/shield/rules/sing"))["data"]
    assert (shown["match"], shown["pass"], shown["literals"]) == (
        ["sing daisy bell"],
        ["nothing of the kind"],
        ["sing daisy bell"],
    )
    assert shown["hits"] == 0


async def test_a_run_of_the_suite_is_kept_with_those_before_it(site: Site) -> None:
    assert (await site.ask("GET", "/api/shield/tests"))["data"] == {"last": None, "history": [], "running": None}
    for _ in range(2):
        run = await site.ask("POST", "/api/shield/tests", {"category": "injection"})
        assert run["status"] == 201
    state = (await site.ask("GET", "/api/shield/tests"))["data"]
    assert state["last"] == run["data"]
    assert [one["category"] for one in state["history"]] == ["injection", "injection"]
    assert state["history"][0]["cases"] == run["data"]["report"]["cases"]
    assert state["running"] is None


async def test_the_gateway_says_what_it_is(site: Site) -> None:
    about = (await site.ask("GET", "/api/about"))["data"]
    assert (about["rules"], about["rules_digest"]) == (2, site.gateway.shield.digest)
    assert about["archive_sha256"] is None and about["rbac_enabled"] is False
    assert (await site.ask("GET", "/api/about/sbom"))["bomFormat"] == "CycloneDX"
