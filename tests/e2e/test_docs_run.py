"""Every line of a page that a shell can run is run, in order, against the real archive, each page with a new gateway.

A fence ```sh is run. After `sh`, a word changes that: `no-run` for lines that cannot run here, of which the page gives
the reason, and the name of a prelude (`PRELUDES`) for lines that other pages begin with.

A fence ```python or ```javascript names the package that it needs and is run where that is installed. CLIENT_PYTHONS
names further interpreters to look in (separated as in PATH), CLIENT_MODULES a folder `node_modules`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from running import ROOT, Served, command, environment, start

DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))}
FENCE = re.compile(r"^```(\w*)(?: ([\w.-]+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PRELUDES = {"open": "reference/internal-api.md", "signed": "reference/internal-api.md", "demo": "start/tour.md"}
LANGUAGES = {"sh", "python", "javascript", "json", "text", "console", "nginx", "ini", "yaml", "toml"}
NOT_RUN = re.compile(r"[Nn]ot run|do not\s+run")
# A line that leads to a host of somebody else is read and not run.
ELSEWHERE = re.compile(r"^.*(siem|hooks)\.example\.com.*\n", re.MULTILINE)
SPELLING = re.compile(r"(?<![\w./-])python (?=[-a-z])|(?<!python3 )(?<!-S )(?<![/\w`.-])gateway\.pyz (?=[a-z])")
# Refusals that the lines of a page bring about on purpose.
REFUSED = {"howto/false-positive.md": ["content_policy_violation"], "observe/traffic.md": ["access_denied"]}
# Folders of a system that the pages name, and where a page's own folder has them.
FOLDERS = {"/usr/lib/gateway": "/lib", "/var/lib/gateway": "/data", "/var/backups": "/backups", "/tmp/": "/tmp/"}
# Pages besides those of observe/ that are about a day of traffic.
DEMO = {"start/tour.md", "howto/investigate-a-leak.md"}
# It starts, stops and restarts the gateway of a host, as the service manager does.
SYSTEMCTL = """#!/bin/bash
cd "$(dirname "$0")"
if [ "$1" != start ] && [ -e pid ]; then kill "$(cat pid)"; while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.05; done; fi
if [ "$1" != stop ]; then
    python3 -I -S ../lib/gateway.pyz serve --port 0 2> log > /dev/null < /dev/null & echo $! > pid
    until grep -qs 'listening on' log; do kill -0 "$(cat pid)" || exit 1; sleep 0.05; done
fi
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, ("bash", "curl", "jq", "sha256sum", "openssl"))), reason="needs bash, curl and jq"
    ),
]


def fences(page: str, word: str = "") -> str:
    """Return the lines of a page's fences for a shell that have this word, or none."""
    found = FENCE.findall(PAGES[page])
    return "".join(lines for language, given, lines in found if language == "sh" and given == word)


RUN = [page for page in PAGES if fences(page)]


@dataclass(frozen=True)
class Host:
    """A folder in which `python3`, `systemctl`, `gateway.pyz` and the folders of a system are what the pages mean."""

    folder: Path

    @classmethod
    def make(cls, archive: Path, folder: Path) -> "Host":
        for name in ("bin", "lib", "backups", "tmp"):
            (folder / name).mkdir()
        (folder / "bin" / "python3").symlink_to(sys.executable)
        (folder / "bin" / "systemctl").write_text(SYSTEMCTL)
        (folder / "bin" / "systemctl").chmod(0o755)
        for name in ("gateway.pyz", "new.pyz", "lib/gateway.pyz"):
            shutil.copy(archive, folder / name)
        return cls(folder)

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    def run(self, script: str, url: str, **settings: str) -> subprocess.CompletedProcess[str]:
        env = environment(GATEWAY_DATA_DIR=str(self.data_dir), **settings)
        env["PATH"] = f"{self.folder / 'bin'}:{env['PATH']}"
        script = re.sub("|".join(FOLDERS), lambda found: f"{self.folder}{FOLDERS[found[0]]}", script)
        script = script.replace("http://127.0.0.1:5001", url)
        script = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + script
        return subprocess.run(
            ["bash", "-x", "-c", script], capture_output=True, text=True, cwd=self.folder, env=env, timeout=180
        )


@contextmanager
def serving(archive: Path, data_dir: Path, *flags: str, **settings: str) -> Iterator[Served]:
    served = start(archive, data_dir, *flags, **settings)
    try:
        yield served
    finally:
        assert served.process.stop() == 0


def run_page(page: str, archive: Path, host: Host) -> subprocess.CompletedProcess[str]:
    """Run the lines of a page after those that it builds on, with the gateway that its folder is about."""
    script = ELSEWHERE.sub("", fences(page))
    if "systemctl" in script:
        os.mkdir(host.data_dir, 0o700)
        return host.run(f"systemctl start gateway\n{script}systemctl stop gateway\n", "")
    folder = page.partition("/")[0]
    if page in DEMO or folder == "observe":
        made = command("demo-data", "--data-dir", host.data_dir, "--seed", 7, "--requests", 2000)
        assert made.returncode == 0, made.stderr
        with serving(archive, host.data_dir) as served:
            prelude = f"B={served.url}\n{fences(PRELUDES['open'], 'open')}{fences(PRELUDES['demo'], 'demo')}"
            return host.run(prelude + script, served.url)
    if folder in ("howto", "trust"):
        with serving(archive, host.data_dir, "--workers", "2", RBAC_ENABLED="true") as served:
            password = re.search(r"password: (\S+)", (host.data_dir / "first-credentials.txt").read_text())
            assert password
            (host.folder / "lab.key").write_text("a-key-of-the-lab\n")
            prelude = fences(PRELUDES["signed"], "signed")
            return host.run(prelude + script, served.url, PASSWORD=password[1], RBAC_ENABLED="true")
    with serving(archive, host.data_dir) as served:
        return host.run(fences(PRELUDES["open"], "open") + script, served.url, KEY=served.key)


@pytest.mark.parametrize("page", RUN)
def test_the_lines_of_a_page_do_what_they_say(page: str, archive: Path, tmp_path: Path) -> None:
    done = run_page(page, archive, Host.make(archive, tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    codes = re.findall(r'\{"ok":false,"error":\{.*?"code":"(\w+)"', done.stdout)
    assert codes == REFUSED.get(page, []), done.stdout[-2000:]
    # A line that looks for something must have found it, or the lines behind it tried nothing.
    assert not re.search(r"^\++ [A-Z_]+=(null)?$", done.stderr, re.MULTILINE), done.stderr[-2000:]


def recipe(page: str, language: str) -> tuple[str, str]:
    """Return the package that the fences of a language need, and their lines."""
    found = [
        (word, lines) for given, word, lines in FENCE.findall(PAGES[page]) if given == language and word != "no-run"
    ]
    return found[0][0] if found else "", "".join(lines for _, lines in found)


RECIPES = [(page, one) for page in PAGES for one in ("python", "javascript") if recipe(page, one)[1]]


def program(language: str, package: str, script: str, folder: Path) -> list[str] | None:
    """Return the command that runs a recipe in a folder, or None where its package is not installed."""
    if language == "python":
        find = f"import importlib.util as u; raise SystemExit(u.find_spec({package.partition('.')[0]!r}) is None)"
        for python in (sys.executable, *filter(None, os.environ.get("CLIENT_PYTHONS", "").split(os.pathsep))):
            if subprocess.run([python, "-c", find], cwd=ROOT).returncode == 0:
                return [python, "-c", script]
        return None
    modules = Path(os.environ.get("CLIENT_MODULES", "/nowhere"))
    if not (modules / package).is_dir() or not shutil.which("node"):
        return None
    (folder / "node_modules").symlink_to(modules)
    (folder / "recipe.mjs").write_text(script)
    return ["node", "recipe.mjs"]


@pytest.mark.parametrize(("page", "language"), RECIPES)
def test_a_recipe_does_what_it_says(page: str, language: str, archive: Path, tmp_path: Path) -> None:
    package, script = recipe(page, language)
    with serving(archive, tmp_path / "data") as served:
        run = program(language, package, script.replace("http://127.0.0.1:5001", served.url), tmp_path)
        if run is None:
            pytest.skip(f"{package} is not installed")
        env = environment(KEY=served.key, LITELLM_LOCAL_MODEL_COST_MAP="True", PYTHONPATH=str(ROOT))
        done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert page.startswith("develop/") or "Hello" in done.stdout
    assert "except" not in script or re.search("(?i)content_?policy_?violation", done.stdout)


def configurations() -> list[dict]:
    """Return what each MCP configuration of the pages says of the server."""
    found = [lines for text in PAGES.values() for language, _, lines in FENCE.findall(text) if language == "json"]
    return [one[key]["service"] for one in map(json.loads, found) for key in ("servers", "mcpServers") if key in one]


MCP_KEY = "a-key-for-the-assistants-of-a-test"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "editor", "version": "1"}}
MESSAGES = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def test_the_mcp_configurations_that_start_a_command_list_the_tools(archive: Path, tmp_path: Path) -> None:
    commands = [one for one in configurations() if one.get("command") == "python3"]
    assert len(commands) >= 3
    for one in commands:
        run = [sys.executable, *(part.replace("/path/to/gateway.pyz", str(archive)) for part in one["args"])]
        lines = "".join(json.dumps(message) + "\n" for message in MESSAGES)
        env = environment(GATEWAY_DATA_DIR=str(tmp_path / "data"))
        done = subprocess.run(run, input=lines, env=env, capture_output=True, text=True, timeout=60)
        answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
        assert "shield_scan" in {tool["name"] for tool in answers[2]["result"]["tools"]}


def test_the_mcp_configurations_that_name_a_url_list_the_tools(archive: Path, tmp_path: Path) -> None:
    reached = [one for one in configurations() if "url" in one]
    assert len(reached) >= 3
    with serving(archive, tmp_path / "data", MCP_ENABLED="1", MCP_API_KEY=MCP_KEY, MCP_PORT="0") as served:
        listening = re.search(r'"mcp_listening".*?127\.0\.0\.1:(\d+)', "".join(served.process.lines))
        assert listening
        for one in reached:
            headers = {name: re.sub(r"THE_KEY|\$\{[^}]*\}", MCP_KEY, value) for name, value in one["headers"].items()}
            headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            for message in MESSAGES:
                url = one["url"].replace("5002", listening[1])
                request = urllib.request.Request(url, json.dumps(message).encode(), headers)
                with urllib.request.urlopen(request, timeout=30) as answer:
                    body = answer.read().decode()
                    if session := answer.headers.get("Mcp-Session-Id"):
                        headers["Mcp-Session-Id"] = session
            assert '"shield_scan"' in body


def test_the_archive_carries_every_page(archive: Path, tmp_path: Path) -> None:
    with serving(archive, tmp_path / "data") as served:
        for page, text in PAGES.items():
            told = subprocess.run([sys.executable, archive, "docs", page], capture_output=True, text=True, cwd=tmp_path)
            assert (told.returncode, told.stdout) == (0, text), page
            assert served.ask("GET", "/docs/" if page == "README.md" else f"/docs/{page}", key=None).status == 200
    listed = subprocess.run([sys.executable, archive, "docs"], capture_output=True, text=True, cwd=tmp_path).stdout
    assert [line.split()[0] for line in listed.splitlines()[1:]] == sorted(
        (page.removesuffix(".md") for page in PAGES), key=lambda name: (name != "README", name)
    )
    wrong = subprocess.run(
        [sys.executable, archive, "docs", "strat/tour"], capture_output=True, text=True, cwd=tmp_path
    )
    assert wrong.returncode == 2 and "Did you mean start/tour?" in wrong.stderr and wrong.stderr.count("\n") == 1


def test_enough_pages_are_run() -> None:
    assert len(RUN) > 20
    assert len(RECIPES) > 4


def test_the_first_lines_of_the_readme_scan_and_chat(archive: Path, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]
    lines = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    assert lines.startswith("python3 build_zipapp.py && python3 gateway.pyz serve\n")
    host = Host.make(archive, tmp_path)
    with serving(archive, host.data_dir) as served:
        assert "`first-credentials.txt`" in text
        script = lines.partition("\n")[2].partition("python3 -m venv")[0].replace("svc_...", served.key)
        done = host.run(script, served.url)
    assert done.returncode == 0, done.stderr
    assert '"verdict":"BLOCK"' in done.stdout and '"content":"Hello"' in done.stdout


@pytest.mark.parametrize("page", [*PAGES, "README.md of the repository"])
def test_programs_are_spelled_as_a_plain_system_has_them(page: str) -> None:
    # Debian has no `python`, and an archive that was built or copied has no right to be executed by name.
    text = PAGES.get(page) or (ROOT / "README.md").read_text("utf-8")
    fenced = [lines for _, _, lines in FENCE.findall(text)]
    indented = re.findall(r"^    .*$", text, re.MULTILINE)
    for line in "\n".join([*fenced, *indented]).splitlines():
        assert not SPELLING.search(line), line
    assert not re.search(r"(?<!`)`python (?=[-a-z])", text)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_why_lines_are_not_run(page: str) -> None:
    found = FENCE.findall(PAGES[page])
    assert {language for language, _, _ in found} <= LANGUAGES
    assert {word for language, word, _ in found if language == "sh"} <= {"", "no-run", "start-demo", *PRELUDES}
    if any(word == "no-run" for _, word, _ in found):
        assert NOT_RUN.search(PAGES[page])
    assert not re.search(r"^    \S", FENCE.sub("", PAGES[page]), re.MULTILINE), "code belongs into a fence"
