"""Budgets from the API: made, spent from, refused by, raised for a while; and none is ever overrun."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from open_site import ATTACK, CHAT, KEYS, Site, open_site

from gateway.domain.alerts import AlertFilter
from gateway.domain.budgets import HOLD_SECONDS, Usage
from gateway.domain.providers import MAX_TIMEOUT_SECONDS
from gateway.services.spending import Reservation
from gateway.strict_json import read_timestamp

BUDGETS = "/api/budgets"
HOUR_MS = 3_600_000


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as one:
        yield one


async def shown(site: Site, budget: Any) -> Any:
    return (await site.ask("GET", f"{BUDGETS}/{budget['id']}"))["data"]


async def alerts(site: Site, rule: str) -> list[Any]:
    page = await site.gateway.alerts.page(AlertFilter())
    return [alert for alert in page.items if alert.rule == rule]


async def test_a_budget_lives_its_whole_life(site: Site) -> None:
    made = await site.make(BUDGETS, limit=1.5, name="team")
    assert made == {
        "id": made["id"], "name": "team", "scope": "global", "scope_value": None, "unit": "usd", "limit": 1.5,
        "effective_limit": 1.5, "window": "day", "soft_pct": 80, "action": "block", "status": "ok", "spent": 0.0,
        "reserved": 0.0, "remaining": 1.5, "forecast": 0.0, "began_at": made["began_at"],
        "resets_at": made["resets_at"], "override": None, "created_at": made["created_at"], "created_by": "local",
        "version": 1,
    }  # fmt: skip
    assert made["began_at"].endswith("T00:00:00.000Z") and made["began_at"] < made["resets_at"]
    assert (await site.ask("GET", BUDGETS))["data"][0]["id"] == made["id"]
    one = f"{BUDGETS}/{made['id']}"
    changed = (await site.ask("PATCH", one, {"limit": 0.25, "action": "warn", "version": 1}))["data"]
    assert (changed["limit"], changed["action"], changed["version"]) == (0.25, "warn", 2)
    assert (await site.ask("PATCH", one, {"limit": 0.5, "version": 1}))["status"] == 409
    assert (await site.ask("PATCH", one, {"soft_pct": 50}))["data"]["version"] == 3
    assert (await site.ask("DELETE", one))["status"] == 200
    assert (await site.ask("GET", one))["status"] == (await site.ask("DELETE", one))["status"] == 404
    assert await site.actions("budget") == ["budget_created", "budget_changed", "budget_changed", "budget_removed"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": "1"}, "limit"),
        ({"limit": 1.5, "unit": "tokens"}, "limit"),
        ({"limit": 2**60, "unit": "tokens"}, "limit"),
        ({"limit": 1e300}, "limit"),
        ({"limit": 2**50}, "limit"),
        ({"limit": 1, "unit": "euro"}, "unit"),
        ({"limit": 1, "window": "year"}, "window"),
        ({"limit": 1, "action": "ask"}, "action"),
        ({"limit": 1, "soft_pct": 0}, "soft_pct"),
        ({"limit": 1, "soft_pct": 101}, "soft_pct"),
        ({"limit": 1, "scope": "team"}, "scope"),
        ({"limit": 1, "scope_value": "x"}, "scope_value"),
        ({"limit": 1, "scope": "model"}, "scope_value"),
        ({"limit": 1, "scope": "agent", "scope_value": "a\nb"}, "scope_value"),
        ({"limit": 1, "name": "x" * 101}, "name"),
        ({"limit": 1, "spent": 0}, "spent"),
    ],
)
async def test_a_bad_budget_is_told_its_field(site: Site, body: object, param: str) -> None:
    answer = await site.ask("POST", BUDGETS, body)
    assert (answer["status"], answer["error"]["param"]) == (400, param)
    assert (await site.ask("GET", BUDGETS))["data"] == []


async def test_a_budget_of_a_key_that_is_not_there_is_a_conflict(site: Site) -> None:
    answer = await site.ask("POST", BUDGETS, {"limit": 1, "scope": "key", "scope_value": "key_nobody"})
    assert (answer["status"], answer["error"]["param"]) == (409, "scope_value")


async def test_dollars_are_rounded_to_a_millionth_and_tokens_are_whole(site: Site) -> None:
    made = await site.make(BUDGETS, limit=0.0000014)
    assert made["limit"] == 0.000001
    made = await site.make(BUDGETS, limit=5.0, unit="tokens")
    assert made["limit"] == 5
    for limit in (1.5, 2**53 - 1):
        kind = "tokens" if limit == 1.5 else "usd"
        made = await site.make(BUDGETS, limit=5, unit=kind)
        answer = await site.ask("PATCH", f"{BUDGETS}/{made['id']}", {"limit": limit})
        assert (answer["status"], answer["error"]["param"]) == (409, "limit")


async def test_what_is_counted_and_for_whom_never_changes(site: Site) -> None:
    made = await site.make(BUDGETS, limit=1)
    for name, value in (("unit", "tokens"), ("window", "hour"), ("scope", "key"), ("scope_value", "x")):
        answer = await site.ask("PATCH", f"{BUDGETS}/{made['id']}", {name: value})
        assert (answer["status"], answer["error"]["param"]) == (400, name)


async def test_a_completion_is_counted_to_the_micro_dollar(site: Site) -> None:
    budgets = [
        await site.make(BUDGETS, limit=limit, unit=unit)
        for unit, limit in (("usd", 1), ("tokens", 900), ("requests", 5))
    ]
    answer = await site.chat((await site.key())["key"], "one two three")
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    stands = [await shown(site, one) for one in budgets]
    assert [one["spent"] for one in stands] == [0.000009, 6, 1]
    assert [one["reserved"] for one in stands] == [0, 0, 0]
    assert [one["remaining"] for one in stands] == [0.999991, 894, 4]
    rows = await site.gateway.store.db.read(lambda tx: tx.query("SELECT cost_microusd FROM traffic"))
    assert [row["cost_microusd"] for row in rows] == [9]


async def test_what_may_cost_more_than_is_left_is_refused_and_never_sent(site: Site) -> None:
    wide, narrow = await site.make(BUDGETS, limit=1), await site.make(BUDGETS, limit=0.0001, window="hour")
    key = (await site.key())["key"]
    for _ in range(2):
        answer = await site.chat(key)
        assert (answer["status"], answer["error"]["code"]) == (429, "budget_exceeded")
        assert answer["error"]["type"] == "rate_limit_error"
        assert narrow["id"] in answer["error"]["message"]
        assert 1 <= int(answer["headers"]["retry-after"]) <= 3600
    stands = [await shown(site, one) for one in (wide, narrow)]
    assert [(one["spent"], one["reserved"]) for one in stands] == [(0, 0), (0, 0)]
    assert [one["status"] for one in stands] == ["ok", "exceeded"]
    (alert,) = await alerts(site, "budget-exceeded")
    assert alert.count == 1, "once in a period"
    events = (
        await site.ask("GET", "/api/v1/audit?action=chat_failed", key=(await site.key(scopes=["audit:read"]))["key"])
    )["data"]
    assert [(event["reason"], event["details"]["budget"]) for event in events] == [
        ("budget_exceeded", narrow["id"])
    ] * 2


async def test_a_blocked_or_failed_prompt_is_given_back(site: Site) -> None:
    made = await site.make(BUDGETS, limit=2, unit="requests")
    key = (await site.key())["key"]
    assert (await site.chat(key, ATTACK))["error"]["code"] == "content_policy_violation"
    too_long = await site.chat(key, "x " * 40_000, n=128)
    assert (too_long["status"], too_long["error"]["param"]) == (400, "n")
    assert (await site.chat(key, stream=True))["status"] == 400
    stands = await shown(site, made)
    assert (stands["spent"], stands["reserved"]) == (0, 0)
    assert [(await site.chat(key))["status"] for _ in range(3)] == [200, 200, 429]


async def test_warnings_come_once_in_a_period_and_end_when_there_is_room_again(site: Site) -> None:
    made = await site.make(BUDGETS, limit=4, unit="requests", soft_pct=50, action="warn")
    key = (await site.key())["key"]
    for number in range(7):
        assert (await site.chat(key))["status"] == 200
        assert len(await alerts(site, "budget-soft-limit")) == (number >= 1)
        assert len(await alerts(site, "budget-exceeded")) == (number >= 4)
    assert [alert.count for alert in await alerts(site, "budget-exceeded")] == [1]
    assert (await shown(site, made))["status"] == "exceeded"
    await site.ask("PATCH", f"{BUDGETS}/{made['id']}", {"limit": 100})
    assert {alert.status.value for alert in await alerts(site, "budget-exceeded")} == {"resolved"}
    assert (await shown(site, made))["status"] == "ok"


async def test_what_leaps_over_both_limits_is_told_once_by_the_graver(site: Site) -> None:
    await site.make(BUDGETS, limit=3, unit="tokens", action="warn")
    key = (await site.key())["key"]
    for _ in range(3):
        assert (await site.chat(key, "one two three"))["status"] == 200
    assert (len(await alerts(site, "budget-exceeded")), len(await alerts(site, "budget-soft-limit"))) == (1, 0)


async def test_an_override_lets_more_pass_until_it_ends(site: Site) -> None:
    made = await site.make(BUDGETS, limit=1, unit="requests", window="month")
    one, key = f"{BUDGETS}/{made['id']}", (await site.key())["key"]
    assert [(await site.chat(key))["status"] for _ in range(2)] == [200, 429]
    for body, param in (
        ({"limit": 5, "until": "2001-01-01T00:00:00Z", "reason": "x"}, "until"),
        ({"limit": 5, "until": "2099-01-01T00:00:00Z", "reason": "x"}, "until"),
        ({"limit": 5, "until": "367d", "reason": "x"}, "until"),
        ({"limit": 5, "until": "soon", "reason": "x"}, "until"),
        ({"limit": 5, "until": made["resets_at"], "reason": " "}, "reason"),
        ({"limit": 5, "reason": "x"}, "until"),
    ):
        answer = await site.ask("POST", f"{one}/override", body)
        assert (answer["status"], answer["error"]["param"]) == (400, param)
    for limit in (1, 1.5):
        answer = await site.ask("POST", f"{one}/override", {"limit": limit, "until": "4h", "reason": "x"})
        assert (answer["status"], answer["error"]["param"]) == (409, "limit")
    raised = await site.ask("POST", f"{one}/override", {"limit": 2, "until": made["resets_at"], "reason": "release"})
    assert raised["data"]["override"] == {"limit": 2, "until": made["resets_at"], "reason": "release", "by": "local"}
    assert (raised["data"]["limit"], raised["data"]["effective_limit"]) == (1, 2)
    assert [(await site.chat(key))["status"] for _ in range(2)] == [200, 429]
    assert (await site.ask("DELETE", f"{one}/override"))["data"]["override"] is None
    since_at = site.gateway.clock.now_at()
    raised = await site.ask("POST", f"{one}/override", {"limit": 2, "until": "4h", "reason": "release"})
    until_at = read_timestamp(raised["data"]["override"]["until"], param="until")
    assert since_at + 4 * HOUR_MS <= until_at <= site.gateway.clock.now_at() + 4 * HOUR_MS
    actions = ["budget_created", "budget_overridden", "budget_override_ended", "budget_overridden"]
    assert await site.actions("budget") == actions


async def test_a_scope_is_about_its_own_and_a_rotated_key_spends_on(site: Site) -> None:
    made = await site.key()
    other = (await site.key())["key"]
    of_key = await site.make(BUDGETS, limit=2, unit="requests", scope="key", scope_value=made["prefix"])
    assert of_key["scope_value"] == made["id"]
    of_agent = await site.make(BUDGETS, limit=0, unit="requests", scope="agent", scope_value="crawler")
    await site.make(BUDGETS, limit=0, unit="requests", scope="model", scope_value="gpt-*")
    await site.make(BUDGETS, limit=9, unit="requests", scope="provider", scope_value="echo")
    assert (await site.chat(other, agent="crawler"))["status"] == 429
    assert (await site.chat(other, user="crawler"))["status"] == 429
    assert (await site.chat(other, agent="writer"))["status"] == 200
    assert (await site.chat(other, model="GPT-9"))["status"] == 429
    assert (await site.chat(made["key"]))["status"] == 200
    rotated = (await site.ask("POST", f"{KEYS}/{made['id']}/rotate", {"grace_seconds": 60}))["data"]
    assert [(await site.chat(key))["status"] for key in (rotated["key"], made["key"])] == [200, 429]
    assert (await site.ask("DELETE", f"{BUDGETS}/{of_agent['id']}"))["status"] == 200
    assert (await site.chat(other, agent="crawler"))["status"] == 200
    spent = {one["scope"]: one["spent"] for one in (await site.ask("GET", BUDGETS))["data"]}
    assert spent == {"key": 2, "model": 0, "provider": 4}


async def test_side_by_side_requests_never_overrun_a_budget(site: Site) -> None:
    made = await site.make(BUDGETS, limit=1000, unit="tokens")
    key = (await site.key(rate_limit=10_000))["key"]
    counts: dict[int, int] = {}
    used = 0

    async def ask() -> None:
        nonlocal used
        for _ in range(5):
            answer = await site.chat(key, "one two three four five six seven eight nine ten")
            counts[answer["status"]] = counts.get(answer["status"], 0) + 1
            used += answer.get("usage", {}).get("total_tokens", 0)

    async with anyio.create_task_group() as group:
        for _ in range(30):
            group.start_soon(ask)
    assert set(counts) == {200, 429}
    stands = await shown(site, made)
    assert stands["spent"] == used <= 1000
    assert stands["reserved"] == 0
    while (await site.chat(key))["status"] == 200:
        assert (await shown(site, made))["spent"] <= 1000
    assert (await shown(site, made))["remaining"] < 200, "the budget is used while it lasts"


async def test_what_a_dead_process_held_is_given_back_and_settled_once(site: Site) -> None:
    made = await site.make(BUDGETS, limit=1000, unit="tokens")
    spending, db = site.gateway.spending, site.gateway.store.db
    await site.gateway.store.authority.follow()
    assert spending.any()
    reservation = Reservation("hold_1", Usage(400, None))
    await spending.reserve(reservation, [made["id"]])
    assert (await shown(site, made))["reserved"] == 400
    # A provider may take MAX_TIMEOUT_SECONDS: until then the request may still be under way.
    for age_seconds, reserved in ((0, 400), (MAX_TIMEOUT_SECONDS, 400), (HOLD_SECONDS + 1, 0)):
        held_at = site.gateway.clock.now_at() - age_seconds * 1000
        await db.write(lambda tx, at=held_at: tx.execute("UPDATE budget_holds SET held_at = :at", {"at": at}))
        await spending.release_orphans()
        assert (await shown(site, made))["reserved"] == reserved
    await db.write(lambda tx: spending.settle(tx, reservation, Usage(250, None), ()))
    stands = await shown(site, made)
    assert (stands["spent"], stands["reserved"]) == (250, 0)


async def test_a_caller_who_leaves_holds_nothing_afterwards(site: Site) -> None:
    made = await site.make(BUDGETS, limit=100_000, unit="tokens")
    key = (await site.key())["key"]
    complete = site.gateway.routing.complete
    waits, is_slow = anyio.Event(), True

    async def slow(*arguments: Any, **more: Any) -> Any:
        if is_slow:
            waits.set()
            await anyio.sleep_forever()
        return await complete(*arguments, **more)

    object.__setattr__(site.gateway.chat.routing, "complete", slow)
    async with anyio.create_task_group() as group:
        group.start_soon(site.chat, key)
        await waits.wait()
        reserved = (await shown(site, made))["reserved"]
        group.cancel_scope.cancel()
    stands = await shown(site, made)
    assert reserved > 0
    # What the model made of it by then nobody knows, so that it counts as all that was taken for it.
    assert (stands["reserved"], stands["spent"]) == (0, reserved)


async def test_a_caller_who_leaves_before_anything_was_sent_is_given_all_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await site.make(BUDGETS, limit=100_000, unit="tokens")
    key = (await site.key())["key"]
    reserve, waits = site.gateway.spending.reserve, anyio.Event()

    async def late(*arguments: Any) -> Any:
        await reserve(*arguments)
        waits.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(site.gateway.spending, "reserve", late)
    async with anyio.create_task_group() as group:
        group.start_soon(site.chat, key)
        await waits.wait()
        assert (await shown(site, made))["reserved"] > 0
        group.cancel_scope.cancel()
    stands = await shown(site, made)
    assert (stands["reserved"], stands["spent"]) == (0, 0)


async def test_a_provider_has_prices_of_its_own_and_what_nobody_knows_a_price_for_is_told_once(site: Site) -> None:
    in_usd, in_tokens = await site.make(BUDGETS, limit=1), await site.make(BUDGETS, limit=90_000, unit="tokens")
    lab = await site.make("/api/providers", name="lab", type="echo", models=["*"])
    key = (await site.key())["key"]
    for _ in range(2):
        assert (await site.chat(key, model="strange-1"))["status"] == 200
    assert (await shown(site, in_usd))["spent"] == 0
    assert (await shown(site, in_tokens))["spent"] == 4
    (alert,) = await alerts(site, "unknown-price")
    assert (alert.count, alert.title) == (1, "Nobody knows what strange-1 costs")
    prices = {"strange-*": {"input": 100, "output": 1000}}
    assert (await site.ask("PATCH", f"/api/providers/{lab['id']}", {"prices": prices}))["status"] == 200
    assert (await site.chat(key, model="strange-1"))["status"] == 200
    assert (await shown(site, in_usd))["spent"] == 0.0011


async def test_a_file_of_prices_comes_before_the_built_in_ones(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"models": {"ec*": {"input": 5, "output": 0}}}))
    async with open_site(tmp_path, prices=str(file)) as site:
        made = await site.make(BUDGETS, limit=1)
        assert (await site.chat((await site.key())["key"], "one two"))["status"] == 200
        assert (await shown(site, made))["spent"] == 0.00001


async def test_without_a_budget_nothing_is_held(site: Site) -> None:
    key = (await site.key())["key"]
    made = await site.make(BUDGETS, limit=1)
    assert (await site.ask("DELETE", f"{BUDGETS}/{made['id']}"))["status"] == 200
    body = {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}
    assert (await site.ask("POST", CHAT, body, key=key))["status"] == 200
    for table in ("budgets", "budget_periods", "budget_holds"):
        rows = await site.gateway.store.db.read(lambda tx, table=table: tx.query(f"SELECT COUNT(*) AS n FROM {table}"))
        assert rows[0]["n"] == 0
