"""Lines of text, packed in blocks: a block is unpacked when one of its lines is asked for. Pure.

Layout: the number of blocks and the size of `words`, then of each block the number of its first line and where it ends;
`words`, which is the preset dictionary of all blocks; the blocks. All numbers are 4 bytes, little endian; everything
packed is zlib's. A block ends with the line that makes it long enough, so a long line has one for itself.
"""

import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from gateway.shield import dictionary

_BLOCK_BYTES = 3_072
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
    packed_words = zlib.compress(words, 9)
    places, blocks, block, size, end = array(_NUMBER), [], list[bytes](), 0, 0
    for number, line in enumerate(lines, 1):
        block.append(line)
        size += len(line)
        if size >= _BLOCK_BYTES or number == len(lines):
            packer = zlib.compressobj(9, zdict=words)
            blocks.append(packer.compress(b"\n".join(block)) + packer.flush())
            end += len(blocks[-1])
            places.extend((number - len(block), end))
            block, size = [], 0
    head = array(_NUMBER, (len(blocks), len(packed_words))) + places
    if sys.byteorder == "big":
        head.byteswap()
    return b"".join((head.tobytes(), packed_words, *blocks))


class Lines:
    """The lines of what `pack_lines` made, by number. Threads may share it."""

    __slots__ = ("_begin", "_ends", "_firsts", "_last", "_raw", "_words")

    def __init__(self, raw: bytes) -> None:
        """raw: is trusted as the program itself is.

        Raises:
            ValueError, zlib.error: it is nothing that `pack_lines` made.
        """
        count, size = _numbers(raw[: 2 * _NUMBER_BYTES])
        begin = (2 + 2 * count) * _NUMBER_BYTES
        places = _numbers(raw[2 * _NUMBER_BYTES : begin])
        self._firsts, self._ends = places[::2], places[1::2]
        self._words = zlib.decompress(raw[begin : begin + size])
        self._begin = begin + size
        if not count or len(self._ends) != count or len(raw) != self._begin + self._ends[-1]:
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
        for block in range(len(self._ends)):
            yield from self._unpacked(block)

    def _unpacked(self, block: int) -> list[bytes]:
        begin = self._begin + (self._ends[block - 1] if block else 0)
        packed = self._raw[begin : self._begin + self._ends[block]]
        return zlib.decompressobj(zdict=self._words).decompress(packed).split(b"\n")


def _numbers(raw: bytes) -> "array[int]":
    numbers = array(_NUMBER)
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
