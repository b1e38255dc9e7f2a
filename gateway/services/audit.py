"""Audit events: made complete, committed before what they record is answered, listed and verified."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeVar, cast

from gateway.clock import Clock, Ids
from gateway.domain.audit import (
    AuditEvent,
    AuditFilter,
    ChainHead,
    ChainReport,
    Outcome,
    check_links,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import AuditUnavailable
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import StoreUnavailable, Transaction, UnreadableRow
from gateway.store.store import Store

T = TypeVar("T")

_CHUNK_EVENTS = 500
_TEXT_CHARS = 500
MAX_AGENT_CHARS = 100
_DETAIL_CHARS = 4000
_RETRY_SECONDS = 5
_PLAIN = frozenset((int, bool, float, type(None)))


class Audit:
    """The audit log of this gateway. instance_id: whose chain new events go to."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, instance_id: str) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._instance_id = instance_id

    def event(
        self,
        action: str,
        *,
        source: str,
        outcome: Outcome = "success",
        principal: Principal | None = None,
        request: RequestContext | None = None,
        resource_type: str | None = None,
        resource_id: str | None = None,
        reason: str | None = None,
        before: Mapping[str, object] | None = None,
        after: Mapping[str, object] | None = None,
        details: Mapping[str, object] | None = None,
        occurred_at: int | None = None,
        agent: str | None = None,
        direction: str | None = None,
    ) -> AuditEvent:
        """Make an event of now, or of `occurred_at`. It is recorded by `record`, `append` or `record_behind`.

        Without a principal the gateway itself is the actor; without an agent, the event has the one that the request
        names. Texts are cut, and what no database holds is replaced.

        Raises:
            TypeError: `details`, `before` or `after` holds something that is no JSON value.
        """
        actor, actor_type, actor_id, key_prefix = "gateway", "system", None, None
        if principal is not None:
            actor, actor_type = _text(principal.name) or principal.id, principal.kind
            actor_id, key_prefix = principal.id, principal.key_prefix
        ip = user_agent = request_id = None
        if request is not None:
            ip, request_id = request.ip, request.request_id
            agent = agent or request.agent
            user_agent = request.user_agent and _text(request.user_agent)
        return AuditEvent(  # by position, since some twenty names take four times as long
            self._ids.new("evt"),
            0,
            self._clock.now_at() if occurred_at is None else occurred_at,
            source,
            action,
            outcome,
            None if reason is None else _text(reason),
            actor,
            actor_type,
            actor_id,
            key_prefix,
            _text(agent, MAX_AGENT_CHARS) or None,
            direction,
            ip,
            user_agent,
            resource_type,
            None if resource_id is None else _text(resource_id),
            None if before is None else _object(before),
            None if after is None else _object(after),
            request_id,
            self._instance_id,
            _object(details) if details else {},
        )

    def append(self, tx: Transaction, event: AuditEvent) -> None:
        """Append `event` in a transaction that also does what it records."""
        if isinstance(tx, AuthorityTransaction):
            tx.is_audited = True
        self._store.audit.append(tx, event)

    async def commit(self, work: Callable[[Transaction], T], *, is_plain: bool = False) -> T:
        """Run `work`, which appends its event, in one transaction and return once it is on the disk.

        is_plain: return once it is committed, so that no end of a process undoes it; the disk has it a tenth of a
        second later.

        Raises:
            AuditUnavailable: nothing was written, so what it records must not be answered.
        """
        try:
            return await self._store.db.write(work, is_durable=not is_plain)
        except StoreUnavailable as error:
            raise AuditUnavailable(
                "The audit log cannot be written, so nothing was done; try again.",
                retry_after_seconds=error.retry_after_seconds or _RETRY_SECONDS,
            ) from error

    async def commit_authority(self, work: Callable[[AuthorityTransaction], T]) -> T:
        """Run `work`, which changes what somebody may do and appends its event. The one door for such a change.

        Keys, policies, users, agents, access entries, acceptances, overrides of rules, providers and budgets are
        written here only. Every process obeys from its next request on.

        Raises:
            AuditUnavailable: nothing was changed.
        """

        def changing(tx: Transaction) -> T:
            authority = AuthorityTransaction(tx, self._store.generation)
            result = work(authority)
            if authority.has_changed and not authority.is_audited:
                raise RuntimeError("authority was changed without an audit event")
            return result

        return await self.commit(changing)

    async def record(self, event: AuditEvent) -> AuditEvent:
        """Append `event` by itself and return once it is on the disk.

        Raises:
            AuditUnavailable: it was not written.
        """
        return await self.commit(lambda tx: self._store.audit.append(tx, event))

    def record_behind(self, event: AuditEvent) -> None:
        """Append `event` soon: for what is refused or told anyway, whether it is recorded or not.

        Raises:
            AuditUnavailable: it was not taken.
        """
        try:
            self._store.db.write_behind(lambda tx: self._store.audit.append(tx, event))
        except StoreUnavailable as error:
            raise AuditUnavailable(
                "The audit log cannot be written; try again.", retry_after_seconds=error.retry_after_seconds
            ) from error

    async def page(self, wanted: AuditFilter) -> Page[AuditEvent]:
        """List events, newest first.

        Raises:
            InvalidRequest: a bound or the cursor of `wanted`.
        """
        return await self._store.db.read(lambda tx: self._store.audit.page(tx, wanted))

    async def verify(self) -> ChainReport:
        """Read every chain in the database from its beginning and report the first event that is not as it was.

        Takes memory for some hundred events, however many there are. New events may be appended meanwhile.
        """
        events = 0
        for instance_id in await self._store.db.read(self._instances):
            report = await self._verify_chain(instance_id)
            events += report.events
            if not report.ok:
                return ChainReport(False, events, report.first_broken_seq, report.reason)
        return ChainReport(True, events)

    def _instances(self, tx: Transaction) -> tuple[str, ...]:
        # The file beside the database remembers this gateway's chain even if the database has forgotten it.
        return tuple(sorted({*self._store.audit.instances(tx), self._store.instance_id}))

    async def _verify_chain(self, instance_id: str) -> ChainReport:
        noted = self._store.headfile.read(instance_id) if instance_id == self._store.instance_id else None
        place = await self._store.db.read(lambda tx: self._store.audit.beginning(tx, instance_id))
        events, size = 0, _CHUNK_EVENTS
        while True:
            before = place

            def work(tx: Transaction, start: ChainHead = before, limit: int = size) -> tuple[ChainHead, ChainReport]:
                return self._verify_chunk(tx, instance_id, start, noted, limit)

            try:
                place, report = await self._store.db.read(work)
            except UnreadableRow:
                if size == 1:
                    return ChainReport(False, events, before.seq + 1, f"event {before.seq + 1} cannot be read")
                size = 1  # one at a time, until the event that cannot be read
                continue
            events += report.events
            if not report.ok or place == before:
                return ChainReport(report.ok, events, report.first_broken_seq, report.reason)

    def _verify_chunk(
        self, tx: Transaction, instance_id: str, start: ChainHead, noted: ChainHead | None, limit: int
    ) -> tuple[ChainHead, ChainReport]:
        """Follow the chain for some hundred events; where it ends, compare its end with what is kept of it."""
        chunk = self._store.audit.chain(tx, instance_id, after_seq=start.seq, limit=limit)
        place, report = check_links(start, chunk)
        if not report.ok:
            return place, report
        reason, broken_seq = None, place.seq + 1
        if noted is not None and start.seq < noted.seq <= place.seq:
            if self._store.audit.hash_at(tx, instance_id, noted.seq) != noted.hash:
                reason, broken_seq = f"event {noted.seq} is not the one that was noted beside the database", noted.seq
        elif not chunk:
            head = self._store.audit.head(tx, instance_id)
            if head != place:
                reason = f"the events after {place.seq} are missing: the chain ended with event {head.seq}"
            elif noted is not None and noted.seq > place.seq:
                reason = f"the events after {place.seq} are missing: a later end was noted beside the database"
        if reason is not None:
            return place, ChainReport(False, report.events, broken_seq, reason)
        return place, report


def source_of(principal: Principal) -> str:
    """Return the part of the gateway through which `principal` acts: ``api``, or the local program's own name."""
    return principal.id if principal.kind == "local" else "api"


def _text(text: str | None, chars: int = _TEXT_CHARS) -> str | None:
    if text is None or (text.isascii() and len(text) <= chars and "\0" not in text):
        return text
    return text[:chars].replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _object(values: Mapping[str, object]) -> dict[str, object]:
    clean: dict[str, object] = {}
    for name, value in values.items():
        if type(value) is str:
            if not (value.isascii() and len(value) <= _DETAIL_CHARS and "\0" not in value):
                value = _text(value, _DETAIL_CHARS)
        elif type(value) not in _PLAIN and value != []:
            value = _value(value)
        clean[name if name.isidentifier() and len(name) <= _TEXT_CHARS else _text(name) or ""] = value
    return clean


def _value(value: object) -> object:
    kind = type(value)
    if kind is str:
        return _text(cast(str, value), _DETAIL_CHARS)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return _object(cast(dict[str, object], value))
    if isinstance(value, Enum):
        return _value(value.value)
    if isinstance(value, str):
        return _text(value, _DETAIL_CHARS)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(_value(item)) for item in value)
    raise TypeError(f"an audit event cannot hold a {type(value).__name__}")
