"""A serving gateway with rules of the operator's own: the log, the API, an override, and a reload."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from running import READY, ROOT, Served, command, environment, launch, until

pytestmark = pytest.mark.slow

PHRASE = "open the pod bay doors"
RULE = {
    "id": "local:doors", "name": "Doors", "category": "injection", "severity": "critical", "confidence": 0.9,
    "description": "A made-up attack.", "direction": ["inbound"], "literals": [PHRASE],
    "match": [PHRASE], "pass": ["close the pod bay"],
}  # fmt: skip
COMMAND = [sys.executable, "-m", "gateway", "serve", "--port", "0", "--data-dir"]


def write(path: Path, *rules: dict[str, object]) -> Path:
    path.write_text(json.dumps({"version": 1, "rules": rules}))
    return path


def test_local_rules_are_told_overridden_and_read_again(tmp_path: Path) -> None:
    extra, data = write(tmp_path / "extra.json", RULE), tmp_path / "data"
    settings = environment(GATEWAY_RULES_EXTRA=str(extra))
    process = launch([*COMMAND, str(data)], cwd=ROOT, env=settings)
    try:
        served = Served(process, int(process.wait_for(READY)[3]), "", data)
        served.make_key()
        assert [line for line in process.lines if '"rules_extra"' in line and '"rules":1' in line.replace(" ", "")]
        about = served.ask("GET", "/api/about").json["data"]
        assert about["local_rules"] == 1 < about["rules"]
        assert served.scan(PHRASE).json["data"]["verdict"] == "BLOCK"
        assert served.ask("GET", "/api/shield/rules/local:doors").json["data"]["category"] == "injection"
        change = {"rule": "local:doors", "severity": "low"}
        assert served.ask("PATCH", "/api/shield/rules", change).status == 200
        until(lambda: served.scan(PHRASE).json["data"]["verdict"] == "ALLOW")
        write(extra, RULE | {"severity": "worst"})
        process.popen.send_signal(signal.SIGHUP)
        process.wait_for(re.compile(r"extra\.json: local:doors: severity: must be one of"))
        assert served.ask("GET", "/api/about").json["data"]["local_rules"] == 1
        write(extra, RULE, RULE | {"id": "local:gates", "literals": ["lift the gates of oz"]})
        process.popen.send_signal(signal.SIGHUP)
        until(lambda: served.ask("GET", "/api/about").json["data"]["local_rules"] == 2)
        found = served.scan("lift the gates of oz").json["data"]["detections"]
        assert "local:gates" in [one["rule"] for one in found]
    finally:
        assert process.stop() == 0


def test_a_bad_extra_file_stops_the_start(tmp_path: Path) -> None:
    extra = write(tmp_path / "extra.json", RULE | {"id": "doors"})
    words = [*COMMAND, ":memory:", "--rules-extra", str(extra)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=120)
    assert done.returncode == 2 and "extra.json: doors: id: must begin with local:" in done.stderr


def test_every_worker_follows_stored_rules_over_reloads_and_restarts(tmp_path: Path) -> None:
    data, mine = tmp_path / "data", tmp_path / "mine.json"
    mine.write_text(json.dumps(RULE))
    words = [*COMMAND, str(data), "--workers", "2"]

    def everywhere(served: Served, verdict: str) -> bool:
        # Each request is a connection of its own, so both workers answer some of them.
        return all(served.scan(PHRASE).json["data"]["verdict"] == verdict for _ in range(20))

    process = launch(words, cwd=ROOT, env=environment())
    try:
        served = Served(process, int(process.wait_for(READY)[3]), "", data)
        served.make_key()
        assert everywhere(served, "ALLOW")
        made = served.ask("POST", "/api/shield/rules", {"rule": RULE, "reason": "seen"})
        assert made.status == 201, made.body
        until(lambda: everywhere(served, "BLOCK"))
        assert served.ask("GET", "/api/shield/rules/local:doors").json["data"]["source"] == "stored"
        softer = {"rule": RULE | {"severity": "high"}, "reason": "milder", "version": 1}
        assert served.ask("PATCH", "/api/shield/rules/local:doors", softer).status == 200
        until(lambda: everywhere(served, "REVIEW"))
        process.popen.send_signal(signal.SIGHUP)
        process.wait_for(re.compile('"reloaded"'))
        assert everywhere(served, "REVIEW")
        # A command beside the server.
        done = served.command("rules", "add", mine, "--reason", "stricter", "--replace")
        assert (done.returncode, done.stderr) == (0, "stored local:doors, version 3\n")
        until(lambda: everywhere(served, "BLOCK"))
    finally:
        assert process.stop() == 0
    process = launch(words, cwd=ROOT, env=environment())
    try:
        served = Served(process, int(process.wait_for(READY)[3]), served.key, data)
        assert everywhere(served, "BLOCK")
        done = served.command("rules", "remove", "local:doors", "--reason", "not ours")
        assert (done.returncode, done.stderr) == (0, "removed local:doors\n")
        until(lambda: everywhere(served, "ALLOW"))
    finally:
        assert process.stop() == 0


def test_a_stored_rule_that_cannot_be_built_stops_the_start_until_it_is_removed(tmp_path: Path) -> None:
    data, extra = tmp_path / "data", write(tmp_path / "extra.json", RULE)
    assert command("rules", "add", "-", "--reason", "seen", "--data-dir", data, stdin=json.dumps(RULE)).returncode == 0
    words = [*COMMAND, str(data), "--rules-extra", str(extra)]
    for workers in ("1", "2"):
        done = subprocess.run(
            [*words, "--workers", workers], capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=120
        )
        assert done.returncode == 2 and "local:doors: id: is given twice" in done.stderr, done.stderr
        assert "listening" not in done.stderr and "rules remove local:doors" in done.stderr
    settings = {"GATEWAY_RULES_EXTRA": str(extra)}
    repaired = command("rules", "remove", "local:doors", "--reason", "now in a file", "--data-dir", data, **settings)
    assert repaired.returncode == 0, repaired.stderr
    process = launch(words, cwd=ROOT, env=environment())
    process.wait_for(READY)
    assert process.stop() == 0
