"""A report as Markdown, CSV or JSON. Text of unknown origin is escaped in each format. Pure."""

from gateway.domain.report_html import cell, write_html
from gateway.domain.reports import Column, ReportBody, ReportFormat, Section
from gateway.domain.tables import csv_lines, markdown_cell
from gateway.strict_json import write_json, write_time

CONTENT_TYPES = {
    ReportFormat.HTML: "text/html; charset=utf-8",
    ReportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ReportFormat.CSV: "text/csv; charset=utf-8",
    ReportFormat.JSON: "application/json",
}


def write_report(body: ReportBody, form: ReportFormat) -> str:
    """Return the document in one of the formats."""
    match form:
        case ReportFormat.HTML:
            return write_html(body)
        case ReportFormat.MARKDOWN:
            return write_markdown(body)
        case ReportFormat.CSV:
            return write_csv(body)
        case ReportFormat.JSON:
            return write_json(as_json(body)).decode() + "\n"


def write_markdown(body: ReportBody) -> str:
    """Return the report as Markdown."""
    lines = [
        f"# {body.heading}",
        "",
        f"- Period: {write_time(body.since_at)} to {write_time(body.until_at)}",
        f"- Made: {write_time(body.made_at)} by {markdown_cell(body.made_by)}",
        f"- Gateway: {markdown_cell(body.instance_id)}",
        f"- Requests: {body.origin}",
    ]
    for section in body.sections:
        lines += ["", f"## {markdown_cell(section.title)}", "", f"*{markdown_cell(_about(section, body))}*", ""]
        if not section.rows:
            lines.append("Nothing in this time.")
        elif section.shape == "figures":
            pairs = zip(section.columns, section.rows[0], strict=True)
            lines += [f"- {markdown_cell(one.name)}: **{markdown_cell(cell(one, value))}**" for one, value in pairs]
        else:
            lines.append("| " + " | ".join(markdown_cell(one.name) for one in section.columns) + " |")
            lines.append("|" + " --- |" * len(section.columns))
            for row in section.rows:
                cells = (cell(one, value) for one, value in zip(section.columns, row, strict=True))
                lines.append("| " + " | ".join(markdown_cell(text) for text in cells) + " |")
    return "\n".join(lines) + "\n"


def write_csv(body: ReportBody) -> str:
    """Return all sections as CSV tables, each below its title, query and period."""
    rows: list[tuple[object, ...]] = [("report", body.type), *_head(body).items()]
    for section in body.sections:
        rows += [(), ("section", section.title), ("query", _about(section, body))]
        rows.append(tuple(column.name for column in section.columns))
        rows += [_plain(section.columns, row) for row in section.rows]
    return csv_lines(rows)


def as_json(body: ReportBody) -> dict[str, object]:
    """Return the report as a JSON object. The rows of a section are objects with the column names as keys."""
    return {
        "type": body.type,
        **_head(body),
        "sections": [
            {
                "title": section.title,
                "query": section.query,
                "period": "now" if section.is_current else "since until",
                "is_cut": section.is_cut,
                "units": {column.name: column.unit for column in section.columns if column.unit},
                "rows": [
                    dict(zip((column.name for column in section.columns), _plain(section.columns, row), strict=True))
                    for row in section.rows
                ],
            }
            for section in body.sections
        ],
    }


def _head(body: ReportBody) -> dict[str, str]:
    return {
        "since": write_time(body.since_at),
        "until": write_time(body.until_at),
        "made_at": write_time(body.made_at),
        "made_by": body.made_by,
        "instance_id": body.instance_id,
        "origin": body.origin,
    }


def _about(section: Section, body: ReportBody) -> str:
    period = f"{write_time(body.since_at)} to {write_time(body.until_at)}"
    when = f"now, {write_time(body.made_at)}" if section.is_current else period
    return f"{section.query} · {when}" + (" · only the first are shown" if section.is_cut else "")


def _plain(columns: tuple[Column, ...], row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(
        write_time(value) if column.unit == "time" and isinstance(value, int) else value
        for column, value in zip(columns, row, strict=True)
    )
