"""What travels with the program, read from a checkout. tests/e2e/test_archive.py does the same with an archive."""

import os
import stat
from pathlib import Path

import pytest
from running import ROOT

from gateway import bundle


def test_a_checkout_reads_its_files_and_is_no_archive() -> None:
    assert bundle.read("rules.json") == (ROOT / "rules.json").read_bytes()
    with pytest.raises(OSError):
        bundle.read("no-such-file")
    assert (bundle.archive_path(), bundle.archive_sha256(), bundle.manifest()) == (None, None, None)
    assert bundle.load_native(None).way == "installed"
    assert "index.html" in bundle.names("gateway/dashboard")


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_private_folder_is_never_one_that_somebody_else_made(tmp_path: Path) -> None:
    planted = tmp_path / f".gateway-{os.getpid()}-0"
    planted.symlink_to("/")
    folder = Path(bundle._private_folder(str(tmp_path)))
    assert folder.name == f".gateway-{os.getpid()}-1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
