"""The dictionary that is chosen from pieces: it holds what many have, and packs them smaller."""

import random

from gateway.shield.dictionary import (
    DICTIONARY_BYTES,
    choose_dictionary,
    packed,
    unpacked,
)

WORDS = [random.Random(number).randbytes(60) for number in range(40)]


def pieces(count: int) -> list[bytes]:
    """Pieces that hold three of the words each, between bytes that no other piece has."""
    rng = random.Random(7)
    return [b"".join(rng.randbytes(40) + word for word in rng.sample(WORDS, 3)) for _ in range(count)]


def test_what_many_pieces_hold_is_packed_to_nearly_nothing() -> None:
    given = pieces(400)
    words = choose_dictionary(given)
    assert sum(len(packed(piece, words)) for piece in given) < 0.6 * sum(map(len, given))
    assert [unpacked(packed(piece, words), words) for piece in given] == given
    assert choose_dictionary(list(given)) == words


def test_it_holds_no_more_than_zlib_looks_back() -> None:
    rng = random.Random(3)
    shared = [rng.randbytes(2_000) for _ in range(40)]
    words = choose_dictionary([part for part in shared for _ in range(3)])
    assert len(words) == DICTIONARY_BYTES


def test_pieces_that_share_nothing_give_none() -> None:
    assert choose_dictionary([]) == b""
    assert unpacked(packed(b"")) == b""
    assert choose_dictionary([b"", b"short", random.Random(1).randbytes(500)]) == b""
