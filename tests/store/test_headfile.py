"""The end of the chain beside the database."""

from pathlib import Path

import pytest

from gateway.domain.audit import ChainHead
from gateway.store.headfile import HeadFile


def write(file: HeadFile, instance_id: str, head: ChainHead) -> None:
    file.hold(instance_id, head)
    file.write_held()


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    file = HeadFile(str(tmp_path / "head"))
    assert file.read("ins_1") is None
    for seq in (1, 12345):
        write(file, "ins_1", ChainHead(seq, "a" * 64))
    assert file.read("ins_1") == ChainHead(12345, "a" * 64)
    assert (tmp_path / "head").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"instance_id": "ins_1", "seq": "1", "hash": ""}', b"\xff" * 300]
)
def test_a_file_that_is_no_record_fits_no_chain(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "head").write_bytes(content)
    noted = HeadFile(str(tmp_path / "head")).read("ins_1")
    assert noted is not None
    assert noted.seq > 10**15


def test_the_record_of_another_instance_fits_no_chain(tmp_path: Path) -> None:
    file = HeadFile(str(tmp_path / "head"))
    write(file, "ins_2", ChainHead(1, "a" * 64))
    noted = file.read("ins_1")
    assert noted is not None
    assert noted.seq > 10**15


def test_a_file_that_is_not_trusted_is_left_as_evidence(tmp_path: Path) -> None:
    file = HeadFile(str(tmp_path / "head"))
    write(file, "ins_1", ChainHead(5, "a" * 64))
    file.is_trusted = False
    write(file, "ins_1", ChainHead(6, "b" * 64))
    assert file.read("ins_1") == ChainHead(5, "a" * 64)


def test_without_a_path_nothing_is_remembered() -> None:
    file = HeadFile(None)
    write(file, "ins_1", ChainHead(5, "a" * 64))
    assert file.read("ins_1") is None
