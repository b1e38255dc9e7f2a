"""Discovers agents in chats and MCP sessions, and refuses blocked ones.

A chat writes about an agent only when something is new: an unknown name, the second sighting, a new tool, or a minute
since the last record. The transaction that closes the chat writes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.clock import Clock, Ids
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
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import AccessDenied
from gateway.records import named_record
from gateway.services.alerts import ITSELF, Alerts
from gateway.shield.detections import Severity
from gateway.store.database import Transaction
from gateway.store.store import Store

MAX_AGENTS = 10_000
"""The most agents that are kept. Traffic and one alert count further names."""
MAX_UNKNOWN = 64
"""The most unknown agents of one key that are kept within ten minutes. One alert of the key counts the others."""
UNKNOWN, RETIRED, TOO_MANY, MANY_OF_KEY = "unknown-agent", "retired-agent", "too-many-agents", "many-unknown-agents"


class AgentBlocked(AccessDenied):
    """The agent is blocked. Nothing was sent upstream."""

    def __init__(self, agent_id: str, name: str) -> None:
        super().__init__(f"The agent {agent_id} is blocked.")
        self.agent_id = agent_id
        self.name = name


@named_record
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
class _Noted:
    """The last record of an agent. A sighting before `since_at` or from `until_at` on is recorded again."""

    since_at: int
    until_at: int
    tools: frozenset[str]

    def is_news(self, sighting: Sighting) -> bool:
        tools = sighting.tools
        if not self.since_at <= sighting.occurred_at < self.until_at:
            return True
        return bool(tools) and not sighting.blocked and not self.tools.issuperset(tools) and len(self.tools) < MAX_TOOLS


def _noted(record: AgentRecord, tools: Sequence[str], at: int) -> _Noted:
    """Return what to remember of a record at `at`: the second sighting is recorded, and then one a minute."""
    first_at, last_at = record.first_seen_at or at, record.last_seen_at or at
    quiet_ms = 1 if first_at == last_at else NOTE_EVERY_MS
    return _Noted(last_at - quiet_ms + 1, last_at + quiet_ms, frozenset((*record.tools, *tools)))


class AgentDiscovery:
    """The agents that this process knows. `record_sighting` runs in transactions, all else in the event loop."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, alerts: Alerts) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._alerts = alerts
        self._noted: dict[str, _Noted] = {}
        self._folds: dict[str, str] = {}
        self._blocked: dict[str, str] = {}
        self._generation = -1

    def any_blocked(self) -> bool:
        """Tell whether any agent is blocked. Changes by any process apply at once.

        Raises:
            StoreUnavailable: the agents cannot be read.
        """
        generation = self._store.generation.value()
        if generation != self._generation:
            self._blocked = self._store.db.read_now(self._store.agents.blocked)
            self._generation = generation
        return bool(self._blocked)

    def check(self, name: str) -> None:
        """Refuse a blocked agent. Call `any_blocked` first.

        Raises:
            AgentBlocked: it is blocked.
        """
        if (agent_id := self._blocked.get(self._folded(name))) is not None:
            raise AgentBlocked(agent_id, clean_name(name))

    def is_news(self, name: str, occurred_at: int) -> bool:
        """Tell whether a sighting without tools may have to be recorded."""
        noted = self._noted.get(self._folds.get(name, ""))
        return noted is None or not noted.since_at <= occurred_at < noted.until_at

    def record_sighting(
        self,
        tx: Transaction,
        sighting: Sighting,
        *,
        context: RequestContext | None = None,
        principal: Principal | None = None,
    ) -> None:
        """Record in `tx` a sighting that brings something new. An unknown agent raises one alert."""
        folded, occurred_at = self._folded(sighting.name), sighting.occurred_at
        if not folded:
            return
        noted = self._noted.get(folded)
        if noted is not None and not noted.is_news(sighting):
            return
        record = self._store.agents.by_name(tx, folded)
        if record is None:
            record = self._discovered(tx, sighting, folded, context, principal)
            if record is None:
                return
        elif record.retired_at is not None and not sighting.blocked:
            self._raise(tx, _RETIRED_AGENT, folded, record.name, occurred_at, context, principal)
        is_use = not sighting.blocked
        tools = sighting.tools if is_use else ()
        after = after_sighting(record, model=sighting.model if is_use else None, tools=tools, occurred_at=occurred_at)
        self._store.agents.change(tx, after)
        tx.after_commit(lambda: self._remember(folded, _noted(after, tools, occurred_at)))

    def record_client(self, client: str) -> None:
        """Record soon that an MCP client named itself."""
        sighting = Sighting(name=client, source=AgentSource.MCP, occurred_at=self._clock.now_at())
        self._alerts.raise_behind(lambda tx: self.record_sighting(tx, sighting))

    def _folded(self, name: str) -> str:
        """Return the folded name, from a cache."""
        folded = self._folds.get(name)
        if folded is None:
            if len(self._folds) >= MAX_AGENTS:
                self._folds.clear()
            folded = self._folds[name] = fold_name(name)
        return folded

    def _discovered(
        self,
        tx: Transaction,
        sighting: Sighting,
        folded: str,
        context: RequestContext | None,
        principal: Principal | None,
    ) -> AgentRecord | None:
        at = sighting.occurred_at
        if principal is not None and principal.key_prefix and self._has_many(tx, principal, at):
            self._raise(tx, _MANY_OF_KEY, principal.id, "", at, context, principal)
            return None
        if self._store.agents.count(tx) >= MAX_AGENTS:
            self._raise(tx, _TOO_MANY_AGENTS, "", "", at, context, principal)
            return None
        record = AgentRecord(
            id=self._ids.new("agt"),
            name=clean_name(sighting.name),
            folded=folded,
            source=sighting.source,
            origin=self._store.traffic.origin,
            created_at=at,
            created_by=ITSELF,
        )
        self._store.agents.insert(tx, record)
        self._raise(tx, _UNKNOWN_AGENT, folded, record.name, at, context, principal)
        return record

    def _has_many(self, tx: Transaction, principal: Principal, at: int) -> bool:
        """Tell whether a key has reached its limit of unknown agents, counted over all processes."""
        since_at, prefix = at - MERGE_WITHIN_MS, principal.key_prefix or ""
        return self._store.agents.count_unknown(tx, UNKNOWN, prefix, since=since_at, most=MAX_UNKNOWN) >= MAX_UNKNOWN

    def _raise(
        self,
        tx: Transaction,
        raised: "_Raised",
        subject: str,
        name: str,
        occurred_at: int,
        context: RequestContext | None,
        principal: Principal | None,
    ) -> None:
        self._alerts.raise_event(
            tx,
            source=AlertSource.ACCESS,
            rule=raised.rule,
            severity=raised.severity,
            title=raised.title,
            description=raised.description,
            subject=subject,
            occurred_at=occurred_at,
            context=context,
            principal=principal,
            evidence=({"agent": name},) if name else (),
        )

    def _remember(self, folded: str, noted: _Noted) -> None:
        if len(self._noted) >= MAX_AGENTS:
            self._noted.clear()
        self._noted[folded] = noted


@dataclass(frozen=True, slots=True)
class _Raised:
    rule: str
    severity: Severity
    title: str
    description: str


_UNKNOWN_AGENT = _Raised(
    UNKNOWN, Severity.LOW, "An unknown agent appeared", "An agent that nobody had registered used the gateway."
)
_RETIRED_AGENT = _Raised(
    RETIRED, Severity.MEDIUM, "A retired agent is in use", "An agent that was retired used the gateway again."
)
_MANY_OF_KEY = _Raised(
    MANY_OF_KEY,
    Severity.MEDIUM,
    "A key names many unknown agents",
    f"Over {MAX_UNKNOWN} within ten minutes. Further ones are counted here and not kept; they may be made up.",
)
_TOO_MANY_AGENTS = _Raised(
    TOO_MANY,
    Severity.MEDIUM,
    "Too many names of agents",
    f"There are {MAX_AGENTS} agents already, so that new names are no longer kept: somebody may be making them up.",
)
