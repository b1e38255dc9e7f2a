"""Providers from the API: made, changed, tested, and where the prompts go, through the real dispatch and real upstreams."""

import base64
import io
import json
import os
import re
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.audit import AuditFilter
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.settings import Settings

PROVIDERS = "/api/providers"
CHAT = "/api/v1/chat/completions"
SECRET = "sk-made-up-0123456789"
RULES = {
    "version": 1,
    "tables": {},
    "rules": [
        {
            "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
            "description": "A made-up attack.", "direction": ["inbound", "outbound"],
            "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
        }
    ],
}  # fmt: skip


class Script:
    """Hands of the test on one scripted upstream."""

    def __init__(self, url: str) -> None:
        self.url = url

    def mode(self, mode: str, **more: object) -> None:
        self.ask("/__reset", b"{}")
        self.ask("/__mode", json.dumps({"mode": mode, **more}).encode())

    def seen(self, path: str = "/v1/chat/completions") -> list[dict[str, Any]]:
        return [entry for entry in self.ask("/__log", None) if entry["path"] == path]

    def ask(self, path: str, body: bytes | None) -> Any:
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body), timeout=10) as answer:
            return json.load(answer)


class Site:
    """A gateway without RBAC, a key for it, and what is asked of it."""

    def __init__(self, gateway: Gateway, log: io.StringIO) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)
        self.log = log
        self.key = ""

    async def ask(self, method: str, path: str, body: object = None, *, key: str = "", **headers: str) -> Any:
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= ({"x-service-key": key} if key else {}) | headers
        raw = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, "", Headers(fields), raw, "127.0.0.1", False, 0.0)
        response = await self.dispatch.handle(request)
        return json.loads(response.body) | {"status": response.status, "headers": dict(response.headers)}

    async def provider(self, name: str, url: str, **fields: object) -> Any:
        body = {"name": name, "base_url": f"{url}/v1", "allow_private": True, "max_retries": 0, **fields}
        answer = await self.ask("POST", PROVIDERS, body)
        assert answer["status"] == 201, answer
        return answer["data"]

    async def show(self, name: str) -> Any:
        return (await self.ask("GET", f"{PROVIDERS}/{name}"))["data"]

    async def change(self, name: str, **fields: object) -> Any:
        return await self.ask("PATCH", f"{PROVIDERS}/{name}", fields)

    async def chat(self, model: str = "m", **fields: object) -> Any:
        body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], **fields}
        return await self.ask("POST", CHAT, body, key=self.key)

    async def models(self) -> list[str]:
        answer = await self.ask("GET", "/api/v1/models", key=self.key)
        assert answer["status"] == 200, answer
        return [model["id"] for model in answer["data"]]

    async def deny(self, type: str, value: str) -> Any:
        answer = await self.ask("POST", "/api/access", {"list": "deny", "type": type, "value": value})
        assert answer["status"] == 201, answer
        return answer["data"]


@pytest.fixture(scope="module")
def scripts() -> Iterator[tuple[Script, Script]]:
    command = [sys.executable, str(Path(__file__).parents[1] / "upstream.py"), "0"]
    with ExitStack() as stack:
        found = []
        for _ in range(2):
            process = stack.enter_context(
                subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
            )
            stack.callback(process.kill)
            assert process.stderr is not None
            found.append(Script(process.stderr.readline().split()[-1]))
        yield found[0], found[1]


@pytest.fixture
def first(scripts: tuple[Script, Script]) -> Script:
    scripts[0].mode("normal")
    return scripts[0]


@pytest.fixture
def second(scripts: tuple[Script, Script]) -> Script:
    scripts[1].mode("normal")
    return scripts[1]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    settings = Settings(
        data_dir=str(tmp_path / "data"), rules=str(rules), rbac_enabled=False, provider_key_dirs=(str(tmp_path),)
    )
    log = io.StringIO()
    async with open_gateway(settings, log=Log(log, Clock())) as gateway:
        one = Site(gateway, log)
        made = await one.ask("POST", "/api/config/api-keys", {"name": "ci", "scopes": ["chat:completions"]})
        one.key = made["data"]["key"]
        yield one


def closed_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


# The record.


async def test_a_provider_lives_its_whole_life(site: Site) -> None:
    prices = {"gpt-*": {"input": 2.5, "output": 10.0, "max_reply_tokens": 4096}}
    made = await site.provider(
        "Lab", "http://127.0.0.1:9", models=["gpt-*", "o3"], api_key="env:GATEWAY_PROVIDER_LAB", prices=prices
    )
    assert made == {
        "id": made["id"], "name": "Lab", "type": "openai-compatible", "base_url": "http://127.0.0.1:9/v1",
        "api_key_source": "env:GATEWAY_PROVIDER_LAB", "has_api_key": False, "models": ["gpt-*", "o3"], "priority": 100, "weight": 1,
        "timeout_seconds": 600.0, "max_retries": 0, "prices": prices, "enabled": True, "status": "untested",
        "problem": "There is no API key: the environment variable GATEWAY_PROVIDER_LAB is not set.",
        "allow_private": True, "origin": "record", "created_at": made["created_at"], "created_by": "local", "version": 1,
    }  # fmt: skip
    assert made["id"].startswith("prv_")
    assert (await site.ask("GET", PROVIDERS))["data"] == [made]
    assert await site.show("lab") == made
    one = f"{PROVIDERS}/{made['id']}"
    changed = (await site.ask("PATCH", one, {"priority": 5, "enabled": False, "version": 1}))["data"]
    assert (changed["priority"], changed["status"], changed["version"]) == (5, "disabled", 2)
    assert (await site.ask("PATCH", one, {"priority": 5}))["data"]["version"] == 2, "what holds already is no change"
    stale = await site.ask("PATCH", one, {"priority": 6}, **{"if-match": '"1"'})
    assert (stale["status"], stale["error"]["param"]) == (409, "version")
    assert (await site.ask("POST", PROVIDERS, {"name": "LAB", "type": "echo"}))["error"]["param"] == "name"
    assert (await site.ask("DELETE", one))["status"] == 200
    assert (await site.ask("DELETE", one))["status"] == 404
    assert (await site.ask("POST", f"{one}/test"))["status"] == 404
    actions = {event.action for event in (await site.gateway.audit.page(AuditFilter(resource_type="provider"))).items}
    assert actions == {"provider_created", "provider_changed", "provider_removed"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": 5}, "name"),
        ({"type": "gopher"}, "type"),
        ({"base_url": None}, "base_url"),
        ({"base_url": "ftp://api.example/v1"}, "base_url"),
        ({"base_url": "//api.example/v1"}, "base_url"),
        ({"base_url": "https://user:pw@api.example/v1"}, "base_url"),
        ({"base_url": "https://api.example/v1?x=1"}, "base_url"),
        ({"base_url": "https://api.example/v1#x"}, "base_url"),
        ({"base_url": "https://api.example:99999/v1"}, "base_url"),
        ({"base_url": "https:///v1"}, "base_url"),
        ({"base_url": "https://api.example/" + "a" * 500}, "base_url"),
        ({"base_url": "https://api.example/v1\r\nx: y"}, "base_url"),
        ({"type": "echo"}, "base_url"),
        ({"type": "echo", "base_url": None, "api_key": "env:A"}, "api_key"),
        ({"api_key": ""}, "api_key"),
        ({"api_key": "two words"}, "api_key"),
        ({"api_key": "env:a b"}, "api_key"),
        ({"api_key": "file:relative"}, "api_key"),
        ({"api_key": "file:/a/../b"}, "api_key"),
        ({"api_key": "cred:../x"}, "api_key"),
        ({"api_key": "x" * 9000}, "api_key"),
        ({"models": []}, "models"),
        ({"models": ["ok", ""]}, "models[1]"),
        ({"models": ["*" * 11]}, "models[0]"),
        ({"models": [" gpt"]}, "models[0]"),
        ({"models": ["m"] * 201}, "models"),
        ({"models": "gpt"}, "models"),
        ({"priority": -1}, "priority"),
        ({"priority": 1001}, "priority"),
        ({"priority": 1.5}, "priority"),
        ({"weight": 0}, "weight"),
        ({"timeout_seconds": 0.5}, "timeout_seconds"),
        ({"timeout_seconds": 3601}, "timeout_seconds"),
        ({"max_retries": 6}, "max_retries"),
        ({"prices": {"m": {"input": 1}}}, "prices.m.output"),
        ({"prices": {"m ": {"input": 1, "output": 1}}}, "prices.m "),
        ({"prices": {"m": {"input": -1, "output": 1}}}, "prices.m.input"),
        ({"enabled": "yes"}, "enabled"),
        ({"allow_private": 1}, "allow_private"),
        ({"headers": {}}, "headers"),
        ({"status": "healthy"}, "status"),
    ],
)
async def test_a_bad_field_is_named(site: Site, fields: dict[str, object], param: str) -> None:
    answer = await site.ask("POST", PROVIDERS, {"name": "lab", "base_url": "https://192.0.2.1/v1"} | fields)
    assert (answer["status"], answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", param)
    assert (await site.ask("GET", PROVIDERS))["data"] == []


@pytest.mark.parametrize(
    ("host", "is_private"),
    [
        ("169.254.169.254", False),
        ("169.254.169.254.", False),
        ("[fe80::1]", False),
        ("[fd00:ec2::254]", False),
        ("[fd20:ce::254]", False),
        ("100.100.100.200", False),
        ("168.63.129.16", False),
        ("[::ffff:168.63.129.16]", False),
        ("[64:ff9b::a83f:8110]", False),
        ("192.0.0.192", False),
        ("metadata.google.internal", False),
        ("Metadata.Google.Internal.", False),
        ("[::ffff:169.254.169.254]", False),
        ("[64:ff9b::a9fe:a9fe]", False),
        ("[2002:a9fe:a9fe::1]", False),
        ("0.0.0.0", False),
        ("[::]", False),
        ("0x7f.1", False),
        ("2130706433", False),
        ("0177.0.0.1", False),
        ("127.1", False),
        ("127.0.0.1", True),
        ("127.0.0.1.", True),
        ("localhost", True),
        ("api.localhost", True),
        ("[::1]", True),
        ("[::ffff:127.0.0.1]", True),
        ("[64:ff9b::7f00:1]", True),
        ("10.1.2.3", True),
        ("172.16.0.1", True),
        ("192.168.1.1", True),
        ("100.64.0.1", True),
        ("[fd12::1]", True),
    ],
)
async def test_a_host_inside_is_refused_unless_a_private_one_is_meant(site: Site, host: str, is_private: bool) -> None:
    body = {"name": "lab", "base_url": f"http://{host}:8000/v1"}
    answer = await site.ask("POST", PROVIDERS, body)
    assert (answer["status"], answer["error"]["param"]) == (400, "base_url")
    assert (await site.ask("POST", PROVIDERS, body | {"allow_private": True}))["status"] == (201 if is_private else 400)


@pytest.mark.parametrize(("name", "value"), [("base_url", "https://192.0.2.1/v1"), ("api_key", "env:A")])
async def test_what_an_echo_never_has_is_refused_by_what_it_is(site: Site, name: str, value: str) -> None:
    await site.ask("POST", PROVIDERS, {"name": "mirror", "type": "echo"})
    refused = await site.change("mirror", **{name: value})
    assert (refused["status"], refused["error"]["code"], refused["error"]["param"]) == (409, "conflict", name)
    assert (await site.change("mirror", api_key=None, priority=3))["status"] == 200


async def test_taking_the_permission_away_refuses_what_needed_it(site: Site) -> None:
    await site.provider("lab", "http://127.0.0.1:9")
    refused = await site.change("lab", allow_private=False)
    assert (refused["status"], refused["error"]["param"]) == (409, "base_url")
    assert (await site.show("lab"))["allow_private"] is True


async def test_a_name_that_leads_inside_is_refused_when_it_is_connected_to(site: Site, first: Script) -> None:
    """Written past the check of its form, `localhost` stands for a name whose answer changed after that check."""
    provider = await site.provider("lab", first.url)
    address = first.url.removeprefix("http://127.0.0.1")
    with_name = f"UPDATE providers SET base_url = 'http://localhost{address}/v1', allow_private = 0, version = 2"
    await site.gateway.store.db.write(lambda tx: tx.execute(with_name))
    site.gateway.store.generation.bump()
    answer = await site.chat()
    assert (answer["status"], answer["error"]["code"]) == (502, "upstream_unavailable")
    assert first.seen() == []
    told = (await site.ask("POST", f"{PROVIDERS}/{provider['id']}/test"))["data"]
    assert not told["ok"]


# The key.


async def test_a_typed_key_is_sent_and_never_shown_nor_kept_in_the_database(
    site: Site, first: Script, tmp_path: Path
) -> None:
    made = await site.provider("lab", first.url, api_key=SECRET)
    assert (made["api_key_source"], made["has_api_key"]) == ("stored", True)
    assert (await site.chat())["status"] == 200
    assert first.seen()[0]["headers"]["authorization"] == f"Bearer {SECRET}"
    shown = json.dumps([await site.show("lab"), await site.ask("GET", PROVIDERS), await site.change("lab", weight=2)])
    assert SECRET not in shown + site.log.getvalue()
    data = tmp_path / "data"
    holding = [path.name for path in data.iterdir() if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert holding == ["gateway.db.provider-keys"]
    assert stat.S_IMODE((data / holding[0]).stat().st_mode) == 0o600
    assert (await site.change("lab", api_key="sk-other"))["data"]["api_key_source"] == "stored"
    assert SECRET not in (data / holding[0]).read_text()
    await site.ask("DELETE", f"{PROVIDERS}/lab")
    assert "sk-other" not in (data / holding[0]).read_text()


async def test_a_typed_key_is_not_sent_to_another_place(site: Site, first: Script) -> None:
    await site.provider("lab", first.url, api_key=SECRET)
    refused = await site.change("lab", base_url="http://127.0.0.1:9/v1")
    assert (refused["status"], refused["error"]["param"]) == (400, "api_key")
    assert (await site.change("lab", base_url=f"{first.url}/v2"))["status"] == 200
    assert (await site.change("lab", base_url="http://127.0.0.1:9/v1", api_key="sk-new"))["status"] == 200


async def test_a_reference_is_not_sent_to_another_origin_without_being_named_again(
    site: Site, first: Script, second: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_PROVIDER_LAB", SECRET)
    await site.provider("lab", first.url, api_key="env:GATEWAY_PROVIDER_LAB")
    for other in (second.url, first.url.replace("http:", "https:"), first.url.replace("127.0.0.1", "localhost")):
        refused = await site.change("lab", base_url=f"{other}/v1", priority=3)
        assert (refused["status"], refused["error"]["code"]) == (400, "invalid_request")
        assert refused["error"]["param"] == "api_key" and "origin" in refused["error"]["message"]
    shown = await site.show("lab")
    assert (shown["base_url"], shown["priority"]) == (f"{first.url}/v1", 100)
    again = await site.change("lab", base_url=f"{second.url}/v1", api_key="env:GATEWAY_PROVIDER_LAB")
    assert again["status"] == 200
    assert (await site.change("lab", base_url=f"{first.url}/v1", api_key=None))["status"] == 200
    assert (await site.change("lab", base_url=f"{second.url}/v1"))["status"] == 200, "there is no key to lose"


FORBIDDEN = [
    ("env:HOME", "GATEWAY_PROVIDER_KEY_ENV"),
    ("env:OPENAI_API_KEY", "GATEWAY_PROVIDER_KEY_ENV"),
    ("env:GATEWAY_UPSTREAM_API_KEY", "setting of the gateway"),
    ("env:MCP_API_KEY", "setting of the gateway"),
    ("env:GATEWAY_PROVIDER_KEY_DIRS", "setting of the gateway"),
    ("env:GATEWAY_CONFIG", "setting of the gateway"),
    ("file:/etc/hostname", "GATEWAY_PROVIDER_KEY_DIRS"),
    ("file:/not/there", "GATEWAY_PROVIDER_KEY_DIRS"),
    ("file:{folder}/out", "GATEWAY_PROVIDER_KEY_DIRS"),
    ("file:{folder}/data/notes", "data folder"),
    ("file:{folder}/in", "data folder"),
    ("cred:out", "out of the service manager's folder"),
]
PLACES = [
    ("/api/providers", "api_key", {"name": "lab", "base_url": "http://127.0.0.1:9/v1", "allow_private": True}),
    ("/api/fleet/peers", "api_key", {"name": "north", "url": "http://127.0.0.1:9", "allow_private": True}),
    (
        "/api/event-outputs",
        "secret",
        {"name": "hook", "kind": "webhook", "target": "http://127.0.0.1:9/hook", "allow_private": True},
    ),
]


@pytest.fixture
def forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put one-line secrets where no reference may lead; return the folder that files may lie in."""
    for name in ("OPENAI_API_KEY", "GATEWAY_UPSTREAM_API_KEY", "MCP_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "notes").write_text(SECRET)
    (tmp_path / "in").symlink_to(tmp_path / "data" / "notes")
    (tmp_path / "out").symlink_to("/etc/hostname")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("path", "field", "body"), PLACES)
@pytest.mark.parametrize(("reference", "words"), FORBIDDEN)
async def test_a_reference_leads_only_where_the_settings_allow(
    site: Site, forbidden: Path, path: str, field: str, body: dict[str, object], reference: str, words: str
) -> None:
    answer = await site.ask("POST", path, body | {field: reference.format(folder=forbidden)})
    assert (answer["status"], answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", field)
    assert words in answer["error"]["message"]
    assert (await site.ask("GET", path))["data"] == []


async def test_no_list_of_names_lets_a_setting_of_the_gateway_out(tmp_path: Path, forbidden: Path) -> None:
    settings = Settings(data_dir=":memory:", provider_key_env=("*", "MCP_API_KEY"), provider_key_dirs=("/",))
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        site = Site(gateway, io.StringIO())
        for name in ("GATEWAY_UPSTREAM_API_KEY", "MCP_API_KEY", "RBAC_ENABLED"):
            refused = await site.ask("POST", PROVIDERS, PLACES[0][2] | {"api_key": f"env:{name}"})
            assert refused["status"] == 400 and "setting of the gateway" in refused["error"]["message"]
        await site.provider("lab", "http://127.0.0.1:9", api_key="env:OPENAI_API_KEY")
        assert (await site.change("lab", api_key=f"file:{forbidden}/data/notes"))["data"]["has_api_key"]


@pytest.mark.parametrize(("reference", "words"), FORBIDDEN)
async def test_a_reference_of_an_old_database_is_not_followed_and_its_provider_says_why(
    site: Site, first: Script, forbidden: Path, reference: str, words: str
) -> None:
    await site.provider("lab", first.url)
    sql = "UPDATE providers SET key_reference = :key, version = 2"
    key = reference.format(folder=forbidden)
    await site.gateway.store.db.write(lambda tx: tx.execute(sql, {"key": key}))
    site.gateway.store.generation.bump()
    shown = await site.show("lab")
    assert not shown["has_api_key"] and words in shown["problem"]
    told = (await site.ask("POST", f"{PROVIDERS}/lab/test"))["data"]
    assert not told["ok"] and words in told["error"]
    assert (await site.chat())["status"] == 502
    assert first.seen() == first.seen("/v1/models") == []


@pytest.mark.parametrize("kind", ["env", "file", "cred"])
async def test_a_key_by_reference_is_read_where_it_is(
    site: Site, first: Script, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab-key").write_text(SECRET + "\n")
    (tmp_path / "linked-key").symlink_to("lab-key")
    monkeypatch.setenv("GATEWAY_PROVIDER_LAB", SECRET)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    reference = {"env": "env:GATEWAY_PROVIDER_LAB", "file": f"file:{tmp_path}/linked-key", "cred": "cred:lab-key"}[kind]
    made = await site.provider("lab", first.url, api_key=reference)
    assert (made["api_key_source"], made["has_api_key"]) == (reference, True)
    await site.chat()
    assert first.seen()[0]["headers"]["authorization"] == f"Bearer {SECRET}"
    assert (await site.change("lab", api_key=None))["data"]["api_key_source"] is None
    await site.chat()
    assert "authorization" not in first.seen()[1]["headers"]


@pytest.mark.parametrize(
    "reference", ["env:GATEWAY_PROVIDER_NOBODY", "file:{folder}/nothing", "file:{folder}/data", "file:{folder}/pipe",
                  "file:{folder}/two-lines", "cred:nothing"]
)  # fmt: skip
async def test_a_key_that_is_not_there_is_told_by_the_test_and_nothing_is_sent(
    site: Site, first: Script, reference: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "two-lines").write_text(f"{SECRET}\n{SECRET}\n")
    await site.provider("lab", first.url, api_key=reference.format(folder=tmp_path))
    told = (await site.ask("POST", f"{PROVIDERS}/lab/test"))["data"]
    assert not told["ok"] and "API key" in told["error"]
    assert (await site.chat())["status"] == 502
    assert first.seen() == first.seen("/v1/models") == []


# A key that the provider repeats.

ODD_KEY = 'sk-"made\\up/+0123456789'


def repeated(key: str) -> dict[str, str]:
    """Return answers that hold a key, in the forms in which it may come back."""
    raw = key.encode()
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in key)
    return {
        "plain": f"you sent {key} to me",
        "bearer": f"Authorization: Bearer {key}",
        "json": json.dumps({"headers": {"authorization": f"Bearer {key}"}}),
        "escaped": f'{{"key": "{escaped}"}}' if key == SECRET else json.dumps(key),
        "url": f"https://x.example/?key={quote(key, safe='')}&x=1",
        "url, every letter": "".join(f"%{byte:02x}" for byte in raw),
        "base64": base64.b64encode(raw).decode(),
        "base64 of the header": base64.b64encode(b"Bearer " + raw).decode(),
        "base64 of more": base64.urlsafe_b64encode(b"a: " + raw + b" and more").decode(),
        "hex": raw.hex(),
    }


def holds(text: str, key: str) -> bool:
    """Tell whether a text holds a key in any form, read by other means than the gateway's."""
    texts = {text, unquote(text), text.replace("\\/", "/").replace('\\"', '"').replace("\\\\", "\\")}
    for word in re.findall(r"[A-Za-z0-9+/_-]{16,}", text):
        for cut in range(4):
            part = word[cut:].replace("-", "+").replace("_", "/")
            texts.add(base64.b64decode(part[: len(part) // 4 * 4]).decode("latin-1"))
        texts.add(bytes.fromhex(word).decode("latin-1") if re.fullmatch("(?:[0-9a-f]{2})+", word) else "")
    return any(key[:-2] in one for one in texts)


@pytest.mark.parametrize(
    ("form", "key", "mode"),
    [(form, key, "observe" if key == SECRET else "block") for form in repeated(SECRET) for key in (SECRET, ODD_KEY)],
)
async def test_a_key_that_the_provider_repeats_does_not_leave(
    site: Site, first: Script, form: str, key: str, mode: str
) -> None:
    made = await site.ask("POST", "/api/policies", {"name": "lax", "mode": mode})
    fields = {"name": "lax", "scopes": ["chat:completions"], "policy": made["data"]["id"]}
    site.key = (await site.ask("POST", "/api/config/api-keys", fields))["data"]["key"]
    await site.provider("lab", first.url, api_key=key)
    text = repeated(key)[form]
    assert form == "escaped" or holds(text, key)
    first.mode("say", text=text)
    answer = await site.chat()
    said = answer["choices"][0]["message"]["content"]
    assert answer["status"] == 200 and "****" in said
    assert not holds(json.dumps(answer), key) and not holds(said, key)
    row = (await site.ask("GET", "/api/traffic"))["data"][0]
    assert "provider-key" in [found["rule"] for found in row["detections"]]
    (event,) = (await site.gateway.audit.page(AuditFilter(action="chat_completed"))).items
    assert event.details["provider_key_masked"] is True
    assert "provider-key" in [alert["rule"] for alert in (await site.ask("GET", "/api/alerts"))["data"]]
    assert not holds(json.dumps([row, str(event)]) + site.log.getvalue(), key)


async def test_a_key_in_an_error_a_field_a_name_or_a_list_of_models_does_not_leave(site: Site, first: Script) -> None:
    await site.provider("lab", first.url, api_key=SECRET)
    first.mode("say", status=400, body={"error": {"message": f"bad key {SECRET}", "code": "a", "param": SECRET}})
    refused = await site.chat()
    assert (refused["status"], refused["error"]["message"]) == (400, "bad key ****")
    assert SECRET not in json.dumps(refused)
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi", SECRET: SECRET}}
    first.mode("say", body={"id": SECRET, "object": "chat.completion", "choices": [choice], "x": [{"y": SECRET}]})
    answer = await site.chat()
    assert answer["status"] == 200 and SECRET not in json.dumps(answer)
    first.mode("say", text="What was not touched: \u00e9 \\/ **.")
    assert (await site.chat())["choices"][0]["message"]["content"] == "What was not touched: \u00e9 \\/ **."
    first.mode("models", names=[f"m-{SECRET}", "m-2"])
    told = (await site.ask("POST", f"{PROVIDERS}/lab/test"))["data"]
    assert told["models"] == ["m-****", "m-2"]
    assert SECRET not in site.log.getvalue()


# The test by hand.


async def test_a_test_tells_models_and_latency(site: Site, first: Script) -> None:
    await site.provider("lab", first.url, models=["test-*", "missing"])
    told = (await site.ask("POST", f"{PROVIDERS}/lab/test"))["data"]
    assert told == {
        "ok": True, "latency_ms": told["latency_ms"], "status": "healthy", "asked": "models", "http_status": 200,
        "models": ["test-model"], "error": None,
    }  # fmt: skip
    assert told["latency_ms"] > 0
    assert (await site.ask("POST", f"{PROVIDERS}/lab/test"))["data"]["ok"], "asked again, not remembered"
    assert len(first.seen("/v1/models")) == 2
    events = (await site.gateway.audit.page(AuditFilter(action="provider_tested"))).items
    assert [event.details["ok"] for event in events] == [True, True]


async def test_a_test_says_in_plain_words_what_is_wrong(site: Site) -> None:
    await site.provider("lab", closed_port())
    told = (await site.ask("POST", f"{PROVIDERS}/lab/test"))["data"]
    assert (told["ok"], told["http_status"], told["status"]) == (False, None, "degraded")
    assert told["error"] == "The provider cannot be used: the upstream cannot be reached."
    assert (await site.ask("POST", f"{PROVIDERS}/nobody/test"))["status"] == 404


# Where the prompts go.


async def test_without_a_provider_the_built_in_model_answers_and_a_disabled_one_is_no_reason_to(site: Site) -> None:
    assert (await site.chat("anything"))["choices"][0]["message"]["content"] == "Hello"
    assert await site.models() == ["echo"]
    made = await site.ask("POST", PROVIDERS, {"name": "parrot", "type": "echo", "models": ["parrot-1"]})
    assert made["status"] == 201
    assert (await site.chat("parrot-1"))["status"] == 200
    assert await site.models() == ["parrot-1"]
    unknown = await site.chat("anything")
    assert (unknown["status"], unknown["error"]["code"], unknown["error"]["param"]) == (404, "not_found", "model")
    await site.change("parrot", enabled=False)
    assert (await site.chat("parrot-1"))["status"] == 404
    assert await site.models() == []


async def test_a_change_holds_at_the_next_prompt(site: Site, first: Script, second: Script) -> None:
    await site.provider("one", first.url, priority=1)
    await site.provider("two", second.url, priority=2)
    await site.chat()
    await site.change("two", priority=0)
    await site.chat()
    await site.change("two", enabled=False)
    await site.chat()
    await site.ask("DELETE", f"{PROVIDERS}/one")
    assert (await site.chat())["status"] == 404
    assert (len(first.seen()), len(second.seen())) == (2, 1)
    rows = await site.gateway.store.db.read(lambda tx: tx.query("SELECT provider FROM traffic ORDER BY id"))
    assert [row["provider"] for row in rows] == ["one", "two", "one", None]


async def test_a_model_goes_to_the_provider_whose_glob_it_matches(site: Site, first: Script, second: Script) -> None:
    await site.provider("one", first.url, models=["gpt-*"])
    await site.provider("two", second.url, models=["claude-?", "other-model", "lab/model-7"])
    assert (await site.chat("GPT-4o"))["status"] == 200
    assert (await site.chat("claude-3"))["status"] == 200
    assert (await site.chat("claude-37"))["status"] == 404
    assert (len(first.seen()), len(second.seen())) == (1, 1)
    assert sorted(await site.models()) == ["lab/model-7", "other-model"], "names, and what a glob lets through"


FAULTS = [
    "500", "503", "401", "402", "403", "429", "404", "garbage", "html", "empty", "bad utf8", "wrong shape", "list", "bad gzip",
    "close", "cut", "redirect", "bomb", "huge", "hang", "stall", "drip",
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_whatever_a_provider_does_the_next_one_answers(
    site: Site, first: Script, second: Script, fault: str
) -> None:
    await site.provider("one", first.url, priority=1, timeout_seconds=1)
    await site.provider("two", second.url, priority=2)
    first.mode(fault, megabytes=20)
    answer = await site.chat()
    assert answer["status"] == 200, answer
    assert (len(first.seen()), len(second.seen())) == (1, 1)
    assert not first.seen("/__redirected")
    status = (await site.show("one"))["status"]
    outcome = "refused" if fault in ("402", "429", "404") else "failed"
    counted = site.gateway.metrics.render()
    assert f'gateway_provider_requests_total{{provider="one",outcome="{outcome}"}} 1' in counted
    assert 'gateway_provider_requests_total{provider="two",outcome="ok"} 1' in counted
    assert status == ("untested" if fault in ("402", "429") else "healthy" if fault == "404" else "degraded")


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("hang", 502, "upstream_unavailable"),
        ("close", 502, "upstream_unavailable"),
        ("429", 429, "rate_limited"),
        ("400", 400, "scripted_code"),
        ("422", 422, "invalid_request"),
    ],
)
async def test_when_nobody_completes_the_caller_is_told(
    site: Site, first: Script, fault: str, status: int, code: str
) -> None:
    await site.provider("one", first.url, priority=1, timeout_seconds=1)
    await site.provider("two", closed_port(), priority=2)
    first.mode(fault)
    answer = await site.chat()
    assert (answer["status"], answer["error"]["code"]) == (status, code)
    assert not re.search(r"127\.0\.0\.1|org-scripted", json.dumps(answer["error"]))
    is_late = fault == "hang"
    assert answer["headers"].get("x-should-retry") == ("false" if is_late else None)


async def test_what_was_sent_and_not_answered_in_time_is_not_sent_to_the_same_provider_again(
    site: Site, first: Script
) -> None:
    await site.provider("one", first.url, timeout_seconds=1, max_retries=3)
    first.mode("hang")
    answer = await site.chat()
    assert (answer["status"], answer["headers"]["x-should-retry"]) == (502, "false")
    assert len(first.seen()) == 1


async def test_an_answer_of_402_is_passed_on(site: Site, first: Script) -> None:
    await site.provider("one", first.url, models=["m"])
    first.mode("402")
    for _ in range(7):
        answer = await site.chat()
        assert (answer["status"], answer["error"]["code"]) == (402, "insufficient_quota")
        assert answer["error"]["message"] == "Insufficient credits of ****"
    assert len(first.seen()) == 7


def test_a_long_answer_has_ten_minutes_for_its_first_byte_and_for_all_of_it() -> None:
    settings = Settings(data_dir=":memory:")
    assert settings.upstream_first_byte_seconds == settings.upstream_total_seconds == 600
    assert settings.upstream_attempts_seconds >= settings.upstream_total_seconds


@pytest.mark.parametrize(
    ("fault", "asked"), [("500once", 2), ("500", 3), ("close", 3), ("cut", 1), ("garbage", 1), ("401", 1), ("429", 1)]
)
async def test_only_what_may_help_is_repeated(site: Site, first: Script, fault: str, asked: int) -> None:
    await site.provider("one", first.url, max_retries=2)
    first.mode(fault)
    await site.chat()
    assert len(first.seen()) == asked


async def test_turns_are_taken_by_weight(site: Site, first: Script, second: Script) -> None:
    await site.provider("one", first.url, weight=3)
    await site.provider("two", second.url, weight=1)
    for _ in range(8):
        await site.chat()
    assert (len(first.seen()), len(second.seen())) == (6, 2)


async def test_a_provider_that_fails_again_and_again_is_left_alone_and_alerted(
    site: Site, first: Script, second: Script
) -> None:
    made = await site.provider("one", first.url, priority=1)
    await site.provider("two", second.url, priority=2)
    first.mode("500")
    for _ in range(7):
        assert (await site.chat())["status"] == 200
    assert len(first.seen()) == 5
    assert (await site.show("one"))["status"] == "open"
    assert (await site.gateway.health.checks())["upstream"] == "degraded"
    alert = await provider_alert(site)
    assert (alert["source"], alert["status"], alert["severity"]) == ("provider", "open", "high")
    assert "one" in alert["title"]
    first.mode("normal")
    assert (await site.ask("POST", f"{PROVIDERS}/{made['id']}/test"))["data"]["status"] == "healthy"
    await site.chat()
    assert len(first.seen()) == 1, "a good test closes the circuit"
    assert (await provider_alert(site))["status"] == "resolved"


async def test_when_all_are_left_alone_the_caller_is_told_when_to_come_back(site: Site, first: Script) -> None:
    await site.provider("one", first.url)
    first.mode("503")
    for _ in range(5):
        await site.chat()
    answer = await site.chat()
    assert (answer["status"], answer["error"]["code"]) == (502, "upstream_unavailable")
    assert 25 <= int(answer["headers"]["retry-after"]) <= 31
    assert len(first.seen()) == 5
    await site.change("one", weight=2)
    await site.chat()
    assert len(first.seen()) == 6, "a provider that was changed begins anew"


async def provider_alert(site: Site) -> Any:
    # What is written behind is there after the next write that is waited for.
    await site.gateway.store.db.write(lambda tx: None)
    answer = await site.ask("GET", "/api/alerts")
    return next(alert for alert in answer["data"] if alert["rule"] == "provider-down")


# The access list.


async def test_a_denied_provider_is_passed_over_and_one_alone_is_refused(
    site: Site, first: Script, second: Script
) -> None:
    await site.provider("one", first.url, priority=1, models=["a", "b"])
    await site.provider("two", second.url, priority=2, models=["b", "c"])
    entry = await site.deny("PROVIDER", "one")
    assert (await site.chat("b"))["status"] == 200
    assert first.seen() == [] and len(second.seen()) == 1
    denied = await site.chat("a")
    assert (denied["status"], denied["error"]["code"]) == (403, "access_denied")
    assert entry["id"] in denied["error"]["message"]
    assert await site.models() == ["b", "c"]
    await site.deny("MODEL", "c")
    assert await site.models() == ["b"]


# The provider of the settings.


async def test_the_settings_make_a_provider_that_comes_last(tmp_path: Path, first: Script, second: Script) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    settings = Settings(data_dir=":memory:", rules=str(rules), upstream_url=f"{first.url}/v1", upstream_api_key=SECRET)
    log = io.StringIO()
    async with open_gateway(settings, log=Log(log, Clock())) as gateway:
        site = Site(gateway, log)
        made = await site.ask("POST", "/api/config/api-keys", {"name": "ci", "scopes": ["chat:completions"]})
        site.key = made["data"]["key"]
        shown = await site.show("upstream")
        assert (shown["origin"], shown["api_key_source"], shown["has_api_key"]) == ("settings", "settings", True)
        assert (await site.change("upstream", weight=2))["status"] == 409
        assert (await site.ask("DELETE", f"{PROVIDERS}/upstream"))["status"] == 409
        assert (await site.ask("POST", f"{PROVIDERS}/upstream/test"))["data"]["ok"]
        assert (await site.chat("echo"))["model"] == "echo"
        assert await site.models() == ["test-model", "other-model"]
        first.mode("500")
        for _ in range(6):
            assert (await site.chat())["status"] == 502
        assert len(first.seen()) == 6, "with nothing in its place it is always tried"
        assert (await gateway.health.checks())["upstream"] == "unreachable"
        await site.provider("two", second.url)
        assert (await site.chat())["status"] == 200
        assert (len(first.seen()), len(second.seen())) == (6, 1)
