"""Agents: who calls through the gateway, as they name themselves; what state they are in and how risky they are. Pure.

A name is what a caller says of itself and no proof of anything: it is kept as printable text, and two names that differ
in case alone are one agent.
"""

import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gateway.field_types import as_line

MAX_NAME_CHARS = 100
MAX_TOOLS = 100
MAX_TAGS = 20
MAX_AGENT_LIMIT = 1000
DEFAULT_AGENT_LIMIT = 100
ACTIVE_MS = 15 * 60_000
IDLE_MS = 24 * 3_600_000
NOTE_EVERY_MS = 60_000
_BLOCKS_OF_HIGH = 10
_SHARE_OF_HIGH = 0.2
_REQUESTS_TO_JUDGE = 5


class AgentSource(StrEnum):
    """How the gateway came to know an agent."""

    TRAFFIC = "traffic"
    MCP = "mcp"
    MANUAL = "manual"
    IMPORT = "import"


class AgentStatus(StrEnum):
    """Where an agent stands.

    DISCOVERED: seen once, just now. ACTIVE: seen within 15 minutes. IDLE: within a day. INACTIVE: not since.
    CONFIGURED: registered and never seen. BLOCKED: its chats are refused. RETIRED: nobody should use it any more.
    """

    DISCOVERED = "discovered"
    ACTIVE = "active"
    IDLE = "idle"
    INACTIVE = "inactive"
    CONFIGURED = "configured"
    BLOCKED = "blocked"
    RETIRED = "retired"


class AgentRisk(StrEnum):
    """How much an agent should be looked at."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """One agent. folded: its name without regard to case. tools: the names it has offered to models, sorted.

    model: the one it asked for last. version: rises with what somebody changes, not with what is seen.
    """

    id: str
    name: str
    folded: str
    source: AgentSource
    origin: str
    owner: str | None = None
    role: str | None = None
    model: str | None = None
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    first_seen_at: int | None = None
    last_seen_at: int | None = None
    blocked_at: int | None = None
    retired_at: int | None = None
    created_at: int
    created_by: str
    version: int = 1

    def status(self, now_at: int) -> AgentStatus:
        """Return the state at a time. A clock that went back makes nobody inactive."""
        if self.blocked_at is not None:
            return AgentStatus.BLOCKED
        if self.retired_at is not None:
            return AgentStatus.RETIRED
        if self.last_seen_at is None:
            return AgentStatus.CONFIGURED
        age_ms = now_at - self.last_seen_at
        if age_ms <= ACTIVE_MS:
            is_new = self.first_seen_at == self.last_seen_at and self.source in (AgentSource.TRAFFIC, AgentSource.MCP)
            return AgentStatus.DISCOVERED if is_new else AgentStatus.ACTIVE
        return AgentStatus.IDLE if age_ms <= IDLE_MS else AgentStatus.INACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """An agent as it is listed, with what the last 24 hours brought."""

    id: str
    name: str
    status: AgentStatus
    model: str | None
    role: str | None
    tools: tuple[str, ...]
    source: AgentSource
    owner: str | None
    first_seen_at: int | None = field(metadata={"json_name": "first_seen"})
    last_seen_at: int | None = field(metadata={"json_name": "last_seen"})
    requests_24h: int
    blocks_24h: int
    risk: AgentRisk
    tags: tuple[str, ...]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFilter:
    """Which agents to list, newest first. None means any. search: in name, owner, role and tags, whatever the case."""

    status: AgentStatus | None = None
    source: AgentSource | None = None
    risk: AgentRisk | None = None
    search: str | None = None
    limit: int = DEFAULT_AGENT_LIMIT
    cursor: str | None = None


def clean_name(text: str) -> str:
    """Return a name as it is kept: NFC, printable, without blanks around it, at most 100 characters; "" for none."""
    normal = unicodedata.normalize("NFC", text[: 4 * MAX_NAME_CHARS])
    return as_line(normal).strip()[:MAX_NAME_CHARS].strip()


def fold_name(name: str) -> str:
    """Return what two spellings of one name share."""
    return clean_name(name).casefold()


def after_sighting(record: AgentRecord, *, model: str | None, tools: Iterable[str], occurred_at: int) -> AgentRecord:
    """Return the record after a sighting. A time far in the future, noted by a clock that jumped, is taken back."""
    last_at = record.last_seen_at
    if last_at is None or not 0 <= last_at - occurred_at <= NOTE_EVERY_MS:
        last_at = occurred_at
    return replace(
        record,
        model=model or record.model,
        tools=merged(record.tools, tools),
        first_seen_at=occurred_at if record.first_seen_at is None else record.first_seen_at,
        last_seen_at=last_at,
    )


def merged(known: Collection[str], tools: Iterable[str]) -> tuple[str, ...]:
    """Return the names of both, sorted, and no more than `MAX_TOOLS`: those that are known stay."""
    names = dict.fromkeys(known)
    for tool in tools:
        if len(names) >= MAX_TOOLS:
            break
        if name := clean_name(tool):
            names.setdefault(name)
    return tuple(sorted(names))


def risk_of(record: AgentRecord, *, requests: int, blocks: int) -> AgentRisk:
    """Return how much an agent should be looked at, by its last 24 hours and by who answers for it.

    HIGH: ten blocks, or a fifth of at least five requests. MEDIUM: any block, or tools and nobody who owns it.
    """
    if blocks >= _BLOCKS_OF_HIGH or (requests >= _REQUESTS_TO_JUDGE and blocks >= _SHARE_OF_HIGH * requests):
        return AgentRisk.HIGH
    return AgentRisk.MEDIUM if blocks or (record.tools and record.owner is None) else AgentRisk.LOW


def view(record: AgentRecord, now_at: int, *, requests: int, blocks: int) -> AgentView:
    """Return what is shown of an agent."""
    return AgentView(
        id=record.id,
        name=record.name,
        status=record.status(now_at),
        model=record.model,
        role=record.role,
        tools=record.tools,
        source=record.source,
        owner=record.owner,
        first_seen_at=record.first_seen_at,
        last_seen_at=record.last_seen_at,
        requests_24h=requests,
        blocks_24h=blocks,
        risk=risk_of(record, requests=requests, blocks=blocks),
        tags=record.tags,
        version=record.version,
    )


def fits(one: AgentView, wanted: AgentFilter) -> bool:
    """Tell whether an agent is among those wanted."""
    if wanted.status not in (None, one.status) or wanted.source not in (None, one.source):
        return False
    if wanted.risk not in (None, one.risk):
        return False
    if wanted.search is None:
        return True
    text = "\n".join((one.name, one.owner or "", one.role or "", *one.tags)).casefold()
    return wanted.search.casefold() in text
