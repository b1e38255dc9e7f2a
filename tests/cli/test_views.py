"""The commands of a security team, run in this process: what they print, and what their exit code says."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.bundle import NativeReport
from gateway.cli.command import Console
from gateway.cli.main import _parser

RULE = {
    "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
    "description": "A made-up attack.", "direction": ["inbound"],
    "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
}  # fmt: skip


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Return what runs a command on one data folder: exit code, output, and notes."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"version": 1, "tables": {}, "rules": [RULE]}))
    monkeypatch.setenv("GATEWAY_RULES", str(rules))

    def run(*words: str, terminal: bool = False) -> tuple[int, str, str]:
        out, err = io.StringIO(newline=""), Terminal() if terminal else io.StringIO()
        console = Console(out, err, io.BytesIO(), NativeReport("python", None, ()))
        options = _parser().parse_args([*words, "--data-dir", str(tmp_path / "data")])
        code = options.run(options, console) or 0
        return code, out.getvalue(), err.getvalue()

    return run


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


Run = Callable[..., tuple[int, str, str]]


def test_a_trust_audit_says_what_to_mend_and_exits_by_what_fails(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("trust-audit")[0] == 1  # the rules of these tests take the place of the built-in ones
    monkeypatch.delenv("GATEWAY_RULES")
    code, text, _ = command("trust-audit")
    assert code == 0 and "posture " in text and "fix: Set RBAC_ENABLED=true." in text
    code, text, _ = command("trust-audit", "--json", "--min-severity", "critical")
    run = json.loads(text)
    assert code == 0 and run["id"].startswith("run_")
    assert {check["severity"] for check in run["checks"]} == {"critical"}


def test_a_failing_check_exits_with_one_unless_a_graver_one_is_asked_for(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GATEWAY_RULES")
    monkeypatch.setenv("GATEWAY_SHIELD_MODE", "observe")
    assert command("trust-audit", "--min-severity", "critical")[0] == 1
    monkeypatch.setenv("GATEWAY_SHIELD_MODE", "block")
    monkeypatch.setenv("MCP_ENABLED", "1")
    monkeypatch.setenv("MCP_API_KEY", "short")
    assert command("trust-audit")[0] == 1
    assert command("trust-audit", "--min-severity", "critical")[0] == 0


def test_a_report_is_printed_or_written_for_its_owner_alone(command: Run, tmp_path: Path) -> None:
    code, text, note = command("report", "--type", "access_review")
    assert code == 0 and text.startswith("# Access review\n") and note == ""
    target = tmp_path / "report.html"
    code, text, note = command("report", "--type", "access_review", "--format", "html", "--output", str(target))
    assert code == 0 and text == "" and "bytes written to" in note
    assert target.read_text().startswith("<!doctype html>") and target.stat().st_mode & 0o777 == 0o600


def test_a_long_report_shows_its_progress_on_a_terminal(command: Run) -> None:
    _, _, note = command("report", "--type", "shield_validation", terminal=True)
    assert note.startswith("\rshield_validation [####") and "5 of 5\n" in note


def test_the_audit_log_is_exported_and_verified(command: Run, tmp_path: Path) -> None:
    command("keys", "create", "--name", "=cmd", "--scopes", "shield:scan")
    code, text, _ = command("audit", "export")
    events = [json.loads(line) for line in text.splitlines()]
    assert code == 0 and [event["seq"] for event in events] == list(range(1, len(events) + 1))
    target = tmp_path / "audit.csv"
    command("audit", "export", "--format", "csv", "--action", "api_key_created", "--output", str(target))
    lines = target.read_text().splitlines()
    assert len(lines) == 2 and lines[0].startswith("id,seq,timestamp,") and target.stat().st_mode & 0o777 == 0o600
    code, text, _ = command("audit", "verify")
    assert code == 0 and text.startswith("ok: ")
