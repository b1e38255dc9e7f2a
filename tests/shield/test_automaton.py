"""The two automata give the same answers."""

import random

import pytest

from gateway.shield import automaton


def _naive(words: list[str], text: str) -> list[tuple[int, int]]:
    return sorted(
        (start + len(word) - 1, index)
        for index, word in enumerate(words)
        for start in range(len(text))
        if text.startswith(word, start)
    )


@pytest.mark.parametrize("seed", range(200))
def test_both_automata_find_every_occurrence_of_every_word(seed: int) -> None:
    dice = random.Random(seed)
    alphabet = dice.choice(["ab", "abc.", "aé字", "a\U0001f600b", "01 ", "[](|a\\^$"])
    words = sorted({"".join(dice.choices(alphabet, k=dice.randrange(1, 6))) for _ in range(dice.randrange(1, 12))})
    dice.shuffle(words)
    native, _ = automaton.build(words, native=True, is_dense=seed % 2 == 0)
    python, _ = automaton.build(words, native=False)
    for _ in range(10):
        text = "".join(dice.choices(alphabet, k=dice.randrange(60)))
        expected = _naive(words, text)
        assert sorted(hit for hit in native(text) if hit[1] >= 0) == expected
        assert sorted(python(text)) == expected


def test_texts_with_and_without_astral_characters_may_alternate() -> None:
    find, kind = automaton.build(["abc"])
    assert kind == "native"
    for _ in range(200):
        assert find("x\U0001f600abc") == [(4, 0)]
        assert find("xyabc") == [(4, 0)]


def test_no_words_find_nothing() -> None:
    for native in (True, False):
        find, _ = automaton.build([], native=native)
        assert find("abc") == []
