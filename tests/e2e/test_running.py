"""A gateway that serves, judged from a shell with other settings; and rules that leave most of the built-in ones out."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import environment, start

RULE = {
    "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
    "description": "A made-up attack.", "direction": ["inbound"],
    "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
}  # fmt: skip


def audit(archive: Path, data_dir: Path) -> Any:
    command = [sys.executable, "-I", str(archive), "trust-audit", "--json", "--data-dir", str(data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd="/", timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_shell_judges_the_gateway_that_runs_and_its_own_settings_when_none_does(
    archive: Path, tmp_path: Path, workers: str
) -> None:
    rules, data_dir = tmp_path / "few.json", tmp_path / "data"
    rules.write_text(json.dumps({"version": 1, "tables": {}, "rules": [RULE]}))
    served = start(
        archive, data_dir, "--workers", workers, "--rules", str(rules),
        RBAC_ENABLED="true", GATEWAY_UPSTREAM_URL="https://llm.example/v1",
    )  # fmt: skip
    try:
        until = time.monotonic() + 20
        while (run := audit(archive, data_dir))["settings_of"] == "this shell" and time.monotonic() < until:
            pass  # it notes what it is a moment after it listens
        found = {check["id"]: check for check in run["checks"]}
        kept = served.ask("GET", "/api/v1/trust-audits").json["data"]
    finally:
        assert served.process.stop() == 0
    assert run["settings_of"].startswith("ins_")
    assert [found[name]["status"] for name in ("exposure-rbac", "upstream-set")] == ["pass", "pass"]
    assert (found["shield-coverage"]["status"], run["score"] <= 49) == ("fail", True)
    assert [one["id"] for one in kept] == [run["id"]]
    assert sum("rules_replaced" in line for line in served.process.lines) == 1
    after = audit(archive, data_dir)
    found = {check["id"]: check for check in after["checks"]}
    assert (after["settings_of"], found["shield-coverage"]["status"]) == ("this shell", "pass")
