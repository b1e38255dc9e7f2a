"""The counter of authority."""

from pathlib import Path

from gateway.store.generation import Generation


def test_every_opener_of_the_file_sees_a_change(tmp_path: Path) -> None:
    path = str(tmp_path / "generation")
    one, two = Generation(path), Generation(path)
    before = two.value()
    one.bump()
    assert two.value() == one.value() != before


def test_without_a_file_it_counts_for_itself() -> None:
    one = Generation(None)
    before = one.value()
    one.bump()
    assert one.value() != before


def test_a_short_file_is_filled_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "generation"
    path.write_bytes(b"\1")
    one = Generation(str(path))
    assert path.stat().st_size == 8
    one.bump()
    assert one.value() == 2
    assert Generation(str(tmp_path / "new")).value() == 0
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_the_counter_goes_round_instead_of_over(tmp_path: Path) -> None:
    path = tmp_path / "generation"
    path.write_bytes(b"\xff" * 8)
    one = Generation(str(path))
    one.bump()
    assert one.value() == 0
