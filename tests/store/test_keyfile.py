"""The file of keys that were typed in: whole or as it was, for its owner alone, and nothing without a path."""

import os
import stat
from pathlib import Path

import pytest

from gateway.store.keyfile import KeyFile


def test_a_key_is_there_for_every_process_until_it_is_dropped(tmp_path: Path) -> None:
    one, other = KeyFile(str(tmp_path / "keys")), KeyFile(str(tmp_path / "keys"))
    assert other.get("a") is None
    one.put("a", "sk-1")
    one.put("b", "sk-2")
    assert (other.get("a"), other.get("b")) == ("sk-1", "sk-2")
    one.drop("a")
    one.drop("a")
    assert (other.get("a"), other.get("b")) == (None, "sk-2")
    assert os.listdir(tmp_path) == ["keys"]


def test_only_the_owner_may_read_it_whatever_lay_there(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    left = tmp_path / "keys.new"
    left.write_text("half written")
    left.chmod(0o666)
    KeyFile(str(path)).put("a", "sk-1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("untouched")
    os.symlink(tmp_path / "elsewhere", tmp_path / "keys.new")
    with pytest.raises(OSError):
        KeyFile(str(tmp_path / "keys")).put("a", "sk-1")
    assert (tmp_path / "elsewhere").read_text() == "untouched"


def test_a_damaged_file_is_an_error_and_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("{half")
    with pytest.raises(OSError):
        KeyFile(str(path)).get("a")
    with pytest.raises(OSError):
        KeyFile(str(path)).put("a", "sk-1")
    assert path.read_text() == "{half"


def test_without_a_path_keys_live_in_memory() -> None:
    one = KeyFile(None)
    one.put("a", "sk-1")
    assert one.get("a") == "sk-1"
    assert KeyFile(None).get("a") is None
