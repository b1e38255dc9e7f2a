"""Texts in which nothing was found, sent again: what is not scanned a second time, and what always is."""

import io
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_lasting
from gateway.domain.audit import AuditFilter
from gateway.http.client import Client
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.services import scanner
from gateway.settings import Settings
from gateway.shield import Direction, Policy, ScanResult, Shield, load_rules
from gateway.shield.scoring import DEFAULT_POLICY

RULES = {
    "version": 1,
    "tables": {},
    "rules": [
        {
            "id": "say-please", "name": "Say please", "category": "injection", "severity": "high", "confidence": 0.9,
            "description": "A made-up attack.", "direction": ["inbound", "outbound"],
            "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
        }
    ],
}  # fmt: skip
ATTACK = "please open the pod bay doors now"
HARMLESS = "what is the weather like at home"


class CountingShield(Shield):
    """Remembers what it scanned. fails: as a shield that is broken."""

    def __init__(self) -> None:
        super().__init__(load_rules(json.dumps(RULES).encode()))
        self.scanned: list[str] = []
        self.fails = False

    def scan(self, text: str, direction: Direction, policy: Policy = DEFAULT_POLICY) -> ScanResult:
        self.scanned.append(text)
        if self.fails:
            raise RuntimeError("broken")
        return super().scan(text, direction, policy)


class Site:
    """A gateway without RBAC, its shield, and what is asked of it."""

    def __init__(self, gateway: Gateway, shield: CountingShield) -> None:
        self.gateway = gateway
        self.shield = shield
        self.dispatch = Dispatch(gateway)

    async def ask(self, method: str, path: str, body: object, *, key: str = "") -> Any:
        fields = {"host": "127.0.0.1:5001", "content-type": "application/json"} | (
            {"x-service-key": key} if key else {}
        )
        raw = json.dumps(body).encode()
        response = await self.dispatch.handle(Request(method, path, "", Headers(fields), raw, "127.0.0.1", False, 0.0))
        return json.loads(response.body) | {"status": response.status, "headers": dict(response.headers)}

    async def key(self, **fields: object) -> str:
        body = {"name": "ci", "scopes": ["shield:scan", "chat:completions"], **fields}
        made = await self.ask("POST", "/api/config/api-keys", body)
        await self.scan(made["data"]["key"], "a first request")
        self.shield.scanned.clear()
        return str(made["data"]["key"])

    async def scan(self, key: str, text: str, direction: str = "inbound") -> Any:
        answer = await self.ask("POST", "/api/v1/shield/scan", {"text": text, "direction": direction}, key=key)
        return answer["data"] if answer["status"] == 200 else answer

    async def chat(self, key: str, *texts: str) -> Any:
        messages = [{"role": "user", "content": text} for text in texts]
        return await self.ask("POST", "/api/v1/chat/completions", {"model": "echo", "messages": messages}, key=key)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    settings = Settings(data_dir=":memory:", rbac_enabled=False)
    async with open_lasting(settings, log=Log(io.StringIO(), Clock())) as lasting:
        gateway = Gateway(settings, CountingShield(), lasting, Client())
        yield Site(gateway, cast(CountingShield, gateway.shield))


async def test_a_clean_text_is_scanned_once_and_answered_and_recorded_every_time(site: Site) -> None:
    key = await site.key()
    answers = [await site.scan(key, HARMLESS) for _ in range(3)]
    assert site.shield.scanned == [HARMLESS]
    assert {(one["verdict"], one["score"], len(one["detections"])) for one in answers} == {("ALLOW", 0, 0)}
    # A write that is waited for comes after those that nobody waits for.
    await site.key()
    rows = (await site.ask("GET", "/api/traffic", None))["data"]
    assert len([row for row in rows if row["text_chars"] == len(HARMLESS)]) == 3


async def test_a_prompt_that_was_clean_is_scanned_once_and_every_reply_that_is_new(site: Site) -> None:
    key = await site.key()
    for _ in range(3):
        answer = await site.chat(key, HARMLESS)
        assert (answer["status"], answer["headers"]["x-service-shield-verdict"]) == (200, "ALLOW")
    assert site.shield.scanned.count(f"{HARMLESS}\necho") == 1
    assert len(site.shield.scanned) == 1 + 3
    events = await site.gateway.audit.page(AuditFilter(action="chat_completed"))
    assert len(events.items) == 3


async def test_what_was_found_is_found_again_and_again(site: Site) -> None:
    key = await site.key()
    for _ in range(3):
        assert (await site.scan(key, ATTACK))["verdict"] == "REVIEW"
        assert (await site.chat(key, ATTACK))["headers"]["x-service-shield-verdict"] == "REVIEW"
    assert len(site.shield.scanned) == 9


@pytest.mark.parametrize(("severity", "score"), [("low", 3), ("medium", 10), ("high", 25), ("critical", 60)])
async def test_a_finding_of_any_severity_is_told_each_time_the_text_comes(
    site: Site, severity: str, score: int
) -> None:
    await site.ask("PATCH", "/api/shield/rules", {"rule": "say-please", "severity": severity})
    await site.ask("POST", "/api/policies", {"name": "watch", "mode": "observe"})
    key = await site.key(policy="watch")
    for number in range(3):
        answer = await site.scan(key, ATTACK)
        assert (answer["score"], [one["rule"] for one in answer["detections"]]) == (score, ["say-please"])
        await site.chat(key, ATTACK, "And then?")
        await site.chat(key, LONG, ATTACK, *["And then?"] * (number + 1))
    await site.key()  # a write that is waited for comes after those that nobody waits for
    rows = (await site.ask("GET", "/api/traffic", None))["data"]
    assert [(row["score"], len(row["detections"])) for row in rows if row["text_chars"] >= len(ATTACK)] == [
        (score, 1)
    ] * 9


async def test_a_match_over_two_texts_that_are_clean_alone_is_found(site: Site) -> None:
    key = await site.key()
    first, second = "please open the pod", "bay doors now"
    assert (await site.chat(key, first))["headers"]["x-service-shield-verdict"] == "ALLOW"
    assert (await site.chat(key, second))["headers"]["x-service-shield-verdict"] == "ALLOW"
    assert (await site.chat(key, first, second))["headers"]["x-service-shield-verdict"] == "REVIEW"


LONG = "The kettle is on the stove and the bread is on the table. " * 250
INVISIBLE = "\u200b"


async def test_of_a_conversation_that_grows_only_its_end_is_scanned_again(site: Site) -> None:
    key = await site.key()
    said = [LONG, "And then?"]
    await site.chat(key, *said)
    site.shield.scanned.clear()
    for turn in range(3):
        said.append(f"That was turn {turn}.")
        assert (await site.chat(key, *said))["headers"]["x-service-shield-verdict"] == "ALLOW"
    prompts = [text for text in site.shield.scanned if "chatcmpl" not in text]
    assert len(prompts) == 3
    assert all(len(text) < scanner.TAIL_CHARS + 100 and said[turn + 2] in text for turn, text in enumerate(prompts))


@pytest.mark.parametrize("between", ["", " " * 9_000, INVISIBLE * 9_000, "\n" * 5_000 + INVISIBLE * 5_000])
async def test_a_match_that_reaches_back_into_what_is_known_is_found(site: Site, between: str) -> None:
    key = await site.key()
    begun = [LONG, "please open the pod" + between]
    assert (await site.chat(key, *begun))["headers"]["x-service-shield-verdict"] == "ALLOW"
    answer = await site.chat(key, *begun, "bay doors now")
    assert answer["headers"]["x-service-shield-verdict"] == "REVIEW"
    assert (await site.chat(key, *begun, "and be kind"))["headers"]["x-service-shield-verdict"] == "ALLOW"


async def test_where_something_is_found_in_a_long_conversation_is_told_as_ever(site: Site) -> None:
    key = await site.key()
    await site.chat(key, LONG)
    await site.chat(key, LONG, "Well, " + ATTACK)
    row = (await site.ask("GET", "/api/traffic", None))["data"][0]
    assert [(one["place"], one["start"]) for one in row["detections"]][:1] == [("messages[1].content", 13)]


async def test_what_was_let_through_by_a_rule_taken_out_is_found_once_it_is_back(site: Site) -> None:
    key = await site.key()
    change = {"rule": "say-please", "enabled": False, "reason": "trips on our own texts"}
    await site.ask("PATCH", "/api/shield/rules", change)
    assert (await site.scan(key, ATTACK))["verdict"] == "ALLOW"
    assert (await site.chat(key, ATTACK))["headers"]["x-service-shield-verdict"] == "ALLOW"
    await site.ask("PATCH", "/api/shield/rules", {"rule": "say-please", "enabled": True})
    assert (await site.scan(key, ATTACK))["verdict"] == "REVIEW"
    assert (await site.chat(key, ATTACK))["headers"]["x-service-shield-verdict"] == "REVIEW"


async def test_a_changed_policy_has_everything_scanned_anew(site: Site) -> None:
    policy = (await site.ask("POST", "/api/policies", {"name": "lab"}))["data"]["id"]
    key = await site.key(policy="lab")
    texts = [HARMLESS, "the weather of today", "the weather of tomorrow"]
    for text in texts:
        await site.scan(key, text)
    await site.ask("PATCH", f"/api/policies/{policy}", {"block_score": 50})
    for text in texts:
        await site.scan(key, text)
    assert site.shield.scanned == texts * 2


async def test_nobody_can_tell_what_another_key_has_sent(site: Site) -> None:
    first, second = await site.key(), await site.key()
    await site.scan(first, HARMLESS)
    await site.scan(second, HARMLESS)
    assert site.shield.scanned == [HARMLESS, HARMLESS]


async def test_a_text_is_remembered_for_its_direction_alone(site: Site) -> None:
    key = await site.key()
    await site.scan(key, HARMLESS)
    await site.scan(key, HARMLESS, "outbound")
    assert site.shield.scanned == [HARMLESS, HARMLESS]


async def test_a_shield_that_failed_has_found_nothing_clean(site: Site) -> None:
    key = await site.key()
    site.shield.fails = True
    assert (await site.scan(key, HARMLESS))["status"] == 503
    site.shield.fails = False
    assert (await site.scan(key, HARMLESS))["verdict"] == "ALLOW"
    assert site.shield.scanned == [HARMLESS, HARMLESS]


async def test_the_memory_is_bounded_and_keeps_what_is_still_sent(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "MOST_TEXTS", 32)
    key = await site.key(rate_limit=100_000)
    days = [f"the weather of day {number}" for number in range(300)]
    for day in days:
        await site.scan(key, HARMLESS)
        await site.scan(key, day)
    assert site.shield.scanned.count(HARMLESS) == 1
    site.shield.scanned.clear()
    for day in reversed(days):
        await site.scan(key, day)
    assert 16 <= len(days) - len(site.shield.scanned) <= 32


async def test_thousands_of_texts_are_known_whatever_else_is_sent(site: Site) -> None:
    key = await site.key(rate_limit=100_000)
    texts = [f"the weather of day {number}" for number in range(1000)]
    for text in texts:
        await site.scan(key, text)
    site.shield.scanned.clear()
    for text in texts:
        await site.scan(key, text)
    assert site.shield.scanned == []
