"""Cells that strangers wrote: nothing of them is a formula, a mark or a tag."""

import csv
import html
import io
from html.parser import HTMLParser

import pytest

from gateway.domain.tables import csv_cell, csv_lines, html_cell, markdown_cell, shown

HOSTILE = ("=1+1", "+1", "-1", "@x", "\t=1", " =1", "'=1", '"=1', "|calc", "%0A", "\r\n=1", "\x00=1", "a\u2028b")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_cell_of_a_table_begins_like_a_formula(text: str) -> None:
    (row,) = csv.reader(io.StringIO(csv_lines([["x", text]]), newline=""))
    assert len(row) == 2
    assert not row[1].lstrip(" \"'").startswith(("=", "+", "-", "@", "|", "%")) or row[1].startswith("'")
    assert row[1].isprintable()


def test_numbers_stay_numbers_so_that_they_can_be_added_up() -> None:
    assert csv_lines([[1, -2.5, None, True, "text"]]) == "1,-2.5,,true,text\r\n"
    assert csv_cell(-1) == "-1" and csv_cell("-1") == "'-1"


@pytest.mark.parametrize("text", ["<b>", "**x**", "[a](b)", "`x`", "a|b", "# x", "![i](j)", "&lt;", "$x$", "~~x~~"])
def test_markdown_of_a_stranger_is_only_its_letters(text: str) -> None:
    written = markdown_cell(text)
    assert written.replace("\\", "") == text
    assert all(written[at - 1] == "\\" for at, sign in enumerate(written) if sign in "*<>[]()`|#!&$~")
    assert "\n" not in markdown_cell("a\nb")


class Text(HTMLParser):
    """The text of a piece of a page, and whether it had any tag."""

    def __init__(self, piece: str) -> None:
        super().__init__()
        self.text, self.tags = "", 0
        self.feed(piece)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags += 1


@pytest.mark.parametrize("text", ["<script>", "</td>", "&amp;", "\"'", "<!--"])
def test_a_page_shows_what_a_stranger_wrote_and_no_more(text: str) -> None:
    page = Text(html_cell(text))
    assert (page.text, page.tags) == (text, 0)
    assert '"' not in html_cell(text) and "'" not in html_cell(text)
    assert html_cell(text) == html.escape("".join(sign if sign.isprintable() else " " for sign in text))


def test_values_are_shown_as_people_read_them() -> None:
    assert [shown(value) for value in (None, True, 1234567, 0.5, "x")] == ["–", "yes", "1,234,567", "0.50", "x"]
