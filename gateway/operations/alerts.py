"""The rows of alerts on the internal API, and the filters that the public one shares. Rules: `services.alerts`."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.alerts import (
    DEFAULT_ALERT_LIMIT,
    MAX_ALERT_LIMIT,
    Alert,
    AlertFilter,
    AlertSource,
    AlertStatus,
    WantedAlert,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.operations.operation import (
    Answer,
    ById,
    Door,
    Operation,
    choice,
    cursor,
    joined,
    kind,
    limit,
    request_id,
    text,
    time,
)
from gateway.schema import JsonSchema, encode, json_schema
from gateway.services.alerts import AlertCase
from gateway.shield.detections import Severity

ALERT_FILTERS = (
    choice("status", AlertStatus, "Where the alert stands."),
    choice("severity", Severity, "How grave it is."),
    choice("source", AlertSource, "Which part of the gateway raised it."),
    choice("scope", ("active", "terminal", "all"), "Alerts to act on, the others, or all (default)."),
    request_id(),
    time("since", "Seen at or after: an RFC 3339 time, a date, or an age such as 24h."),
    time("until", "First seen at or before: an RFC 3339 time, a date, or an age such as 24h."),
    limit(MAX_ALERT_LIMIT, DEFAULT_ALERT_LIMIT),
    cursor(),
)
_SUPPRESSED: JsonSchema = {"const": AlertStatus.SUPPRESSED.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAlert(WantedAlert):
    """What is to become of the alert `id`."""

    id: str


async def list_alerts(gateway: Gateway, who: Principal, wanted: AlertFilter, context: RequestContext) -> Page[Alert]:
    """Return a page of alerts."""
    return await gateway.alerts.page(wanted)


async def show_alert(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> AlertCase:
    """Return one alert and its timeline."""
    return await gateway.alerts.show(command.id)


async def change_alert(gateway: Gateway, who: Principal, command: PatchAlert, context: RequestContext) -> Alert:
    """Move an alert."""
    return await gateway.alerts.change(who, command.id, command, context)


def write_case(case: AlertCase) -> dict[str, object]:
    """Return the JSON object of an alert with its timeline beside its own fields."""
    return encode(case.alert) | {"timeline": [encode(step) for step in case.timeline]}


def case_schema() -> JsonSchema:
    """Return the JSON Schema of what `write_case` returns."""
    return joined(json_schema(Alert, written=True), json_schema(AlertCase, written=True), "timeline")


ALERT_OPERATIONS = (
    Operation(
        name="alerts.find",
        route=("GET", "/api/alerts"),
        door=Door.SESSION,
        needs=Permission.ALERTS_READ,
        answer=Answer.PAGE,
        takes=AlertFilter,
        gives=Alert,
        call=list_alerts,
        query=(
            *ALERT_FILTERS,
            text("rule", "The rule it was raised under."),
            text("agent", "The agent it is about."),
            text("assigned_to", "Who looks after it."),
        ),
        summary="List alerts, newest first.",
    ),
    Operation(
        name="alerts.show",
        route=("GET", "/api/alerts/{id}"),
        door=Door.SESSION,
        needs=Permission.ALERTS_READ,
        takes=ById,
        gives=AlertCase,
        write=write_case,
        schema=case_schema,
        call=show_alert,
        summary="Show one alert with its evidence and its timeline.",
    ),
    Operation(
        name="alerts.change",
        route=("PATCH", "/api/alerts/{id}"),
        door=Door.SESSION,
        needs=Permission.ALERTS_MANAGE,
        takes=PatchAlert,
        gives=Alert,
        call=change_alert,
        kinds=(
            kind(
                status={"enum": [None, *(one.value for one in AlertStatus if one is not AlertStatus.SUPPRESSED)]},
                suppressed_until={"type": "null"},
                acceptance={"type": "null"},
            ),
            kind(("status", "suppressed_until"), status=_SUPPRESSED, suppressed_until={"type": "string"}),
            kind(("status", "acceptance"), status=_SUPPRESSED, acceptance={"type": "string"}),
        ),
        summary=(
            "Move an alert: `status`?, `note`?, `assigned_to`?; `suppressed` with `suppressed_until` or `acceptance`. "
            "`version` or `If-Match` guards."
        ),
    ),
)
