"""Nobody is locked out unawares: the same guard at the API, on the command line and over MCP, by stdio and by HTTP."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from open_site import Site, open_site

from gateway.bundle import NativeReport
from gateway.cli import main as cli
from gateway.http.messages import Headers, Request
from gateway.mcp import jsonrpc
from gateway.mcp.http import HttpMcp
from gateway.mcp.server import McpServer
from gateway.strict_json import write_time

KEY = "a-key-that-is-long-enough"
Add = Callable[..., Awaitable[str | None]]

# What shuts out the callers on this host, or every key, and what does not. KEY stands for the only key.
LOCKS = [
    ("deny", "IP", "127.0.0.1"),
    ("deny", "IP", "::1"),
    ("deny", "CIDR", "0.0.0.0/0"),
    ("deny", "CIDR", "0.0.0.0/1"),
    ("deny", "CIDR", "127.0.0.0/8"),
    ("deny", "CIDR", "::/0"),
    ("deny", "KEY", "KEY"),
    ("allow", "CIDR", "10.0.0.0/8"),
    ("deny", "MODEL", "*"),
    ("deny", "PROVIDER", "**"),
    ("deny", "AGENT", "?*"),
]
HARMLESS = [
    ("deny", "IP", "127.0.0.2"),
    ("deny", "CIDR", "192.0.2.0/24"),
    ("allow", "IP", "127.0.0.1"),
    ("allow", "KEY", "KEY"),
    ("deny", "MODEL", "gpt-*"),
    ("deny", "AGENT", "??"),
    ("deny", "TOOL", "*"),
]


async def over_api(site: Site, *, force: bool, **entry: str) -> str | None:
    answer = await site.ask("POST", "/api/access", entry | ({"force": True} if force else {}))
    return None if answer["status"] == 201 else str(answer["error"]["message"])


def mcp_call(entry: dict[str, str], force: bool) -> dict[str, object]:
    arguments = {"list_type": entry["list"], "entry_type": entry["type"], "value": entry["value"]}
    expiry = {"expires_at": entry["expires_at"]} if "expires_at" in entry else {}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "manage_access",
            "arguments": {"action": "add", **arguments, **expiry} | ({"force": True} if force else {}),
        },
    }


def refusal_of(result: Any) -> str | None:
    return str(result["content"][0]["text"]) if result["isError"] else None


async def over_stdio(site: Site, *, force: bool, **entry: str) -> str | None:
    message = jsonrpc.parse(json.dumps(mcp_call(entry, force)).encode())
    raw = await McpServer(lambda: site.gateway).answer(message)
    return refusal_of(json.loads(raw or b"")["result"])


@asynccontextmanager
async def mcp_session(site: Site) -> AsyncGenerator[Callable[[object], Awaitable[Any]]]:
    """Give what posts a message in one session at /mcp."""
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json", "user-agent": "assistant/9"}
    async with anyio.create_task_group() as tasks:
        edge = HttpMcp(lambda: site.gateway, tasks)

        async def post(body: object) -> Any:
            raw = json.dumps(body).encode()
            answer = await edge.handle(
                Request("POST", "/mcp", "", Headers(dict(headers)), raw, "127.0.0.1", False, 0.0)
            )
            assert answer.status == 200, answer
            headers.setdefault("mcp-session-id", dict(answer.headers).get("mcp-session-id", ""))
            return json.loads(answer.body)["result"]

        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}}
        await post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        yield post
        tasks.cancel_scope.cancel()


async def over_http(site: Site, *, force: bool, **entry: str) -> str | None:
    async with mcp_session(site) as post:
        return refusal_of(await post(mcp_call(entry, force)))


@pytest.mark.parametrize("add", [over_api, over_stdio, over_http])
async def test_an_entry_that_shuts_out_this_host_or_every_key_needs_force(tmp_path: Path, add: Add) -> None:
    async with open_site(tmp_path, mcp_api_key=KEY) as site:
        key = await site.key()
        for list_name, kind, value in LOCKS:
            entry = {"list": list_name, "type": kind, "value": value.replace("KEY", key["id"])}
            refused = await add(site, force=False, **entry)
            assert refused is not None and "would be refused" in refused and "force" in refused, entry
            assert (await site.ask("GET", "/api/access"))["data"] == []
            assert await add(site, force=True, **entry) is None, entry
            (made,) = (await site.ask("GET", "/api/access"))["data"]
            assert (await site.ask("DELETE", f"/api/access/{made['id']}?force=true"))["status"] == 200
        for list_name, kind, value in HARMLESS:
            entry = {"list": list_name, "type": kind, "value": value.replace("KEY", key["id"])}
            assert await add(site, force=False, **entry) is None, entry
            (made,) = (await site.ask("GET", "/api/access"))["data"]
            assert (await site.ask("DELETE", f"/api/access/{made['id']}"))["status"] == 200


LATER = [
    # Let in for an hour, and then by nothing; or refused for an hour, and then for good.
    (("allow", "IP", "127.0.0.1"), ("allow", "IP", "10.0.0.1")),
    (("deny", "CIDR", "127.0.0.0/8"), ("deny", "IP", "127.0.0.1")),
    (("allow", "KEY", "KEY"), ("allow", "KEY", "REVOKED")),
    (("deny", "MODEL", "*"), ("deny", "AGENT", "*")),
]


@pytest.mark.parametrize("add", [over_api, over_stdio, over_http])
async def test_what_shuts_out_this_host_only_when_another_entry_expires_needs_force(tmp_path: Path, add: Add) -> None:
    async with open_site(tmp_path, mcp_api_key=KEY) as site:
        key, revoked = await site.key(), await site.key(name="other")
        assert (await site.ask("POST", f"/api/config/api-keys/{revoked['id']}/revoke"))["status"] == 200
        in_an_hour = write_time(site.gateway.clock.now_at() + 3_600_000)
        for pair in LATER:
            one, two = (
                {"list": name, "type": kind, "value": value.replace("KEY", key["id"]).replace("REVOKED", revoked["id"])}
                for name, kind, value in pair
            )
            assert await add(site, force=True, **one, expires_at=in_an_hour) is None, one
            refused = await add(site, force=False, **two)
            assert refused is not None and "would be refused when an entry expires" in refused, two
            assert await add(site, force=False, **two, expires_at=in_an_hour) is None, two
            for entry in (await site.ask("GET", "/api/access"))["data"]:
                assert (await site.ask("DELETE", f"/api/access/{entry['id']}?force=true"))["status"] == 200


async def test_a_longer_life_of_an_entry_that_shuts_out_needs_force(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        in_an_hour = write_time(site.gateway.clock.now_at() + 3_600_000)
        deny = {"list": "deny", "type": "IP", "value": "127.0.0.1", "expires_at": in_an_hour, "force": True}
        path = "/api/access/" + (await site.make("/api/access", **deny))["id"]
        refused = await site.ask("PATCH", path, {"expires_at": None})
        assert (refused["status"], refused["error"]["param"]) == (409, "force")
        assert (await site.ask("PATCH", path, {"expires_at": None, "force": True}))["status"] == 200


async def test_another_key_that_still_gets_in_is_enough_and_the_last_one_needs_force(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        one, two = await site.key(), await site.key(name="other")
        halves = [{"list": "deny", "type": "CIDR", "value": value} for value in ("0.0.0.0/0", "::/0")]
        for key, is_last in ((one, False), (two, True)):
            answers = [await site.ask("POST", "/api/access", half | {"scope": key["id"]}) for half in halves]
            assert [answer["status"] for answer in answers] == [201, 409 if is_last else 201]
        assert "Every API key" in answers[1]["error"]["message"]


async def test_removing_what_lets_this_host_in_needs_force(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        for value in ("127.0.0.1", "192.0.2.9"):
            assert await over_stdio(site, force=False, list="allow", type="IP", value=value) is None
        server = McpServer(lambda: site.gateway)
        for force, is_refused in ((None, True), (True, False)):
            arguments = {"action": "remove", "list_type": "allow", "entry_type": "IP", "value": "127.0.0.1"}
            params = {"name": "manage_access", "arguments": arguments | {"force": force}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            raw = await server.answer(jsonrpc.parse(json.dumps(message).encode()))
            assert json.loads(raw or b"")["result"]["isError"] is is_refused


def test_the_command_line_has_the_same_guard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        code = cli.run(cli.read([*arguments, "--data-dir", str(tmp_path)]), NativeReport("python", None, ()))
        said = capsys.readouterr()
        return code, (said.out or said.err).strip()

    assert run("keys", "create", "--name", "x", "--scopes", "shield:scan")[0] == 0
    key_id = json.loads(run("keys", "list", "--json")[1])[0]["id"]
    for list_name, kind, value in LOCKS:
        entry = ("--list", list_name, "--type", kind, "--value", value.replace("KEY", key_id))
        code, words = run("access", "add", *entry)
        assert code == 2 and "would be refused" in words and "force" in words
        assert run("access", "list", "--json")[1] == "[]"
        code, made = run("access", "add", *entry, "--force")
        assert code == 0
        assert run("access", "remove", made)[0] == 0
    brief = run("access", "add", "--list", "allow", "--type", "IP", "--value", "127.0.0.1", "--expires", "1h")[1]
    code, words = run("access", "add", "--list", "allow", "--type", "IP", "--value", "10.0.0.1")
    assert code == 2 and "would be refused when an entry expires" in words
    assert run("access", "remove", brief)[0] == 0
    first = run("access", "add", "--list", "allow", "--type", "IP", "--value", "127.0.0.1")[1]
    run("access", "add", "--list", "allow", "--type", "IP", "--value", "192.0.2.9")
    assert run("access", "remove", first)[0] == 2
    assert run("access", "remove", first, "--force")[0] == 0


async def test_over_http_the_audit_says_where_the_assistant_was(tmp_path: Path) -> None:
    async with open_site(tmp_path, mcp_api_key=KEY) as site, mcp_session(site) as post:
        await post(mcp_call({"list": "deny", "type": "DOMAIN", "value": "evil.example"}, force=False))
        events = (await site.ask("GET", "/api/audit?source=mcp"))["data"]
        assert {"mcp:manage_access:invoked", "access_entry_created"} <= {event["action"] for event in events}
        assert {(event["ip"], event["user_agent"]) for event in events} == {("127.0.0.1", "assistant/9")}
