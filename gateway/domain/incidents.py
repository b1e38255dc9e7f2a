"""Incidents: the alerts of one agent and key within an hour of each other. Pure.

An incident has no state of its own: it is active while one of its alerts is. What is done to it is done to them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from gateway.domain.alerts import ACTIVE, MAX_NAME_CHARS, MAX_NOTE_CHARS, Alert, AlertScope, AlertStatus, AlertStep
from gateway.domain.paging import PageQuery
from gateway.domain.traffic import TrafficRow
from gateway.field_types import line, note
from gateway.schema import Bounds
from gateway.shield.detections import Severity

MOST_CHANGED = 100
"""The most incidents that one call changes."""
_WORST_FIRST = tuple(Severity)
_Note = Annotated[str, note(MAX_NOTE_CHARS), "Why; the resolution of alerts that this closes."]
IncidentStatus = Literal["open", "acknowledged", "investigating", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFilter(PageQuery):
    """The incidents to list, newest first. One matches if any of its alerts does. key: the prefix of a key."""

    scope: AlertScope = "active"
    severity: Severity | None = None
    rule: str | None = None
    agent: str | None = None
    key: str | None = None
    assigned_to: str | None = None
    request_id: str | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An incident, summed up over its alerts. alerts, active: how many. requests: sightings. rules: with sightings."""

    id: str
    title: str
    agent: str | None
    key_prefix: str | None
    severity: Severity
    status: IncidentStatus
    assigned_to: str | None
    first_seen_at: int = field(metadata={"json_name": "first_seen"})
    last_seen_at: int = field(metadata={"json_name": "last_seen"})
    alerts: int
    active: int
    requests: int
    rules: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenElsewhere:
    """A secret of an incident in a request that is not part of it. secret: its keyed hash. matched: its mask."""

    secret: str
    matched: str
    request_id: str
    occurred_at: int
    agent: str | None
    key_prefix: str | None
    direction: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentCase(Incident):
    """One incident with its alerts, its newest requests, where its secrets were also seen, and what was done."""

    members: tuple[Alert, ...]
    traffic: tuple[TrafficRow, ...]
    elsewhere: tuple[SeenElsewhere, ...]
    timeline: tuple[AlertStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeIncidents:
    """Changes of the active alerts of incidents. assigned_to: empty for nobody."""

    ids: Annotated[tuple[str, ...], Bounds(1, MOST_CHANGED), "Ids of incidents (`inc_…`)."]
    status: AlertStatus | None = None
    note: _Note | None = None
    assigned_to: Annotated[str, line(MAX_NAME_CHARS, 0), "Who handles them; empty for nobody."] | None = None


@dataclass(frozen=True, slots=True)
class ChangedIncidents:
    """The incidents after a change. unchanged: ids of those of which no alert can take it."""

    incidents: tuple[Incident, ...]
    unchanged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopIncident:
    """What to stop at once, and why."""

    id: str
    reason: Annotated[str, line(200), "For the access list and the audit log."]
    deny_key: Annotated[bool, "Deny the key for a day."] = False
    revoke_key: Annotated[bool, "Revoke the key, which cannot be undone."] = False
    block_agent: Annotated[bool, "Block the agent until someone unblocks it."] = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """One act of a stop. why: the reason if it was not done."""

    act: str
    done: bool
    why: str | None


@dataclass(frozen=True, slots=True)
class StoppedIncident:
    """What was done, act by act, and the incident after it."""

    acts: tuple[Stopped, ...]
    incident: Incident


def incident_of(alerts: Sequence[Alert]) -> Incident:
    """Return the summary of the alerts of one incident, the oldest first."""
    newest = alerts[-1]
    active = [one for one in alerts if one.status in ACTIVE]
    status: IncidentStatus = "closed"
    if active:
        # The least that was done about any of them.
        status = min((one.status for one in active), key=ACTIVE.index).value  # type: ignore[assignment]
    rules: Counter[str] = Counter()
    for one in alerts:
        rules[one.rule] += one.count
    worst = min(active or alerts, key=lambda one: _WORST_FIRST.index(one.severity))
    names = (one.assigned_to for one in reversed(active or list(alerts)) if one.assigned_to)
    return Incident(
        id=newest.incident,
        title=worst.title,
        agent=newest.agent,
        key_prefix=newest.key_prefix,
        severity=worst.severity,
        status=status,
        assigned_to=next(names, None),
        first_seen_at=min(one.first_seen_at for one in alerts),
        last_seen_at=max(one.last_seen_at for one in alerts),
        alerts=len(alerts),
        active=len(active),
        requests=sum(one.count for one in alerts),
        rules=dict(rules.most_common()),
    )
