"""The gateways of one team: their heartbeats, their display, and the valid answers of a peer. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from gateway.domain.posture import PosturePoint
from gateway.errors import InvalidRequest
from gateway.strict_json import read_timestamp

ONLINE_MS = 45_000
STALE_MS = 5 * 60_000
MAX_PEERS = 100
MAX_PEER_NAME_CHARS = 64
MAX_INSTANCES = 100
"""Further instances in the answer of one peer are ignored."""
_MAX_TEXT_CHARS = 100
_INTEGER_LIMIT = 2**53


class InstanceStatus(StrEnum):
    """The health that a gateway reports. CRITICAL: it cannot scan or record, or its program was changed."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    CRITICAL = "critical"


class Connection(StrEnum):
    """The age of the last heartbeat: ONLINE up to 45 seconds, STALE up to 5 minutes, then OFFLINE."""

    ONLINE = "online"
    STALE = "stale"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The report of a gateway about itself.

    cpu_percent: of one core, summed over all its processes. threats: blocks in the last 24 hours. alerts: active ones.
    agents: known ones. sessions: signed-in users.
    """

    id: str
    name: str
    version: str
    archive_sha256: str | None
    status: InstanceStatus
    started_at: int
    last_seen_at: int
    cpu_percent: float | None
    memory_bytes: int | None
    threats: int
    alerts: int
    agents: int
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    """A gateway as the API shows it. uptime, uptime_seconds: the same value. peer: the reporting peer."""

    id: str
    name: str
    version: str | None = None
    archive_sha256: str | None = None
    status: InstanceStatus
    connection: Connection
    uptime: int | None = None
    uptime_seconds: int | None = None
    cpu_percent: float | None = None
    memory_bytes: int | None = None
    threats: int | None = None
    alerts: int | None = None
    agents: int | None = None
    sessions: int | None = None
    posture_score: int | None = None
    threat_score: int | None = None
    last_seen_at: int | None = field(metadata={"json_name": "last_seen"})
    peer: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """All gateways. healthy: those that are online and healthy. posture: the mean score. threat: the highest score."""

    instances: tuple[InstanceView, ...]
    total: int
    healthy: int
    posture: int | None
    threat: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another gateway, which this one queries over HTTP.

    url: its base, without ``/api/v1/fleet``. key_reference: as of a provider. answered_at, instances: of its last good
    answer. problem: the failure since then, None without one.
    """

    id: str
    name: str
    folded: str = field(metadata={"json_name": None})
    url: str
    key_reference: str = field(metadata={"json_name": None})
    allow_private: bool
    created_at: int
    created_by: str
    asked_at: int | None = None
    answered_at: int | None = None
    problem: str | None = None
    instances: tuple[Mapping[str, object], ...] = field(default=(), metadata={"json_name": None})


@dataclass(frozen=True, slots=True)
class Lease:
    """What lets one process at a time do a job. number: of those that had it one after the other."""

    name: str
    holder: str
    number: int


def connection_of(last_seen_at: int | None, now_at: int) -> Connection:
    """Return the state of a gateway by its last heartbeat. A time in the future counts as now."""
    if last_seen_at is None:
        return Connection.OFFLINE
    age_ms = now_at - last_seen_at
    if age_ms <= ONLINE_MS:
        return Connection.ONLINE
    return Connection.STALE if age_ms <= STALE_MS else Connection.OFFLINE


def view_of(beat: Heartbeat, scores: PosturePoint, now_at: int) -> InstanceView:
    """Return the view of a gateway that uses this database. scores: those of the database."""
    shared = {one.name for one in fields(Heartbeat)} - {"started_at"}
    uptime_seconds = max(0, beat.last_seen_at - beat.started_at) // 1000
    return InstanceView(
        **{name: getattr(beat, name) for name in shared},
        connection=connection_of(beat.last_seen_at, now_at),
        uptime=uptime_seconds,
        uptime_seconds=uptime_seconds,
        posture_score=scores.posture_score,
        threat_score=scores.threat_score,
    )


def views_of(peer: Peer, now_at: int) -> tuple[InstanceView, ...]:
    """Return the views of the gateways that a peer reported, or of the peer itself if it never answered.

    The last answer stays visible, but it ages: a peer that stops answering goes offline with all its instances.
    """
    answered = connection_of(peer.answered_at, now_at)
    instances = peer.instances or ({"id": peer.id, "name": peer.name},)
    return tuple(_instance(reported, peer, answered) for reported in instances)


def sum_up(instances: Sequence[InstanceView]) -> FleetView:
    """Return all gateways with the figures of the whole fleet."""
    are_healthy = [one.status is InstanceStatus.HEALTHY and one.connection is Connection.ONLINE for one in instances]
    postures = [one.posture_score for one in instances if one.posture_score is not None]
    threats = [one.threat_score for one in instances if one.threat_score is not None]
    return FleetView(
        instances=tuple(instances),
        total=len(instances),
        healthy=sum(are_healthy),
        posture=round(sum(postures) / len(postures)) if postures else None,
        threat=max(threats, default=None),
    )


def read_answer(value: object) -> tuple[Mapping[str, Any], ...]:
    """Return the instances in a peer's answer to `GET /api/v1/fleet`, reduced to the known and valid fields.

    Instances that the peer has from its own peers are left out, so that two gateways that query each other stay two.

    Raises:
        ValueError: the value is no such answer.
    """
    data = value.get("data") if isinstance(value, dict) else None
    reported = data.get("instances") if isinstance(data, dict) else None
    if not isinstance(reported, list):
        raise ValueError("it is no list of instances")
    instances = [_checked(one) for one in reported[:MAX_INSTANCES] if isinstance(one, dict) and one.get("peer") is None]
    if not instances:
        raise ValueError("it names no instance")
    return tuple(instances)


def _checked(reported: Mapping[str, object]) -> dict[str, object]:
    name, id = _text(reported.get("name")), _text(reported.get("id"))
    if not id:
        raise ValueError("an instance has no id")
    status = reported.get("status")
    percent: Any = reported.get("cpu_percent")
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool) and math.isfinite(percent)
    scores = {one: _whole(reported.get(one)) for one in ("posture_score", "threat_score")}
    counts = ("uptime_seconds", "memory_bytes", "threats", "alerts", "agents", "sessions")
    return {
        "id": id,
        "name": name or id,
        **{one: _text(reported.get(one)) for one in ("version", "archive_sha256")},
        "status": status if status in tuple(InstanceStatus) else InstanceStatus.CRITICAL.value,
        **{one: _whole(reported.get(one)) for one in counts},
        **{one: None if score is None else min(score, 100) for one, score in scores.items()},
        "cpu_percent": round(float(percent), 1) if is_number else None,
        "last_seen_at": _time(reported.get("last_seen")),
    }


def _instance(checked: Mapping[str, Any], peer: Peer, answered: Connection) -> InstanceView:
    last_seen_at = checked.get("last_seen_at")
    connection = answered
    if last_seen_at is not None and peer.answered_at is not None:
        connection = max(answered, connection_of(last_seen_at, peer.answered_at), key=tuple(Connection).index)
    is_known = connection is not Connection.OFFLINE and "status" in checked
    changes = {
        "status": InstanceStatus(checked["status"]) if is_known else InstanceStatus.CRITICAL,
        "connection": connection,
        "uptime": checked.get("uptime_seconds"),
        "last_seen_at": peer.answered_at if last_seen_at is None else last_seen_at,
        "peer": peer.name,
        "problem": peer.problem,
    }
    return InstanceView(**{**checked, **changes})


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return "".join(char if char.isprintable() else "\ufffd" for char in value[:_MAX_TEXT_CHARS]).strip() or None


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _INTEGER_LIMIT:
        return None
    return int(value)


def _time(value: object) -> int | None:
    try:
        return read_timestamp(value, param="last_seen") if isinstance(value, str) else None
    except InvalidRequest:
        return None
