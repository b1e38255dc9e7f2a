"""The dictionary that is chosen from pieces: it holds what many have, and packs them smaller."""

import random

from gateway.shield.dictionary import (
    DICTIONARY_BYTES,
    choose_dictionary,
    choose_likes,
    packed,
    unpacked,
    words_like,
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


def test_a_piece_much_like_another_one_is_packed_with_that_to_nearly_nothing() -> None:
    rng = random.Random(5)
    ones = [rng.randbytes(1_500) for _ in range(4)]
    given = [*ones, *(one[:700] + rng.randbytes(50) + one[700:] for one in ones), b"", b"short"]
    likes = choose_likes(given, WORDS[0])
    assert sorted(map(sorted, likes.items())) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert not likes.keys() & set(likes.values())
    for number, other in likes.items():
        words = words_like(WORDS[0], given[other])
        raw = packed(given[number], words)
        assert unpacked(raw, words) == given[number]
        assert len(raw) < len(packed(given[number], WORDS[0])) / 10
    assert choose_likes(list(given), WORDS[0]) == likes
    assert choose_likes(given, b"".join(given)) == choose_likes([], b"") == {}
    assert len(words_like(bytes(DICTIONARY_BYTES), b"more")) == DICTIONARY_BYTES
