"""Prompts that come again byte for byte: each is checked, answered and recorded by the rules of now."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.http.client import Client
from gateway.http.messages import Headers, Reply, Request
from gateway.services.spending import Spending
from tests.open_site import ATTACK, CHAT, Site, open_site

RULES = "/api/shield/rules"
HARMLESS = "what is the weather like at home"
TOLD = ("agent", "model", "provider", "verdict", "score", "action", "status", "text_sha256", "text_chars",
        "prompt_tokens", "principal_id", "detections")  # fmt: skip


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


def prompt(text: str = HARMLESS, model: str = "echo", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


async def ask(site: Site, key: str, text: str = HARMLESS, *, headers: dict[str, str] | None = None, **more: Any) -> Any:
    return await site.ask("POST", CHAT, prompt(text, **more), key=key, headers=headers)


async def test_a_clean_prompt_that_comes_again_is_answered_and_recorded_alike(site: Site) -> None:
    key = (await site.key())["key"]
    first = await ask(site, key, user="u-7")
    await ask(site, key, user="u-7")
    again = await ask(site, key, user="u-7")
    assert again["choices"] == first["choices"] and again["usage"] == first["usage"]
    rows = (await site.ask("GET", "/api/traffic"))["data"]
    assert len(rows) == 3 and rows[0]["agent"] == "u-7" and rows[0]["request_id"] != rows[1]["request_id"]
    assert [rows[0].get(name) for name in TOLD] == [rows[2].get(name) for name in TOLD]
    events = (await site.ask("GET", "/api/audit?action=chat_completed"))["data"]
    sums = [(one["details"]["sha256"], one["details"]["inbound"], one["resource_id"]) for one in events]
    assert len(sums) == 3 and sums[0] == sums[2]


async def test_a_prompt_in_which_something_was_found_is_found_out_every_time(site: Site) -> None:
    key = (await site.key())["key"]
    for _ in range(3):
        assert (await ask(site, key, ATTACK))["status"] == 400


async def test_what_is_forbidden_meanwhile_is_forbidden_to_a_known_prompt(site: Site) -> None:
    made = await site.key()
    key = made["key"]
    for _ in range(3):
        assert (await ask(site, key, user="mole"))["status"] == 200
    agents = (await site.ask("GET", "/api/agents"))["data"]
    mole = next(one for one in agents if one["name"] == "mole")
    await site.ask("PATCH", f"/api/agents/{mole['id']}", {"status": "blocked"})
    assert (await ask(site, key, user="mole"))["error"]["code"] == "access_denied"
    for _ in range(3):
        assert (await ask(site, key))["status"] == 200
    await site.make("/api/budgets", unit="tokens", limit=1)
    assert (await ask(site, key))["error"]["code"] == "budget_exceeded"
    await site.ask("POST", f"/api/config/api-keys/{made['id']}/revoke")
    assert (await ask(site, key))["error"]["code"] == "key_revoked"


async def test_a_known_prompt_is_counted_against_the_rate_of_its_key(site: Site) -> None:
    key = (await site.key(rate_limit=4))["key"]
    assert [(await ask(site, key))["status"] for _ in range(5)] == [200, 200, 200, 200, 429]


async def test_a_body_that_is_not_said_to_be_plain_json_is_looked_at_whatever_came_before(site: Site) -> None:
    key = (await site.key())["key"]
    for _ in range(3):
        assert (await ask(site, key))["status"] == 200
    assert (await ask(site, key, headers={"content-type": "text/plain"}))["status"] == 415
    assert (await ask(site, key, headers={"content-encoding": "gzip"}))["status"] == 415


async def test_the_same_key_twice_in_an_object_is_refused_however_often_it_is_sent(site: Site) -> None:
    key = (await site.key())["key"]
    raw = json.dumps(prompt())[:-1].encode() + b', "model": "echo"}'
    for _ in range(2):
        fields = Headers({"host": "h", "content-type": "application/json", "x-service-key": key})
        request = Request("POST", CHAT, "", fields, raw, "127.0.0.1", False, 0.0)
        assert (await site.dispatch.handle(request)).status == 400


class Model:
    """A provider that says what it is told to, under one id.

    meanwhile: what happens while it thinks.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.says = "it rains"
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

        async def request(*_: object, **__: object) -> Reply:
            if self.meanwhile is not None:
                await self.meanwhile()
            message = {"role": "assistant", "content": self.says}
            usage = {"prompt_tokens": 7, "completion_tokens": 3}
            body = {"id": "c-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
            return Reply(200, (("openai-processing-ms", "5"),), json.dumps(body).encode())

        monkeypatch.setattr(Client, "request", request)


@pytest.fixture
async def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Site, Model]]:
    async with open_site(tmp_path, upstream_url="http://127.0.0.1:9/v1") as opened:
        yield opened, Model(monkeypatch)


def said(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


async def test_another_answer_to_a_known_prompt_is_looked_into(far: tuple[Site, Model]) -> None:
    site, model = far
    key = (await site.key())["key"]
    for _ in range(4):
        await ask(site, key, model="m")
    for _ in range(2):
        model.says = ATTACK
        answer = await ask(site, key, model="m")
        assert answer["headers"]["x-service-shield-verdict"] == "BLOCK" and ATTACK not in said(answer)
        model.says = "it rains"
        assert said(await ask(site, key, model="m")) == "it rains"


async def test_a_known_answer_is_judged_by_the_rules_of_now(far: tuple[Site, Model]) -> None:
    site, model = far
    key, model.says = (await site.key())["key"], ATTACK
    await site.ask("PATCH", RULES, {"rule": "say-please", "enabled": False, "reason": "a trial"})
    for _ in range(4):
        assert said(await ask(site, key, model="m")) == ATTACK
    await site.ask("PATCH", RULES, {"rule": "say-please", "enabled": True})
    assert ATTACK not in said(await ask(site, key, model="m"))


async def test_a_known_answer_is_judged_by_rules_that_change_while_the_model_thinks(far: tuple[Site, Model]) -> None:
    site, model = far
    key, model.says = (await site.key())["key"], ATTACK
    await site.ask("PATCH", RULES, {"rule": "say-please", "enabled": False, "reason": "a trial"})
    for _ in range(4):
        assert said(await ask(site, key, model="m")) == ATTACK
    model.meanwhile = partial(site.ask, "PATCH", RULES, {"rule": "say-please", "enabled": True})
    assert ATTACK not in said(await ask(site, key, model="m"))


async def test_a_known_prompt_is_judged_by_rules_that_change_while_a_budget_is_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (await site.key())["key"]
    await site.make("/api/budgets", unit="tokens", limit=10**9)
    await site.ask("PATCH", RULES, {"rule": "say-please", "enabled": False, "reason": "a trial"})
    for _ in range(4):
        assert (await ask(site, key, ATTACK))["status"] == 200
    reserve = Spending.reserve

    async def slow(*args: Any) -> Any:
        held = await reserve(*args)
        await site.ask("PATCH", RULES, {"rule": "say-please", "enabled": True})
        return held

    monkeypatch.setattr(Spending, "reserve", slow)
    assert (await ask(site, key, ATTACK))["error"]["code"] == "content_policy_violation"
