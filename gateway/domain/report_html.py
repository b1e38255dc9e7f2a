"""A report as one self-contained HTML page: SVG charts, no scripts, no external resources, printable. Pure."""

from gateway.domain import charts
from gateway.domain.posture import DAY_MS
from gateway.domain.reports import Column, ReportBody, Section
from gateway.domain.tables import html_cell, shown
from gateway.strict_json import write_time

_STYLE = """
:root{color-scheme:light dark;--ink:#1b2430;--soft:#48566a;--dim:#5b6878;--paper:#fff;--head:#f2f5f9;--line:#d5dce6;
--fine:#e3e8ef;--accent:#2457a6;--good:#1e6f3c;--bad:#a5281b;--soso:#8a5a00}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6ebf2;--soft:#b4bfcd;--dim:#98a5b5;--paper:#141a22;
--head:#1e2732;--line:#3a4656;--fine:#2a3441;--accent:#7fb0f5;--good:#6fcf97;--bad:#f19084;--soso:#e6b450}}
*{box-sizing:border-box}
body{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
body{color:var(--ink);background:var(--paper);margin:0}
main{max-width:960px;margin:0 auto;padding:32px 24px 48px}
header{border-bottom:3px solid var(--accent);padding-bottom:16px;margin-bottom:28px}
h1{font-size:26px;line-height:1.2;margin:0 0 8px}
h2{font-size:17px;margin:0 0 2px}
header dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0;color:var(--soft)}
dt{font-weight:600}dd{margin:0}
nav{columns:2;font-size:13px;margin:0 0 28px}nav a{color:var(--accent);text-decoration:none;display:block}
section{margin:0 0 30px;break-inside:avoid-page}section.long{break-inside:auto}
.query{color:var(--dim);font-size:12px;margin:0 0 10px}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px}
.figure{border:1px solid var(--line);border-radius:6px;padding:10px 12px}
.figure b{display:block;font-size:22px;line-height:1.25;font-weight:650;overflow-wrap:anywhere}
.figure span{color:var(--dim);font-size:12px}
table{border-collapse:collapse;width:100%;font-size:12.5px}
th,td{text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid var(--fine);overflow-wrap:anywhere}
th{background:var(--head);font-weight:600;overflow-wrap:normal}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.time{white-space:nowrap;font-variant-numeric:tabular-nums}
tr{break-inside:avoid}thead{display:table-header-group}
td.pass{color:var(--good)}td.fail,td.critical,td.BLOCK{color:var(--bad);font-weight:600}td.warn,td.high{color:var(--soso)}
svg{width:100%;height:auto;display:block;margin:6px 0 10px}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--fine);stroke-width:1}
.none{color:var(--dim);font-style:italic;margin:0}
footer{border-top:1px solid var(--line);color:var(--dim);font-size:12px;padding-top:10px}
@media print{main{max-width:none;padding:0}nav{display:none}body{font-size:11px}table{font-size:9.5px}}
@page{margin:16mm 14mm}
"""
_MARKED = frozenset(("pass", "fail", "warn", "critical", "high", "BLOCK"))
_LONG_ROWS = 15


def write_html(body: ReportBody) -> str:
    """Return the HTML page."""
    title = html_cell(body.type.heading)
    links = "".join(
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
