"""Commands in a shell judge the gateway that serves on the data folder, not the shell they were typed in."""

import io
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.bundle import NativeReport
from gateway.cli import main as cli
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.paging import PageQuery
from gateway.log import Log
from gateway.mcp import jsonrpc
from gateway.mcp.server import McpServer
from gateway.settings import Settings

RULE = {
    "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
    "description": "A made-up attack.", "direction": ["inbound"],
    "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
}  # fmt: skip
FEW = "the rule file has 1 rules in place of the "
Command = Callable[..., Any]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture
def few(tmp_path: Path) -> str:
    """Rules of one's own that are fewer than the built-in ones."""
    path = tmp_path / "few.json"
    path.write_text(json.dumps({"version": 1, "tables": {}, "rules": [RULE]}))
    return str(path)


@pytest.fixture
def quick(few: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shell and gateway have few rules: they are read at once."""
    monkeypatch.setenv("GATEWAY_RULES", few)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return what runs a command in another thread on the data folder, and returns what it printed."""

    def run(*words: str) -> Any:
        cli.run(cli.read([*words, "--data-dir", str(tmp_path / "data")]), NativeReport("installed", None, ()))
        said = capsys.readouterr().out
        return json.loads(said) if "--json" in words else said

    return run


@asynccontextmanager
async def serving(tmp_path: Path, **settings: Any) -> AsyncIterator[None]:
    """A gateway that serves: what it is, it notes as the job does."""
    config = Settings(data_dir=str(tmp_path / "data"), **settings)
    async with open_gateway(config, log=Log(io.StringIO(), Clock())) as gateway:
        await gateway.running.save()
        yield


def checks(run: Any) -> dict[str, Any]:
    return {one["id"]: one for one in run["checks"]}


def stored(tmp_path: Path) -> int:
    """Return how many runs are kept."""

    async def count() -> int:
        config = Settings(data_dir=str(tmp_path / "data"))
        async with open_gateway(config, log=Log(io.StringIO(), Clock()), is_shell=True) as gateway:
            return len((await gateway.trust_audits.page(PageQuery())).items)

    return anyio.run(count)


async def test_a_trust_audit_in_a_shell_judges_the_gateway_that_runs(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, quick: None, few: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    upstream = "https://ann:s3cret@llm.example/v1"
    async with serving(
        tmp_path, rules=few, rbac_enabled=True, upstream_url=upstream, mcp_enabled=True, mcp_api_key="k" * 30
    ):
        monkeypatch.setattr(os, "geteuid", lambda: 0)  # as a cron job
        monkeypatch.setenv("GATEWAY_SHIELD_MODE", "observe")
        run = await anyio.to_thread.run_sync(command, "trust-audit", "--json")
        text = await anyio.to_thread.run_sync(command, "trust-audit")
        raw = (tmp_path / "data" / "gateway.db").read_bytes() + (tmp_path / "data" / "gateway.db-wal").read_bytes()
    found = checks(run)
    assert run["settings_of"].startswith("ins_")
    assert f"\nsettings of the running gateway {run['settings_of']}\n" in text
    for name in ("exposure-rbac", "upstream-set", "process-root", "shield-mode", "mcp-key"):
        assert found[name]["status"] == "pass", found[name]
    assert b"s3cret" not in raw and b"kkkkkk" not in raw
    assert await anyio.to_thread.run_sync(stored, tmp_path) == 2


def test_where_no_gateway_runs_the_settings_of_the_shell_are_judged_and_nothing_is_kept(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, quick: None, few: str
) -> None:
    monkeypatch.setenv("RBAC_ENABLED", "true")
    run = command("trust-audit", "--json")
    assert (run["settings_of"], checks(run)["exposure-rbac"]["status"]) == ("this shell", "pass")
    assert "\nsettings of this shell, because no gateway runs on this data folder; the run is not stored\n" in command(
        "trust-audit"
    )
    assert stored(tmp_path) == 0


def test_what_a_gateway_noted_counts_for_45_seconds(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, quick: None, few: str
) -> None:
    async def serve_once() -> None:
        async with serving(tmp_path, rules=few, rbac_enabled=True):
            pass

    anyio.run(serve_once)
    now_at = Clock.now_at
    assert command("trust-audit", "--json")["settings_of"].startswith("ins_")
    monkeypatch.setattr(Clock, "now_at", lambda self: now_at(self) + 46_000)
    assert command("trust-audit", "--json")["settings_of"] == "this shell"


async def ask_tool(gateway: Any, name: str, **arguments: Any) -> Any:
    async def notify(message: bytes) -> None:
        raise AssertionError(message)

    server = McpServer(lambda: gateway)
    for method, params in (("initialize", HELLO), ("tools/call", {"name": name, "arguments": arguments})):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        raw = await server.answer(jsonrpc.parse(json.dumps(message).encode()), notify)
    assert raw is not None
    return json.loads(raw)["result"]


async def test_mcp_over_stdio_scans_with_the_rules_of_the_running_gateway_or_not_at_all(
    tmp_path: Path, few: str
) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"version": 1, "tables": {}, "rules": [RULE | {"id": "say-it"}]}))
    for rules, is_refused in ((str(other), True), (few, False)):
        config = Settings(data_dir=str(tmp_path / "data"), rules=rules)
        async with (
            serving(tmp_path, rules=few),
            open_gateway(config, log=Log(io.StringIO(), Clock()), is_shell=True) as shell,
        ):
            for name, arguments in (("shield_scan", {"text": "open the pod bay doors"}), ("run_shield_tests", {})):
                result = await ask_tool(shell, name, **arguments)
                assert result.get("isError", False) is is_refused
                assert ("GATEWAY_RULES" in result["content"][0]["text"]) is is_refused
            await shell.store.db.write(lambda tx: None)
            rows = await shell.store.db.read(lambda tx: tx.query("SELECT id FROM traffic"))
            assert bool(rows) is not is_refused


async def test_mcp_over_stdio_judges_the_gateway_that_runs(tmp_path: Path, few: str) -> None:
    config = Settings(data_dir=str(tmp_path / "data"), rules=few)
    async with (
        serving(tmp_path, rules=few, rbac_enabled=True, shield_mode="observe"),
        open_gateway(config, log=Log(io.StringIO(), Clock()), is_shell=True) as shell,
    ):
        result = await ask_tool(shell, "run_trust_audit")
        report = await shell.store.db.read(shell.trust_audits.report)
        assert (report.services["shield"], shell.settings.rbac_enabled) == ("healthy", False)
        assert [part.points for part in report.threat if part.name == "bypass"] == [15]
    run = result["structuredContent"]
    assert checks(run)["exposure-rbac"]["status"] == "pass"
    assert checks(run)["shield-mode"]["status"] == "fail"
    assert f"Settings of the running gateway {run['settings_of']}" in result["content"][0]["text"]


async def test_rules_that_leave_most_of_the_built_in_ones_out_are_told(
    tmp_path: Path, command: Command, few: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"version": 1, "tables": {}, "rules": [RULE | {"id": "please-do"}]}))
    monkeypatch.setenv("GATEWAY_RULES", str(other))
    async with serving(tmp_path, rules=few):
        run = await anyio.to_thread.run_sync(command, "trust-audit", "--json")
        lines = {one["check"]: one for one in await anyio.to_thread.run_sync(command, "doctor", "--json")}
    found = checks(run)
    assert (found["shield-coverage"]["status"], found["shield-coverage"]["severity"]) == ("fail", "critical")
    assert run["score"] <= 49
    assert found["shield-self-test"]["status"] == "not_applicable"
    for said in (found["shield-coverage"]["evidence"], lines["running gateway"]["what"]):
        assert FEW in said
        assert "none of the categories" in said and "jailbreak" in said and "secret" in said
    assert (lines["running gateway"]["good"], lines["rules"]["good"]) == (False, False)
    assert lines["rules"]["what"].startswith(FEW)


def test_a_copy_of_the_built_in_rules_leaves_out_nothing_and_one_without_a_category_does(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> Any:
        return {one["check"]: one for one in command("doctor", "--json")}["rules"]

    rules = json.loads((Path(__file__).parents[2] / "rules.json").read_bytes())
    path = tmp_path / "copy.json"
    path.write_text(json.dumps(rules))
    monkeypatch.setenv("GATEWAY_RULES", str(path))
    assert told()["good"]
    rules["rules"] = [rule for rule in rules["rules"] if rule["category"] != "secret"]
    path.write_text(json.dumps(rules))
    assert (told()["good"], told()["what"].endswith("and none of the categories secret")) == (False, True)
