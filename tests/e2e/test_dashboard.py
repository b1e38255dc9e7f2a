"""The dashboard out of the real archive: every file is in it, and served as it was built."""

import json
import re
import subprocess
import zipfile
from pathlib import Path

from running import Served


def test_every_file_of_the_dashboard_is_in_the_archive_and_served(gateway: Served, archive: Path) -> None:
    page = gateway.ask("GET", "/", key=None)
    assert page.status == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    folder = re.search(r"/dashboard/[0-9a-f]{16}/", page.body.decode())
    assert folder is not None
    with zipfile.ZipFile(archive) as whole:
        names = [name for name in whole.namelist() if name.startswith("gateway/dashboard/")]
        assert len(names) > 30
        for name in names:
            if name.endswith("index.html"):
                continue
            answer = gateway.ask("GET", folder[0] + name.removeprefix("gateway/dashboard/"), key=None)
            assert (answer.status, answer.body) == (200, whole.read(name)), name
        manifest = json.loads(whole.read("META/manifest.json"))
    about = gateway.ask("GET", "/api/about", key=None).json["data"]
    assert about["version"] == manifest["version"]
    assert {part["name"] for part in about["components"]} >= {"anyio", "h11"}


def test_about_names_the_archive_and_the_data_folder_so_that_its_lines_run_as_they_stand(
    gateway: Served, archive: Path
) -> None:
    about = gateway.ask("GET", "/api/about", key=None).json["data"]
    assert about["program"][-1] == str(archive) and about["data_dir"] == str(gateway.data_dir)
    keys = [one["id"] for one in gateway.ask("GET", "/api/config/api-keys", key=None).json["data"]]
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}\n'
    folder = ("--data-dir", about["data_dir"])
    for words, said, answer in ((("keys", "list", "--json"), "", keys[0]), (("mcp",), hello, '"name":"service"')):
        done = subprocess.run(
            [*about["program"], *words, *folder], input=said, capture_output=True, text=True, timeout=60, check=True
        )
        assert answer in done.stdout
