"""Every line of docs/control.md that a shell can run is run, in order, against the real archive."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from running import ROOT, environment, start

TEXT = (ROOT / "docs" / "control.md").read_text("utf-8")
SECTIONS = ("Sign in", "Keys", "Access list", "Policies", "Providers", "Budgets", "Risk acceptances")
CHECKED = "set -euo pipefail\n"


def lines_of(section: str) -> str:
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert found, f"docs/control.md lost its section {section}"
    return "".join(re.findall(r"^```sh\n(.*?)^```", found[1], re.DOTALL | re.MULTILINE))


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs curl and bash")
def test_the_documented_lines_do_what_they_say(archive: Path, tmp_path: Path) -> None:
    served = start(archive, tmp_path / "data", "--workers", "2", RBAC_ENABLED="true")
    try:
        password = re.search(r"password: (\S+)", (tmp_path / "data" / "first-credentials.txt").read_text())
        assert password
        script = CHECKED + "".join(lines_of(section) for section in SECTIONS)
        script = script.replace("http://127.0.0.1:5001", served.url)
        done = subprocess.run(
            ["bash", "-x", "-c", script],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(PASSWORD=password[1]),
            timeout=120,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert '{"ok":false,"error"' not in done.stdout, done.stdout
        assert done.stdout.count('"ok":true') >= 30
        assert '"spent":0.0' in done.stdout
    finally:
        assert served.process.stop() == 0
