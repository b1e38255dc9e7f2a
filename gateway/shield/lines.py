"""Lines of text, packed in blocks: a block is unpacked when one of its lines is asked for. Pure.

Layout: the sizes of the index and of `words`; the index, which is how many lines each block has and then how long each
is; `words`, which is the preset dictionary of all blocks; the blocks. All numbers are 4 bytes, little endian; the rest
is deflated. A block ends with the line that makes it long enough, so a long line has one for itself.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from gateway.shield import dictionary

_BLOCK_BYTES = 3_584
# So many lines of the same spacing give `words`, each so much of its beginning.
_SAMPLES = 300
_SAMPLE_BYTES = 400
_NUMBER_BYTES = 4
_NUMBER = next(kind for kind in "ILH" if array(kind).itemsize == _NUMBER_BYTES)


def pack_lines(lines: Sequence[bytes], *, is_thorough: bool = False) -> bytes:
    """Pack lines, which hold no line feed. The same bytes for the same lines.

    is_thorough: whether to look for good `words`, which takes seconds, and a tenth less room then.
    """
    if is_thorough:
        words = dictionary.choose_dictionary(lines)
    else:
        samples = [line[:_SAMPLE_BYTES] for line in lines[:: max(1, len(lines) // _SAMPLES)]]
        words = b"\n".join(samples)[-dictionary.DICTIONARY_BYTES :]
    counts, blocks, block, size = list[int](), list[bytes](), list[bytes](), 0
    for number, line in enumerate(lines, 1):
        block.append(line)
        size += len(line)
        if size >= _BLOCK_BYTES or number == len(lines):
            counts.append(len(block))
            blocks.append(dictionary.packed(b"\n".join(block), words))
            block, size = [], 0
    head = dictionary.packed(_told([*counts, *map(len, blocks)])), dictionary.packed(words)
    return b"".join((_told(map(len, head)), *head, *blocks))


class Lines:
    """The lines of what `pack_lines` made, by number. Threads may share it."""

    __slots__ = ("_firsts", "_last", "_places", "_raw", "_words")

    def __init__(self, raw: bytes) -> None:
        """raw: is trusted as the program itself is.

        Raises:
            ValueError, zlib.error: it is nothing that `pack_lines` made.
        """
        begin = 2 * _NUMBER_BYTES
        _, middle, end = accumulate(_numbers(raw[:begin]), initial=begin)
        index = _numbers(dictionary.unpacked(raw[begin:middle]))
        self._words = dictionary.unpacked(raw[middle:end])
        count = len(index) // 2
        self._firsts = array(_NUMBER, accumulate(index[:count], initial=0))
        self._places = array(_NUMBER, accumulate(index[count:], initial=end))
        if not count or len(raw) != self._places[-1]:
            raise ValueError("cut off")
        self._raw = raw
        # The block that was asked for last: lines beside each other are often asked for together.
        self._last: tuple[int, list[bytes]] = (-1, [])

    def __getitem__(self, number: int) -> bytes:
        block = bisect_right(self._firsts, number) - 1
        known, lines = self._last
        if known != block:
            lines = self._unpacked(block)
            self._last = block, lines
        return lines[number - self._firsts[block]]

    def __iter__(self) -> Iterator[bytes]:
        for block in range(len(self._places) - 1):
            yield from self._unpacked(block)

    def _unpacked(self, block: int) -> list[bytes]:
        packed = self._raw[self._places[block] : self._places[block + 1]]
        return dictionary.unpacked(packed, self._words).split(b"\n")


def _told(numbers: Iterable[int]) -> bytes:
    told = array(_NUMBER, numbers)
    if sys.byteorder == "big":
        told.byteswap()
    return told.tobytes()


def _numbers(raw: bytes) -> "array[int]":
    numbers = array(_NUMBER)
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
