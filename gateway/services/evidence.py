"""The evidence of an incident as one document: findings, requests, neighbours, actions, and how to verify them.

It holds no text: masked matches, hashes, spans and places, as the gateway stores them. The audit log keeps the SHA-256
of the document, so that `audit verify --evidence` finds any change of it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from operator import attrgetter

import anyio.to_thread

from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.incidents import IncidentCase
from gateway.domain.paging import MAX_INTEGER
from gateway.domain.principals import Caller, Principal
from gateway.domain.report_text import write_report
from gateway.domain.reports import ReportBody, ReportFormat, Section, read_columns
from gateway.domain.traffic import TrafficFilter, TrafficRow
from gateway.services.alerts import TIMELINE_EVENTS
from gateway.services.core import Service
from gateway.services.incidents import Incidents
from gateway.store.database import Transaction

NEIGHBOURS_MS = 10 * 60 * 1000
MOST_NEIGHBOURS = 200
_INCIDENT = (
    "agent, key=key_prefix, severity, status, assigned to=assigned_to, alerts, requests, "
    "first seen:time=first_seen_at, last seen:time=last_seen_at"
)
_ALERT = (
    "alert=id, title, rule, severity, status, count, first seen:time=first_seen_at, last seen:time=last_seen_at, "
    "resolution"
)
_REQUEST = (
    "request=request_id, time:time=occurred_at, operation, agent, key=key_prefix, model, verdict, score, action, "
    "HTTP status=status"
)
_ELSEWHERE = "secret, masked match=matched, request=request_id, time:time=occurred_at, agent, key=key_prefix, direction"
_VERIFY = (
    (
        "1",
        "python3 gateway.pyz audit verify",
        "recomputes every hash of the audit log, from its beginning",
    ),
    (
        "2",
        "python3 gateway.pyz audit verify --evidence FILE",
        "compares this file, as it was exported, with the audit log",
    ),
    ("3", "sha256sum", "the SHA-256 of a finding is that of the text at its place, as UTF-8"),
)


class Evidence(Service):
    """Writes the evidence of incidents."""

    incidents: Incidents

    async def write(self, caller: Caller, incident_id: str, form: ReportFormat) -> str:
        """Return the evidence of an incident in one of the formats of reports.

        Raises:
            NotFound: there is no such incident. AuditUnavailable: the export could not be recorded.
        """
        body = await self.store.db.read(lambda tx: self._body(tx, caller.principal, incident_id))
        document = await anyio.to_thread.run_sync(write_report, body, form)
        details = {"format": form.value, "sha256": _digest(document.encode())}
        await self.audit.commit(
            lambda tx: self.audit.append_change(
                tx, "incident_exported", caller, "incident", incident_id, details=details
            )
        )
        return document

    async def export_of(self, document: bytes) -> AuditEvent | None:
        """Return the event of the export that wrote these bytes, None if there is none in the log."""
        wanted, digest = AuditFilter(action="incident_exported"), _digest(document)
        exports = await self.store.db.read(lambda tx: self.store.audit.after(tx, 0, wanted, limit=MAX_INTEGER))
        return next((event for _, event in reversed(exports) if event.details.get("sha256") == digest), None)

    def _body(self, tx: Transaction, principal: Principal, incident_id: str) -> ReportBody:
        case = self.incidents.case(tx, incident_id)
        events = [
            event for alert in case.members for event in self.store.audit.of_alert(tx, alert.id, limit=TIMELINE_EVENTS)
        ]
        request_ids = dict.fromkeys(row.request_id for row in case.traffic)
        events += [event for id in request_ids for event in self.store.audit.of_request(tx, id)]
        return ReportBody(
            heading=f"Evidence of incident {case.id}",
            type="incident_evidence",
            since_at=case.first_seen_at,
            until_at=case.last_seen_at,
            made_at=self.clock.now_at(),
            made_by=principal.name,
            instance_id=self.store.instance_id,
            origin=self.store.traffic.origin,
            sections=(
                _table("Incident", "the incident as it stands", _INCIDENT, (case,), is_current=True),
                _table("Alerts", "its alerts, the oldest first", _ALERT, case.members, is_current=True),
                _findings(case.traffic),
                _table("Requests", "requests that its alerts counted, the newest first", _REQUEST, case.traffic),
                _table(
                    "Neighbours",
                    "other requests of this agent and key, from ten minutes before to ten minutes after",
                    _REQUEST,
                    self._neighbours(tx, case),
                ),
                _table(
                    "The same secrets elsewhere",
                    "other requests with the same secret, by its keyed hash",
                    _ELSEWHERE,
                    case.elsewhere,
                    is_current=True,
                ),
                _actions(events),
                Section("How to verify", "table", "commands", read_columns("step, command, about"), _VERIFY, True),
            ),
        )

    def _neighbours(self, tx: Transaction, case: IncidentCase) -> tuple[TrafficRow, ...]:
        if case.agent is None and case.key_prefix is None:
            return ()
        wanted = TrafficFilter(
            agent=case.agent,
            key=case.key_prefix,
            since=max(0, case.first_seen_at - NEIGHBOURS_MS),
            until=case.last_seen_at + NEIGHBOURS_MS,
            limit=MOST_NEIGHBOURS,
        )
        mine = {row.request_id for row in case.traffic}
        return tuple(row for row in self.store.traffic.page(tx, wanted).items if row.request_id not in mine)


def _digest(document: bytes) -> str:
    """Return the SHA-256 of a document without the line breaks at its end, which programs add."""
    return hashlib.sha256(document.rstrip(b"\r\n")).hexdigest()


def _table(title: str, about: str, named: str, records: Iterable[object], *, is_current: bool = False) -> Section:
    """Return the table of records. named: as in `read_columns`, with ``=`` before a field of another name."""
    pairs = [one.partition("=")[::2] for one in named.split(", ")]
    values = attrgetter(*(field or column for column, field in pairs))
    columns = read_columns(", ".join(column for column, _ in pairs))
    return Section(title, "table", about, columns, tuple(map(values, records)), is_current)


def _findings(rows: Sequence[TrafficRow]) -> Section:
    names = ("direction", "place", "rule", "severity", "score", "view", "start", "end", "matched", "sha256", "secret")
    columns = "request, time:time, direction, place, rule, severity, points, seen as, from, to, masked match, SHA-256, "
    found = tuple(
        (row.request_id, row.occurred_at, *(one.get(name) for name in names)) for row in rows for one in row.detections
    )
    about = "what the shield found: place, span and hash of its text; secrets masked, with a keyed hash"
    return Section("Findings", "table", about, read_columns(columns + "secret"), found)


def _actions(events: Iterable[AuditEvent]) -> Section:
    columns = "event, instance, seq, time:time, action, actor, note, resource, hash, previous hash"
    unique = {event.id: event for event in events}
    rows = tuple(
        (
            *(one.id, one.instance_id, one.seq, one.occurred_at, one.action, one.actor),
            *(one.details.get("note"), one.resource_id, one.hash, one.prev_hash),
        )
        for one in sorted(unique.values(), key=lambda one: one.occurred_at)
    )
    about = "events about its alerts and requests, with their hashes in the chain"
    return Section("Actions in the audit log", "table", about, read_columns(columns), rows)
