"""Policies, budgets, acceptances and limits of keys on the command line, over a real data folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.bundle import NativeReport
from gateway.cli import main as cli

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command; return its last line on stdout, its JSON, or with `code` what it said on stderr."""
    # A command on records needs no rules: bad ones must not keep anybody from revoking a key.
    monkeypatch.setenv("GATEWAY_RULES", str(tmp_path / "nothing.json"))

    def call(*arguments: str, code: int = 0) -> Any:
        report = NativeReport("python", None, ())
        assert cli.run(cli.read([*arguments, "--data-dir", str(tmp_path / "data")]), report) == code
        said = capsys.readouterr()
        if code:
            assert said.out == ""
            return said.err
        return json.loads(said.out) if "--json" in arguments else (said.out or said.err).strip().rpartition("\n")[2]

    return call


def test_a_policy_is_made_changed_given_and_removed(run: Run) -> None:
    made = run("policies", "create", "--name", "lab", "--mode", "observe", "--category", "pii=redact")
    assert made.startswith("pol_")
    run("policies", "update", "lab", "--block-score", "80", "--category", "none")
    run("policies", "update", "lab", "--capture", "redacted", "--capture-days", "30")
    (policy,) = run("policies", "list", "--json")
    assert (policy["capture"], policy["capture_days"]) == ("redacted", 30)
    assert "--capture must be one of" in run("policies", "update", "lab", "--capture", "all", code=2)
    assert "--capture-days must be" in run("policies", "update", "lab", "--capture-days", "366", code=2)
    assert (policy["id"], policy["mode"], policy["block_score"], policy["category_actions"]) == (
        made,
        "observe",
        80,
        {},
    )
    run("keys", "create", "--name", "x", "--scopes", "chat:completions", "--policy", "lab", "--models", "gpt-*, echo")
    (key,) = run("keys", "list", "--json")
    assert (key["policy"], key["models"]) == (made, ["gpt-*", "echo"])
    assert "API keys have this policy" in run("policies", "remove", "lab", code=2)
    run("keys", "revoke", key["id"])
    run("policies", "remove", "lab")
    assert run("policies", "list", "--json") == []
    assert "--category must be" in run("policies", "create", "--name", "y", "--category", "pii", code=2)
    assert "--mode must be one of" in run("policies", "create", "--name", "y", "--mode", "off", code=2)


def test_a_budget_is_made_changed_raised_and_removed(run: Run) -> None:
    made = run("budgets", "create", "--limit", "0.25", "--window", "week", "--scope", "model", "--scope-value", "gpt-*")
    (budget,) = run("budgets", "list", "--json")
    assert (budget["id"], budget["limit"], budget["window"], budget["status"]) == (made, 0.25, "week", "ok")
    assert made in run("budgets", "list")
    run("budgets", "update", made, "--limit", "0.5", "--action", "warn", "--soft-pct", "50")
    assert "0.9 usd a week until" in run(
        "budgets", "override", made, "--limit", "0.9", "--until", "4h", "--reason", "x"
    )
    (budget,) = run("budgets", "list", "--json")
    assert (budget["limit"], budget["effective_limit"], budget["action"]) == (0.5, 0.9, "warn")
    run("budgets", "override", made, "--end")
    assert run("budgets", "list", "--json")[0]["override"] is None
    for wrong in ("1e3", "-1", "", "x", "nan", "1.2.3"):
        assert "--limit must be a number" in run("budgets", "create", f"--limit={wrong}", code=2)
    assert "--reason" in run("budgets", "override", made, "--limit", "9", code=2)
    run("budgets", "remove", made)
    assert "no such budget" in run("budgets", "remove", made, code=2)


def test_a_risk_is_accepted_and_the_acceptance_revoked(run: Run) -> None:
    made = run(
        "acceptances", "create", "--scope", "rule", "--rule", "say-please", "--until", "30d", "--reason", "test data"
    )
    (one,) = run("acceptances", "list", "--json")
    assert (one["id"], one["status"], one["accepted_by"]) == (made, "active", "cli")
    assert made in run("acceptances", "list")
    run("acceptances", "revoke", made)
    assert run("acceptances", "list", "--json")[0]["status"] == "revoked"
    late = ("--scope", "rule", "--rule", "x", "--until", "91d", "--reason", "x")
    assert "at most 90 days" in run("acceptances", "create", *late, code=2)
