"""Security scans from the API: what an operator hands over or points at, and never another file of the host."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

SCANS = "/api/security-scans"


async def test_texts_are_scanned_kept_and_listed_without_the_texts(site_with: Any, attack: str) -> None:
    async with site_with() as site:
        items = [
            {"name": "system prompt", "kind": "prompt", "text": f"one\ntwo\n{attack}"},
            {"name": "weather tool", "kind": "tool", "text": "Tells the weather of a city."},
        ]
        made = await site.ask("POST", SCANS, {"items": items})
        assert made["status"] == 201
        scan = made["data"]
        assert (scan["verdict"], scan["score"], scan["scanned"], scan["blocked"], scan["unreadable"]) == (
            "BLOCK", 60, 2, 1, 0,
        )  # fmt: skip
        bad, good = scan["items"]
        assert (bad["name"], bad["kind"], bad["verdict"]) == ("system prompt", "prompt", "BLOCK")
        assert (bad["detections"][0]["rule"], bad["detections"][0]["line"]) == ("say-please", 3)
        assert (good["verdict"], good["detections"]) == ("ALLOW", [])
        assert "pod bay doors" not in json.dumps(scan)
        assert (await site.ask("GET", f"{SCANS}/{scan['id']}"))["data"] == scan
        assert (await site.ask("GET", SCANS))["data"] == [scan]
        key = await site.key("shield:read")
        assert (await site.ask("GET", "/api/v1/security-scans", key=key))["data"] == [scan]
        assert (await site.ask("GET", f"{SCANS}/run_nothing"))["status"] == 404
        (event,) = (await site.ask("GET", "/api/audit?action=security_scan_run"))["data"]
        assert event["resource_id"] == scan["id"]


async def test_files_below_an_allowed_folder_are_scanned(site_with: Any, tmp_path: Path, attack: str) -> None:
    folder = tmp_path / "prompts"
    (folder / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "skipped.txt").write_text(attack)
    (folder / "deep" / "bad.txt").write_text(attack)
    (folder / "good.txt").write_text("hello")
    os.symlink("/etc/passwd", folder / "link.txt")
    os.mkfifo(folder / "pipe")
    async with site_with(scan_paths=(str(folder),)) as site:
        scan = (await site.ask("POST", SCANS, {"paths": [str(folder)]}))["data"]
        found = {item["name"].removeprefix(f"{folder}/"): item for item in scan["items"]}
        assert set(found) == {"deep/bad.txt", "good.txt", "link.txt", "pipe"}
        assert found["deep/bad.txt"]["verdict"] == "BLOCK" and found["good.txt"]["verdict"] == "ALLOW"
        assert found["link.txt"]["error"] and found["pipe"]["error"] == "no regular file"
        assert (scan["scanned"], scan["unreadable"]) == (2, 2)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/etc/passwd", 409),
        ("{folder}/../other.txt", 409),
        ("{folder}-too/x", 409),
        ("{folder}/out", 409),
        ("a.txt", 400),
        ("{folder}/\0", 400),
    ],
)
async def test_no_other_path_is_read(site_with: Any, tmp_path: Path, path: str, status: int) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (tmp_path / "other.txt").write_text("other")
    os.symlink("/etc", folder / "out")
    async with site_with(scan_paths=(str(folder),)) as site:
        answer = await site.ask("POST", SCANS, {"paths": [path.format(folder=folder)]})
        assert (answer["status"], answer["error"]["param"]) == (status, "paths[0]")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "items"),
        ({"items": [], "paths": []}, "items"),
        ({"paths": ["etc/hostname"]}, "paths[0]"),
        ({"items": [{"name": "a", "kind": "song", "text": "la"}]}, "items[0].kind"),
        ({"items": [{"name": "", "kind": "prompt", "text": "la"}]}, "items[0].name"),
        ({"items": [{"name": "a", "kind": "prompt", "text": "x" * 101}]}, "items[0].text"),
        ({"items": [{"name": "a", "kind": "prompt", "text": "la"}] * 201}, "items"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_bad_scan_is_told_its_field(site_with: Any, body: object, param: str) -> None:
    async with site_with(max_text_chars=100) as site:
        answer = await site.ask("POST", SCANS, body)
        assert (answer["status"], answer["error"]["param"]) == (400, param)
