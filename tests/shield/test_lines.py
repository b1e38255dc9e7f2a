"""Packed lines: every line comes back, whichever is asked for first, and what is cut off is told at once."""

import random
import zlib

import pytest

from gateway.shield.lines import Lines, pack_lines

LINES = [b"head" * 5_000, b"", *(f"line {number} {'x' * (number % 90)}".encode() for number in range(3_000)), b"end"]


@pytest.mark.parametrize("is_thorough", [False, True])
def test_every_line_comes_back_in_any_order(is_thorough: bool) -> None:
    packed = pack_lines(LINES, is_thorough=is_thorough)
    assert len(packed) < len(b"\n".join(LINES)) / 4
    assert pack_lines(list(LINES), is_thorough=is_thorough) == packed
    lines = Lines(packed)
    assert list(lines) == LINES
    numbers = list(range(len(LINES)))
    assert [lines[number] for number in numbers] == LINES
    random.Random(1).shuffle(numbers)
    assert [lines[number] for number in numbers] == [LINES[number] for number in numbers]


@pytest.mark.parametrize("lines", [[b""], [b"one"], [b"", b"", b"x" * 100_000]])
def test_few_lines_come_back(lines: list[bytes]) -> None:
    packed = Lines(pack_lines(lines))
    assert [packed[number] for number in range(len(lines))] == lines


@pytest.mark.parametrize("kept", [0, 3, 9, 40, 1_000, -1])
def test_what_is_cut_off_is_told_when_it_is_opened(kept: int) -> None:
    with pytest.raises((ValueError, zlib.error)):
        Lines(pack_lines(LINES)[:kept])
