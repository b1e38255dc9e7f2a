"""Traffic, agents, posture, settings and event outputs on the command line, over a folder with a made-up day."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from running import Done, command

Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command on a data folder of its own."""
    return partial(command, folder=tmp_path, GATEWAY_DATA_DIR=str(tmp_path / "data"))


def test_requests_are_listed_by_verdict_shown_and_summed_up(run: Run) -> None:
    assert run("demo-data", "--requests", "3000").returncode == 0
    blocked = json.loads(run("traffic", "list", "--verdict", "BLOCK", "--limit", "500", "--json").stdout)
    assert blocked and {one["verdict"] for one in blocked} == {"BLOCK"}
    table = run("traffic", "list", "--verdict", "BLOCK").stdout
    assert table.splitlines()[0].split() == [
        *("TIME", "REQUEST", "VERDICT", "SCORE", "STATUS", "AGENT", "KEY", "MODEL", "RULES")
    ]
    assert blocked[0]["request_id"] in table and blocked[0]["detections"][0]["rule"] in table
    shown = json.loads(run("traffic", "show", blocked[0]["request_id"]).stdout)
    assert shown["id"] == blocked[0]["id"] and shown["ledger"]
    summary = json.loads(run("traffic", "summary", "--since", "7d").stdout)
    assert summary["totals"]["requests"] == 3000
    assert "no such request" in run("traffic", "show", "req_00000000000000000000000000").stderr
    assert "--since" in run("traffic", "list", "--since", "soon").stderr


def test_an_agent_is_registered_changed_and_listed(run: Run) -> None:
    made = run("agents", "register", "--name", "helpdesk-bot", "--owner", "support", "--tags", "chat,eu").stdout.strip()
    assert run("agents", "update", made, "--status", "blocked").stderr == f"{made} (helpdesk-bot) is blocked\n"
    (one,) = json.loads(run("agents", "list", "--status", "blocked", "--json").stdout)
    assert (one["id"], one["owner"], one["tags"]) == (made, "support", ["chat", "eu"])
    assert "tags: chat, eu" in run("agents", "show", made).stdout.splitlines()
    assert "no such agent" in run("agents", "show", "agt_00000000000000000000000000").stderr


def test_posture_shows_both_scores(run: Run) -> None:
    text = run("posture", "show").stdout
    assert text.startswith("posture: unknown, run `trust-audit`\nthreat: ")
    assert len(re.findall(r"^  \w.*: [0-9.]+ of at most [0-9]+$", text, re.MULTILINE)) == 6
    assert json.loads(run("posture", "show", "--json").stdout)["posture_score"] is None


def test_a_retention_is_changed_and_reset(run: Run) -> None:
    def retention() -> tuple[object, str]:
        listed = {one["name"]: one for one in json.loads(run("settings", "list", "--json").stdout)}
        return listed["retention_audit_days"]["value"], listed["retention_audit_days"]["source"]

    done = run("settings", "set", "--retention-audit-days", "730")
    assert re.search(r"^retention_audit_days +730 +changed at run time$", done.stdout, re.MULTILINE)
    assert retention() == (730, "changed at run time")
    (event,) = map(json.loads, run("audit", "export", "--action", "setting_changed").stdout.splitlines())
    assert (event["before"], event["after"]) == ({"value": 365}, {"value": 730})
    assert run("settings", "set", "--reset", "retention_audit_days").returncode == 0
    assert retention() == (365, "default")
    assert "--retention-audit-days must be" in run("settings", "set", "--retention-audit-days", "x").stderr


def test_an_output_is_added_tested_changed_and_removed(run: Run, tmp_path: Path) -> None:
    added = run("outputs", "add", "--name", "file", "--kind", "jsonl", "--target", "events.jsonl")
    assert (added.returncode, added.stdout) == (0, ""), added.stderr
    (one,) = json.loads(run("outputs", "list", "--json").stdout)
    assert run("outputs", "test", one["id"]).stdout == "the test event arrived\n"
    assert '"test"' in (tmp_path / "data" / "events" / "events.jsonl").read_text()
    run("outputs", "update", one["id"], "--min-severity", "high", "--enabled", "false", "--format", "ocsf")
    assert re.search(rf"^{one['id']} +file +jsonl +events.jsonl +high +false ", run("outputs", "list").stdout, re.M)
    assert json.loads(run("outputs", "list", "--json").stdout)[0]["format"] == "ocsf"
    assert run("outputs", "remove", one["id"]).returncode == 0
    assert json.loads(run("outputs", "list", "--json").stdout) == []


def test_the_secret_of_a_webhook_is_made_and_shown_once_or_read_from_stdin(run: Run) -> None:
    add = ("outputs", "add", "--kind", "webhook", "--target", "https://siem.example.com/events", "--name")
    made = run(*add, "one")
    assert re.fullmatch(r"whsec_\S+\n", made.stdout)
    assert made.stdout.strip() not in run("outputs", "list", "--json").stdout
    assert "--secret must be" in run(*add, "two", "--secret", made.stdout.strip()).stderr, "ps would show it"
    given = run(*add, "three", "--secret", "-", stdin=made.stdout)
    assert (given.returncode, given.stdout) == (0, "")
    (failed,) = [one["id"] for one in json.loads(run("outputs", "list", "--json").stdout) if one["name"] == "three"]
    tested = run("outputs", "test", failed)
    assert tested.returncode == 1 and tested.stdout.startswith("it did not arrive: ")
