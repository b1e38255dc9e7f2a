"""A wall clock that jumps back and forth under a running gateway: what is counted, written and made stays in order."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from open_site import ATTACK, KEYS, Site, open_site, sign_in

from gateway import compose
from gateway.clock import Clock
from gateway.domain.principals import Role

DAY_MS = 86_400_000
JUMPS = (0, DAY_MS, -DAY_MS, 400 * DAY_MS, -400 * DAY_MS, 1, -3_600_000, 3_600_000)
SCAN = ("POST", "/api/v1/shield/scan", {"text": ATTACK})


class JumpingClock(Clock):
    """A wall clock that is set by hand, and a second hand that goes on."""

    jump_ms = 0
    passed_seconds = 0.0

    def now_ns(self) -> int:
        return super().now_ns() + JumpingClock.jump_ms * 1_000_000

    def monotonic_seconds(self) -> float:
        return super().monotonic_seconds() + JumpingClock.passed_seconds


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Site]:
    monkeypatch.setattr(compose, "Clock", JumpingClock)
    monkeypatch.setattr(JumpingClock, "jump_ms", 0)
    monkeypatch.setattr(JumpingClock, "passed_seconds", 0.0)
    async with open_site(tmp_path, rbac_enabled=True) as one:
        yield one


async def make_key(site: Site, **fields: object) -> str:
    body = {"name": "ci", "scopes": ["shield:scan", "audit:read"], **fields}
    answer = await (await sign_in(site, Role.ADMIN)).ask("POST", KEYS, body)
    assert answer["status"] == 201, answer
    return str(answer["data"]["key"])


async def test_the_minute_of_a_rate_limit_is_measured_and_not_read_off_the_wall(site: Site) -> None:
    key = await make_key(site, rate_limit=3)
    statuses = []
    for jump in JUMPS:
        JumpingClock.jump_ms = jump
        statuses.append((await site.ask(*SCAN, key=key))["status"])
    assert statuses == [200] * 3 + [429] * (len(JUMPS) - 3)
    JumpingClock.passed_seconds = 61.0
    assert (await site.ask(*SCAN, key=key))["status"] == 200


async def test_events_keep_their_order_and_their_chain_and_pages_show_each_once(site: Site) -> None:
    key = await make_key(site)
    made = []
    for jump in JUMPS * 3:
        JumpingClock.jump_ms = jump
        answer = await site.ask(*SCAN, key=key)
        assert answer["status"] == 200
        made.append(answer["headers"]["x-request-id"])
    assert made == sorted(made), "ids of one process sort as they were made"
    JumpingClock.jump_ms = 0
    found, path = [], "/api/v1/audit?limit=5&source=shield"
    cursor: str | None = ""
    while cursor is not None:
        page = await site.ask("GET", path + (f"&cursor={cursor}" if cursor else ""), key=key)
        found += [event["request_id"] for event in page["data"]]
        cursor = page["page"]["next"]
    assert sorted(found) == sorted(made)
    assert (await site.gateway.audit.verify()).ok


async def test_who_is_signed_in_stays_so_when_the_clock_is_set_back_and_is_out_when_the_time_is_over(
    site: Site,
) -> None:
    person = await sign_in(site, Role.ADMIN)
    JumpingClock.jump_ms = -DAY_MS
    assert (await person.ask("GET", "/api/auth/session"))["status"] == 200
    again = await sign_in(site, Role.ADMIN)
    assert (await again.ask("GET", "/api/auth/session"))["status"] == 200
    JumpingClock.jump_ms = DAY_MS
    assert (await person.ask("GET", "/api/auth/session"))["status"] == 401
    assert (await sign_in(site, Role.ADMIN)).cookie != person.cookie


async def test_a_key_expires_by_the_wall_clock_alone(site: Site) -> None:
    key = await make_key(site, expires_at="2100-01-01T00:00:00Z")
    for jump in JUMPS:
        JumpingClock.jump_ms = jump
        assert (await site.ask(*SCAN, key=key))["status"] == 200
    JumpingClock.jump_ms = 100 * 366 * DAY_MS
    assert (await site.ask(*SCAN, key=key))["error"]["code"] == "key_expired"
