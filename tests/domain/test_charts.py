"""Charts: whole SVG whatever the numbers, and no name of a stranger in it as a tag."""

from xml.etree import ElementTree

import pytest

from gateway.domain.charts import bars, lines, nice, rates
from gateway.domain.reports import bucket_ms, filled

HOUR, DAY = 3_600_000, 86_400_000


@pytest.mark.parametrize("values", [[], [0.0], [None, None], [1.0, None, 3.0], [1e9, 0.001], [0.0] * 500])
def test_lines_are_drawn_whole_whatever_the_numbers(values: list[float | None]) -> None:
    text = lines([str(number) for number in range(len(values))], [("requests", values)], "<b>")
    root = ElementTree.fromstring(text)
    assert root.attrib["aria-label"] == "<b>"
    assert "nan" not in text and "inf" not in text


def test_a_gap_breaks_a_line() -> None:
    assert lines(["a", "b", "c"], [("x", [1.0, None, 2.0])], "t").count("<polyline") == 2


def test_bars_are_as_long_as_their_numbers_and_named_by_strangers_safely() -> None:
    root = ElementTree.fromstring(bars(["<i>a", "b" * 100], [10.0, 5.0], "t", ["10", "5"]))
    widths = [float(one.attrib["width"]) for one in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[0] == 2 * widths[1]
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "<i>a" and str(words[2]).endswith("…")


@pytest.mark.parametrize("labels", [[], ["<i>a"], ["a", "b"]])
def test_rates_are_drawn_whole_and_what_is_not_known_is_a_dash(labels: list[str]) -> None:
    text = rates(labels, [("found", [100.0] * len(labels)), ("wrong", [None] * len(labels))], "<b>")
    assert ElementTree.fromstring(text).attrib["aria-label"] == "<b>"
    assert text.count("100.0 %") == text.count("–") == len(labels)


@pytest.mark.parametrize(("high", "round_one"), [(0, 1), (1, 1), (3, 4), (267, 400), (1000, 1000), (1001, 2000)])
def test_an_axis_ends_with_a_round_number(high: float, round_one: float) -> None:
    assert nice(high) == round_one


@pytest.mark.parametrize("span", [HOUR, DAY, 7 * DAY, 90 * DAY, 3650 * DAY])
def test_a_chart_has_few_enough_points(span: int) -> None:
    assert 1 <= len(filled([(0, 1)], 0, span, bucket_ms(0, span))) <= 130


def test_a_time_without_rows_is_a_row_of_zeros_or_of_nothing() -> None:
    rows = [(HOUR, 5)]
    assert filled(rows, 0, 3 * HOUR, HOUR) == ((0, 0), (HOUR, 5), (2 * HOUR, 0))
    assert filled(rows, 0, 3 * HOUR, HOUR, empty=None) == ((0, None), (HOUR, 5), (2 * HOUR, None))
    assert filled([], 0, 3 * HOUR, HOUR) == ()
