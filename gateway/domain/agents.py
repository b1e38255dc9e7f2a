"""Agents: the programs that call through the gateway, with their state and risk. Pure.

Callers name their agents themselves, so a name proves nothing. The gateway stores it as printable text. Names that
differ only in case are one agent.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gateway.domain.paging import PageQuery
from gateway.field_types import as_line
from gateway.records import project

MAX_NAME_CHARS = 100
MAX_TOOLS = 100
MAX_TAGS = 20
MAX_AGENT_LIMIT = 1000
ACTIVE_MS = 15 * 60_000
IDLE_MS = 24 * 3_600_000
NOTE_EVERY_MS = 60_000


class AgentSource(StrEnum):
    """How the gateway learned of an agent."""

    TRAFFIC = "traffic"
    MCP = "mcp"
    MANUAL = "manual"
    IMPORT = "import"


class AgentStatus(StrEnum):
    """The state of an agent.

    DISCOVERED: seen once, within 15 minutes. ACTIVE: seen within 15 minutes. IDLE: seen within a day. INACTIVE: seen
    earlier. CONFIGURED: registered, never seen. BLOCKED: its chats are refused. RETIRED: no longer in use.
    """

    DISCOVERED = "discovered"
    ACTIVE = "active"
    IDLE = "idle"
    INACTIVE = "inactive"
    CONFIGURED = "configured"
    BLOCKED = "blocked"
    RETIRED = "retired"


class AgentRisk(StrEnum):
    """How much attention an agent needs."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """One agent. folded: the case-folded name. tools: names of the tools it has offered to models, sorted.

    model: of its last request. version: rises with every change by an operator, not with traffic.
    """

    id: str
    name: str
    folded: str = field(metadata={"json_name": None})
    source: AgentSource
    origin: str = field(metadata={"json_name": None})
    owner: str | None = None
    role: str | None = None
    model: str | None = None
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    first_seen_at: int | None = field(default=None, metadata={"json_name": "first_seen"})
    last_seen_at: int | None = field(default=None, metadata={"json_name": "last_seen"})
    blocked_at: int | None = field(default=None, metadata={"json_name": None})
    retired_at: int | None = field(default=None, metadata={"json_name": None})
    created_at: int = field(metadata={"json_name": None})
    created_by: str = field(metadata={"json_name": None})
    version: int = 1

    def status_at(self, now_at: int) -> AgentStatus:
        """Return the state at `now_at`. A clock that was set back makes no agent inactive."""
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
class AgentView(AgentRecord):
    """An agent as the API shows it, with its last 24 hours."""

    status: AgentStatus
    requests_24h: int
    blocks_24h: int
    risk: AgentRisk


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFilter(PageQuery):
    """The agents to list, newest first. None matches all. search: in name, owner, role and tags, in any case."""

    status: AgentStatus | None = None
    source: AgentSource | None = None
    risk: AgentRisk | None = None
    search: str | None = None


AGENT_SORTS: Mapping[str, Callable[[AgentView], int | str]] = {
    "name": lambda one: one.name.casefold(),
    "owner": lambda one: (one.owner or "").casefold(),
    "risk": lambda one: tuple(AgentRisk).index(one.risk),
    "status": lambda one: tuple(AgentStatus).index(one.status),
    "requests": lambda one: one.requests_24h,
    "blocks": lambda one: one.blocks_24h,
    "first_seen": lambda one: one.first_seen_at or 0,
    "last_seen": lambda one: one.last_seen_at or 0,
}


def clean_name(text: str) -> str:
    """Return the stored form of a name: NFC, printable, trimmed, at most 100 characters; may be empty."""
    normal = unicodedata.normalize("NFC", text[: 4 * MAX_NAME_CHARS])
    return as_line(normal).strip()[:MAX_NAME_CHARS].strip()


def fold_name(name: str) -> str:
    """Return the form that all spellings of a name share."""
    return clean_name(name).casefold()


def after_sighting(record: AgentRecord, *, model: str | None, tools: Iterable[str], occurred_at: int) -> AgentRecord:
    """Return the record after a request. A last time in the far future, from a clock that jumped, is corrected."""
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
    """Return the names of both, sorted and at most `MAX_TOOLS`. The known names stay."""
    names = dict.fromkeys(known)
    for tool in tools:
        if len(names) >= MAX_TOOLS:
            break
        if name := clean_name(tool):
            names.setdefault(name)
    return tuple(sorted(names))


def risk_of(record: AgentRecord, *, requests: int, blocks: int) -> AgentRisk:
    """Return the risk of an agent by its last 24 hours and its owner.

    HIGH: ten blocks, or blocks on a fifth of at least five requests. MEDIUM: any block, or tools without an owner.
    """
    if blocks >= 10 or (requests >= 5 and blocks >= 0.2 * requests):
        return AgentRisk.HIGH
    return AgentRisk.MEDIUM if blocks or (record.tools and record.owner is None) else AgentRisk.LOW


def view(record: AgentRecord, now_at: int, *, requests: int, blocks: int) -> AgentView:
    """Return the view of an agent."""
    return project(
        AgentView,
        record,
        status=record.status_at(now_at),
        requests_24h=requests,
        blocks_24h=blocks,
        risk=risk_of(record, requests=requests, blocks=blocks),
    )


def matches(one: AgentView, wanted: AgentFilter) -> bool:
    """Return whether an agent matches the filter."""
    for name in ("status", "source", "risk"):
        if getattr(wanted, name) not in (None, getattr(one, name)):
            return False
    text = "\n".join((one.name, one.owner or "", one.role or "", *one.tags)).casefold()
    return wanted.search is None or wanted.search.casefold() in text
