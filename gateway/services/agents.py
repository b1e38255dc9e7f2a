"""The inventory of agents, each with the counts of its last 24 hours. The gateway refuses a blocked agent."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Annotated, Literal

from gateway.domain.agents import (
    AGENT_SORTS,
    MAX_AGENT_LIMIT,
    MAX_NAME_CHARS,
    MAX_TAGS,
    MAX_TOOLS,
    AgentFilter,
    AgentRecord,
    AgentSource,
    AgentView,
    clean_name,
    fold_name,
    matches,
    merged,
    view,
)
from gateway.domain.paging import Page, read_cursor, write_cursor
from gateway.domain.principals import Caller, Principal
from gateway.errors import InvalidRequest, NotFound
from gateway.field_types import line
from gateway.schema import Bounds, check
from gateway.services.agent_discovery import MAX_AGENTS
from gateway.services.resource import Resource, patched
from gateway.services.traffic import Traffic
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.filters import check_limit

MAX_IMPORT = 1000
_TEXTS = ("owner", "role", "model")

Name = Annotated[str, line(MAX_NAME_CHARS), "Kept in Unicode's form NFC, without blanks around it."]
_NameOrNone = Annotated[str, line(MAX_NAME_CHARS, 0), "The empty text takes it away."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAgent:
    """The fields of an agent. None leaves a field as it is; an empty text or list removes it.

    status: `blocked` and `retired` set, `active` lifts both.
    """

    name: Name | None = None
    owner: _NameOrNone | None = None
    role: _NameOrNone | None = None
    model: _NameOrNone | None = None
    tools: Annotated[tuple[Name, ...], Bounds(0, MAX_TOOLS)] | None = None
    tags: Annotated[tuple[Name, ...], Bounds(0, MAX_TAGS)] | None = None
    status: Literal["active", "blocked", "retired"] | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: how many agents were new, changed and already as wanted."""

    created: int
    changed: int
    unchanged: int


class Agents(Resource[AgentRecord]):
    """The inventory of agents. `AgentDiscovery` records what they do."""

    noun, nouns = "agent", "agents"
    name_field = "name"
    most = MAX_AGENTS
    audited = ("name", "owner", "role", "model", "tools", "tags", "blocked_at", "retired_at")

    traffic: Traffic

    async def views(self) -> tuple[AgentView, ...]:
        """Return the whole inventory, newest first."""
        return tuple(one for _, one in await self._views())

    async def page(self, wanted: AgentFilter) -> Page[AgentView]:
        """List agents. Raises InvalidRequest for a bad bound, sort or cursor of `wanted`."""
        limit, by = check_limit(wanted.limit, MAX_AGENT_LIMIT), wanted.sort_of(AGENT_SORTS)
        query = ("agents", str(wanted.status), str(wanted.source), str(wanted.risk), wanted.search, wanted.sort)
        matching = ((position, one) for position, one in await self._views() if matches(one, wanted))
        found = [((*(value(one) for value in by), position), one) for position, one in matching]
        found.sort(key=itemgetter(0), reverse=wanted.is_highest_first)
        total = len(found)
        if wanted.cursor is not None:
            kinds = [type(part) for part in found[0][0]] if found else [int | str for _ in (*by, "position")]
            last = read_cursor(wanted.cursor, query, kinds)
            found = [one for one in found if (one[0] < last if wanted.is_highest_first else one[0] > last)]
        following = write_cursor(query, found[limit - 1][0]) if len(found) > limit else None
        return Page(tuple(one for _, one in found[:limit]), limit, following, total)

    async def view(self, id: str) -> AgentView:
        """Return one agent. Raises NotFound."""
        for _, one in await self._views(id):
            return one
        raise NotFound("There is no such agent.")

    async def register(self, caller: Caller, wanted: WantedAgent) -> AgentView:
        """Register an agent before its first request. Raises as `Resource.create`."""
        check(wanted)
        record = self._described(caller.principal, wanted, AgentSource.MANUAL)

        await self.audit.commit_authority(caller, lambda tx: self._insert(tx, record, action="registered"))
        return await self.view(record.id)

    async def import_list(self, caller: Caller, wanted: Sequence[WantedAgent]) -> Imported:
        """Create the agents of a list that are new and change those that are known: all of them or none.

        Raises:
            InvalidRequest: a field of one; `param` names both. Conflict: there would be too many.
            AuditUnavailable: nothing was changed.
        """
        if not 1 <= len(wanted) <= MAX_IMPORT:
            raise InvalidRequest(f"agents must be a list of 1 to {MAX_IMPORT}.", param="agents")
        records = []
        for number, one in enumerate(wanted):
            try:
                check(one)
                records.append(self._described(caller.principal, one, AgentSource.IMPORT))
            except InvalidRequest as error:
                raise InvalidRequest(error.message, param=f"agents[{number}].{error.param}") from None

        def work(tx: AuthorityTransaction) -> Imported:
            created = changed = 0
            for one, record in zip(wanted, records, strict=True):
                known = self.store.agents.by_name(tx, record.folded)
                if known is None:
                    self._insert(tx, record, action="imported")
                    created += 1
                else:
                    change = partial(self._changed, tx, changes=one)
                    changed += self._update(tx, known.id, None, change) != known
            return Imported(created, changed, len(records) - created - changed)

        return await self.audit.commit_authority(caller, work)

    async def change(self, caller: Caller, name: str, changes: WantedAgent) -> AgentView:
        """Change an agent. Every process refuses the next chat of a blocked one. Raises as `Resource.change`."""
        await super().change(caller, name, changes)
        return await self.view(name)

    def _changed(self, tx: AuthorityTransaction, before: AgentRecord, changes: WantedAgent) -> AgentRecord:
        return _with(before, changes, self.clock.now_at())

    def _namesake(self, tx: Transaction, record: AgentRecord) -> AgentRecord | None:
        return self.store.agents.by_name(tx, record.folded)

    async def _views(self, id: str | None = None) -> Sequence[tuple[int, AgentView]]:
        """Return agents with their positions and the counts of the last 24 hours."""
        with suppress(StoreUnavailable):  # the sums so far are better than nothing
            await self.traffic.advance()
        now_at = self.clock.now_at()

        def work(tx: Transaction) -> Sequence[tuple[int, AgentView]]:
            requests, blocks = Counter[str](), Counter[str]()
            for name, one in self.traffic.last_day(tx, "agent", now_at).items():
                requests[fold_name(name)] += one.requests
                blocks[fold_name(name)] += one.blocks
            return [
                (position, view(record, now_at, requests=requests[record.folded], blocks=blocks[record.folded]))
                for position, record in self.store.agents.positions(tx)
                if id in (None, record.id)
            ]

        return await self.store.db.read(work)

    def _described(self, principal: Principal, wanted: WantedAgent, source: AgentSource) -> AgentRecord:
        name = clean_name(wanted.name or "")
        if not name:
            raise InvalidRequest("name is missing.", param="name")
        born, origin = self._born("agt", principal), self.store.traffic.origin
        blank = AgentRecord(**born, name=name, folded=fold_name(name), source=source, origin=origin)
        return _with(blank, wanted, blank.created_at)

    def _insert(self, tx: AuthorityTransaction, record: AgentRecord, *, action: str = "created") -> AgentRecord:
        record = super()._insert(tx, record, action=action)
        if record.blocked_at is not None:
            self.store.agents.decide(tx, record)
        return record

    def _write(self, tx: AuthorityTransaction, before: AgentRecord, after: AgentRecord) -> None:
        is_decided = (before.blocked_at is None) is not (after.blocked_at is None)
        write = self.store.agents.decide if is_decided else self.store.agents.change
        write(tx, replace(after, version=before.version + 1))

    def _action(self, before: AgentRecord, after: AgentRecord) -> str:
        if (before.blocked_at is None) is not (after.blocked_at is None):
            return "unblocked" if after.blocked_at is None else "blocked"
        return "retired" if before.retired_at is None and after.retired_at is not None else "changed"


def _with(record: AgentRecord, wanted: WantedAgent, now_at: int) -> AgentRecord:
    """Return the record with its changes. The name stays, since the agent itself reports it."""
    texts = {name: text.strip() or None for name in _TEXTS if (text := getattr(wanted, name)) is not None}
    names = {name: merged((), given) for name in ("tools", "tags") if (given := getattr(wanted, name)) is not None}
    after = patched(record, wanted, name=record.name, **texts, **names)
    match wanted.status:
        case "active":
            return replace(after, blocked_at=None, retired_at=None)
        case "blocked":
            return replace(after, blocked_at=record.blocked_at or now_at)
        case "retired":
            return replace(after, retired_at=record.retired_at or now_at)
    return after
