"""The models of a key: given, changed, kept over a rotation, and held against every chat and the list of models."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from open_site import KEYS, Site, open_site


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as one:
        yield one


async def test_a_key_uses_the_models_it_names_and_no_other(site: Site) -> None:
    made = await site.key(models=["gpt-4o*", "ECHO"])
    assert (await site.ask("GET", f"{KEYS}/{made['id']}"))["data"]["models"] == ["gpt-4o*", "ECHO"]
    for model, status in (("echo", 200), ("gpt-4o-mini", 200), ("gpt-4", 403), ("x-gpt-4o", 403)):
        answer = await site.chat(made["key"], model=model)
        assert answer["status"] == status, model
    assert (answer["error"]["code"], answer["error"]["param"]) == ("access_denied", "model")
    one = f"{KEYS}/{made['id']}"
    rotated = (await site.ask("POST", f"{one}/rotate", {}))["data"]["key"]
    assert (await site.chat(rotated, model="gpt-4"))["status"] == 403
    assert (await site.ask("PATCH", one, {"models": []}))["data"]["models"] == []
    assert (await site.chat(made["key"], model="gpt-4"))["status"] == 200
    assert (await site.chat((await site.key())["key"], model="gpt-4"))["status"] == 200


async def test_a_refused_model_is_recorded(site: Site) -> None:
    key = (await site.key(models=["other"], scopes=["chat:completions", "audit:read"]))["key"]
    assert (await site.chat(key))["status"] == 403
    (event,) = (await site.ask("GET", "/api/v1/audit?source=chat", key=key))["data"]
    assert (event["action"], event["reason"], event["outcome"]) == ("chat_failed", "access_denied", "refused")
    assert event["details"]["status"] == 403


async def test_refused_models_and_tools_raise_one_alert_each(site: Site) -> None:
    key = (await site.key(models=["echo"], scopes=["chat:completions", "alerts:read"]))["key"]
    await site.make("/api/access", list="deny", type="TOOL", value="shell*")
    tools = [{"type": "function", "function": {"name": "shell_run", "parameters": {}}}]
    for fields in ({"model": "other"}, {"model": "other"}, {"tools": tools}):
        assert (await site.chat(key, **fields))["error"]["code"] == "access_denied"
    alerts = (await site.ask("GET", "/api/v1/alerts?source=access", key=key))["data"]
    assert sorted(alert["count"] for alert in alerts if alert["rule"] == "access-denied") == [1, 2]


@pytest.mark.parametrize(("models", "names"), [([], ["echo"]), (["e*"], ["echo"]), (["gpt-*"], [])])
async def test_the_list_of_models_is_what_the_key_may_use(site: Site, models: list[str], names: list[str]) -> None:
    key = (await site.key(models=models))["key"]
    assert [model["id"] for model in (await site.ask("GET", "/api/v1/models", key=key))["data"]] == names


@pytest.mark.parametrize(
    ("models", "param"),
    [
        ("echo", "models"),
        ([1], "models[0]"),
        ([""], "models[0]"),
        (["a", "b\n"], "models[1]"),
        (["x" * 257], "models[0]"),
    ],
)
async def test_bad_models_are_told_their_place(site: Site, models: object, param: str) -> None:
    answer = await site.ask("POST", KEYS, {"name": "ci", "scopes": ["chat:completions"], "models": models})
    assert (answer["status"], answer["error"]["param"]) == (400, param)
