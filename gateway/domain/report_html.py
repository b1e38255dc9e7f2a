"""A report as one self-contained HTML page: SVG charts, no scripts, no external resources, printable. Pure."""

from gateway import bundle
from gateway.domain import charts
from gateway.domain.posture import DAY_MS
from gateway.domain.reports import Column, ReportBody, Section
from gateway.domain.tables import html_cell, shown
from gateway.strict_json import write_time

_MARKED = frozenset(("pass", "fail", "warn", "critical", "high", "BLOCK"))
_LONG_ROWS = 15


def write_html(body: ReportBody) -> str:
    """Return the HTML page."""
    title, style = html_cell(body.heading), bundle.read("gateway/domain/report.css").decode()
    links = "".join(
        f'<a href="#s{number}">{html_cell(section.title)}</a>' for number, section in enumerate(body.sections)
    )
    sections = "".join(_section(section, number, body) for number, section in enumerate(body.sections))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{style}</style></head><body><main>"
        f"<header><h1>{title}</h1><dl><dt>Period</dt><dd>{_period(body)}</dd>"
        f"<dt>Made</dt><dd>{html_cell(_moment(body.made_at))} by {html_cell(body.made_by)}</dd>"
        f"<dt>Gateway</dt><dd>{html_cell(body.instance_id)}</dd>"
        f"<dt>Requests</dt><dd>{html_cell(body.origin)}</dd></dl></header><nav>{links}</nav>{sections}"
        "<footer>Each section names its data and its period.</footer></main></body></html>\n"
    )


def _section(section: Section, number: int, body: ReportBody) -> str:
    when = f"now, {html_cell(_moment(body.made_at))}" if section.is_current else _period(body)
    more = " · only the first are shown" if section.is_cut else ""
    kind = ' class="long"' if len(section.rows) > _LONG_ROWS else ""
    return (
        f'<section id="s{number}"{kind}><h2>{html_cell(section.title)}</h2>'
        f'<p class="query">{html_cell(section.query)} · {when}{more}</p>{_content(section)}</section>'
    )


def _content(section: Section) -> str:
    if not section.rows:
        return '<p class="none">Nothing in this time.</p>'
    match section.shape:
        case "figures":
            return _figures(section)
        case "lines":
            return _lines(section)
        case "bars":
            return _bars(section) + _table(section)
        case "rates":
            return _rates(section) + _table(section)
        case _:
            return _table(section)


def _figures(section: Section) -> str:
    pairs = zip(section.columns, section.rows[0], strict=True)
    cards = (
        f'<div class="figure"><b>{html_cell(cell(column, value))}</b><span>{html_cell(column.name)}</span></div>'
        for column, value in pairs
    )
    return f'<div class="figures">{"".join(cards)}</div>'


def _lines(section: Section) -> str:
    labels = _labels([int(str(row[0])) for row in section.rows])
    series = [(column.name, [_number(row[index]) for row in section.rows]) for index, column in _numbers(section)]
    is_scores = all(column.unit in ("time", "score") for column in section.columns)
    return charts.lines(labels, series, section.title, axis_end=100 if is_scores else 0)


def _bars(section: Section) -> str:
    numbers = _numbers(section)
    if not numbers:
        return ""
    index, column = numbers[0]
    values = [_number(row[index]) or 0.0 for row in section.rows]
    written = [cell(column, row[index]) for row in section.rows]
    return charts.bars([shown(row[0]) for row in section.rows], values, f"{section.title}: {column.name}", written)


def _rates(section: Section) -> str:
    columns = [(index, column) for index, column in enumerate(section.columns) if column.unit == "percent"]
    series = [(column.name, [_number(row[index]) for row in section.rows]) for index, column in columns]
    return charts.rates([shown(row[0]) for row in section.rows], series, section.title)


def _numbers(section: Section) -> list[tuple[int, Column]]:
    """Return the index and column of each numeric column after the first."""
    found = []
    for index, column in enumerate(section.columns):
        values = [row[index] for row in section.rows if row[index] is not None]
        if index and values and all(isinstance(value, int | float) for value in values) and column.unit != "time":
            found.append((index, column))
    return found


def _table(section: Section) -> str:
    numbers = {index for index, _ in _numbers(section)}
    heads = [(' class="number"' if index in numbers else "", one.name) for index, one in enumerate(section.columns)]
    head = "".join(f"<th{mark}>{html_cell(name)}</th>" for mark, name in heads)
    rows = []
    for row in section.rows:
        cells = []
        for index, (column, value) in enumerate(zip(section.columns, row, strict=True)):
            kind = "number" if index in numbers else "time" if column.unit == "time" else str(value)
            mark = f' class="{kind}"' if kind in ("number", "time") or kind in _MARKED else ""
            cells.append(f"<td{mark}>{html_cell(cell(column, value))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def cell(column: Column, value: object) -> str:
    """Return a value with its unit, in human-readable form."""
    if value is None or isinstance(value, str | bool):
        return shown(value)
    match column.unit:
        case "time":
            return _moment(int(str(value)))
        case "usd":
            return f"${float(str(value)):,.4f}".rstrip("0").rstrip(".") if float(str(value)) < 1 else f"${value:,.2f}"
        case "ms":
            return f"{float(str(value)):,.1f} ms"
        case "percent":
            return f"{float(str(value)):,.1f} %"
        case _:
            return shown(value)


def _period(body: ReportBody) -> str:
    return f"{html_cell(_moment(body.since_at))} to {html_cell(_moment(body.until_at))}"


def _moment(at: int) -> str:
    return write_time(at)[:16].replace("T", " ") + " UTC"


def _labels(times_at: list[int]) -> list[str]:
    """Return the labels of a time axis: the day at each midnight if the axis spans days, or else each hour."""
    texts = [write_time(at) for at in times_at]
    has_days = times_at[-1] - times_at[0] > 2 * DAY_MS
    return [text[5:10] if text[11:16] == "00:00" else "" if has_days else text[11:16] for text in texts]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
