"""Sends events to every output, each at its own pace. No request waits for it, and no output for another.

Theory of operation. The queue of an output is the audit log and the table of alerts themselves: the output keeps its
place in both, so that a request writes nothing for it, what a command beside the server does is sent as well, and a
restart loses nothing. One process of a database sends, the one with the lease. An event is sent again when the process
dies between its arrival and the next note of the place: its id is the same, so a receiver can tell. What is more than
`MAX_WAITING` behind is dropped, oldest first, and counted.
"""

from dataclasses import replace

import anyio

from gateway.clock import Clock
from gateway.domain.audit import AuditFilter
from gateway.domain.event_outputs import (
    MAX_WAITING,
    REOPENED,
    EventOutput,
    OutEvent,
    from_alert,
    from_audit,
    is_wanted,
)
from gateway.log import Log
from gateway.metrics import Metrics
from gateway.outputs.delivery import Delivery, DeliveryFailed
from gateway.services.event_sinks import EventSinks
from gateway.services.leases import Leases
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

LEASE = "event_outputs"
LEASE_SECONDS = 15.0
LOOK_SECONDS = 2.0
POLL_SECONDS = 0.5
NOTE_SECONDS = 1.0
BATCH_EVENTS = 200
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 300.0
_ERROR_CHARS = 200


class EventSender:
    """The sender of this process. `run` sends while it has the lease."""

    def __init__(
        self, *, store: Store, clock: Clock, leases: Leases, log: Log, sinks: EventSinks, metrics: Metrics | None = None
    ) -> None:
        self._metrics = metrics or Metrics()
        self._store = store
        self._clock = clock
        self._log = log
        self._sinks = sinks
        self._leases = leases
        self._serving: dict[str, tuple[int, anyio.CancelScope]] = {}

    def has_outputs(self) -> bool:
        """Tell whether an output is on, as far as that can be told now."""
        try:
            return self._store.db.read_now(lambda tx: self._store.event_outputs.any_enabled(tx))
        except StoreUnavailable:
            return False

    async def run(self) -> None:
        """Send until no output is on, or another process has the lease. One task for each output."""
        try:
            async with anyio.create_task_group() as group:
                while await self._has_lease():
                    outputs = {one.id: one for one in await self._store.db.read(self._store.event_outputs.all)}
                    for output_id, (version, scope) in tuple(self._serving.items()):
                        now = outputs.get(output_id)
                        if now is None or now.version != version or not now.enabled:
                            scope.cancel()
                            del self._serving[output_id]
                    for output in outputs.values():
                        if output.enabled and output.id not in self._serving:
                            scope = anyio.CancelScope()
                            self._serving[output.id] = (output.version, scope)
                            group.start_soon(self._serve, output, scope)
                    await anyio.sleep(LOOK_SECONDS)
                group.cancel_scope.cancel()
        finally:
            self._serving.clear()

    async def _has_lease(self) -> bool:
        if not self._serving and not self.has_outputs():
            return False  # nothing to send, so nothing to write
        return await self._leases.hold(LEASE, LEASE_SECONDS)

    async def _serve(self, output: EventOutput, scope: anyio.CancelScope) -> None:
        """Send to one output until it is changed, removed or taken by another process."""
        with scope:
            way: Delivery | None = None
            wait_seconds = FIRST_WAIT_SECONDS
            try:
                while True:
                    try:
                        if way is None:
                            way = self._sinks.open(output)
                        output, had = await self._send_batch(output, way)
                        wait_seconds = FIRST_WAIT_SECONDS
                        if not had:
                            await anyio.sleep(POLL_SECONDS)
                    except _Stopped as stopped:
                        output = await self._failed(stopped.output, stopped.failure)
                        if stopped.failure.is_gone:
                            await self._switch_off(output)
                            return
                        await anyio.sleep(wait_seconds)
                        wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)
                    except DeliveryFailed as failure:
                        output = await self._failed(output, failure)
                        await anyio.sleep(wait_seconds)
                        wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)
                    except StoreUnavailable:
                        await anyio.sleep(LOOK_SECONDS)
            finally:
                if way is not None:
                    with anyio.CancelScope(shield=True):
                        await way.aclose()

    async def _send_batch(self, output: EventOutput, way: Delivery) -> tuple[EventOutput, bool]:
        """Send what has come; return the output as it stands, and whether there was anything to look at.

        Raises:
            _Stopped: an event did not arrive; those before it did. StoreUnavailable: nothing can be read or noted.
        """
        batch = await self._store.db.read(lambda tx: self._batch(tx, output))
        self._count(output, "dropped", batch.output.dropped - output.dropped)
        output = batch.output
        noted_seconds = self._clock.monotonic_seconds()
        is_noted = not batch.events
        for event, after in batch.events:
            if event is not None:
                try:
                    await way.deliver(event)
                    output = replace(output, sent=output.sent + 1, last_sent_at=self._clock.now_at())
                    self._count(output, "sent")
                except DeliveryFailed as failure:
                    if not failure.is_final or failure.is_gone:
                        raise _Stopped(output, failure) from failure
                    self._count(output, "failed")
                    output = await self._failed(replace(output, failed=output.failed + 1), failure)
            output = replace(output, audit_position=after[0], alert_position=after[1])
            is_noted = self._clock.monotonic_seconds() - noted_seconds >= NOTE_SECONDS
            if is_noted:
                noted_seconds = self._clock.monotonic_seconds()
                await self._note(output)
        if not is_noted or batch.has_dropped:
            await self._note(output)
        return output, bool(batch.events)

    def _batch(self, tx: Transaction, output: EventOutput) -> "_Batch":
        """Read what comes next, after dropping what is too far behind. An event that is not wanted is None."""
        newest_audit = self._store.audit.newest_position(tx)
        newest_alert = self._store.alerts.newest_position(tx)
        # A restored backup is behind the place that was noted.
        audit, alert = min(output.audit_position, newest_audit), min(output.alert_position, newest_alert)
        dropped = max(newest_audit - MAX_WAITING - audit, 0) if "audit" in output.kinds else 0
        lost = max(newest_alert - MAX_WAITING - alert, 0) if "alert" in output.kinds else 0
        audit, alert = audit + dropped, alert + lost
        dropped_now = output.dropped + dropped + lost
        output = replace(output, audit_position=audit, alert_position=alert, dropped=dropped_now)
        events: list[tuple[OutEvent | None, tuple[int, int]]] = []
        is_of_audit = "audit" in output.kinds
        looked_for = AuditFilter() if is_of_audit else AuditFilter(action=REOPENED)
        rows = self._store.audit.after(tx, looked_for, position=audit, limit=BATCH_EVENTS)
        for audit, row in rows:
            found = [from_audit(row)] if is_of_audit else []
            if row.action == REOPENED and "alert" in output.kinds:
                again = self._store.alerts.by_id(tx, row.resource_id or "")
                found += [] if again is None else [from_alert(again, row)]
            events += [(event if is_wanted(output, event) else None, (audit, alert)) for event in found]
        if not is_of_audit and len(rows) < BATCH_EVENTS:
            audit = newest_audit  # there is nothing more for it, so that the next look begins here
        alerts = self._store.alerts.after(tx, position=alert, limit=BATCH_EVENTS) if "alert" in output.kinds else ()
        for alert, one in alerts:
            event = from_alert(one)
            events.append((event if is_wanted(output, event) else None, (audit, alert)))
        if not events:
            output = replace(output, audit_position=audit)
        return _Batch(output, events, bool(dropped or lost))

    def _count(self, output: EventOutput, outcome: str, events: int = 1) -> None:
        if events:
            self._metrics.count("gateway_events_out_total", events, output=output.name, outcome=outcome)

    async def _failed(self, output: EventOutput, failure: DeliveryFailed) -> EventOutput:
        output = replace(output, last_error=failure.message[:_ERROR_CHARS], last_error_at=self._clock.now_at())
        self._log.warning("event_output_failed", output=output.name, reason=output.last_error)
        await self._note(output)
        return output

    async def _note(self, output: EventOutput) -> None:
        await self._store.db.write(lambda tx: self._store.event_outputs.progress(tx, output))

    async def _switch_off(self, output: EventOutput) -> None:
        self._log.warning("event_output_gone", output=output.name)
        await self._store.db.write(lambda tx: self._store.event_outputs.disable(tx, output.id))


class _Batch:
    """What a look at the database brought."""

    def __init__(
        self, output: EventOutput, events: list[tuple[OutEvent | None, tuple[int, int]]], has_dropped: bool
    ) -> None:
        self.output = output
        self.events = events
        self.has_dropped = has_dropped


class _Stopped(Exception):
    """An event did not arrive and is to be sent again. output: as it stands after those before it."""

    def __init__(self, output: EventOutput, failure: DeliveryFailed) -> None:
        super().__init__()
        self.output = output
        self.failure = failure
