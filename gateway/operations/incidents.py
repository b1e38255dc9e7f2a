"""The rows of incidents on the internal API. The rules are in `services.incidents` and `services.evidence`."""

from dataclasses import dataclass
from typing import Literal

from gateway.domain.alerts import MAX_ALERT_LIMIT, AlertStatus
from gateway.domain.incidents import (
    ChangedIncidents,
    ChangeIncidents,
    Incident,
    IncidentCase,
    IncidentFilter,
    StopIncident,
    StoppedIncident,
)
from gateway.domain.principals import Permission
from gateway.operations.operation import choice, kind, request_id, text, time
from gateway.operations.rows import Noun, paging, row
from gateway.shield.detections import Severity
from gateway.store.alerts import INCIDENT_SORTS


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceOf:
    """The incident whose evidence to write, and the format."""

    id: str
    format: Literal["html", "json"] = "html"


_INCIDENTS = Noun("incidents", Incident, Permission.ALERTS_READ, Permission.ALERTS_MANAGE)

OPERATIONS = (
    _INCIDENTS.list(
        "List incidents, newest first: the alerts of one agent and key within an hour of each other.",
        takes=IncidentFilter,
        query=(
            choice("scope", ("active", "terminal", "all"), "Incidents to act on (default), the closed ones, or all."),
            choice("severity", Severity, "The severity of one of its alerts."),
            text("rule", "The rule of one of its alerts."),
            text("agent", "The agent it is about."),
            text("key", "The prefix of the key it is about."),
            text("assigned_to", "The person who handles it."),
            request_id(),
            time("since", "Seen at or after: an RFC 3339 time, a date, or an age such as 24h."),
            time("until", "First seen at or before: an RFC 3339 time, a date, or an age such as 24h."),
            *paging(MAX_ALERT_LIMIT, sorts=INCIDENT_SORTS),
        ),
    ),
    _INCIDENTS.show(
        "Show an incident: alerts, newest requests, where else its secrets were seen, timeline.", gives=IncidentCase
    ),
    _INCIDENTS.row(
        "change",
        "PATCH",
        "Change the alerts of incidents `ids`: `status`?, `note`?, `assigned_to`?. Lists those that could not change.",
        takes=ChangeIncidents,
        gives=ChangedIncidents,
        kinds=(
            kind(("status",), status={"enum": [one.value for one in AlertStatus if one is not AlertStatus.SUPPRESSED]}),
            kind(("assigned_to",), status={"type": "null"}, assigned_to={"type": "string"}),
        ),
    ),
    _INCIDENTS.row(
        "stop",
        "POST /{id}/stop",
        "Stop what an incident is about: `deny_key`, `revoke_key`, `block_agent`, and the `reason`.",
        takes=StopIncident,
        gives=StoppedIncident,
        call=lambda gateway, caller, command: gateway.incidents.stop(caller, command),
    ),
    row(
        "incidents.evidence",
        "GET /api/incidents/{id}/evidence",
        Permission.AUDIT_READ,
        "Write the evidence of an incident as one document, `format` html or json.",
        takes=EvidenceOf,
        query=(choice("format", ("html", "json"), "The format of the document (html)."),),
    ),
)
