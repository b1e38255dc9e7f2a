"""Alerts: their record, their states, and when a new sighting counts on an old alert. Pure."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Literal

from gateway.domain.paging import PageQuery
from gateway.domain.policies import UNSCANNABLE_RULE
from gateway.errors import Conflict
from gateway.field_types import UntilInAYear, line, note
from gateway.shield.detections import Severity

MERGE_WITHIN_MS = 10 * 60 * 1000
INCIDENT_WITHIN_MS = 60 * 60 * 1000
DAY_MS = 24 * 60 * 60 * 1000
REOPEN_WITHIN_MS = DAY_MS
ONCE_A_DAY = frozenset((UNSCANNABLE_RULE,))
"""Rules that a harmless client matches with every message: one day of them is one alert."""
MAX_EVIDENCE = 5
MAX_ALERT_LIMIT = 500
MAX_NOTE_CHARS = 1000
MAX_NAME_CHARS = 100
_MAX_COUNT = 2**53
_Note = Annotated[str, note(MAX_NOTE_CHARS), "The reason; the resolution of an alert that this closes."]
_NameOrNone = Annotated[str, line(MAX_NAME_CHARS, 0), "Empty to remove it."]
_Acceptance = Annotated[str, line(MAX_NAME_CHARS), "The id of an active risk acceptance."]

AlertScope = Literal["active", "terminal", "all"]


class AlertStatus(StrEnum):
    """The state of an alert."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    INVESTIGATING = "investigating"
    RESOLVED = "resolved"
    FALSE_POSITIVE = "false_positive"
    SUPPRESSED = "suppressed"


class AlertSource(StrEnum):
    """The part of the gateway that raised an alert."""

    SHIELD = "shield"
    AUTH = "auth"
    BUDGET = "budget"
    ACCESS = "access"
    PROVIDER = "provider"
    DETECTOR = "detector"
    FLEET = "fleet"
    INTEGRITY = "integrity"


ACTIVE = (AlertStatus.OPEN, AlertStatus.ACKNOWLEDGED, AlertStatus.INVESTIGATING)
TERMINAL = (AlertStatus.RESOLVED, AlertStatus.FALSE_POSITIVE, AlertStatus.SUPPRESSED)

TRANSITIONS: Mapping[AlertStatus, frozenset[AlertStatus]] = {
    AlertStatus.OPEN: frozenset((AlertStatus.ACKNOWLEDGED, AlertStatus.INVESTIGATING, *TERMINAL)),
    AlertStatus.ACKNOWLEDGED: frozenset((AlertStatus.INVESTIGATING, *TERMINAL)),
    AlertStatus.INVESTIGATING: frozenset(TERMINAL),
    **dict.fromkeys(TERMINAL, frozenset((AlertStatus.OPEN,))),
}
_WORST_FIRST = tuple(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An event that needs a person's attention. Times in Unix milliseconds.

    fingerprint: equal for all sightings of one alert. evidence: JSON objects without secrets, newest last. origin: the
    operation, such as ``shield.scan`` or ``chat.inbound``. acceptance: the id of the risk acceptance that suppresses
    the alert. incident: the id of the incident it belongs to. version: rises with its state, not with its count.
    """

    id: str
    title: str
    description: str
    severity: Severity
    source: AlertSource
    rule: str
    fingerprint: str
    status: AlertStatus = AlertStatus.OPEN
    count: int = 1
    first_seen_at: int = field(metadata={"json_name": "first_seen"})
    last_seen_at: int = field(metadata={"json_name": "last_seen"})
    acknowledged_by: str | None = None
    assigned_to: str | None = None
    resolved_by: str | None = None
    resolved_at: int | None = None
    resolution: str | None = None
    suppressed_until_at: int | None = field(default=None, metadata={"json_name": "suppressed_until"})
    acceptance: str | None = None
    agent: str | None = None
    key_prefix: str | None = None
    request_id: str | None = None
    origin: str | None = None
    evidence: tuple[Mapping[str, object], ...] = ()
    incident: str = ""
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter(PageQuery):
    """The alerts to list, newest first. None matches all.

    since: last seen at or after; until: first seen at or before; Unix milliseconds. request_id: of any counted request.
    """

    status: AlertStatus | None = None
    severity: Severity | None = None
    source: AlertSource | None = None
    rule: str | None = None
    agent: str | None = None
    assigned_to: str | None = None
    request_id: str | None = None
    scope: AlertScope = "all"
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAlert:
    """Changes of an alert; None keeps a field.

    suppressed_until_at, acceptance: only with the status ``suppressed``.
    """

    status: AlertStatus | None = None
    note: _Note | None = None
    assigned_to: _NameOrNone | None = None
    suppressed_until_at: UntilInAYear | None = field(default=None, metadata={"json_name": "suppressed_until"})
    acceptance: _Acceptance | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class AlertStep:
    """One line of an alert's timeline. note: what the actor wrote."""

    occurred_at: int
    action: str
    actor: str
    note: str | None
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertCase(Alert):
    """One alert with everything that was done about it, oldest first."""

    timeline: tuple[AlertStep, ...]


@dataclass(frozen=True, slots=True)
class RequestAlert:
    """An alert that a request added to. count: of all requests that did."""

    id: str
    title: str
    rule: str
    status: AlertStatus
    count: int
    agent: str | None
    key_prefix: str | None
    last_seen_at: int = field(metadata={"json_name": "last_seen"})


def fingerprint(source: str, rule: str, subject: str) -> str:
    """Return the fingerprint of an alert: 32 hex digits. `subject` is the agent, or else the key."""
    return hashlib.sha256("\0".join((source, rule, subject)).encode("utf-8", "replace")).hexdigest()[:32]


def fold(latest: Alert | None, seen: Alert) -> Alert:
    """Return the alert to store after the sighting `seen`. latest: the newest alert with the same fingerprint.

    A result with the id of `latest` updates it; otherwise `seen` is a new alert. A sighting counts on `latest`:

    - within 10 minutes of its last sighting, or of a rule in `ONCE_A_DAY`, within a day of its first one;
    - while it is suppressed;
    - within 24 hours of its resolution, and then it reopens the alert.

    A false positive, or an alert that a risk acceptance suppresses, counts only the same texts: those of the request
    that was harmless, if it names one. Otherwise an attacker could hide an attack behind a harmless text.
    """
    if latest is None:
        return seen
    is_dismissed = latest.status is AlertStatus.FALSE_POSITIVE or (
        latest.status is AlertStatus.SUPPRESSED and latest.acceptance is not None
    )
    if is_dismissed and not _texts(seen) <= _texts(latest):
        return seen
    at = seen.last_seen_at
    match latest.status:
        case AlertStatus.SUPPRESSED:
            is_over = latest.suppressed_until_at is not None and latest.suppressed_until_at <= at
            return _reopened(_counted(latest, seen)) if is_over else _counted(latest, seen)
        case AlertStatus.RESOLVED:
            resolved_at = latest.last_seen_at if latest.resolved_at is None else latest.resolved_at
            return _reopened(_counted(latest, seen)) if at - resolved_at < REOPEN_WITHIN_MS else seen
        case _:
            begun_at, window_ms = latest.last_seen_at, MERGE_WITHIN_MS
            if seen.rule in ONCE_A_DAY:
                begun_at, window_ms = latest.first_seen_at, DAY_MS
            return _counted(latest, seen) if at - begun_at < window_ms else seen


def _texts(alert: Alert) -> set[object]:
    """Return the hashes of the texts in the evidence, or of those that were dismissed; None stands for no text."""
    dismissed = [one for one in alert.evidence if one.get("dismissed")]
    return {one.get("sha256") for one in dismissed or alert.evidence}


def dismiss(alert: Alert, request_id: str, sha256: Iterable[object]) -> Alert:
    """Return an alert whose texts of one request are harmless; sha256: their hashes, if the evidence has them not."""
    marked = tuple({**one, "dismissed": True} if one.get("request_id") == request_id else one for one in alert.evidence)
    if not any(one.get("dismissed") for one in marked):
        marked = (
            *marked[1 - MAX_EVIDENCE :],
            *({"request_id": request_id, "sha256": one, "dismissed": True} for one in sha256),
        )
    return replace(alert, evidence=marked)


def move(
    alert: Alert,
    status: AlertStatus,
    *,
    who: str,
    at: int,
    note: str | None = None,
    until_at: int | None = None,
    acceptance: str | None = None,
) -> Alert:
    """Return `alert` in its next state. until_at, acceptance: end a suppression; None for no end.

    Raises:
        Conflict: the present state does not allow `status`.
    """
    if status not in TRANSITIONS[alert.status]:
        raise Conflict(f"An alert that is {alert.status} cannot become {status}.", param="status")
    match status:
        case AlertStatus.OPEN:
            return _reopened(alert)
        case AlertStatus.ACKNOWLEDGED:
            changes: dict[str, Any] = {"acknowledged_by": who}
        case AlertStatus.INVESTIGATING:
            changes = {"assigned_to": alert.assigned_to or who, "acknowledged_by": alert.acknowledged_by or who}
        case AlertStatus.SUPPRESSED:
            changes = {"suppressed_until_at": until_at, "acceptance": acceptance, "resolution": note}
        case _:
            changes = {"resolved_by": who, "resolved_at": at, "resolution": note}
    return replace(alert, status=status, version=alert.version + 1, **changes)


def _counted(latest: Alert, seen: Alert) -> Alert:
    return replace(
        latest,
        count=min(latest.count + seen.count, _MAX_COUNT),
        severity=min(latest.severity, seen.severity, key=_WORST_FIRST.index),
        last_seen_at=max(latest.last_seen_at, seen.last_seen_at),
        request_id=seen.request_id or latest.request_id,
        evidence=(latest.evidence + seen.evidence)[-MAX_EVIDENCE:],
    )


def _reopened(alert: Alert) -> Alert:
    return replace(
        alert,
        status=AlertStatus.OPEN,
        resolved_by=None,
        resolved_at=None,
        resolution=None,
        suppressed_until_at=None,
        acceptance=None,
        version=alert.version + 1,
    )
