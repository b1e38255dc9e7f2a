"""What travels with the program, read from a checkout. tests/e2e/test_archive.py does the same with an archive."""

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
