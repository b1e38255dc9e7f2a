"""Table cells with text of unknown origin, made inert for a spreadsheet, Markdown or a page. Pure."""

import csv
import html
import io
from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def csv_cell(value: object) -> str:
    """Return a cell that a spreadsheet never evaluates (CWE-1236): numbers stay numbers, formulas become text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = "".join(sign if sign.isprintable() else " " for sign in str(value))
    # Some programs evaluate a formula behind blanks or quotes as well.
    return "'" + text if text.lstrip(" '\"").startswith(_FORMULA) else text


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV (RFC 4180)."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows([csv_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def markdown_cell(value: object) -> str:
    """Return one line of Markdown with all markup escaped."""
    text = "".join(sign if sign.isprintable() else " " for sign in shown(value))
    return "".join("\\" + sign if sign in "\\`*_{}[]<>()#+!|~$&" else sign for sign in text)


def html_cell(value: object) -> str:
    """Return text for an HTML element or a quoted attribute."""
    return html.escape("".join(sign if sign.isprintable() else " " for sign in shown(value)))


def shown(value: object) -> str:
    """Return a value in human-readable form."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
