"""The inventory of agents: registered, imported, listed with their last 24 hours, changed, blocked. Audited."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from gateway.clock import Clock, Ids
from gateway.domain.agents import (
    MAX_AGENT_LIMIT,
    MAX_NAME_CHARS,
    MAX_TAGS,
    MAX_TOOLS,
    AgentFilter,
    AgentRecord,
    AgentSource,
    AgentView,
    clean_name,
    fits,
    fold_name,
    merged,
    view,
)
from gateway.domain.paging import Page, read_cursor, write_cursor
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.traffic_sums import DAY_MS, FIVE_MINUTES_MS
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import is_line, line
from gateway.schema import Bounds
from gateway.services.agent_discovery import MAX_AGENTS
from gateway.services.audit import Audit
from gateway.services.resource import AuditTrail, check_version
from gateway.services.traffic import Traffic
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.filters import check_limit
from gateway.store.store import Store

MAX_IMPORT = 1000

Name = Annotated[str, line(MAX_NAME_CHARS), "Kept in Unicode's form NFC, without blanks around it."]
_NameOrNone = Annotated[str, line(MAX_NAME_CHARS, 0), "The empty text takes it away."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAgent:
    """What is said of an agent. None leaves a field as it is; an empty text or list takes it away.

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
    """What became of a list: how many agents were new, were changed, or stood as they were wanted."""

    created: int
    changed: int
    unchanged: int


class Agents:
    """The agents of this gateway, for who looks after them. What is seen of them is noted by `AgentDiscovery`."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit, traffic: Traffic) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._traffic = traffic
        self._trail = AuditTrail(audit, "agent")

    async def list(self) -> tuple[AgentView, ...]:
        """Return the whole inventory, newest first."""
        return tuple(one for _, one in await self._views())

    async def page(self, wanted: AgentFilter) -> Page[AgentView]:
        """List agents, newest first.

        Raises:
            InvalidRequest: a bound or the cursor of `wanted`.
        """
        limit = check_limit(wanted.limit, MAX_AGENT_LIMIT)
        query = ("agents", str(wanted.status), str(wanted.source), str(wanted.risk), wanted.search)
        before = None if wanted.cursor is None else read_cursor(wanted.cursor, query, count=1)[0]
        found = [
            (position, one)
            for position, one in await self._views()
            if (before is None or position < before) and fits(one, wanted)
        ]
        following = write_cursor(query, (found[limit - 1][0],)) if len(found) > limit else None
        return Page(tuple(one for _, one in found[:limit]), limit, following)

    async def show(self, id: str) -> AgentView:
        """Return one agent.

        Raises:
            NotFound: there is none.
        """
        for _, one in await self._views(id):
            return one
        raise NotFound("There is no such agent.")

    async def create(self, principal: Principal, wanted: WantedAgent, context: RequestContext) -> AgentView:
        """Register an agent that nobody has seen yet.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: there is one of this name, or too many.
            AuditUnavailable: it was not registered.
        """
        record = self._made(principal, wanted, AgentSource.MANUAL)

        def work(tx: AuthorityTransaction) -> None:
            if self._store.agents.by_name(tx, record.folded) is not None:
                raise Conflict("There is an agent of this name already.", param="name")
            self._insert(tx, principal, record, context, "agent_registered")

        await self._audit.commit_authority(work)
        return await self.show(record.id)

    async def import_list(
        self, principal: Principal, wanted: Sequence[WantedAgent], context: RequestContext
    ) -> Imported:
        """Bring in a list of agents: new ones are made, what is said of known ones is changed. All of it or nothing.

        Raises:
            InvalidRequest: a field of one; `param` says which of which. Conflict: there would be too many.
            AuditUnavailable: nothing was changed.
        """
        if not 1 <= len(wanted) <= MAX_IMPORT:
            raise InvalidRequest(f"agents must be a list of 1 to {MAX_IMPORT}.", param="agents")
        records = []
        for number, one in enumerate(wanted):
            try:
                records.append(self._made(principal, one, AgentSource.IMPORT))
            except InvalidRequest as error:
                raise InvalidRequest(error.message, param=f"agents[{number}].{error.param}") from None

        def work(tx: AuthorityTransaction) -> Imported:
            created = changed = 0
            for one, record in zip(wanted, records, strict=True):
                known = self._store.agents.by_name(tx, record.folded)
                if known is None:
                    self._insert(tx, principal, record, context, "agent_imported")
                    created += 1
                else:
                    changed += self._write(tx, principal, known, _changed(known, one, self._clock.now_at()), context)
            return Imported(created, changed, len(records) - created - changed)

        return await self._audit.commit_authority(work)

    async def change(self, principal: Principal, id: str, wanted: WantedAgent, context: RequestContext) -> AgentView:
        """Change an agent. A blocked one is refused at its next chat, in every process.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is no such agent.
            Conflict: it was changed meanwhile. AuditUnavailable: nothing was changed.
        """

        def work(tx: AuthorityTransaction) -> None:
            before = self._store.agents.find(tx, id)
            if before is None:
                raise NotFound("There is no such agent.")
            check_version(wanted.version, before.version, "agent")
            self._write(tx, principal, before, _changed(before, wanted, self._clock.now_at()), context)

        await self._audit.commit_authority(work)
        return await self.show(id)

    async def _views(self, id: str | None = None) -> Sequence[tuple[int, AgentView]]:
        """Return agents with their places and what the last 24 hours brought."""
        try:
            await self._traffic.advance()
        except StoreUnavailable:
            pass  # what is summed already is better than nothing
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> Sequence[tuple[int, AgentView]]:
            sums = self._store.traffic.by_value(
                tx,
                "agent",
                origin=self._store.traffic.origin,
                since=(now_at - DAY_MS) // FIVE_MINUTES_MS * FIVE_MINUTES_MS,
                until=(now_at // FIVE_MINUTES_MS + 1) * FIVE_MINUTES_MS,
            )
            counts: dict[str, tuple[int, int]] = {}
            for name, one in sums.items():
                requests, blocks = counts.get(fold_name(name), (0, 0))
                counts[fold_name(name)] = (requests + one.requests, blocks + one.blocks)
            found = []
            for position, record in self._store.agents.all(tx):
                if id in (None, record.id):
                    requests, blocks = counts.get(record.folded, (0, 0))
                    found.append((position, view(record, now_at, requests=requests, blocks=blocks)))
            return found

        return await self._store.db.read(work)

    def _made(self, principal: Principal, wanted: WantedAgent, source: AgentSource) -> AgentRecord:
        name = clean_name(_checked(wanted.name or "", "name"))
        if not name:
            raise InvalidRequest(f"name must be 1 to {MAX_NAME_CHARS} characters that can be printed.", param="name")
        now_at = self._clock.now_at()
        blank = AgentRecord(
            id=self._ids.new("agt"),
            name=name,
            folded=fold_name(name),
            source=source,
            origin=self._store.traffic.origin,
            created_at=now_at,
            created_by=principal.name,
        )
        return replace(_changed(blank, wanted, now_at), version=1)

    def _insert(
        self, tx: AuthorityTransaction, principal: Principal, record: AgentRecord, context: RequestContext, action: str
    ) -> None:
        if self._store.agents.count(tx) >= MAX_AGENTS:
            raise Conflict(f"There are {MAX_AGENTS} agents already.")
        self._store.agents.insert(tx, record)
        if record.blocked_at is not None:
            self._store.agents.decide(tx, record)
        self._trail.note(tx, action, principal, context, id=record.id, after=_shown(record))

    def _write(
        self,
        tx: AuthorityTransaction,
        principal: Principal,
        before: AgentRecord,
        after: AgentRecord,
        context: RequestContext,
    ) -> bool:
        """Write and note a change, and tell whether there was one."""
        if after == before:
            return False
        after = replace(after, version=before.version + 1)
        action = "agent_changed"
        if (before.blocked_at is None) is not (after.blocked_at is None):
            self._store.agents.decide(tx, after)
            action = "agent_unblocked" if after.blocked_at is None else "agent_blocked"
        else:
            self._store.agents.update(tx, after)
            if after.retired_at is not None and before.retired_at is None:
                action = "agent_retired"
        self._trail.note(tx, action, principal, context, id=before.id, before=_shown(before), after=_shown(after))
        return True


def _changed(record: AgentRecord, wanted: WantedAgent, now_at: int) -> AgentRecord:
    """Return the record with what is wanted, checked. The name of an agent is what it says of itself: it stays."""
    changes: dict[str, Any] = {}
    for name in ("owner", "role", "model"):
        text: str | None = getattr(wanted, name)
        if text is not None:
            changes[name] = _checked(text, name).strip() or None
    for name, given, most in (("tools", wanted.tools, MAX_TOOLS), ("tags", wanted.tags, MAX_TAGS)):
        if given is None:
            continue
        if len(given) > most:
            raise InvalidRequest(f"{name} must be at most {most} texts.", param=name)
        changes[name] = merged((), [_checked(one, name) for one in given])
    after = replace(record, **changes)
    match wanted.status:
        case "active":
            return replace(after, blocked_at=None, retired_at=None)
        case "blocked":
            return replace(after, blocked_at=record.blocked_at or now_at)
        case "retired":
            return replace(after, retired_at=record.retired_at or now_at)
    return after


def _checked(text: str, param: str) -> str:
    if len(text) > MAX_NAME_CHARS or not is_line(text):
        raise InvalidRequest(f"{param} must be at most {MAX_NAME_CHARS} characters that can be printed.", param=param)
    return text


def _shown(record: AgentRecord) -> dict[str, object]:
    """Return what the audit log keeps of an agent."""
    return {
        "name": record.name,
        "owner": record.owner,
        "role": record.role,
        "model": record.model,
        "tools": list(record.tools),
        "tags": list(record.tags),
        "blocked_at": record.blocked_at,
        "retired_at": record.retired_at,
    }
