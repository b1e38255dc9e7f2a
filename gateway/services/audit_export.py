"""Export the audit log as JSON lines or CSV.

The export reads one page at a time, in the order of the events, so that memory stays bounded. The edges check who may
export.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import fields
from enum import StrEnum

from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.tables import csv_lines
from gateway.schema import encode
from gateway.services.audit import Audit, source_of
from gateway.store.database import Transaction
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


class AuditExport:
    """Exports the audit log."""

    def __init__(self, *, store: Store, audit: Audit) -> None:
        self._store = store
        self._audit = audit

    async def begin(
        self, principal: Principal, wanted: AuditFilter, form: ExportFormat, context: RequestContext
    ) -> AsyncIterator[bytes]:
        """Record the export in the log, then return its chunks. The event of the export is the last one it can hold.

        Raises:
            InvalidRequest: a text of the filter is not valid. AuditUnavailable: the export could not be recorded.
        """
        await self._store.db.read(lambda tx: self._store.audit.after(tx, 0, wanted, limit=1))
        names = [one.name for one in fields(AuditFilter) if one.name not in ("limit", "cursor")]
        used = {name: value for name in names if (value := getattr(wanted, name)) not in (None, ())}
        event = self._audit.event(
            "audit_exported",
            source=source_of(principal),
            principal=principal,
            request=context,
            resource_type="audit",
            details={"format": form.value, "filter": used},
        )
        await self._audit.record(event)
        last = await self._store.db.read(self._store.audit.newest_position)
        return self._chunks(wanted, form, last)

    async def _chunks(self, wanted: AuditFilter, form: ExportFormat, last: int) -> AsyncIterator[bytes]:
        position = 0
        if form is ExportFormat.CSV:
            yield csv_lines([_NAMES]).encode()
        while True:

            def work(tx: Transaction, start: int = position) -> tuple[tuple[int, AuditEvent], ...]:
                return self._store.audit.after(tx, start, wanted, limit=PAGE_EVENTS)

            rows = await self._store.db.read(work)
            events = [event for at, event in rows if at <= last]
            if events:
                yield as_csv(events) if form is ExportFormat.CSV else as_lines(events)
            if len(events) < PAGE_EVENTS:
                return
            position = rows[-1][0]


def as_lines(events: list[AuditEvent]) -> bytes:
    """Return one JSON object a line, in the form of the API."""
    return b"".join(write_json(encode(event)) + b"\n" for event in events)


def as_csv(events: list[AuditEvent]) -> bytes:
    """Return one row an event, with objects as JSON in their cell. A spreadsheet reads no cell as a formula."""
    return csv_lines([[_cell(shown[name]) for name in _NAMES] for shown in map(encode, events)]).encode()


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) and value else value or None
