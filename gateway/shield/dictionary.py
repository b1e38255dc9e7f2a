"""What comes again in many pieces of bytes, as the preset dictionary with which zlib packs each by itself. Pure.

Pieces are packed without a checksum and without saying of which dictionary they are: the archive has one over all.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from zlib import compressobj, crc32, decompressobj

DICTIONARY_BYTES = 32_768  # all that zlib looks back
# So much must come again in so many pieces. Of all places those are looked at whose checksum has these bits zero.
_GRAM_BYTES = 12
_LEAST_PIECES = 3
_SPARED_BITS = 3
_CUT_BYTES = 128
_RAW = -15


def choose_dictionary(pieces: Sequence[bytes]) -> bytes:
    """Return cuts of the pieces that cover what most of them hold, the best last: what is near is named in fewer bits.

    Takes a second for a few megabytes. The same bytes for the same pieces.
    """
    found = [_grams(piece) for piece in pieces]
    counts = Counter[int]()
    for _, grams in found:
        counts.update(set(grams))
    often = {gram: count for gram, count in counts.items() if count >= _LEAST_PIECES}
    cuts: dict[tuple[int, int], list[int]] = {}
    for number, (places, grams) in enumerate(found):
        for place, gram in zip(places, grams, strict=True):
            if gram in often:
                cuts.setdefault((number, place - place % _CUT_BYTES), []).append(gram)
    # The best cut first, counting what no better one has covered; what a cut is worth only ever falls.
    waiting = [(-sum(map(often.__getitem__, one)), *cut) for cut, one in cuts.items()]
    heapify(waiting)
    chosen, covered, size = list[bytes](), set[int](), 0
    while waiting and size < DICTIONARY_BYTES:
        _, number, place = heappop(waiting)
        held = cuts[number, place]
        worth = sum(often[gram] for gram in held if gram not in covered)
        if waiting and worth < -waiting[0][0]:
            if worth:
                heappush(waiting, (-worth, number, place))
            continue
        covered.update(held)
        chosen.append(pieces[number][place : place + _CUT_BYTES + _GRAM_BYTES])
        size += len(chosen[-1])
    return b"".join(reversed(chosen))[-DICTIONARY_BYTES:]


def packed(piece: bytes, words: bytes = b"") -> bytes:
    """Return a piece packed with a dictionary, for `unpacked`."""
    packer = compressobj(9, wbits=_RAW, zdict=words)
    return packer.compress(piece) + packer.flush()


def unpacked(raw: bytes, words: bytes = b"") -> bytes:
    """Return the piece that was packed with the same dictionary.

    Raises:
        zlib.error: it is nothing that `packed` returned; not every change of it is told.
    """
    return decompressobj(_RAW, words).decompress(raw)


def _grams(piece: bytes) -> tuple["array[int]", "array[int]"]:
    """Return places in a piece, and the checksum of what begins at each."""
    cuts = map(slice, range(len(piece) - _GRAM_BYTES + 1), range(_GRAM_BYTES, len(piece) + 1))
    every = list(map(crc32, map(piece.__getitem__, cuts)))
    places = array("L", [place for place, gram in enumerate(every) if not gram & _SPARED_BITS])
    return places, array("L", map(every.__getitem__, places))
