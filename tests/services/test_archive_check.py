"""The check of the archive names what was changed, and keeps one alert until the archive is whole again."""

import hashlib
import io
import json
import random
import zipfile
from pathlib import Path

import pytest
from gateway_site import open_site

from gateway.services import archive_check
from gateway.services.archive_check import MANIFEST, archive_problem

FIRST_LINE = b"#!/usr/bin/env python3\n"
BROKEN = "the archive on the disk is no longer a complete archive of the gateway"
MADE = {"a.py": b"print(1)\n" * 9_000, "b/stored": random.Random(5).randbytes(200_000), "empty": b""}


def archive(members: dict[str, bytes], of: dict[str, bytes] | None = None) -> bytes:
    """Return an archive with a manifest, by default of its own members."""
    told = MADE if of is None else of
    manifest = {"sha256": {name: hashlib.sha256(raw).hexdigest() for name, raw in told.items()}}
    buffer = io.BytesIO(FIRST_LINE)
    with zipfile.ZipFile(buffer, "a") as made:
        for name, raw in [*members.items(), (MANIFEST, json.dumps(manifest).encode())]:
            made.writestr(name, raw, zipfile.ZIP_STORED if name == "b/stored" else zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@pytest.fixture
def problem(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Say what is wrong with an archive of some bytes."""
    path = tmp_path / "gateway.pyz"

    def told(raw: bytes) -> str | None:
        path.write_bytes(raw)
        return archive_problem(str(path))

    return told


def test_a_checkout_has_no_archive() -> None:
    assert archive_problem(None) is None


def test_what_is_whole_has_no_problem_and_what_is_not_is_named(problem) -> None:  # type: ignore[no-untyped-def]
    assert problem(archive(MADE)) == ""
    assert problem(archive(MADE | {"more": b""})) == "added: more"
    assert problem(archive({"a.py": MADE["a.py"], "empty": b""})) == "missing: b/stored"
    assert problem(archive(MADE | {"a.py": b"print(2)\n"})) == "changed: a.py"
    assert problem(archive(MADE | {"empty": b"x"})) == "changed: empty"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_told(problem) -> None:  # type: ignore[no-untyped-def]
    raw = io.BytesIO(archive(MADE))
    with zipfile.ZipFile(raw, "a") as made:
        made.writestr("empty", b"")
    assert problem(raw.getvalue()) == "a name stands twice"


def test_no_file_cut_off_is_whole(problem) -> None:  # type: ignore[no-untyped-def]
    raw = archive(MADE)
    for size in (0, 10, 21, 22, 100, len(raw) // 2, len(raw) - 1):
        assert problem(raw[:size]) == BROKEN


def test_every_changed_byte_that_changes_a_member_is_a_problem_and_none_is_an_error(problem) -> None:  # type: ignore[no-untyped-def]
    small = {name: value[:90] for name, value in MADE.items()}
    raw = archive(small, small)
    assert problem(raw) == ""
    for place in range(len(FIRST_LINE), len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 0x55
        told = problem(bytes(changed))
        assert told is not None
        assert told or contents(bytes(changed)) == contents(raw)


def contents(raw: bytes) -> dict[str, bytes]:
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(raw)) as members:
        return {name: members.read(name) for name in members.namelist()}


async def test_a_changed_archive_is_an_alert_until_it_is_whole_again(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str | None] = [None]
    monkeypatch.setattr(archive_check, "archive_problem", lambda path: said[0])
    async with open_site() as site:

        async def look(problem: str | None) -> list[tuple[str, str, int]]:
            said[0] = problem
            await archive_check.check_archive(site.gateway.alerts)
            found = await site.get("/api/alerts?rule=archive-changed")
            return [(alert["status"], alert["severity"], alert["count"]) for alert in found]

        assert await look(None) == []
        assert await look("") == []
        assert await look("changed: gateway/app.py") == [("open", "critical", 1)]
        assert await look("changed: gateway/app.py") == [("open", "critical", 2)]
        assert (await site.get("/api/fleet"))["instances"][0]["status"] == "critical"
        assert await look("") == [("resolved", "critical", 2)]
