"""Make audit events, commit them, list them and verify their chain.

An event is committed with the change that it records, before the caller gets an answer. So no change exists without its
event.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from gateway.clock import Clock, Ids
from gateway.domain.audit import AuditEvent, AuditFilter, ChainHead, ChainReport, Outcome, check_links
from gateway.domain.paging import Page
from gateway.domain.principals import Caller, Principal, RequestContext
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


class Audit:
    """The audit log of this gateway."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

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
        """Make an event; `record`, `append` or `record_behind` then writes it.

        Defaults: the gateway is the actor, the agent is the one that the request names, the time is now. Long texts are
        cut, and characters that a database cannot store are replaced.

        Raises:
            TypeError: `details`, `before` or `after` holds a value that JSON cannot express.
        """
        actor, actor_type, actor_id, key_prefix = "gateway", "system", None, None
        if principal is not None:
            actor, actor_type = _text(principal.name) or principal.id, principal.kind
            actor_id, key_prefix = principal.id, principal.key_prefix
        ip = user_agent = request_id = None
        if request is not None:
            ip, request_id = request.ip, request.request_id
            agent = agent or request.agent
            user_agent = _text(request.user_agent)
        return AuditEvent(
            id=self._ids.new("evt"),
            occurred_at=self._clock.now_at() if occurred_at is None else occurred_at,
            source=source,
            action=action,
            outcome=outcome,
            reason=_text(reason),
            actor=actor,
            actor_type=actor_type,
            actor_id=actor_id,
            key_prefix=key_prefix,
            agent=_text(agent, MAX_AGENT_CHARS) or None,
            direction=direction,
            ip=ip,
            user_agent=user_agent,
            resource_type=resource_type,
            resource_id=_text(resource_id),
            before=None if before is None else _object(before),
            after=None if after is None else _object(after),
            request_id=request_id,
            instance_id=self._store.instance_id,
            details=_object(details or {}),
        )

    def append(self, tx: Transaction, event: AuditEvent) -> None:
        """Append `event` in the transaction that makes the change it records."""
        if isinstance(tx, AuthorityTransaction):
            tx.is_audited = True
        self._store.audit.append(tx, event)

    def append_change(
        self, tx: Transaction, action: str, caller: Caller | None, kind: str, id: str | None, **more: Any
    ) -> None:
        """Append to `tx` the event that `caller`, or without one the gateway itself, did `action` to a record.

        kind: its resource type, such as ``policy``. more: for `event`, without secrets, such as `before` or `details`.
        """
        principal, context = (None, None) if caller is None else (caller.principal, caller.context)
        source = "gateway" if principal is None else principal.id if principal.kind == "local" else "api"
        what = {"source": source, "resource_type": kind} | more
        self.append(tx, self.event(action, principal=principal, request=context, resource_id=id, **what))

    async def commit(self, work: Callable[[Transaction], T], *, is_plain: bool = False) -> T:
        """Run `work`, which appends its event, in one transaction and return once it is on the disk.

        is_plain: return after the commit, which survives the end of the process; the sync to disk follows within 0.1 s.

        Raises:
            AuditUnavailable: nothing was written, so the caller must not get the answer.
        """
        try:
            return await self._store.db.write(work, is_durable=not is_plain)
        except StoreUnavailable as error:
            raise AuditUnavailable(
                "The audit log cannot be written, so nothing was done; try again.",
                retry_after_seconds=error.retry_after_seconds or _RETRY_SECONDS,
            ) from error

    async def commit_authority(self, caller: Caller, work: Callable[[AuthorityTransaction], T]) -> T:
        """Run `work`, which changes what a principal may do and appends its event. The only way to make such a change.

        Keys, policies, users, agents, access entries, acceptances, rule overrides, providers and budgets are written
        only through here. Every process applies the change from its next request on.

        Raises:
            AuditUnavailable: nothing was changed.
        """

        def changing(tx: Transaction) -> T:
            authority = AuthorityTransaction(tx, self._store.generation, caller)
            result = work(authority)
            if authority.has_changed and not authority.is_audited:
                raise RuntimeError("authority was changed without an audit event")
            return result

        return await self.commit(changing)

    async def record(self, event: AuditEvent) -> AuditEvent:
        """Append `event` by itself and return once it is on the disk. Raises AuditUnavailable if it was not written."""
        return await self.commit(lambda tx: self._store.audit.append(tx, event))

    def record_behind(self, event: AuditEvent) -> None:
        """Queue `event` without waiting: for refusals, which stand whether they are recorded or not."""
        with suppress(StoreUnavailable):  # the store logs the fault
            self._store.db.write_behind(lambda tx: self._store.audit.append(tx, event))

    async def page(self, wanted: AuditFilter) -> Page[AuditEvent]:
        """List events, newest first. Raises InvalidRequest for a bound or cursor of `wanted` that is not valid."""
        return await self._store.db.read(lambda tx: self._store.audit.page(tx, wanted))

    async def verify(self) -> ChainReport:
        """Read every chain in the database from its beginning and report the first event that does not verify.

        Holds at most 500 events in memory. New events may be appended meanwhile.
        """
        events = 0
        # The file beside the database names this gateway's chain even if the database no longer holds it.
        instances = {*await self._store.db.read(self._store.audit.instances), self._store.instance_id}
        for instance_id in sorted(instances):
            beginning = await self._store.db.read(partial(self._store.audit.beginning, instance_id=instance_id))
            report = await self.follow(instance_id, beginning)
            events += report.events
            if not report.ok:
                return replace(report, events=events)
        return ChainReport(True, events)

    async def follow(self, instance_id: str, position: ChainHead, most: int | None = None) -> ChainReport:
        """Verify a chain from `position` to its end, or until about `most` events were read.

        The end of this gateway's chain must match the file beside the database.
        """
        recorded = self._store.headfile.read(instance_id) if instance_id == self._store.instance_id else None
        events, size = 0, _CHUNK_EVENTS
        while True:
            before = position
            try:
                position, report = await self._store.db.read(
                    partial(self._verify_chunk, instance_id, before, recorded, size)
                )
            except UnreadableRow:
                if size == 1:
                    seq = before.seq + 1
                    return ChainReport(False, events, seq, f"event {seq} cannot be read")
                size = 1  # one at a time, until the event that cannot be read
                continue
            events += report.events
            if not report.ok or position == before or (most is not None and events >= most):
                return replace(report, events=events)

    def _verify_chunk(
        self, instance_id: str, start: ChainHead, recorded: ChainHead | None, limit: int, tx: Transaction
    ) -> tuple[ChainHead, ChainReport]:
        """Verify the next events. At the end of the chain, compare it with both records of that end."""
        chunk = self._store.audit.chain(tx, instance_id, after_seq=start.seq, limit=limit)
        position, report = check_links(start, chunk)
        if not report.ok:
            return position, report
        reason, broken_seq = None, position.seq + 1
        if recorded is not None and start.seq < recorded.seq <= position.seq:
            if recorded.hash != chunk[recorded.seq - start.seq - 1].hash:
                broken_seq = recorded.seq
                reason = f"event {broken_seq} is not the one that was noted beside the database"
        elif not chunk:
            head = self._store.audit.head(tx, instance_id)
            if head != position:
                reason = f"the events after {position.seq} are missing: the chain ended with event {head.seq}"
            elif recorded is not None and recorded.seq > position.seq:
                reason = f"the events after {position.seq} are missing: a later end was noted beside the database"
        return position, report if reason is None else ChainReport(False, report.events, broken_seq, reason)


def _text(text: str | None, chars: int = _TEXT_CHARS) -> str | None:
    if text is None:
        return None
    if len(text) > chars or "\0" in text:
        text = text[:chars].replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _object(values: Mapping[str, object]) -> dict[str, object]:
    return {_text(name) or "": _value(value) for name, value in values.items()}


def _value(value: object) -> object:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return _text(value, _DETAIL_CHARS)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(_value(item)) for item in value)
    raise TypeError(f"an audit event cannot hold a {type(value).__name__}")
