"""Every line of the pages for operators that a shell can run is run, in order, against the real archive."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT, Served, command, environment, start

# A line that leads to a host of somebody else is read and not run.
ELSEWHERE = re.compile(r"^.*(siem|hooks)\.example\.com.*\n", re.MULTILINE)
SPELLING = re.compile(r"(?<![\w./-])python (?=[-a-z])|(?<!python3 )(?<!-S )(?<![/\w`.-])gateway\.pyz (?=[a-z])")
PAGES = sorted((ROOT / "docs").rglob("*.md"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, ("bash", "curl", "jq", "sha256sum"))), reason="needs bash, curl and jq"
    ),
]


def lines_of(page: str) -> str:
    """Return all that stands in fences for a shell."""
    text = (ROOT / page).read_text("utf-8")
    return "".join(re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def run(archive: Path, folder: Path, script: str, served: Served, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run lines in a folder in which `python3` and `gateway.pyz` are what the pages mean by them."""
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(sys.executable)
    (folder / "gateway.pyz").symlink_to(archive)
    env = environment(GATEWAY_DATA_DIR=str(served.data_dir), **settings)
    env["PATH"] = f"{folder / 'bin'}:{env['PATH']}"
    script = "set -euo pipefail\n" + script.replace("http://127.0.0.1:5001", served.url)
    return subprocess.run(
        ["bash", "-x", "-c", script], capture_output=True, text=True, cwd=folder, env=env, timeout=180
    )


def test_the_lines_of_control_do_what_they_say(archive: Path, tmp_path: Path) -> None:
    served = start(archive, tmp_path / "data", "--workers", "2", RBAC_ENABLED="true")
    try:
        password = re.search(r"password: (\S+)", (tmp_path / "data" / "first-credentials.txt").read_text())
        assert password
        (tmp_path / "lab.key").write_text("a-key-of-the-lab\n")
        done = run(archive, tmp_path, lines_of("docs/control.md"), served, PASSWORD=password[1], RBAC_ENABLED="true")
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert '{"ok":false,"error"' not in done.stdout, done.stdout
        assert done.stdout.count('"ok":true') >= 30
        assert '"spent":0.0' in done.stdout
    finally:
        assert served.process.stop() == 0


def test_the_lines_of_what_a_team_sees_do_what_they_say(archive: Path, tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    made = command("demo-data", "--data-dir", demo, "--seed", 7, "--requests", 2000)
    assert made.returncode == 0, made.stderr
    served = start(archive, demo)
    try:
        script = lines_of("docs/observability.md") + lines_of("docs/reports.md")
        assert script.startswith("python3 gateway.pyz demo-data --data-dir /tmp/demo --seed 7\n")
        assert "python3 gateway.pyz serve --data-dir /tmp/demo --port 5077 &\n" in script
        script = script.partition("5077 &\n")[2].replace("http://127.0.0.1:5077", served.url)
        # The trust audit of made-up data has something to find, which its exit status says.
        script = re.sub(
            r"(python3 gateway\.pyz trust-audit[^#\n]*)", r"{ \1; } || test $? = 1 ", ELSEWHERE.sub("", script)
        )
        done = run(archive, tmp_path, script, served)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        refused = re.findall(r'\{"ok":false,"error":\{"message":"([^"]*)', done.stdout)
        assert len(refused) == 1 and refused[0].endswith("is blocked."), refused
        assert "null" not in re.findall(r"^\++ (?:ID|A|R|K)=(.*)$", done.stderr, re.MULTILINE)
        assert (tmp_path / "summary.html").read_text().startswith("<!doctype html>")
    finally:
        assert served.process.stop() == 0


def test_the_first_lines_of_the_readme_scan_and_chat(archive: Path, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]
    lines = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    assert lines.startswith("python3 build_zipapp.py && python3 gateway.pyz serve\n")
    served = start(archive, tmp_path / "data")
    try:
        assert "`first-credentials.txt`" in text
        script = lines.partition("\n")[2].partition("python3 -m venv")[0].replace("svc_...", served.key)
        done = run(archive, tmp_path, script, served)
        assert done.returncode == 0, done.stderr
        assert '"verdict":"BLOCK"' in done.stdout and '"content":"Hello"' in done.stdout
    finally:
        assert served.process.stop() == 0


def test_the_lines_of_streaming_stream(archive: Path, tmp_path: Path) -> None:
    served = start(archive, tmp_path / "data")
    try:
        done = run(archive, tmp_path, lines_of("docs/streaming.md"), served, KEY=served.key)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("chat.completion.chunk") >= 3
        assert done.stdout.endswith("data: [DONE]\n\n")
    finally:
        assert served.process.stop() == 0


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_programs_are_spelled_as_a_plain_system_has_them(page: Path) -> None:
    # Debian has no `python`, and an archive that was built or copied has no right to be executed by name.
    fenced = re.findall(r"^```\w*\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^    .*$", page.read_text("utf-8"), re.MULTILINE)
    for line in "\n".join([*fenced, *indented]).splitlines():
        assert not SPELLING.search(line), line
    assert not re.search(r"`python (?=[-a-z])", page.read_text("utf-8"))
