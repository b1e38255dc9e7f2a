"""Forms of text: what a person can read in one line, in lines, and how long from now on."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Annotated

import pytest

from gateway import field_types
from gateway.errors import InvalidRequest
from gateway.schema import check, decode


@dataclass(frozen=True)
class Named:
    """What has a name of one line."""

    name: Annotated[str, field_types.line(100)]


NOW_AT = 1_800_000_000_000
EVERY = [chr(code) for code in range(0x110000)]


def test_a_line_holds_what_can_be_printed_and_what_may_come_to_be() -> None:
    for sign in EVERY:
        if (category := unicodedata.category(sign)) != "Cn":
            assert field_types.is_line(sign) is (sign.isprintable() or category == "Co"), hex(ord(sign))
    assert field_types.is_line("") and field_types.is_line("two words ") and not field_types.is_line("two\nlines")


def test_the_pattern_of_the_document_says_the_same_of_all_that_json_can_hold() -> None:
    pattern = re.compile(field_types.LINE_OR_NONE_PATTERN[1:-1])
    for sign in EVERY:
        if not "\ud800" <= sign <= "\udfff":
            assert (pattern.fullmatch(sign) is not None) is field_types.is_line(sign), hex(ord(sign))


@pytest.mark.parametrize(("text", "fits"), [("a", True), ("  a  ", True), (" ", False), ("", False), ("a\tb", False)])
def test_a_line_that_must_be_there_has_a_sign_that_is_no_blank(text: str, fits: bool) -> None:
    assert (re.fullmatch(field_types.LINE_PATTERN, text) is not None) is fits


def test_what_cannot_be_read_in_a_line_is_shown_as_a_sign_of_its_own() -> None:
    assert field_types.as_line("a\nb\u202e c\ud800") == "a\ufffdb\ufffd c\ufffd"


def test_a_text_of_several_lines_is_refused_in_words() -> None:
    with pytest.raises(InvalidRequest, match=r"^name must be one line of printable characters\.$"):
        decode(Named, {"name": "two\nlines"})


def test_a_note_may_have_lines_and_tabs() -> None:
    for text in ("", "one\n\ttwo"):
        assert re.fullmatch(field_types.NOTE_PATTERN, text)
    for text in ("one\rtwo", "one\u202etwo"):
        assert not re.fullmatch(field_types.NOTE_PATTERN, text)


@dataclass(frozen=True)
class Globbed:
    """What has a glob."""

    glob: Annotated[str, field_types.glob(100)]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("gpt-4o*", True), ("*", True), ("a b  c", True), ("*" * 10, True), ("a*b * c*", True), ("Modell ü", True),
        ("", False), (" a", False), ("a ", False), ("* ", False), ("*" * 11, False), ("a*" * 11, False), ("a\tb", False),
        ("a\ud800", False),
    ],
)  # fmt: skip
def test_a_glob_has_no_blank_at_its_ends_and_few_asterisks(text: str, fits: bool) -> None:
    try:
        check(Globbed(text))
    except InvalidRequest:
        assert not fits
    else:
        assert fits


@dataclass(frozen=True)
class PlainlyNamed:
    """What has a plain name."""

    name: field_types.PlainName


@pytest.mark.parametrize("text", ["a", "  Lab 2 ", "0._-", "x" * 64])
def test_a_plain_name_may_have_blanks_around_it(text: str) -> None:
    check(PlainlyNamed(text))


@pytest.mark.parametrize("text", ["", " ", "-a", "a/b", "ä", "x" * 65, "a\nb"])
def test_what_is_no_plain_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check(PlainlyNamed(text))
    assert refused.value.param == "name"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("45s", 45_000), ("30m", 1_800_000), ("12h", 43_200_000), ("90d", 7_776_000_000), ("999999d", 86_399_913_600_000)],
)
def test_how_long_from_now_on(text: str, milliseconds: int) -> None:
    assert field_types.read_ahead(text, param="until", now_at=NOW_AT) == NOW_AT + milliseconds


def test_a_time_that_lies_ahead_or_not_is_read_as_it_is() -> None:
    assert field_types.read_ahead("1970-01-01T00:00:01Z", param="until", now_at=NOW_AT) == 1000


@pytest.mark.parametrize("text", ["", "90", "d", "90w", "-1d", "2030-01-31", "1234567d", "soon"])
def test_other_texts_are_refused_by_the_name_of_the_field(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        field_types.read_ahead(text, param="until", now_at=NOW_AT)
    assert refused.value.param == "until"
