"""Opaque cursors between the pages of a list."""

import base64

import pytest

from gateway.domain.paging import read_cursor, write_cursor
from gateway.errors import InvalidRequest

QUERY = ("audit", "cli", None, ("a", "b"))


def test_a_cursor_reads_back_in_the_query_that_made_it() -> None:
    cursor = write_cursor(QUERY, (1700000000000, 42))
    assert read_cursor(cursor, QUERY, (int, int)) == (1700000000000, 42)
    assert cursor.isascii() and "=" not in cursor


def test_a_cursor_of_another_query_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_cursor(write_cursor(QUERY, (1, 2)), ("audit", "api", None, ("a", "b")), (int, int))
    assert refusal.value.param == "cursor"


def _made(text: str) -> str:
    return base64.urlsafe_b64encode(b"123456" + text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "a",
        "é",
        "\ud800",
        "x" * 1025,
        _made("[1,2]"),
        _made("1"),
        _made("[1,99999999999999999999]"),
        _made("[" * 700),
    ],
)
def test_nonsense_is_refused_as_a_cursor(cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        read_cursor(cursor, QUERY, (int, int))


def test_a_changed_place_is_refused() -> None:
    raw = base64.urlsafe_b64decode(write_cursor(QUERY, (1, 2)) + "==")
    with pytest.raises(InvalidRequest):
        read_cursor(base64.urlsafe_b64encode(raw[:-2] + b"3]").decode().rstrip("="), QUERY, (int, int))


def test_a_cursor_with_another_number_of_places_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        read_cursor(write_cursor(QUERY, (1,)), QUERY, (int, int))


def test_an_id_is_a_position() -> None:
    cursor = write_cursor(("keys",), ("key_01HF7YAT00ZZZZZZZZZZZZZZZZ",))
    assert read_cursor(cursor, ("keys",), (str,)) == ("key_01HF7YAT00ZZZZZZZZZZZZZZZZ",)
    with pytest.raises(InvalidRequest):
        read_cursor(cursor, ("keys",), (int,))
