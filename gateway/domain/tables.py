"""Cells of a table that strangers wrote: made inert for a spreadsheet, for Markdown, for a page. Pure."""

import io
from collections.abc import Iterable, Sequence

# What `html.escape` writes: its module would bring a table of 2,000 names along.
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def csv_cell(value: object) -> str:
    """Return what a spreadsheet shows and never calculates (CWE-1236): numbers stay numbers, formulas become text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = "".join(sign if sign.isprintable() else " " for sign in str(value))
    # What stands behind blanks or quotes is a formula to some programs as well.
    return "'" + text if text.lstrip(" '\"").startswith(_FORMULA) else text


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV (RFC 4180)."""
    import csv  # few reports and exports want it

    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows([csv_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def markdown_cell(value: object) -> str:
    """Return one line of Markdown that means nothing but its letters."""
    text = "".join(sign if sign.isprintable() else " " for sign in shown(value))
    return "".join("\\" + sign if sign in "\\`*_{}[]<>()#+!|~$&" else sign for sign in text)


def html_cell(value: object) -> str:
    """Return text of a page, in an element or in a quoted attribute."""
    return "".join(sign if sign.isprintable() else " " for sign in shown(value)).translate(_HTML)


def shown(value: object) -> str:
    """Return a value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
