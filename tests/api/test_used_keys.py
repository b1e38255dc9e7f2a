"""A key that was used a moment ago may do exactly what it may do now: its scopes, its end, its policy."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from open_site import ATTACK, KEYS, Site, open_site

from gateway import compose
from gateway.clock import Clock
from gateway.domain.principals import Scope
from gateway.operations.every import PUBLIC_OPERATIONS
from gateway.operations.operation import Door

HOUR_MS = 3_600_000
SOON_SECONDS = 2.0  # after which a key is looked up again
KEYED = [operation for operation in PUBLIC_OPERATIONS if operation.door is Door.KEY]


class HandClock(Clock):
    """A clock that goes on by itself and is also moved by hand."""

    wall_ms = 0
    passed_seconds = 0.0

    def now_at(self) -> int:
        return super().now_at() + HandClock.wall_ms

    def monotonic_seconds(self) -> float:
        return super().monotonic_seconds() + HandClock.passed_seconds


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Site]:
    monkeypatch.setattr(compose, "Clock", HandClock)
    monkeypatch.setattr(HandClock, "wall_ms", 0)
    monkeypatch.setattr(HandClock, "passed_seconds", 0.0)
    async with open_site(tmp_path) as one:
        yield one


async def use(site: Site, key: str) -> None:
    """Use a key until the gateway has every reason to remember it."""
    for _ in range(3):
        assert (await site.ask("GET", "/api/v1/models", key=key))["status"] in (200, 403)
        HandClock.passed_seconds += SOON_SECONDS
    await site.ask("GET", "/api/v1/models", key=key)


@pytest.mark.parametrize("held", Scope)
async def test_a_key_in_use_reaches_nothing_beyond_its_scopes(site: Site, held: Scope) -> None:
    key = (await site.key(scopes=[held.value], rate_limit=1000))["key"]
    await use(site, key)
    for operation in KEYED:
        method, path = operation.route
        body = None if method == "GET" else {}
        answer = await site.ask(method, path, body, key=key)
        is_refused = answer.get("error", {}).get("code") == "insufficient_scope"
        assert is_refused is (operation.needs is not held), (operation.name, answer["status"])


@pytest.mark.parametrize("is_rotated", [False, True])
async def test_a_key_in_use_ends_when_it_is_said_to(site: Site, is_rotated: bool) -> None:
    made = await site.key(rate_limit=1000, **({} if is_rotated else {"expires_at": "1h"}))
    if is_rotated:
        await site.make(f"{KEYS}/{made['id']}/rotate", grace_seconds=3600)
    await use(site, made["key"])
    HandClock.wall_ms = HOUR_MS - 30_000
    assert (await site.ask("GET", "/api/v1/models", key=made["key"]))["status"] == 200
    HandClock.wall_ms = HOUR_MS
    for method, path, body in (("GET", "/api/v1/models", None), ("POST", "/api/v1/shield/scan", {"text": "hello"})):
        answer = await site.ask(method, path, body, key=made["key"])
        assert answer["error"]["code"] == ("key_revoked" if is_rotated else "key_expired")


async def test_a_prompt_sent_again_is_judged_by_the_policy_of_now(site: Site) -> None:
    made = await site.key(rate_limit=1000)
    one = f"{KEYS}/{made['id']}"
    await site.make("/api/policies", name="watch", mode="observe")

    async def verdicts() -> set[tuple[int, str]]:
        answers = [await site.chat(made["key"], ATTACK) for _ in range(3)]
        return {(answer["status"], answer["headers"].get("x-service-shield-action", "")) for answer in answers}

    assert await verdicts() == {(400, "blocked")}
    assert (await site.ask("PATCH", one, {"policy": "watch"}))["status"] == 200
    assert await verdicts() == {(200, "observed")}
    await site.ask("PATCH", "/api/policies/watch", {"mode": "block", "category_actions": {"injection": "redact"}})
    assert await verdicts() == {(200, "redacted")}
    await site.ask("PATCH", "/api/policies/watch", {"category_actions": {"injection": "allow"}})
    assert await verdicts() == {(200, "")}
    assert (await site.ask("PATCH", one, {"policy": None}))["status"] == 200
    assert await verdicts() == {(400, "blocked")}
