"""What travels with the program: read from a checkout, and from an archive whose file is harmed meanwhile."""

import hashlib
import importlib.util
import io
import os
import random
import stat
import sys
import zipfile
import zipimport
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from running import ROOT

from gateway import bundle

SOURCES = {"made_up/__init__.py": b"", "made_up/one.py": b"def where():\n    return __file__\n"}
DATA = {"made_up/data.json": b'{"a": 1}' * 100, "made_up/more.sql": b"", "a/made_up/more.sql": b"SELECT 1"}
MEMBERS = {"rules.json": b"[]" * 100, "META/manifest.json": b"{}"}


def boot() -> Any:
    spec = importlib.util.spec_from_file_location("boot", ROOT / "deploy" / "boot.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name == "data.zip" else zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@pytest.fixture
def finder(tmp_path: Path) -> Any:
    """The archive's own finder over a small archive without any byte code."""
    path = tmp_path / "small.pyz"
    members = MEMBERS | {"sources.zip": zipped(SOURCES), "data.zip": zipped(DATA)}
    path.write_bytes(zipped(members))
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    return boot().Finder(zipimport.zipimporter(str(path)), b"", hashes)


def test_a_checkout_reads_its_files_and_is_no_archive() -> None:
    assert bundle.read("rules.json") == (ROOT / "rules.json").read_bytes()
    with pytest.raises(OSError):
        bundle.read("no-such-file")
    assert (bundle.archive_path(), bundle.archive_sha256(), bundle.manifest()) == (None, None, None)
    assert bundle.load_native(None).way == "installed"


def test_without_byte_code_modules_are_compiled_from_their_sources(finder: Any) -> None:
    finder.forget()
    spec = finder.find_spec("made_up.one")
    module = ModuleType("made_up.one")
    module.__file__ = spec.origin
    finder.exec_module(module)
    assert module.where() == os.path.join(finder.archive, "made_up/one.py")
    assert finder.is_package("made_up")
    assert finder.find_spec("json") is None
    assert finder.get_source("made_up.one").startswith("def where")


def test_a_file_that_is_gone_is_still_read(finder: Any) -> None:
    Path(finder.archive).unlink()
    for name, data in (MEMBERS | SOURCES | DATA).items():
        assert finder.get_data(os.path.join(finder.archive, name)) == data
    with pytest.raises(FileNotFoundError):
        finder.get_data(os.path.join(finder.archive, "other"))
    with pytest.raises(FileNotFoundError):
        finder.get_data(os.path.join(finder.archive, "more.sql"))


def test_what_was_overwritten_in_place_is_an_error_and_never_other_bytes(finder: Any) -> None:
    size = os.path.getsize(finder.archive)
    finder.let_go()
    with open(finder.archive, "r+b") as file:
        file.write(b"\x5a" * size)
    assert (
        finder.get_data(os.path.join(finder.archive, "made_up", "data.json")) == DATA["made_up/data.json"]
    )  # kept since the start
    with pytest.raises(OSError):
        finder.get_source("made_up.one")


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_private_folder_is_never_one_that_somebody_else_made(tmp_path: Path) -> None:
    planted = tmp_path / f".gateway-{os.getpid()}-0"
    planted.symlink_to("/")
    folder = Path(bundle._private_folder(str(tmp_path)))
    assert folder.name == f".gateway-{os.getpid()}-1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "made_up" not in sys.modules


@pytest.mark.parametrize("size", [0, 1, 24 * 1024, 24 * 1024 + 1, 100_000])
def test_a_file_is_restored_from_one_that_is_like_it_and_the_difference(size: int) -> None:
    rng = random.Random(size)
    data = rng.randbytes(size)
    for like in (data, data[: size // 2] + b"more" + data[size // 2 + 9 :], b"", rng.randbytes(10)):
        packed = bundle.difference(like, data)
        assert bundle.restored(like, packed) == data
        for kept in range(0, len(packed), 5_000):
            with pytest.raises(zlib.error):
                bundle.restored(like, packed[: kept or 1])
    assert len(bundle.difference(data, data)) <= 10 + size // 50
