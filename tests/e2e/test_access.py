"""The access list through the real archive: two workers, the API, the command line, MCP, a proxy and an upstream."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Answer, Served, ask_mcp, speak_mcp, start, until

FAR = {"X-Forwarded-For": "192.0.2.9"}
WORKERS_ASKED = 24


@pytest.fixture(scope="module")
def site(archive: Path, upstream: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two workers behind a trusted proxy, in front of the scripted upstream."""
    data_dir = tmp_path_factory.mktemp("access")
    flags = ("--workers", "2", "--upstream-url", f"{upstream}/v1")
    served = start(archive, data_dir, *flags, GATEWAY_TRUSTED_PROXIES="127.0.0.1")
    served.make_key()
    yield served
    assert served.process.stop() == 0
    assert not any("Traceback" in line for line in served.process.lines)


@pytest.fixture(autouse=True)
def empty(site: Served) -> Iterator[None]:
    """Leave the list as empty as it was."""
    yield
    for entry in site.ask("GET", "/api/access", key=None).json["data"]:
        assert site.ask("DELETE", f"/api/access/{entry['id']}?force=true", key=None).status == 200


def add(site: Served, list_name: str, kind: str, value: str, **more: object) -> str:
    body = {"list": list_name, "type": kind, "value": value, **more}
    answer = site.ask("POST", "/api/access", body, key=None)
    assert answer.status == 201, answer.body
    return answer.json["data"]["id"]


def is_refused_by(answer: Answer, entry_id: str) -> bool:
    return answer.status == 403 and answer.code == "access_denied" and entry_id in answer.json["error"]["message"]


def scan_from(site: Served, **headers: str) -> Answer:
    return site.ask("POST", "/api/v1/shield/scan", {"text": "hello"}, headers=headers)


def test_an_entry_holds_in_every_worker_at_once(site: Served) -> None:
    assert {scan_from(site, **FAR).status for _ in range(WORKERS_ASKED)} == {200}
    entry_id = add(site, "deny", "CIDR", "192.0.2.0/24")
    answers = [scan_from(site, **FAR) for _ in range(WORKERS_ASKED)]
    assert all(is_refused_by(answer, entry_id) for answer in answers)
    assert scan_from(site).status == 200
    assert site.ask("DELETE", f"/api/access/{entry_id}", key=None).status == 200
    assert {scan_from(site, **FAR).status for _ in range(WORKERS_ASKED)} == {200}


def test_the_command_line_manages_the_list_of_a_running_gateway(archive: Path, site: Served) -> None:
    flags = ("--list", "deny", "--type", "key", "--value", site.key[:10], "--reason", "leaked", "--expires", "7d")
    done = site.command("access", "add", *flags)
    assert done.returncode == 0, done.stderr
    entry_id = done.stdout.strip()
    assert all(is_refused_by(scan_from(site), entry_id) for _ in range(WORKERS_ASKED))
    (listed,) = json.loads(site.command("access", "list", "--json").stdout)
    assert (listed["id"], listed["list"], listed["reason"], listed["status"]) == (entry_id, "deny", "leaked", "active")
    assert entry_id in site.command("access", "list").stdout
    assert site.command("access", "remove", entry_id).returncode == 0
    assert {scan_from(site).status for _ in range(WORKERS_ASKED)} == {200}
    bad = site.command("access", "add", "--list", "deny", "--type", "IP", "--value", "here")
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)


def test_the_tool_manages_the_list_of_a_running_gateway(archive: Path, site: Served) -> None:
    arguments = {"action": "add", "list_type": "deny", "entry_type": "MODEL", "value": "test-*"}
    with speak_mcp(sys.executable, "-I", str(archive), "mcp", "--data-dir", str(site.data_dir)) as process:
        result = ask_mcp(process, 2, "tools/call", name="manage_access", arguments=arguments)["result"]
        process.stdin.close()
    assert not result["isError"], result
    assert is_refused_by(site.chat("hello"), result["structuredContent"]["entries"][0]["id"])


def test_a_chat_is_refused_for_its_model_tools_and_links(site: Served) -> None:
    assert site.chat("hello").status == 200
    model = add(site, "allow", "MODEL", "gpt-*")
    assert is_refused_by(site.chat("hello"), model)
    site.ask("DELETE", f"/api/access/{model}", key=None)
    tool = add(site, "deny", "TOOL", "shell")
    tools = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]
    assert is_refused_by(site.chat("hello", tools=tools), tool)
    assert site.chat("hello").status == 200
    domain = add(site, "deny", "DOMAIN", "evil.example")
    assert is_refused_by(site.chat("see https://www.evil.example/x"), domain)
    assert site.chat("see https://www.good.example/x").status == 200


def test_hits_are_written_soon(site: Served) -> None:
    entry_id = add(site, "deny", "IP", "192.0.2.9")
    for _ in range(5):
        scan_from(site, **FAR)
    until(lambda: site.ask("GET", f"/api/access/{entry_id}", key=None).json["data"]["hits"] == 5)


def test_nobody_locks_themselves_out_unawares(site: Served) -> None:
    body = {"list": "deny", "type": "IP", "value": "127.0.0.1"}
    refused = site.ask("POST", "/api/access", body, key=None)
    assert (refused.status, refused.json["error"]["param"]) == (409, "force")
    entry_id = add(site, "deny", "IP", "127.0.0.1", force=True)
    assert is_refused_by(scan_from(site), entry_id)
