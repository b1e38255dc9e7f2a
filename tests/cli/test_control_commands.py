"""Policies, budgets, acceptances and limits of keys on the command line, over a real data folder."""

import contextlib
import io
import json
import sqlite3
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


def test_a_risk_is_accepted_and_the_acceptance_revoked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ("--scope", "rule", "--rule", "override-prior-orders", "--until", "30d", "--reason", "test data")
    assert "rules cannot be used" in run("acceptances", "create", *rule, code=2)
    with monkeypatch.context() as patch:
        patch.delenv("GATEWAY_RULES")
        made = run("acceptances", "create", *rule)
    (one,) = run("acceptances", "list", "--json")
    assert (one["id"], one["status"], one["accepted_by"]) == (made, "active", "cli")
    assert made in run("acceptances", "list")
    run("acceptances", "revoke", made)
    assert run("acceptances", "list", "--json")[0]["status"] == "revoked"
    monkeypatch.delenv("GATEWAY_RULES")
    late = ("--scope", "rule", "--rule", "x", "--until", "91d", "--reason", "x")
    assert "at most 90 days" in run("acceptances", "create", *late, code=2)
    wrong = ("--rule", "override-prior-order", "--until", "9d", "--reason", "x")
    assert "override-prior-orders" in run("acceptances", "create", "--scope", "rule", *wrong, code=2)
    agent = (
        "--scope",
        "rule_agent",
        "--rule",
        "override-prior-orders",
        "--agent",
        "a",
        "--until",
        "9d",
        "--reason",
        "x",
    )
    assert "nyone may claim" in run("acceptances", "create", *agent, code=2)
    assert run("acceptances", "create", *agent, "--any-key").startswith("ra_")


def test_a_provider_takes_no_reference_that_the_settings_forbid_and_doctor_names_an_old_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GATEWAY_RULES")
    add = ("providers", "add", "--name", "lab", "--base-url", "https://one.example/v1", "--api-key")
    assert "setting of the gateway" in run(*add, "env:GATEWAY_UPSTREAM_API_KEY", code=2)
    assert "GATEWAY_PROVIDER_KEY_DIRS" in run(*add, "file:/etc/hostname", code=2)
    monkeypatch.setenv("GATEWAY_PROVIDER_KEY_ENV", "LAB_*")
    assert "GATEWAY_PROVIDER_KEY_ENV" in run(*add, "env:GATEWAY_PROVIDER_LAB", code=2)
    run(*add, "env:LAB_KEY")
    move = ("providers", "update", "lab", "--base-url", "https://two.example/v1")
    assert "api_key again" in run(*move, code=2)
    run(*move, "--api-key", "env:LAB_KEY")
    monkeypatch.delenv("GATEWAY_PROVIDER_KEY_ENV")
    options = cli.read(["doctor", "--json", "--data-dir", str(tmp_path / "data")])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.run(options, NativeReport("python", None, (("memfd", "not wanted"),))) == 1
    (found,) = [one for one in json.loads(out.getvalue()) if one["check"] == "providers"]
    assert not found["good"] and "GATEWAY_PROVIDER_KEY_ENV does not allow the variable LAB_KEY" in found["what"]


def test_a_bad_list_of_names_or_folders_is_refused_at_the_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ENV", "LAB_KEY, A B"), ("ENV", "A*B"), ("DIRS", "keys")):
        with monkeypatch.context() as patched:
            patched.setenv(f"GATEWAY_PROVIDER_KEY_{name}", value)
            assert f"provider_key_{name.lower()}" in run("providers", "list", code=2)


def test_a_common_password_is_refused_and_the_message_says_why(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("users", "create", "--username", "bob", "--role", "admin")
    for words in (("create", "--username", "ann", "--role", "admin"), ("passwd", "bob")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"password123\n")))
        assert "one of the 10,000 most common passwords" in run("users", *words, "--password-stdin", code=2)


@pytest.mark.parametrize("is_kept_out", [False, True])
def test_a_restore_names_who_lives_again_and_keeps_them_out_if_asked_to(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept_out: bool
) -> None:
    monkeypatch.delenv("GATEWAY_RULES")
    for name in ("gone", "stays"):
        run("users", "create", "--username", f"{name}-user", "--role", "admin")
        run("keys", "create", "--name", f"{name}-key", "--scopes", "shield:scan")
    run("backup", str(tmp_path / "one.backup"))
    run("users", "disable", "gone-user")
    ids = {key["name"]: key["id"] for key in run("keys", "list", "--json")}
    run("keys", "revoke", ids["gone-key"])
    more = ("--revoke-newer",) if is_kept_out else ()
    said = run("restore", str(tmp_path / "one.backup"), "--force", "--json", *more)["revived"]
    assert [key["name"] for key in said["keys"]] == ["gone-key"] and said["kept_out"] is is_kept_out
    assert [user["username"] for user in said["users"]] == ["gone-user"]
    expected = "revoked" if is_kept_out else "active"
    assert {key["name"]: key["status"] for key in run("keys", "list", "--json")} == {
        "gone-key": expected, "stays-key": "active",
    }  # fmt: skip
    users = {user["username"]: user["status"] for user in run("users", "list", "--json")}
    assert users == {"gone-user": "disabled" if is_kept_out else "active", "stays-user": "active"}
    events = [json.loads(line) for line in run_export(run, tmp_path)]
    restored = next(event for event in events if event["action"] == "backup_restored")
    assert [key["name"] for key in restored["details"]["revived"]["keys"]] == ["gone-key"]
    after = [event["action"] for event in events[events.index(restored) + 1 :]]
    assert after[:2] == (["api_key_revoked", "user_changed"] if is_kept_out else ["audit_exported"])
    if not is_kept_out:
        run("keys", "revoke", ids["gone-key"])
        run("restore", str(tmp_path / "one.backup"), "--force")


@pytest.mark.parametrize("is_kept_out", [False, True])
def test_a_restore_names_what_keys_and_users_have_again_and_keeps_what_is_newer_if_asked_to(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_kept_out: bool
) -> None:
    monkeypatch.delenv("GATEWAY_RULES")
    data, backup = str(tmp_path / "data"), str(tmp_path / "one.backup")
    for name, role in (("root", "admin"), ("eve", "admin"), ("pat", "viewer")):
        run("users", "create", "--username", name, "--role", role)
    for name in ("wide", "late", "gone"):
        run("keys", "create", "--name", name, "--scopes", "shield:scan")
    run("backup", backup)
    run("policies", "create", "--name", "new")
    run("detectors", "add", "--name", "judge", "--kind", "openai_moderations", "--base-url", "https://judge.example")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"another long secret\n")))
    run("users", "passwd", "pat", "--password-stdin")
    ids = {key["name"]: key["id"] for key in run("keys", "list", "--json")}
    run("keys", "revoke", ids["gone"])
    with contextlib.closing(sqlite3.connect(f"{data}/gateway.db")) as db, db:
        (policy,) = db.execute("SELECT id FROM policies").fetchone()
        db.execute("UPDATE users SET role = 'viewer' WHERE username = 'eve'")
        db.execute("UPDATE api_keys SET models = '[\"gpt-*\"]' WHERE name = 'wide'")
        db.execute("UPDATE api_keys SET policy = ? WHERE name = 'late'", (policy,))
    options = ["restore", backup, "--force", "--data-dir", data, *(["--revoke-newer"] if is_kept_out else [])]
    assert cli.run(cli.read(options), NativeReport("python", None, ())) == 0
    said = capsys.readouterr().err
    users = {user["username"]: user for user in run("users", "list", "--json")}
    keys = {key["name"]: key for key in run("keys", "list", "--json")}
    assert users["eve"]["role"] == ("viewer" if is_kept_out else "admin")
    assert keys["wide"]["models"] == (["gpt-*"] if is_kept_out else [])
    assert "these differ: policies 1, detectors 1" in said
    assert keys["late"]["status"] == ("revoked" if is_kept_out else "active")  # Its policy is not in the backup.
    if is_kept_out:
        assert "user eve" in said and "user pat" in said and "again" not in said
        return
    assert "user eve: role is admin again, was viewer" in said
    assert "user pat: password is old again, was new" in said
    assert "models is all again, was gpt-*" in said
    assert "--revoke-newer" not in said  # The replaced database is the restored one: a second restore finds nothing.
    for command in (
        f"keys revoke {ids['gone']}",
        f"keys revoke {ids['wide']}",
        "users disable eve",
        "users passwd pat",
    ):
        assert f"gateway.pyz {command} --data-dir {data}" in said
    run("keys", "revoke", ids["wide"])
    run("users", "disable", "eve")


def test_a_restore_without_the_present_database_says_that_nobody_knows_what_was_revoked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GATEWAY_RULES")
    backup, database = str(tmp_path / "one.backup"), tmp_path / "data" / "gateway.db"
    run("keys", "create", "--name", "one", "--scopes", "shield:scan")
    run("backup", backup)
    database.unlink()
    assert "Restore without it, then revoke" in run("restore", backup, "--revoke-newer", code=2)
    assert not database.exists()
    assert run("restore", backup, "--json")["revived"]["known"] is False


def run_export(run: Run, folder: Path) -> list[str]:
    run("audit", "export", "--output", str(folder / "events.jsonl"))
    return (folder / "events.jsonl").read_text().splitlines()


def test_a_wrong_value_names_its_flag_and_makes_no_data_folder(run: Run, tmp_path: Path) -> None:
    for flags, words in (
        (("keys", "create", "--name", "x", "--scopes", "shield:scan", "--rate-limit", "1_0"), "--rate-limit must be"),
        (("keys", "create", "--name", "x", "--scopes", "shield:all"), "--scopes[0] must be one of"),
        (("access", "add", "--list", "deny", "--type", "IP", "--value", "x", "--expires", "soon"), "--expires must be"),
        (("users", "create", "--username", "b b", "--role", "admin"), "--username must be 1 to 64 letters"),
    ):
        assert words in run(*flags, code=2)
    assert not (tmp_path / "data").exists()


def test_a_user_is_disabled_and_enabled_again(run: Run) -> None:
    run("users", "create", "--username", "bob", "--role", "viewer")
    assert run("users", "disable", "bob") == "bob is disabled"
    assert run("users", "enable", "bob") == "bob is active"
