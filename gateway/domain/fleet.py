"""The gateways one team runs: their heartbeats, what is shown of them, and what a peer's answer may be. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.posture import PosturePoint
from gateway.errors import InvalidRequest
from gateway.strict_json import read_timestamp

ONLINE_MS = 45_000
STALE_MS = 5 * 60_000
MAX_PEERS = 100
MAX_PEER_NAME_CHARS = 64
MAX_INSTANCES = 100
"""So many instances of one peer's answer are looked at."""
_NAME_CHARS = 100
_MOST = 2**53


class InstanceStatus(StrEnum):
    """How a gateway is, by its own word. CRITICAL: it cannot scan or record, or was tampered with."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    CRITICAL = "critical"


class Connection(StrEnum):
    """How long ago it was heard of: ONLINE to 45 seconds, STALE to 5 minutes, OFFLINE after."""

    ONLINE = "online"
    STALE = "stale"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What a gateway says of itself. cpu_percent: of one core, of all its processes together.

    threats: blocks of the last 24 hours. alerts: active ones. agents: known ones. sessions: people signed in.
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
    """A gateway as it is shown. uptime, uptime_seconds: the same. peer: name of the peer that told of it, else None."""

    id: str
    name: str
    version: str | None
    archive_sha256: str | None
    status: InstanceStatus
    connection: Connection
    uptime: int | None
    uptime_seconds: int | None
    cpu_percent: float | None
    memory_bytes: int | None
    threats: int | None
    alerts: int | None
    agents: int | None
    sessions: int | None
    posture_score: int | None
    threat_score: int | None
    last_seen_at: int | None = field(metadata={"json_name": "last_seen"})
    peer: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """All gateways. healthy: those that are online and well. posture: the mean of the known; threat: the highest."""

    instances: tuple[InstanceView, ...]
    total: int
    healthy: int
    posture: int | None
    threat: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another gateway that is asked over HTTP.

    url: its base, without ``/api/v1/fleet``. key_reference: where the key is, as of a provider. answered_at: of its
    last good answer, whose instances are `instances`; problem: what was wrong since, None when nothing.
    """

    id: str
    name: str
    folded: str
    url: str
    key_reference: str
    allow_private: bool
    created_at: int
    created_by: str
    asked_at: int | None = None
    answered_at: int | None = None
    problem: str | None = None
    instances: tuple[Mapping[str, object], ...] = ()


def connection_of(last_seen_at: int | None, now_at: int) -> Connection:
    """Return how long ago a gateway was heard of. A time that is still to come counts as now."""
    if last_seen_at is None:
        return Connection.OFFLINE
    age_ms = now_at - last_seen_at
    if age_ms <= ONLINE_MS:
        return Connection.ONLINE
    return Connection.STALE if age_ms <= STALE_MS else Connection.OFFLINE


def view_of(beat: Heartbeat, scores: PosturePoint, now_at: int) -> InstanceView:
    """Return what is shown of a gateway on this database. scores: those of the database, which all on it share."""
    uptime_seconds = max(0, beat.last_seen_at - beat.started_at) // 1000
    return InstanceView(
        id=beat.id,
        name=beat.name,
        version=beat.version,
        archive_sha256=beat.archive_sha256,
        status=beat.status,
        connection=connection_of(beat.last_seen_at, now_at),
        uptime=uptime_seconds,
        uptime_seconds=uptime_seconds,
        cpu_percent=beat.cpu_percent,
        memory_bytes=beat.memory_bytes,
        threats=beat.threats,
        alerts=beat.alerts,
        agents=beat.agents,
        sessions=beat.sessions,
        posture_score=scores.posture_score,
        threat_score=scores.threat_score,
        last_seen_at=beat.last_seen_at,
    )


def views_of(peer: Peer, now_at: int) -> tuple[InstanceView, ...]:
    """Return what is shown of a peer: the gateways it told of, or itself when it never answered.

    What it said last stays, but is as old as its last good answer: a dead peer is offline, whatever it said alive.
    """
    heard = connection_of(peer.answered_at, now_at)
    if not peer.instances:
        return (_instance({"id": peer.id, "name": peer.name}, peer, heard),)
    return tuple(_instance(told, peer, heard) for told in peer.instances)


def sum_up(instances: Sequence[InstanceView]) -> FleetView:
    """Return all gateways with the numbers of the whole fleet."""
    is_well = [one.status is InstanceStatus.HEALTHY and one.connection is Connection.ONLINE for one in instances]
    postures = [one.posture_score for one in instances if one.posture_score is not None]
    threats = [one.threat_score for one in instances if one.threat_score is not None]
    return FleetView(
        instances=tuple(instances),
        total=len(instances),
        healthy=sum(is_well),
        posture=round(sum(postures) / len(postures)) if postures else None,
        threat=max(threats, default=None),
    )


def read_answer(value: object) -> tuple[Mapping[str, object], ...]:
    """Return the instances that a peer's `GET /api/v1/fleet` told of, each with the fields we know and nothing else.

    Those that it has from peers of its own are left out, so that two gateways that ask each other stay two.

    Raises:
        ValueError: it is no such answer.
    """
    data = value.get("data") if isinstance(value, dict) else None
    told = data.get("instances") if isinstance(data, dict) else None
    if not isinstance(told, list):
        raise ValueError("it is no list of instances")
    found = [_checked(one) for one in told[:MAX_INSTANCES] if isinstance(one, dict) and one.get("peer") is None]
    if not found:
        raise ValueError("it names no instance")
    return tuple(found)


def _checked(told: Mapping[str, object]) -> dict[str, object]:
    name, id = _text(told.get("name")), _text(told.get("id"))
    if not id:
        raise ValueError("an instance has no id")
    checked: dict[str, object] = {"id": id, "name": name or id}
    for field_name in ("version", "archive_sha256"):
        checked[field_name] = _text(told.get(field_name))
    known = {one.value for one in InstanceStatus}
    status = told.get("status")
    checked["status"] = status if isinstance(status, str) and status in known else InstanceStatus.CRITICAL.value
    for field_name in ("uptime_seconds", "memory_bytes", "threats", "alerts", "agents", "sessions"):
        checked[field_name] = _whole(told.get(field_name))
    for field_name in ("posture_score", "threat_score"):
        score = _whole(told.get(field_name))
        checked[field_name] = None if score is None else min(score, 100)
    percent = told.get("cpu_percent")
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool) and math.isfinite(percent)
    checked["cpu_percent"] = round(float(percent), 1) if is_number and isinstance(percent, int | float) else None
    checked["last_seen_at"] = _time(told.get("last_seen"))
    return checked


def _instance(told: Mapping[str, object], peer: Peer, heard: Connection) -> InstanceView:
    """Return the view of an instance whose fields `_checked` has read."""

    def whole(name: str) -> int | None:
        value = told.get(name)
        return value if isinstance(value, int) else None

    def text(name: str) -> str | None:
        value = told.get(name)
        return value if isinstance(value, str) else None

    percent, last_seen_at = told.get("cpu_percent"), whole("last_seen_at")
    reported = Connection.ONLINE
    if last_seen_at is not None and peer.answered_at is not None:
        reported = connection_of(last_seen_at, peer.answered_at)
    connection = max(heard, reported, key=tuple(Connection).index)
    status = InstanceStatus(text("status") or InstanceStatus.CRITICAL.value)
    return InstanceView(
        id=text("id") or peer.id,
        name=text("name") or peer.name,
        version=text("version"),
        archive_sha256=text("archive_sha256"),
        status=InstanceStatus.CRITICAL if connection is Connection.OFFLINE else status,
        connection=connection,
        uptime=whole("uptime_seconds"),
        uptime_seconds=whole("uptime_seconds"),
        cpu_percent=percent if isinstance(percent, float) else None,
        memory_bytes=whole("memory_bytes"),
        threats=whole("threats"),
        alerts=whole("alerts"),
        agents=whole("agents"),
        sessions=whole("sessions"),
        posture_score=whole("posture_score"),
        threat_score=whole("threat_score"),
        last_seen_at=last_seen_at if last_seen_at is not None else peer.answered_at,
        peer=peer.name,
        problem=peer.problem,
    )


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return "".join(char if char.isprintable() else "\ufffd" for char in value[:_NAME_CHARS]).strip() or None


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return int(value)


def _time(value: object) -> int | None:
    try:
        return read_timestamp(value, param="last_seen") if isinstance(value, str) else None
    except InvalidRequest:
        return None
