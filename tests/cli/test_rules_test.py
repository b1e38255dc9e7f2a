"""`rules test` tells what changed since the last run, and a regression by its exit code."""

import io
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.bundle import NativeReport
from gateway.cli import main as cli
from gateway.cli.command import Console
from gateway.cli.main import _parser
from gateway.errors import SetupError

Run = Callable[..., tuple[int, str]]


def document(pattern: str) -> str:
    rule: dict[str, Any] = {
        "id": "open-doors", "name": "Doors", "category": "injection", "severity": "critical", "confidence": 0.9,
        "description": "A made-up attack.", "direction": ["inbound"], "pattern": pattern,
        "match": ["open the doors", "open all doors"], "pass": ["close the doors"],
    }  # fmt: skip
    return json.dumps({"version": 1, "rules": [rule]})


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(document("open (?:the|all) doors"))
    return path


@pytest.fixture
def run(tmp_path: Path, rules: Path) -> Run:
    def call(*words: str) -> tuple[int, str]:
        out = io.StringIO(newline="")
        arguments = ["rules", "test", str(rules), "--data-dir", str(tmp_path / "data"), *words]
        options = _parser().parse_args(arguments)
        return options.run(
            options, Console(out, io.StringIO(), io.BytesIO(), NativeReport("python", None, ()))
        ), out.getvalue()

    return call


def test_first_run_has_nothing_to_compare_with(run: Run, tmp_path: Path) -> None:
    assert run("--no-suite") == (0, "3 examples of 1 rules, 0 failed\n")
    assert not (tmp_path / "data").exists()


def test_change_since_the_last_run_is_told(run: Run, rules: Path, tmp_path: Path) -> None:
    baseline = str(tmp_path / "last.json")
    run("--no-suite", "--baseline", baseline)
    rules.write_text(document("open the doors"))
    code, out = run("--no-suite", "--baseline", baseline)
    assert code == 1
    assert "with other rules: 1 hold no longer, 0 hold again" in out
    assert "worse: example of open-doors: open all doors" in out
    rules.write_text(document("open (?:the|all) doors"))
    code, out = run("--no-suite", "--baseline", baseline)
    assert code == 0
    assert "0 hold no longer, 1 hold again" in out


def test_known_gap_that_opens_again_is_a_regression(run: Run, rules: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "last.json"
    run("--baseline", str(baseline))
    kept = json.loads(baseline.read_text())
    last = kept["runs"][str(rules)]
    opened = last["open_gaps"].pop()
    baseline.write_text(json.dumps(kept))
    code, out = run("--baseline", str(baseline), "--json")
    told = json.loads(out)
    assert code == 1
    assert told["change"]["worse"] == [f"known gap {opened}"]
    assert told["now"]["unexercised"] == ["open-doors"]
    assert told["now"]["p50_us"] <= told["now"]["p95_us"]


def test_results_are_kept_in_a_data_folder_that_is_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    run("--no-suite")
    assert "with the same rules: 0 hold no longer" in run("--no-suite")[1]
    (tmp_path / "data" / "rules-test.json").write_text("{")
    assert run("--no-suite") == (0, "3 examples of 1 rules, 0 failed\n")


def test_data_folder_that_cannot_be_written_to_does_not_stop_the_test(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "rules-test.json.new").mkdir(parents=True)
    assert run("--no-suite") == (0, "3 examples of 1 rules, 0 failed\n")
    with pytest.raises(SetupError, match="cannot be written"):
        run("--no-suite", "--baseline", str(tmp_path / "data" / "rules-test.json"))


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1}', '{"version": 1, "runs": 3}'])
def test_file_that_holds_no_results_is_refused_and_stays(run: Run, tmp_path: Path, text: str) -> None:
    baseline = tmp_path / "mine.txt"
    baseline.write_text(text)
    with pytest.raises(SetupError, match="contains no results"):
        run("--no-suite", "--baseline", str(baseline))
    assert baseline.read_text() == text


def test_rules_that_no_case_exercises_are_named_if_wanted(run: Run) -> None:
    assert "open-doors" in run("--unexercised")[1].splitlines()


def test_results_in_the_data_folder_are_for_their_owner_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    kept = tmp_path / "data" / "rules-test.json"
    kept.write_text("{}")
    kept.chmod(0o644)
    run("--no-suite")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_run_counts_as_the_validation_suite_was_run(
    rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_RULES", str(rules))
    folder = ["--data-dir", str(tmp_path / "data")]

    def command(*words: str) -> Any:
        cli.run(cli.read([*words, *folder]), NativeReport("python", None, ()))
        return capsys.readouterr().out

    def checks() -> dict[str, Any]:
        return {check["id"]: check for check in json.loads(command("trust-audit", "--json"))["checks"]}

    command("keys", "create", "--name", "a", "--scopes", "shield:read")
    assert checks()["shield-suite"]["evidence"] == "the validation suite was never run here"
    command("rules", "test")
    after = checks()
    assert after["shield-suite"]["evidence"].startswith("cases of the last run that had another verdict")
    assert after["files-database"]["status"] == "pass"
    (event,) = [
        one for one in map(json.loads, command("audit", "export").splitlines()) if one["action"] == "shield_tests_run"
    ]
    assert (event["actor"], event["details"]["tag"]) == ("cli", "shield-test")
    (tmp_path / "data" / "rules-test.json").chmod(0o644)
    found = checks()["files-database"]
    assert (found["status"], "rules-test.json (mode 0644)" in found["evidence"]) == ("fail", True)
