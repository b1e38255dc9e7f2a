"""A report as one page that needs nothing else: no script, no picture to load, drawn charts, fit for paper. Pure."""

from gateway.domain import charts
from gateway.domain.posture import DAY_MS
from gateway.domain.reports import Column, ReportBody, Section
from gateway.domain.tables import html_cell, shown
from gateway.wire import write_time

_STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1b2430;background:#fff;margin:0}
main{max-width:960px;margin:0 auto;padding:32px 24px 48px}
header{border-bottom:3px solid #2457a6;padding-bottom:16px;margin-bottom:28px}
h1{font-size:26px;line-height:1.2;margin:0 0 8px}
h2{font-size:17px;margin:0 0 2px}
header dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0;color:#48566a}
dt{font-weight:600}dd{margin:0}
nav{columns:2;font-size:13px;margin:0 0 28px}nav a{color:#2457a6;text-decoration:none;display:block}
section{margin:0 0 30px;break-inside:avoid-page}section.long{break-inside:auto}
.query{color:#5b6878;font-size:12px;margin:0 0 10px}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px}
.figure{border:1px solid #d5dce6;border-radius:6px;padding:10px 12px}
.figure b{display:block;font-size:22px;line-height:1.25;font-weight:650;overflow-wrap:anywhere}
.figure span{color:#5b6878;font-size:12px}
table{border-collapse:collapse;width:100%;font-size:12.5px}
th,td{text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid #e3e8ef;overflow-wrap:anywhere}
th{background:#f2f5f9;font-weight:600;overflow-wrap:normal}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.time{white-space:nowrap;font-variant-numeric:tabular-nums}
tr{break-inside:avoid}thead{display:table-header-group}
td.pass{color:#1e6f3c}td.fail,td.critical,td.BLOCK{color:#a5281b;font-weight:600}td.warn,td.high{color:#8a5a00}
svg{width:100%;height:auto;display:block;margin:6px 0 10px}
svg text{font:11px system-ui,sans-serif;fill:#48566a}.grid{stroke:#e3e8ef;stroke-width:1}
.none{color:#5b6878;font-style:italic;margin:0}
footer{border-top:1px solid #d5dce6;color:#5b6878;font-size:12px;padding-top:10px}
@media print{main{max-width:none;padding:0}nav{display:none}body{font-size:11px}table{font-size:9.5px}}
@page{margin:16mm 14mm}
"""
_MARKED = frozenset(("pass", "fail", "warn", "critical", "high", "BLOCK"))
_LONG_ROWS = 15


def write_html(body: ReportBody) -> str:
    """Return the page."""
    title = html_cell(body.type.heading)
    places = "".join(
        f'<a href="#s{number}">{html_cell(section.title)}</a>' for number, section in enumerate(body.sections)
    )
    sections = "".join(_section(section, number, body) for number, section in enumerate(body.sections))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main>"
        f"<header><h1>{title}</h1><dl><dt>Period</dt><dd>{_period(body)}</dd>"
        f"<dt>Made</dt><dd>{html_cell(_moment(body.made_at))} by {html_cell(body.made_by)}</dd>"
        f"<dt>Gateway</dt><dd>{html_cell(body.instance_id)}</dd>"
        f"<dt>Requests</dt><dd>{html_cell(body.origin)}</dd></dl></header><nav>{places}</nav>{sections}"
        "<footer>Every part says what was counted and over which time.</footer></main></body></html>\n"
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
    series = [(column.name, [_number(row[at]) for row in section.rows]) for at, column in _numbers(section)]
    return charts.lines(labels, series, section.title)


def _bars(section: Section) -> str:
    numbers = _numbers(section)
    if not numbers:
        return ""
    at, column = numbers[0]
    values = [_number(row[at]) or 0.0 for row in section.rows]
    written = [cell(column, row[at]) for row in section.rows]
    return charts.bars([shown(row[0]) for row in section.rows], values, f"{section.title}: {column.name}", written)


def _numbers(section: Section) -> list[tuple[int, Column]]:
    """Return the columns after the first that hold numbers."""
    found = []
    for at, column in enumerate(section.columns):
        values = [row[at] for row in section.rows if row[at] is not None]
        if at and values and all(isinstance(value, int | float) for value in values) and column.unit != "time":
            found.append((at, column))
    return found


def _table(section: Section) -> str:
    numbers = {at for at, _ in _numbers(section)}
    head = "".join(
        f'<th class="number">{html_cell(column.name)}</th>' if at in numbers else f"<th>{html_cell(column.name)}</th>"
        for at, column in enumerate(section.columns)
    )
    rows = []
    for row in section.rows:
        cells = []
        for at, (column, value) in enumerate(zip(section.columns, row, strict=True)):
            kind = "number" if at in numbers else "time" if column.unit == "time" else str(value)
            mark = f' class="{kind}"' if kind in ("number", "time") or kind in _MARKED else ""
            cells.append(f"<td{mark}>{html_cell(cell(column, value))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def cell(column: Column, value: object) -> str:
    """Return a value with its unit, as people read it."""
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
    """Return the day of each midnight when there are days between the times, else the hour of each."""
    texts = [write_time(at) for at in times_at]
    has_days = times_at[-1] - times_at[0] > 2 * DAY_MS
    return [text[5:10] if text[11:16] == "00:00" else "" if has_days else text[11:16] for text in texts]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
