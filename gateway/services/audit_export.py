"""Export the audit log as JSON lines or CSV.

The export reads one page at a time, in the order of the events, so that memory stays bounded. The edges check who may
export.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import fields
from enum import StrEnum
from functools import partial

from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.principals import Caller
from gateway.domain.tables import csv_lines
from gateway.schema import encode
from gateway.services.audit import Audit
from gateway.store.store import Store
from gateway.strict_json import write_json

PAGE_EVENTS = 500
_NAMES = tuple(filter(None, (field.metadata.get("json_name", field.name) for field in fields(AuditEvent))))


class ExportFormat(StrEnum):
    """One JSON object a line, or a table for a spreadsheet."""

    JSONL = "jsonl"
    CSV = "csv"


CONTENT_TYPES = {
    ExportFormat.JSONL: "application/x-ndjson; charset=utf-8",
    ExportFormat.CSV: "text/csv; charset=utf-8; header=present",
}


async def export(
    store: Store, audit: Audit, caller: Caller, wanted: AuditFilter, form: ExportFormat
) -> AsyncIterator[bytes]:
    """Record the export in the log, then return its chunks. The event of the export is the last one it can hold.

    Raises:
        InvalidRequest: a text of the filter is not valid. AuditUnavailable: the export could not be recorded.
    """
    await store.db.read(lambda tx: store.audit.after(tx, 0, wanted, limit=1))
    names = [one.name for one in fields(AuditFilter) if one.name not in ("limit", "cursor")]
    used = {name: value for name in names if (value := getattr(wanted, name)) not in (None, ())}
    details = {"format": form.value, "filter": used}
    await audit.commit(lambda tx: audit.append_change(tx, "audit_exported", caller, "audit", None, details=details))
    last = await store.db.read(store.audit.newest_position)
    return _chunks(store, wanted, form, last)


async def _chunks(store: Store, wanted: AuditFilter, form: ExportFormat, last: int) -> AsyncIterator[bytes]:
    """Yield JSON lines in the form of the API, or CSV rows whose cells hold objects as JSON."""
    position = 0
    if form is ExportFormat.CSV:
        yield csv_lines([_NAMES]).encode()
    while True:
        rows = await store.db.read(partial(store.audit.after, position=position, wanted=wanted, limit=PAGE_EVENTS))
        events = [encode(event) for at, event in rows if at <= last]
        if events and form is ExportFormat.CSV:
            yield csv_lines([[_cell(event[name]) for name in _NAMES] for event in events]).encode()
        elif events:
            yield b"".join(write_json(event) + b"\n" for event in events)
        if len(events) < PAGE_EVENTS:
            return
        position = rows[-1][0]


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) and value else value or None
