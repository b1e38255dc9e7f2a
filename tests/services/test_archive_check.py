"""The archive on the disk against its manifest: what was changed is named, what is no archive of ours is told so."""

import hashlib
import io
import json
import random
import zipfile
from pathlib import Path

import pytest

from gateway.services.archive_check import MANIFEST, archive_problem
from gateway.services.archive_members import Members

FIRST_LINE = b"#!/usr/bin/env python3\n"
BROKEN = "the archive on the disk is no whole archive of the gateway any more"
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


def test_no_file_cut_off_or_followed_by_something_is_whole(problem) -> None:  # type: ignore[no-untyped-def]
    raw = archive(MADE)
    for size in (0, 10, 21, 22, 100, len(raw) // 2, len(raw) - 1):
        assert problem(raw[:size]) == BROKEN
    assert problem(raw + b"x") == BROKEN
    assert problem(raw[len(FIRST_LINE) :]) == BROKEN  # the offsets count the first line


def test_every_changed_byte_of_ours_is_a_problem_and_none_is_an_error(problem) -> None:  # type: ignore[no-untyped-def]
    small = {name: value[:90] for name, value in MADE.items()}
    raw = archive(small, small)
    assert problem(raw) == ""
    directory = raw.index(b"PK\1\2")
    crc = directory + 16
    for place in range(len(FIRST_LINE), len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 0x55
        told = problem(bytes(changed))
        assert told is not None
        assert told or (place >= directory and place != crc) or _is_said_twice(raw, place)


def _is_said_twice(raw: bytes, place: int) -> bool:
    """Tell whether a byte is of a local header, of which the name and its length alone are read."""
    heads = [at for at in range(len(raw)) if raw.startswith(b"PK\3\4", at)]
    return any(at + 4 <= place < at + 26 for at in heads)


def test_members_are_read_as_the_standard_library_reads_them() -> None:
    raw = archive(MADE)
    found = Members(io.BytesIO(raw))
    with zipfile.ZipFile(io.BytesIO(raw)) as usual:
        assert found.names == usual.namelist()
        assert found.total_bytes == sum(info.file_size for info in usual.infolist())
        for name in found.names:
            assert found.read(name) == usual.read(name)
            assert found.sha256(name) == hashlib.sha256(usual.read(name)).hexdigest()


def test_a_member_that_says_it_is_small_is_not_unpacked_whole() -> None:
    raw = bytearray(archive({"bomb": bytes(50_000_000)}, {}))
    raw[raw.index(b"PK\1\2") + 24 : raw.index(b"PK\1\2") + 28] = (1_000).to_bytes(4, "little")
    found, size = Members(io.BytesIO(raw)), 0
    with pytest.raises(ValueError, match="another size"):
        for piece in found.pieces("bomb"):
            size += len(piece)
    assert size == 0
