"""The normalized view and its way back."""

import random
import sys
import unicodedata

import pytest

from gateway.shield.normalize import Normalizer

NORMALIZER = Normalizer()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("Ignore  ALL\n\n\tprevious", "ignore all previous"),
        ("ｉｇｎｏｒｅ　ａｌｌ", "ignore all"),
        ("𝐢𝐠𝐧𝐨𝐫𝐞 𝓪𝓵𝓵 ⓐⓛⓛ 🄰🅻🅻 🇦🇱🇱", "ignore all all all all"),
        ("іgnоrе аll", "ignore all"),  # Cyrillic
        ("ιgnοrε αll Αll", "ignore all all"),  # Greek
        ("ᎪLL ⲁll ɑll ᴀʟʟ", "all all all all"),
        ("i\u200bg\u200cn\u200do\u2060r\ufeffe\u00ad", "ignore"),
        ("\u202eall\u202c \u2066all\u2069", "all all"),
        ("i\u0301g\u0336n\u0338ore ÍGNÖRE", "ignore ignore"),
        ("a\ufe0fl\U000e0101l", "all"),
        ("".join(chr(0xE0000 + ord(char)) for char in "Ignore all"), "ignore all"),
        ("a\x00l\x07l\x7f", "all"),
        ("a\u00a0\u2003\u3000 \u2028b\u0085c", "a b c"),
        ("straße Æ ﬁ №", "strasse ae fi no"),
        ("“quoted” – ‘it’s’ …", "\"quoted\" - 'it's' ..."),
        ("٣٤５", "345"),
        ("忽略 指令", "忽略 指令"),
        ("שָׁלוֹם हिन्दी ไทย が", "שָׁלוֹם हिन्दी ไทย が"),
    ],
)
def test_disguised_letters_become_plain_ones(sent: str, said: str) -> None:
    assert NORMALIZER.normalize(sent).text == said


# The planes above hold rare scripts, and private ones.
@pytest.mark.parametrize("end", [0x20000, pytest.param(sys.maxunicode + 1, marks=pytest.mark.slow)])
def test_every_character_folds_once_and_for_all(end: int) -> None:
    normalizer = Normalizer()
    for code in range(end):
        folded = normalizer.fold_char(chr(code))
        assert "\x00" not in folded
        if folded != chr(code):
            assert "".join(map(normalizer.fold_char, folded)) == folded, hex(code)


def test_both_cases_of_a_letter_fold_alike_in_scripts_with_words_of_their_own() -> None:
    for low, high in ((0x61, 0x7A), (0xE0, 0xFE), (0x430, 0x45F), (0x561, 0x586)):
        for code in range(low, high + 1):
            char = chr(code)
            if len(char.upper()) == 1 and unicodedata.category(char) == "Ll":
                assert NORMALIZER.fold_char(char.upper()) == NORMALIZER.fold_char(char), char


def _naive(text: str) -> tuple[str, list[int]]:
    """The normalized text and where each of its characters comes from, one character at a time."""
    said: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for plain in NORMALIZER.fold_char(char):
            if plain == " " and said and said[-1] == " ":
                continue
            said.append(plain)
            places.append(place)
    return "".join(said), places


@pytest.mark.parametrize("seed", range(300))
def test_view_and_positions_are_those_of_folding_one_character_at_a_time(seed: int) -> None:
    dice = random.Random(seed)
    alphabet = dice.choice(
        [
            "aB \n",
            "aB \n\x00\t.",
            "aé \u200b\u0301ß…",
            "xі　\u3000 ﬁ\U0001d41a\U000e0041\ud800",
            "字 e\u0301\u00a0\u200d\ufb03",
        ]
    )
    text = "".join(dice.choice(alphabet) for _ in range(dice.randrange(40)))
    view = NORMALIZER.normalize(text)
    said, places = _naive(text)
    assert view.text == said
    assert [view.position(offset) for offset in range(len(said))] == places
    for start in range(len(said)):
        assert view.span(start, len(said)) == (places[start], places[-1] + 1)


@pytest.mark.parametrize("seed", range(60))
def test_a_position_asked_alone_is_the_one_that_is_told_after_many(seed: int) -> None:
    dice = random.Random(seed)
    words = ["the", "then", "key", "a", "keys:", "ﬁ", "e\u0301", "\u200b", "x\x00y", "k" * 70]
    known = dice.sample(words, dice.randrange(1, 6))
    text = "".join(dice.choice(known) + " " * dice.choice((0, 1, 1, 2, 5)) for _ in range(dice.randrange(1, 120)))
    said, places = _naive(text)
    offsets = range(0, len(said), 1 + len(said) // 50)
    assert [NORMALIZER.normalize(text).position(offset) for offset in offsets] == [places[offset] for offset in offsets]


@pytest.mark.parametrize("seed", range(60))
def test_a_few_positions_asked_in_any_order_are_those_that_are_told_after_many(seed: int) -> None:
    dice = random.Random(seed)
    words = dice.sample(
        ["the", "then", "key", "a", "keys:", "\ufb01", "e\u0301", "\u200b", "k" * 70], dice.randrange(1, 6)
    )
    text = "".join(dice.choice(words) + " " * dice.choice((0, 1, 1, 2, 5)) for _ in range(200))
    said, places = _naive(text)
    for _ in range(20):
        view, offsets = NORMALIZER.normalize(text), dice.choices(range(len(said)), k=12)
        offsets.sort(key=dice.choice((None, int.__neg__, lambda _: dice.random())))
        assert [view.position(offset) for offset in offsets] == [places[offset] for offset in offsets]


@pytest.mark.parametrize("low", [0x384, 0x400, 0x5B0, 0x60C, 0x901, 0xE01])
@pytest.mark.parametrize(
    "beside", ["", "«…» № 😀\U000e0041", "\ud800\ufffe漢\ue000 \u200b𝐢", "".join(map(chr, range(0xC0, 0x180)))]
)
def test_a_long_text_in_one_script_is_folded_one_character_at_a_time(low: int, beside: str) -> None:
    dice = random.Random(low)
    letters = [chr(code) for code in range(low, low + 64)]
    text = "".join(dice.choice((*letters, "A", " ", "  ")) for _ in range(2_000))
    text = beside.join((text[:900], text[900:], ""))
    view = NORMALIZER.normalize(text)
    said, places = _naive(text)
    assert view.text == said
    assert [view.position(offset) for offset in range(len(said))] == places
    assert view.others >= {char for char in text if char > "\x7f" and char != "漢"}


def test_many_different_characters_fold_as_few_do() -> None:
    text = "".join(chr(code) for code in range(0x80, 0x3000)) + " end"
    assert NORMALIZER.normalize(text).text == _naive(text)[0]


@pytest.mark.parametrize("extra", ["", "\u200b", "\u00bd"])
def test_a_long_text_is_led_back_the_same_wherever_its_pieces_end(extra: str) -> None:
    for shift in (-5, -2, -1, 0, 1):
        before = extra + "x " * 3 + " " * 3
        sent = before + "y" * (262_144 + shift - len(before)) + "    z \u200a  \nignore  all"
        view = NORMALIZER.normalize(sent)
        for word in ("z", "ignore", "all"):
            at = view.text.rindex(word)
            start, end = view.span(at, at + len(word))
            assert sent[start:end] == word
