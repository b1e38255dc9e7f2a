"""The access list from the API: made and changed there, and obeyed by every request with a key."""

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
from gateway.domain.access_list import Rules
from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.keys import NewKey
from gateway.domain.principals import Caller, RequestContext, Scope, local
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.settings import Settings
from gateway.strict_json import read_timestamp

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
HOUR_MS = 3_600_000
CHAT = "/api/v1/chat/completions"
HERE, THERE = "127.0.0.1", "192.0.2.9"


class Site:
    """A gateway without RBAC, two keys, and what is asked of it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)
        self.key = ""
        self.other = ""
        self.key_id = ""

    async def open(self) -> None:
        context = RequestContext(request_id="req_1")
        new = NewKey(name="ci", scopes=tuple(Scope))
        first = await self.gateway.keys.create(Caller(local("cli"), context), new)
        self.key, self.key_id = first.key, first.record.id
        self.other = (await self.gateway.keys.create(Caller(local("cli"), context), new)).key

    async def ask(self, method: str, target: str, body: object = None, *, key: str = "", peer: str = HERE) -> Any:
        path, _, query = target.partition("?")
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= {"x-service-key": key} if key else {}
        raw = b"" if body is None else json.dumps(body).encode()
        response = await self.dispatch.handle(Request(method, path, query, Headers(fields), raw, peer, False, 0.0))
        answer = json.loads(response.body)
        answer["status"] = response.status
        return answer

    async def add(self, list_name: str, kind: str, value: str, **more: object) -> Any:
        answer = await self.ask("POST", "/api/access", {"list": list_name, "type": kind, "value": value, **more})
        assert answer["status"] == 201, answer
        return answer["data"]

    async def scan(self, *, key: str = "", peer: str = HERE) -> Any:
        return await self.ask("POST", "/api/v1/shield/scan", {"text": "hello"}, key=key or self.key, peer=peer)

    async def chat(self, content: object = "hello", *, key: str = "", **more: object) -> Any:
        body = {"model": "echo", "messages": [{"role": "user", "content": content}], **more}
        return await self.ask("POST", CHAT, body, key=key or self.key)

    async def events(self, action: str) -> list[AuditEvent]:
        await self.gateway.store.db.write(lambda tx: None)
        return list((await self.gateway.audit.page(AuditFilter(action=action))).items)


def refused_by(answer: Any, entry: Any) -> bool:
    error = answer.get("error") or {}
    return answer["status"] == 403 and error["code"] == "access_denied" and entry["id"] in error["message"]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    settings = Settings(data_dir=":memory:", rules=str(rules), rbac_enabled=False)
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        one = Site(gateway)
        await one.open()
        yield one


async def test_an_entry_lives_its_whole_life(site: Site) -> None:
    made = await site.add("deny", "CIDR", "192.0.2.0/24", reason="abuse", expires_at="2099-01-01T00:00:00Z")
    assert set(made) == {
        "id", "list", "type", "value", "scope", "reason", "status", "hits", "created_at", "created_by", "expires_at",
        "version",
    }  # fmt: skip
    assert (made["scope"], made["status"], made["hits"], made["version"]) == ("global", "active", 0, 1)
    one = f"/api/access/{made['id']}"
    assert (await site.ask("GET", one))["data"] == made
    assert (await site.ask("GET", "/api/access"))["data"] == [made]
    assert (await site.ask("GET", "/api/access?list=allow"))["data"] == []
    assert (await site.ask("GET", "/api/access?type=CIDR&limit=1"))["data"] == [made]
    changed = (await site.ask("PATCH", one, {"reason": "spam", "expires_at": None, "version": 1}))["data"]
    assert (changed["reason"], changed["expires_at"], changed["version"]) == ("spam", None, 2)
    late = await site.ask("PATCH", one, {"reason": "x", "version": 1})
    assert (late["status"], late["error"]["code"], late["error"]["param"]) == (409, "conflict", "version")
    assert (await site.ask("DELETE", one))["data"] == changed
    for method in ("GET", "DELETE"):
        assert (await site.ask(method, one))["status"] == 404
    for action in ("created", "changed", "removed"):
        assert [event.resource_id for event in await site.events(f"access_entry_{action}")] == [made["id"]]


async def test_a_page_goes_on_where_the_one_before_ended(site: Site) -> None:
    for number in range(5):
        await site.add("deny", "MODEL", f"model-{number}")
    first = await site.ask("GET", "/api/access?limit=3")
    rest = await site.ask("GET", f"/api/access?limit=3&cursor={first['page']['next']}")
    assert [one["value"] for one in first["data"] + rest["data"]] == [f"model-{n}" for n in (4, 3, 2, 1, 0)]
    other = await site.ask("GET", f"/api/access?limit=3&type=IP&cursor={first['page']['next']}")
    assert other["error"]["param"] == "cursor"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"type": "IP", "value": "192.0.2.1"}, "list"),
        ({"list": "maybe", "type": "IP", "value": "192.0.2.1"}, "list"),
        ({"list": "deny", "value": "192.0.2.1"}, "type"),
        ({"list": "deny", "type": "ip", "value": "192.0.2.1"}, "type"),
        ({"list": "deny", "type": "IP"}, "value"),
        ({"list": "deny", "type": "IP", "value": "nowhere"}, "value"),
        ({"list": "deny", "type": "CIDR", "value": "192.0.2.1/24"}, "value"),
        ({"list": "deny", "type": "KEY", "value": "key_nobody", "scope": "key_nobody"}, "scope"),
        ({"list": "deny", "type": "TOOL", "value": "x", "reason": "a\nb"}, "reason"),
        ({"list": "deny", "type": "TOOL", "value": "x", "reason": "r" * 501}, "reason"),
        ({"list": "deny", "type": "TOOL", "value": "x", "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"list": "deny", "type": "TOOL", "value": "x", "hits": 1}, "hits"),
        ({"list": "deny", "type": "TOOL", "value": "x", "force": "yes"}, "force"),
    ],
)
async def test_a_bad_entry_is_told_its_field(site: Site, body: object, param: str) -> None:
    answer = await site.ask("POST", "/api/access", body)
    assert (answer["status"], answer["error"]["param"]) == (400, param)
    assert (await site.ask("GET", "/api/access"))["data"] == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"type": "KEY", "value": "key_nobody"}, "value"),
        ({"type": "KEY", "value": "svc_000000"}, "value"),
        ({"type": "TOOL", "value": "x", "scope": "nobody"}, "scope"),
    ],
)
async def test_a_key_that_is_not_there_is_a_conflict(site: Site, body: dict[str, str], param: str) -> None:
    answer = await site.ask("POST", "/api/access", {"list": "deny"} | body)
    assert (answer["status"], answer["error"]["param"]) == (409, param)
    assert (await site.ask("GET", "/api/access"))["data"] == []


async def test_what_the_type_of_an_entry_cannot_have_is_a_conflict_when_it_is_changed(site: Site) -> None:
    network = f"/api/access/{(await site.add('deny', 'CIDR', '192.0.2.0/24'))['id']}"
    key = f"/api/access/{(await site.add('deny', 'KEY', site.key_id, force=True))['id']}"
    for one, body, param in (
        (network, {"value": "nowhere"}, "value"),
        (network, {"scope": "nobody"}, "scope"),
        (key, {"scope": site.key_id}, "scope"),
    ):
        answer = await site.ask("PATCH", one, body)
        assert (answer["status"], answer["error"]["param"]) == (409, param)
    assert (await site.ask("PATCH", network, {"value": "198.51.100.0/24"}))["data"]["value"] == "198.51.100.0/24"


async def test_an_entry_may_end_so_long_from_now_on(site: Site) -> None:
    since_at = site.gateway.clock.now_at()
    made = await site.add("deny", "TOOL", "shell", expires_at="12h")
    one = f"/api/access/{made['id']}"
    ends_at = read_timestamp(made["expires_at"], param="expires_at")
    assert since_at + 12 * HOUR_MS <= ends_at <= site.gateway.clock.now_at() + 12 * HOUR_MS
    assert (await site.ask("PATCH", one, {"reason": "x"}))["data"]["expires_at"] == made["expires_at"]
    assert (await site.ask("PATCH", one, {"expires_at": "30d"}))["data"]["expires_at"] > made["expires_at"]
    assert (await site.ask("PATCH", one, {"expires_at": None}))["data"]["expires_at"] is None
    assert (await site.ask("PATCH", one, {"expires_at": ""}))["status"] == 400


async def test_the_same_entry_is_not_made_twice(site: Site) -> None:
    await site.add("deny", "DOMAIN", "evil.example")
    again = await site.ask("POST", "/api/access", {"list": "deny", "type": "DOMAIN", "value": "EVIL.example."})
    assert (again["status"], again["error"]["code"]) == (409, "conflict")
    await site.add("deny", "DOMAIN", "evil.example", scope=site.key_id)


async def test_a_denied_address_is_refused_on_the_next_request_and_let_in_again(site: Site) -> None:
    assert (await site.scan(peer=THERE))["status"] == 200
    entry = await site.add("deny", "IP", THERE)
    assert refused_by(await site.scan(peer=THERE), entry)
    assert (await site.scan())["status"] == 200
    event = (await site.events("api_key_refused"))[0]
    assert (event.outcome, event.reason, event.details["access_entry"]) == ("refused", "access_denied", entry["id"])
    assert (await site.ask("GET", "/api/v1/health", key=site.key, peer=THERE))["status"] == 200
    await site.ask("DELETE", f"/api/access/{entry['id']}")
    assert (await site.scan(peer=THERE))["status"] == 200


async def test_where_addresses_are_allowed_all_others_are_refused(site: Site) -> None:
    entry = await site.add("allow", "CIDR", "127.0.0.0/8")
    assert (await site.scan())["status"] == 200
    assert refused_by(await site.scan(peer=THERE), entry)
    assert (await site.scan(peer="::ffff:127.0.0.1"))["status"] == 200


async def test_a_key_is_kept_out_by_id_or_prefix(site: Site) -> None:
    entry = await site.add("deny", "KEY", site.key[:10])
    assert entry["value"] == site.key_id
    assert refused_by(await site.scan(), entry)
    assert (await site.scan(key=site.other))["status"] == 200


async def test_hits_are_counted(site: Site) -> None:
    entry = await site.add("deny", "IP", THERE)
    for _ in range(3):
        await site.scan(peer=THERE)
    site.gateway.access.flush_hits()
    await site.gateway.store.db.write(lambda tx: None)
    shown = (await site.ask("GET", f"/api/access/{entry['id']}"))["data"]
    assert (shown["hits"], shown["version"]) == (3, 1)


async def test_nobody_locks_themselves_out_unless_they_insist(site: Site) -> None:
    for list_name, value in (("deny", HERE), ("allow", THERE)):
        body = {"list": list_name, "type": "IP", "value": value}
        refused = await site.ask("POST", "/api/access", body)
        assert (refused["status"], refused["error"]["code"], refused["error"]["param"]) == (409, "conflict", "force")
    entry = await site.add("deny", "IP", HERE, force=True)
    assert refused_by(await site.scan(), entry)
    assert (await site.ask("DELETE", f"/api/access/{entry['id']}"))["status"] == 200


async def test_a_change_or_a_removal_locks_nobody_out_either(site: Site) -> None:
    entry = await site.add("allow", "IP", HERE)
    await site.add("allow", "IP", THERE)
    one = f"/api/access/{entry['id']}"
    for answer in (await site.ask("PATCH", one, {"list": "deny"}), await site.ask("DELETE", one)):
        assert (answer["status"], answer["error"]["param"]) == (409, "force")
    assert (await site.ask("DELETE", f"{one}?force=maybe"))["error"]["param"] == "force"
    assert (await site.ask("DELETE", f"{one}?force=true"))["status"] == 200


@pytest.mark.parametrize(
    ("kind", "value", "request_of"),
    [
        ("MODEL", "ech*", {}),
        ("PROVIDER", "echo", {}),
        ("AGENT", "crawler", {"user": "crawler"}),
        ("TOOL", "shell_*", {"tools": [{"type": "function", "function": {"name": "shell_exec"}}]}),
        ("DOMAIN", "evil.example", {"content": "read https://docs.evil.example/a"}),
        ("DOMAIN", "evil.example", {"content": [{"type": "text", "text": "mail x@evil.example"}]}),
        ("DOMAIN", "evil.example", {"content": "https%3A%2F%2Fevil%2Eexample%2F"}),
    ],
)
async def test_a_chat_that_asks_for_what_is_denied_is_refused(
    site: Site, kind: str, value: str, request_of: dict[str, Any]
) -> None:
    assert (await site.chat(**request_of))["status"] == 200
    entry = await site.add("deny", kind, value)
    assert refused_by(await site.chat(**request_of), entry)
    event = (await site.events("chat_failed"))[0]
    assert (event.outcome, event.reason, event.details["access_entry"]) == ("refused", "access_denied", entry["id"])
    assert event.details["status"] == 403


async def test_an_entry_for_one_key_lets_the_others_chat(site: Site) -> None:
    entry = await site.add("deny", "MODEL", "echo", scope=site.key_id)
    assert refused_by(await site.chat(), entry)
    assert (await site.chat(key=site.other))["status"] == 200


async def test_where_domains_are_allowed_links_elsewhere_are_refused_and_file_names_are_not(site: Site) -> None:
    entry = await site.add("allow", "DOMAIN", "good.example")
    schema = {"$schema": "https://json-schema.example/draft", "type": "object"}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert (await site.chat("see https://www.good.example/ and README.md", tools=tools))["status"] == 200
    assert refused_by(await site.chat("see https://good.example.evil.test/"), entry)
    arguments = json.dumps({"url": "https://evil.test/?q=1"})
    call = {"id": "1", "type": "function", "function": {"name": "get", "arguments": arguments}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert refused_by(await site.chat(messages=messages), entry)


async def test_an_entry_that_expires_counts_no_longer(site: Site) -> None:
    entry = await site.add("deny", "IP", THERE, expires_at="2099-01-01T00:00:00Z")
    assert refused_by(await site.scan(peer=THERE), entry)
    guard = site.gateway.access
    guard.rules = Rules(site.gateway.store.authority.now.access_entries, guard.rules.until_at)
    assert (await site.scan(peer=THERE))["status"] == 200


async def test_an_empty_list_leaves_nothing_to_look_at(site: Site) -> None:
    await site.scan()
    assert not site.gateway.access.rules.has
