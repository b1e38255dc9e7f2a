"""Bar and line charts as SVG text, for paper and screens. Pure; no scripts, no external resources."""

from collections.abc import Sequence
from itertools import cycle, groupby

from gateway.domain.tables import html_cell, shown

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 44
_COLORS = ("#3d78d0", "#c0392b", "#d68910", "#1e8449", "#9b59b6", "#148f77")  # distinguishable on white and on black
_BAR_HEIGHT, _LABEL_WIDTH, _MAX_BARS = 22, 220, 20
_LABELS = 8
_RATE_HEIGHT = 13


def lines(
    labels: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], title: str, *, axis_end: float = 0
) -> str:
    """Return a line chart, one line for each series, with a legend and some of the labels. None breaks a line.

    axis_end: 0 to derive the end of the axis from the values.
    """
    high = axis_end or nice(max((value for _, values in series for value in values if value is not None), default=0))
    count = max(len(labels), 1)

    def x(number: int) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (number / (count - 1) if count > 1 else 0.5)

    def y(value: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - value / high)

    parts = [_open(WIDTH, HEIGHT + 20, title)]
    for step in range(5):
        value = high * step / 4
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        parts.append(_text(_LEFT - 6, y(value) + 4, _short(value), "end"))
    named = [number for number, label in enumerate(labels) if label]
    for number in named[:: -(-len(named) // _LABELS) or 1]:
        anchor = "start" if number == 0 else "end" if number == len(labels) - 1 else "middle"
        parts.append(_text(x(number), HEIGHT - _BOTTOM + 18, labels[number], anchor))
    for color, (_, values) in zip(cycle(_COLORS), series, strict=False):
        for run in _runs(values):
            points = " ".join(f"{x(number):.1f},{y(value):.1f}" for number, value in run)
            parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/>')
            if len(run) <= 40:
                parts.extend(
                    f'<circle cx="{x(number):.1f}" cy="{y(value):.1f}" r="2.5" fill="{color}"/>'
                    for number, value in run
                )
    return "".join((*parts, *_legend([name for name, _ in series], _LEFT, HEIGHT - 4), "</svg>"))


def bars(labels: Sequence[str], values: Sequence[float], title: str, written: Sequence[str]) -> str:
    """Return a bar chart, one bar for each label. written: the value as text, beside each bar."""
    rows = list(zip(labels, values, written, strict=True))[:_MAX_BARS]
    high = max((value for _, value, _ in rows), default=0) or 1
    room = WIDTH - _LABEL_WIDTH - 90
    parts = [_open(WIDTH, _BAR_HEIGHT * len(rows) + 8, title)]
    for number, (label, value, words) in enumerate(rows):
        top = number * _BAR_HEIGHT + 4
        cut = label if len(label) <= 32 else label[:31] + "…"
        parts.append(_text(_LABEL_WIDTH - 8, top + 13, cut, "end"))
        width = max(room * value / high, 1 if value else 0)
        parts.append(f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{width:.1f}" height="16" fill="{_COLORS[0]}" rx="2"/>')
        parts.append(_text(_LABEL_WIDTH + width + 6, top + 13, words, "start"))
    return "".join((*parts, "</svg>"))


def rates(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], title: str) -> str:
    """Return bars on an axis from 0 to 100 percent, one for each label and series, with a legend. None: only a dash."""
    group, top = _RATE_HEIGHT * len(series) + 10, 26
    bottom, room = top + group * len(labels), WIDTH - _LABEL_WIDTH - 60
    parts = [_open(WIDTH, bottom + 18, title)]
    parts += _legend([name for name, _ in series], _LABEL_WIDTH, 4)
    for step in range(0, 101, 25):
        x = _LABEL_WIDTH + room * step / 100
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 14, f"{step} %", "middle"))
    for number, label in enumerate(labels):
        begin = top + number * group + 5
        parts.append(_text(_LABEL_WIDTH - 8, begin + (group - 10) / 2 + 4, label, "end"))
        for row, (color, (_, values)) in enumerate(zip(cycle(_COLORS), series, strict=False)):
            y, value = begin + row * _RATE_HEIGHT, values[number]
            width, height = room * (value or 0) / 100, _RATE_HEIGHT - 2
            parts.append(f'<rect x="{_LABEL_WIDTH}" y="{y}" width="{width:.1f}" height="{height}" fill="{color}"/>')
            parts.append(_text(_LABEL_WIDTH + width + 5, y + 10, "–" if value is None else f"{value:.1f} %", "start"))
    return "".join((*parts, "</svg>"))


def nice(high: float) -> float:
    """Return a round number that is at least `high` and at least 1."""
    scale = 1.0
    while scale * 10 < high:
        scale *= 10
    return next(scale * step for step in (1, 2, 4, 5, 8, 10) if scale * step >= high)


def _open(width: int, height: int, title: str) -> str:
    named = html_cell(title)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{named}" xmlns="http://www.w3.org/2000/svg">'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html_cell(words)}</text>'


def _legend(names: Sequence[str], left: int, top: int) -> list[str]:
    parts = []
    for color, name in zip(cycle(_COLORS), names, strict=False):
        parts.append(f'<rect x="{left:.1f}" y="{top}" width="10" height="10" fill="{color}"/>')
        parts.append(_text(left + 15, top + 9, name, "start"))
        left += 40 + 7 * len(name)
    return parts


def _short(value: float) -> str:
    for scale, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:g}{sign}"
    return f"{value:g}" if value == round(value, 2) else shown(value)


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    groups = groupby(enumerate(values), key=lambda pair: pair[1] is None)
    return [[(number, value or 0.0) for number, value in group] for is_gap, group in groups if not is_gap]
