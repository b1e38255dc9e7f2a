"""Discovers agents in chats and MCP sessions, and refuses blocked ones.

A chat writes about an agent only when something is new: an unknown name, the second sighting, a new tool, or a minute
since the last record. The transaction that closes the chat writes it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from gateway.domain.agents import (
    MAX_TOOLS,
    NOTE_EVERY_MS,
    AgentRecord,
    AgentSource,
    after_sighting,
    clean_name,
    fold_name,
)
from gateway.domain.alerts import MERGE_WITHIN_MS, AlertSource
from gateway.domain.principals import Caller
from gateway.errors import AccessDenied
from gateway.services.alerts import ITSELF, Alerts
from gateway.services.core import Service
from gateway.shield.detections import Severity
from gateway.store.database import Transaction

MAX_AGENTS = 10_000
"""The most agents that are kept. Traffic and one alert count further names."""
MAX_UNKNOWN = 64
"""The most unknown agents of one key that are kept within ten minutes. One alert of the key counts the others."""
UNKNOWN = "unknown-agent"


class AgentBlocked(AccessDenied):
    """The agent is blocked. Nothing was sent upstream."""

    def __init__(self, agent_id: str, name: str) -> None:
        super().__init__(f"The agent {agent_id} is blocked.")
        self.agent_id = agent_id
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One use of the gateway by an agent. name: as reported, without secrets. model: requested. tools: offered.

    blocked: whether the agent was refused because it is blocked; then only the time is recorded.
    """

    name: str
    source: AgentSource
    occurred_at: int
    model: str | None = None
    tools: tuple[str, ...] = ()
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class _Raised:
    """The fixed part of an alert about agents."""

    rule: str
    severity: Severity
    title: str
    description: str


_UNKNOWN = _Raised(
    UNKNOWN, Severity.LOW, "An unknown agent appeared", "An agent that nobody had registered used the gateway."
)
_RETIRED = _Raised(
    "retired-agent", Severity.MEDIUM, "A retired agent is in use", "An agent that was retired used the gateway again."
)
_MANY_OF_KEY = _Raised(
    "many-unknown-agents",
    Severity.MEDIUM,
    "A key names many unknown agents",
    f"Over {MAX_UNKNOWN} within ten minutes. Further ones are counted here and not kept; they may be made up.",
)
_TOO_MANY = _Raised(
    "too-many-agents",
    Severity.MEDIUM,
    "Too many names of agents",
    f"There are {MAX_AGENTS} agents already, so that new names are no longer kept: somebody may be making them up.",
)


class AgentDiscovery(Service):
    """The agents that this process knows. `record_sighting` runs in transactions, all else in the event loop."""

    alerts: Alerts
    _recorded: dict[str, AgentRecord] = field(default_factory=dict, init=False)

    def any_blocked(self) -> bool:
        """Return whether any agent is blocked. Raises StoreUnavailable: no agents were read yet."""
        return bool(self.store.authority.now.blocked)

    def check(self, name: str) -> None:
        """Refuse a blocked agent. Raises AgentBlocked."""
        if (agent_id := self.store.authority.now.blocked.get(fold_name(name))) is not None:
            raise AgentBlocked(agent_id, clean_name(name))

    def is_news(self, name: str, occurred_at: int) -> bool:
        """Return whether a sighting without tools may have to be recorded."""
        recorded = self._recorded.get(fold_name(name))
        return recorded is None or _is_due(recorded, occurred_at)

    def record_sighting(self, tx: Transaction, sighting: Sighting, caller: Caller | None = None) -> None:
        """Record in `tx` a sighting that brings something new. An unknown agent raises one alert."""
        folded, occurred_at = fold_name(sighting.name), sighting.occurred_at
        recorded = self._recorded.get(folded)
        if not folded or (recorded is not None and not _is_news(recorded, sighting)):
            return
        notify = partial(self._raise, tx, occurred_at=occurred_at, caller=caller)
        record = self.store.agents.by_name(tx, folded)
        if record is None:
            record = self._discovered(tx, sighting, folded, caller, notify)
            if record is None:
                return
        elif record.retired_at is not None and not sighting.blocked:
            notify(_RETIRED, folded, record.name)
        model, tools = (None, ()) if sighting.blocked else (sighting.model, sighting.tools)
        after = after_sighting(record, model=model, tools=tools, occurred_at=occurred_at)
        self.store.agents.change(tx, after)
        tx.after_commit(lambda: self._remember(after))

    def record_client(self, client: str) -> None:
        """Queue a sighting of an MCP client that named itself."""
        sighting = Sighting(name=client, source=AgentSource.MCP, occurred_at=self.clock.now_at())
        self.alerts.raise_behind(lambda tx: self.record_sighting(tx, sighting))

    def _discovered(
        self,
        tx: Transaction,
        sighting: Sighting,
        folded: str,
        caller: Caller | None,
        notify: Callable[[_Raised, str, str], None],
    ) -> AgentRecord | None:
        """Insert and return an unknown agent, or None if there are too many."""
        at, agents = sighting.occurred_at, self.store.agents
        if caller is not None and (prefix := caller.principal.key_prefix):
            since = at - MERGE_WITHIN_MS  # each unknown agent has raised an alert
            recent = self.store.alerts.count_of_key(tx, UNKNOWN, prefix, since=since, most=MAX_UNKNOWN)
            if recent >= MAX_UNKNOWN:
                notify(_MANY_OF_KEY, caller.principal.id, "")
                return None
        if agents.count(tx) >= MAX_AGENTS:
            notify(_TOO_MANY, "", "")
            return None
        record = AgentRecord(
            id=self.ids.new("agt"),
            name=clean_name(sighting.name),
            folded=folded,
            source=sighting.source,
            origin=self.store.traffic.origin,
            created_at=at,
            created_by=ITSELF,
        )
        agents.insert(tx, record)
        notify(_UNKNOWN, folded, record.name)
        return record

    def _raise(self, tx: Transaction, raised: _Raised, subject: str, name: str, **seen: Any) -> None:
        evidence = ({"agent": name},) if name else ()
        self.alerts.raise_event(
            tx, source=AlertSource.ACCESS, subject=subject, evidence=evidence, **asdict(raised), **seen
        )

    def _remember(self, record: AgentRecord) -> None:
        if len(self._recorded) >= MAX_AGENTS:
            self._recorded.clear()
        self._recorded[record.folded] = record


def _is_due(recorded: AgentRecord, occurred_at: int) -> bool:
    """Return whether the time of a sighting is to be recorded: that of the second one, and then one a minute."""
    quiet_ms = 1 if recorded.first_seen_at == recorded.last_seen_at else NOTE_EVERY_MS
    return abs(occurred_at - (recorded.last_seen_at or 0)) >= quiet_ms


def _is_news(recorded: AgentRecord, sighting: Sighting) -> bool:
    tools = () if sighting.blocked or len(recorded.tools) >= MAX_TOOLS else sighting.tools
    return not set(recorded.tools).issuperset(tools) or _is_due(recorded, sighting.occurred_at)
