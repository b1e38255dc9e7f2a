"""The key of MCP over HTTP: its length, and what wrong keys meet, over the real services."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from open_site import Site, open_site

from gateway.cli.serve import open_mcp_listener
from gateway.errors import SetupError
from gateway.http.messages import Headers, Request, Response
from gateway.mcp.http import HttpMcp
from gateway.settings import Settings

KEY = "a-key-that-is-long-enough"
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}},
}


class Port:
    """The MCP port of a site, asked from any address."""

    def __init__(self, site: Site, edge: HttpMcp) -> None:
        self.site = site
        self.edge = edge

    async def hello(self, key: str | None, *, peer: str = "127.0.0.1") -> Response:
        fields = {"content-type": "application/json"} | ({"x-service-key": key} if key is not None else {})
        raw = json.dumps(HELLO).encode()
        return await self.edge.handle(Request("POST", "/mcp", "", Headers(fields), raw, peer, False, 0.0))


@asynccontextmanager
async def open_port(folder: Path, **settings: Any) -> AsyncGenerator[Port]:
    async with open_site(folder, mcp_api_key=KEY, **settings) as site, anyio.create_task_group() as tasks:
        yield Port(site, HttpMcp(lambda: site.gateway, tasks))
        tasks.cancel_scope.cancel()


def code_of(answer: Response) -> str:
    return str(json.loads(answer.body)["error"]["code"])


async def test_wrong_keys_are_throttled_like_passwords_and_audited(tmp_path: Path) -> None:
    async with open_port(tmp_path) as port:
        answers = [await port.hello(f"wrong-{number}") for number in range(8)]
        assert [answer.status for answer in answers] == [401] * 5 + [429] * 3
        assert code_of(answers[-1]) == "login_throttled"
        assert 1 <= int(dict(answers[-1].headers)["retry-after"]) <= 60
        assert (await port.hello("wrong", peer="127.0.0.2")).status == 401  # each address has failures of its own
        assert (await port.hello(None)).status == 401  # no key is no guess
        port.site.gateway.authentication.refusals.flush()
        events = (await port.site.ask("GET", "/api/audit?source=auth"))["data"]
        seen = {(event["action"], event["outcome"], event["ip"]) for event in events}
        assert ("api_key_refused", "refused", "127.0.0.1") in seen
        assert ("sign_in_throttled", "refused", "127.0.0.1") in seen
        assert "wrong-" not in json.dumps(events)
        alerts = (await port.site.ask("GET", "/api/alerts?source=auth"))["data"]
        assert "login-throttled" in {alert["rule"] for alert in alerts}


async def test_whoever_guesses_on_this_host_keeps_no_assistant_out(tmp_path: Path) -> None:
    async with open_port(tmp_path) as port:
        for number in range(30):
            await port.hello(f"wrong-{number}")
        assert (await port.hello("wrong")).status == 429
        for peer in ("127.0.0.1", "127.0.0.2"):
            assert (await port.hello(KEY, peer=peer)).status == 200
        assert (await port.hello("wrong")).status == 429  # the right key of somebody else forgives nothing


async def test_wrong_keys_for_mcp_make_no_user_wait(tmp_path: Path) -> None:
    async with open_port(tmp_path, rbac_enabled=True) as port:
        for number in range(70):
            await port.hello(f"wrong-{number}")
        answer = await port.site.ask("POST", "/api/auth/login", {"username": "mcp", "password": "not the right one"})
        assert (answer["status"], answer["error"]["code"]) == (401, "bad_credentials")


async def test_failures_are_shared_with_other_workers(tmp_path: Path) -> None:
    async with open_port(tmp_path, data_dir=str(tmp_path)) as one, open_port(tmp_path, data_dir=str(tmp_path)) as other:
        for number in range(5):
            assert (await (one, other)[number % 2].hello(f"wrong-{number}")).status == 401
        assert [(await port.hello("wrong")).status for port in (one, other)] == [429, 429]


@pytest.mark.parametrize("key", ["", "a", "x" * 15, "two words of a key", "k" * 20 + "\n", "schlüssel-schlüssel"])
def test_a_key_that_is_short_or_fits_no_header_is_a_setup_error(key: str) -> None:
    with pytest.raises(SetupError, match="MCP_API_KEY.*at least 16") as caught:
        open_mcp_listener(Settings(mcp_enabled=True, mcp_port=0, mcp_api_key=key))
    assert caught.value.param == "mcp_api_key"
    assert len(key) < 2 or key not in caught.value.message


def test_a_key_of_sixteen_characters_is_taken() -> None:
    listener = open_mcp_listener(Settings(mcp_enabled=True, mcp_port=0, mcp_api_key="x" * 16))
    assert listener is not None
    listener.close()
