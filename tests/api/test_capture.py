"""What a policy keeps of texts: nothing, what is masked, or all; for how long, where, and who may read it."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import open_site as site_module
import pytest
from open_site import ATTACK, Site, open_site, sign_in

from gateway.domain.policies import Capture, cut
from gateway.domain.principals import Role
from gateway.services.core import Core
from gateway.services.retention import Days, Retention
from gateway.shield.detections import Direction

DAY_MS = 86_400_000
NUMBER = "4111 1111 1111 1111"
WORDS = "the walrus has a purple umbrella"
RULES = [
    *site_module.RULES["rules"],  # type: ignore[misc]
    {
        "id": "card", "name": "Card", "category": "financial", "severity": "medium", "confidence": 0.9,
        "description": "A made-up card.", "direction": ["inbound", "outbound"],
        "literals": ["4111"], "pattern": r"4111(?: ?\d{4}){3}", "match": [NUMBER], "pass": ["4111 11"],
    },
]  # fmt: skip


class Later:
    """A clock some time ahead of another."""

    def __init__(self, clock: Any, ahead_ms: int) -> None:
        self._clock, self._ahead_ms = clock, ahead_ms

    def now_at(self) -> int:
        return int(self._clock.now_at()) + self._ahead_ms

    def now_ns(self) -> int:
        return self.now_at() * 1_000_000

    def monotonic_seconds(self) -> float:
        return float(self._clock.monotonic_seconds())


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setitem(site_module.RULES, "rules", RULES)
    async with open_site(tmp_path, data_dir=str(tmp_path / "data")) as one:
        yield one


def read_time_ms(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


async def keyed(site: Site, **fields: object) -> str:
    policy = await site.make("/api/policies", name="lab", **fields)
    return str((await site.key(policy=policy["id"]))["key"])


async def kept(site: Site) -> list[Any]:
    """Return what is shown of the last request's texts."""
    await site.gateway.store.db.write(lambda tx: None)  # what is written behind stands before it
    rows = (await site.ask("GET", "/api/traffic?limit=1"))["data"]
    shown = (await site.ask("GET", f"/api/traffic/{rows[0]['id']}"))["data"]["captures"]
    assert isinstance(shown, list)
    return shown


async def stored(site: Site, folder: Path) -> bytes:
    """Return every byte in the data folder, with what the log has."""
    await site.gateway.store.db.write(lambda tx: None)
    return b"".join(one.read_bytes() for one in (folder / "data").iterdir()) + site.log.getvalue().encode()


@pytest.mark.parametrize("fields", [{}, {"capture": "none", "capture_days": 300}])
@pytest.mark.sqlite
async def test_without_capture_nothing_of_a_text_is_anywhere(
    site: Site, tmp_path: Path, fields: dict[str, object]
) -> None:
    key = await keyed(site, **fields)
    await site.scan(key, f"{WORDS} {ATTACK}")
    await site.scan(key, WORDS)
    assert await kept(site) == []
    await site.chat(key, f"{WORDS} {NUMBER}")
    assert await kept(site) == []
    found = await stored(site, tmp_path)
    assert b"traffic" in found
    for text in ("purple umbrella", "pod bay", NUMBER):
        assert text.encode() not in found


@pytest.mark.parametrize("text", [WORDS, f"{WORDS} {ATTACK}"], ids=["allowed", "blocked"])
async def test_full_keeps_a_scanned_text_as_it_was_for_as_long_as_the_policy_says(site: Site, text: str) -> None:
    await site.scan(await keyed(site, capture="full", capture_days=3), text)
    (one,) = await kept(site)
    row = (await site.ask("GET", "/api/traffic?limit=1"))["data"][0]
    assert (one["direction"], one["mode"], one["text"], one["is_cut"]) == ("inbound", "full", text, False)
    assert set(one) == {"direction", "mode", "text", "is_cut", "expires_at"}
    assert read_time_ms(one["expires_at"]) - read_time_ms(row["occurred_at"]) == 3 * DAY_MS


@pytest.mark.sqlite
async def test_redacted_keeps_words_and_no_match_of_any_rule(site: Site, tmp_path: Path) -> None:
    key = await keyed(site, capture="redacted")
    await site.scan(key, f"{WORDS} {NUMBER} and again {NUMBER}, {ATTACK}")
    (one,) = await kept(site)
    assert one["mode"] == "redacted"
    assert one["text"] == f"{WORDS} 4111…(19) and again 4111…(19), please open…(22) now"
    await site.chat(key, f"{WORDS}: {NUMBER}")
    found = await stored(site, tmp_path)
    assert WORDS.encode() in found
    assert NUMBER.encode() not in found and b"pod bay" not in found


async def test_a_chat_keeps_prompt_and_reply_under_their_places(site: Site) -> None:
    key = await keyed(site, capture="full")
    assert (await site.chat(key, WORDS))["status"] == 200
    prompt, reply = await kept(site)
    assert (prompt["direction"], reply["direction"]) == ("inbound", "outbound")
    assert f"[messages[0].content]\n{WORDS}" in prompt["text"]
    assert "[choices[0].message.content]\n" in reply["text"] and WORDS in reply["text"]


async def test_a_blocked_prompt_is_kept_and_has_no_reply(site: Site) -> None:
    key = await keyed(site, capture="full")
    assert (await site.chat(key, ATTACK))["status"] == 400
    (prompt,) = await kept(site)
    assert prompt["direction"] == "inbound" and ATTACK in prompt["text"]


async def test_what_is_only_observed_is_kept_as_well(site: Site) -> None:
    key = await keyed(site, capture="redacted", mode="observe")
    assert (await site.chat(key, f"{WORDS} {ATTACK}"))["status"] == 200
    prompt, reply = await kept(site)
    for one in (prompt, reply):
        assert WORDS in one["text"] and "pod bay" not in one["text"]


async def test_a_match_over_two_messages_is_masked_with_all_that_is_around_it(site: Site, tmp_path: Path) -> None:
    key = await keyed(site, capture="redacted", mode="observe")
    messages = [{"role": "user", "content": f"{WORDS} 4111 1111 1"}, {"role": "user", "content": "111 1111"}]
    await site.ask("POST", "/api/v1/chat/completions", {"model": "echo", "messages": messages}, key=key)
    prompt = (await kept(site))[0]
    assert prompt["text"].startswith("[messages[0].content]\nthe …(")
    assert b"4111 1111 1" not in await stored(site, tmp_path)


async def test_a_secret_that_only_the_unescaped_text_shows_is_not_kept(site: Site) -> None:
    escaped = json.dumps({"a": NUMBER}).replace("1 1", "1\\u00201")
    await site.chat(await keyed(site, capture="redacted"), escaped)
    assert "1111" not in (await kept(site))[0]["text"]


async def test_a_long_text_is_cut_and_says_so(site: Site) -> None:
    await site.scan(await keyed(site, capture="full"), "word " * 5000)
    (one,) = await kept(site)
    assert (len(one["text"]), one["is_cut"]) == (20_000, True)


def test_half_a_character_can_be_kept() -> None:
    assert cut(f"{WORDS} \ud83d", direction=Direction.INBOUND, mode=Capture.FULL, expires_at=1).text == f"{WORDS} ?"


async def test_texts_are_in_no_alert_audit_event_or_log(site: Site, tmp_path: Path) -> None:
    key = await keyed(site, capture="full")
    await site.scan(key, f"{WORDS} {ATTACK}")
    assert len(await kept(site)) == 1
    for path in ("/api/audit", "/api/alerts", "/api/traffic"):
        assert WORDS not in json.dumps((await site.ask("GET", path))["data"])
    for path in ("/api/v1/alerts", "/api/v1/audit"):
        answer = await site.ask("GET", path, key=(await site.key(scopes=["alerts:read", "audit:read"]))["key"])
        assert answer["status"] == 200 and WORDS not in json.dumps(answer["data"])
    assert WORDS not in site.log.getvalue()


async def test_what_has_expired_is_not_shown_and_is_deleted_and_a_policy_that_is_gone_changes_nothing(
    site: Site,
) -> None:
    gateway, store = site.gateway, site.gateway.store
    policy = await site.make("/api/policies", name="lab", capture="full", capture_days=2)
    key = await site.key(policy=policy["id"])
    await site.scan(key["key"], WORDS)
    await site.ask("PATCH", f"/api/config/api-keys/{key['id']}", {"policy": None})
    assert (await site.ask("DELETE", f"/api/policies/{policy['id']}"))["status"] == 200
    assert len(await kept(site)) == 1

    async def left(days_later: int, traffic_days: int) -> int:
        clock = Later(gateway.clock, days_later * DAY_MS)
        kept_for = Days(traffic_days, 0, 0)
        keeper = Retention(Core(store, clock, gateway.ids), days=lambda tx: kept_for)
        await keeper.prune()
        return len(await kept(site))

    row = (await site.ask("GET", "/api/traffic?limit=1"))["data"][0]
    at = gateway.clock.now_at() + 2 * DAY_MS
    assert await store.db.read(lambda tx: store.captures.of_request(tx, row["id"], now_at=at)) == ()
    assert await left(1, 0) == 1
    assert await left(3, 0) == 0


async def test_no_text_is_kept_longer_than_its_row(site: Site) -> None:
    await site.scan(await keyed(site, capture="full", capture_days=300), WORDS)
    assert len(await kept(site)) == 1
    gateway = site.gateway
    core = Core(gateway.store, Later(gateway.clock, 31 * DAY_MS), gateway.ids)
    keeper = Retention(core, days=lambda tx: Days(30, 0, 0))
    await keeper.prune()
    assert await kept(site) == []


async def test_a_change_of_capture_is_audited_and_checked(site: Site) -> None:
    policy = await site.make("/api/policies", name="lab")
    one = f"/api/policies/{policy['id']}"
    for fields, param in (
        ({"capture": "all"}, "capture"),
        ({"capture_days": 0}, "capture_days"),
        ({"capture_days": 366}, "capture_days"),
        ({"capture_days": "7"}, "capture_days"),
    ):
        answer = await site.ask("PATCH", one, fields)
        assert (answer["status"], answer["error"]["param"]) == (400, param)
    changed = (await site.ask("PATCH", one, {"capture": "full", "capture_days": 30}))["data"]
    assert (changed["capture"], changed["capture_days"], changed["version"]) == ("full", 30, 2)
    event = (await site.ask("GET", "/api/audit?action=policy_changed"))["data"][0]
    assert (event["before"]["capture"], event["after"]["capture"]) == ("none", "full")
    assert (event["before"]["capture_days"], event["after"]["capture_days"]) == (7, 30)


async def test_the_trust_audit_tells_which_policies_keep_texts(site: Site) -> None:
    async def finding() -> tuple[str, str]:
        _, checks = await site.gateway.trust_audits.check()
        one = next(check for check in checks if check.id == "retention-capture")
        return one.status.value, one.evidence

    assert (await finding())[0] == "pass"
    policy = await site.make("/api/policies", name="lab", capture="redacted")
    assert (await finding())[0] == "pass"
    for fields in ({"capture_days": 31}, {"capture": "full", "capture_days": 1}):
        await site.ask("PATCH", f"/api/policies/{policy['id']}", fields)
        status, evidence = await finding()
        assert status == "warn" and "lab" in evidence


@pytest.mark.parametrize(
    ("capture", "role", "count"),
    [
        ("redacted", Role.ADMIN, 1),
        ("redacted", Role.VIEWER, 1),
        ("full", Role.ADMIN, 1),
        ("full", Role.SECURITY_MANAGER, 1),
        ("full", Role.OPERATOR, 0),
        ("full", Role.AUDITOR, 0),
        ("full", Role.VIEWER, 0),
    ],
)
async def test_who_reads_traffic_sees_masked_texts_and_who_manages_policies_all(
    tmp_path: Path, capture: str, role: Role, count: int
) -> None:
    async with open_site(tmp_path, rbac_enabled=True) as site:
        admin = await sign_in(site, Role.ADMIN)
        policy = (await admin.ask("POST", "/api/policies", {"name": "lab", "capture": capture}))["data"]
        wanted = {"name": "ci", "scopes": ["shield:scan"], "policy": policy["id"]}
        key = (await admin.ask("POST", site_module.KEYS, wanted))["data"]["key"]
        await site.scan(key)
        reader = await sign_in(site, role)
        row = (await reader.ask("GET", "/api/traffic?limit=1"))["data"][0]
        shown = (await reader.ask("GET", f"/api/traffic/{row['id']}"))["data"]["captures"]
        assert len(shown) == count
