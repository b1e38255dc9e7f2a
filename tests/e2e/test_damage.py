"""A damaged archive: one flipped bit in any member, and nothing of it is served or scanned with."""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from running import run

pytestmark = pytest.mark.slow

MANIFEST = "META/manifest.json"
DATA_FILES = (
    "gateway/shield/attack-model.json",
    "gateway/shield/grams.json",
    "gateway/llm/prices.json",
    "gateway/dashboard/index.html",
    "gateway/store/migrations/0001_initial.sql",
)


def repacked(raw: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return a zip with one member changed and every checksum right."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, change(data) if info.filename == name else data)
    return made.getvalue()


def flip(data: bytes) -> bytes:
    """Flip one bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def flip_as_it_lies(raw: bytes, name: str) -> bytes:
    """Flip one bit of a member as a bad disk does, so that no checksum is made anew. Some bits mean nothing to zlib."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        info, whole = archive.getinfo(name), archive.read(name)
    place = info.header_offset + 30 + len(name) + info.compress_size // 2
    while True:
        flipped = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        try:
            with zipfile.ZipFile(io.BytesIO(flipped)) as archive:
                assert archive.read(name) == whole
        except (zipfile.BadZipFile, zlib.error, AssertionError):
            return flipped
        place += 1


COMMANDS = ["scan"], ["serve", "--port", "0"], ["mcp"], ["doctor"]


def is_refused(path: Path, named: str, commands: Sequence[list[str]] = COMMANDS) -> None:
    for command in commands:
        done = run(path, *command, stdin="hello", GATEWAY_DATA_DIR=":memory:")
        assert (done.returncode, done.stdout) == (2, ""), (named, command, done.stderr)
        assert re.fullmatch(r"gateway: the archive is damaged, so it does not start \(.*\)\. Get a fresh copy\.\n",
                            done.stderr), done.stderr  # fmt: skip
        assert named in done.stderr


def one_of_each_folder(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as whole:
        names = [name for name in whole.namelist() if name != "__main__.py"]
    return sorted({*{re.sub(r"[^/]+$", "", name) or name: name for name in names}.values(), MANIFEST})


def test_a_flipped_bit_in_any_member_starts_nothing_and_names_the_member(archive: Path, tmp_path: Path) -> None:
    raw, copy = archive.read_bytes(), tmp_path / "gateway.pyz"
    for turn, name in enumerate(one_of_each_folder(archive)):
        is_as_it_lies = turn % 2 or name == MANIFEST
        copy.write_bytes(flip_as_it_lies(raw, name) if is_as_it_lies else repacked(raw, name, flip))
        is_refused(copy, name, [COMMANDS[turn // 2 % len(COMMANDS)]])


@pytest.mark.parametrize(
    ("name", "commands"), [(DATA_FILES[0], COMMANDS), *((name, COMMANDS[:1]) for name in DATA_FILES[1:])]
)
def test_a_flipped_bit_in_a_data_file_starts_nothing(
    archive: Path, tmp_path: Path, name: str, commands: Sequence[list[str]]
) -> None:
    raw, copy = archive.read_bytes(), tmp_path / "gateway.pyz"
    for damaged in (flip_as_it_lies(raw, name), repacked(raw, name, flip)):
        copy.write_bytes(damaged)
        is_refused(copy, name, commands)


@pytest.mark.slow
def test_a_flipped_bit_in_any_member_is_refused_by_every_command_however_it_came(archive: Path, tmp_path: Path) -> None:
    raw, copy = archive.read_bytes(), tmp_path / "gateway.pyz"
    for name in one_of_each_folder(archive):
        copy.write_bytes(flip_as_it_lies(raw, name))
        is_refused(copy, name)
        if name != MANIFEST:
            copy.write_bytes(repacked(raw, name, flip))
            is_refused(copy, name)


def test_a_manifest_of_another_form_starts_nothing(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as whole:
        manifest = json.loads(whole.read(MANIFEST))
    forms: list[object] = [[], {}, {"sha256": []}, {"sha256": {}}, manifest | {"bytecode": []}]
    forms.append({name: value for name, value in manifest.items() if name != "bytecode"})
    hashes = manifest["sha256"]
    forms.append(manifest | {"sha256": hashes | {"rules.json": "0" * 64}})
    forms.append(manifest | {"sha256": {name: value for name, value in hashes.items() if name != "rules.json"}})
    forms.append(manifest | {"sha256": hashes | {"gateway/more.py": "0" * 64}})
    copy = tmp_path / "gateway.pyz"
    for form in forms:
        copy.write_bytes(repacked(archive.read_bytes(), MANIFEST, lambda _, form=form: json.dumps(form).encode()))
        is_refused(copy, "")
