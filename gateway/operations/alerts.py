"""The rows of alerts, internal and public. The rules are in `services.alerts`."""

from dataclasses import replace

from gateway.domain.alerts import MAX_ALERT_LIMIT, Alert, AlertCase, AlertFilter, AlertSource, AlertStatus, WantedAlert
from gateway.domain.principals import Permission, Scope
from gateway.operations.operation import choice, kind, request_id, text, time
from gateway.operations.rows import Noun, paging, public
from gateway.schema import JsonSchema
from gateway.shield.detections import Severity
from gateway.store.alerts import SORTS

ALERT_FILTERS = (
    choice("status", AlertStatus, "The status of the alert."),
    choice("severity", Severity, "The severity of the alert."),
    choice("source", AlertSource, "Which part of the gateway raised it."),
    choice("scope", ("active", "terminal", "all"), "Alerts to act on, the others, or all (default)."),
    request_id(),
    time("since", "Seen at or after: an RFC 3339 time, a date, or an age such as 24h."),
    time("until", "First seen at or before: an RFC 3339 time, a date, or an age such as 24h."),
    *paging(MAX_ALERT_LIMIT, sorts=SORTS),
)
_SUPPRESSED: JsonSchema = {"const": AlertStatus.SUPPRESSED.value}


_ALERTS = Noun("alerts", Alert, Permission.ALERTS_READ, Permission.ALERTS_MANAGE)

OPERATIONS = (
    _ALERTS.list(
        "List alerts, newest first.",
        verb="find",
        takes=AlertFilter,
        query=(
            *ALERT_FILTERS,
            text("rule", "The rule that raised it."),
            text("agent", "The agent it is about."),
            text("assigned_to", "The person who handles it."),
        ),
    ),
    _ALERTS.show("Show one alert with its evidence and its timeline.", gives=AlertCase),
    _ALERTS.change(
        WantedAlert,
        "Move an alert: `status`?, `note`?, `assigned_to`?; `suppressed` with `suppressed_until` or `acceptance`. "
        "`version` or `If-Match` guards.",
        kinds=(
            kind(
                status={"enum": [None, *(one.value for one in AlertStatus if one is not AlertStatus.SUPPRESSED)]},
                suppressed_until={"type": "null"},
                acceptance={"type": "null"},
            ),
            kind(("status", "suppressed_until"), status=_SUPPRESSED, suppressed_until={"type": "string"}),
            kind(("status", "acceptance"), status=_SUPPRESSED, acceptance={"type": "string"}),
        ),
    ),
)
PUBLIC_OPERATIONS = (public(replace(OPERATIONS[0], query=ALERT_FILTERS), "alerts.list", Scope.ALERTS_READ),)
