"""Send events to every output, each at its own pace. No request and no other output waits for it.

Theory of operation. The queue of an output is the audit log and the table of alerts. The output stores its position in
both, so a request writes nothing for it, events of commands beside the server are sent too, and a restart loses
nothing. Of all processes of a database, the one with the lease sends, and only it can write the position. If it dies
between a delivery and the next write of the position, the event is sent again with the same id, by which a receiver can
tell. Events more than `MAX_WAITING` behind are dropped, oldest first, and counted.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio

from gateway.domain.audit import AuditFilter
from gateway.domain.event_outputs import MAX_WAITING, REOPENED, EventOutput, OutEvent, from_alert, from_audit, is_wanted
from gateway.errors import GatewayError
from gateway.outputs.delivery import Delivery, DeliveryFailed
from gateway.services.event_outputs import EventOutputs
from gateway.services.leases import Leases
from gateway.store.database import LeaseLost, StoreUnavailable, Transaction, fenced

LEASE = "event_outputs"
LEASE_SECONDS = 15.0
LOOK_SECONDS = 2.0
POLL_SECONDS = 0.5
NOTE_SECONDS = 1.0
BATCH_EVENTS = 200
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 300.0
_CLOSING_SECONDS = 5.0
_ERROR_CHARS = 200


@dataclass(kw_only=True, eq=False, repr=False)
class EventSender:
    """The sender of this process. `run` sends while it has the lease."""

    outputs: EventOutputs
    leases: Leases

    async def has_outputs(self) -> bool:
        """Return whether an output is enabled; False if the store cannot be read."""
        try:
            return await self.outputs.store.db.read(self.outputs.store.event_outputs.any_enabled)
        except StoreUnavailable:
            return False

    async def run(self) -> None:
        """Send until no output is enabled, or another process has the lease. One task for each output."""
        # Without an output there is nothing to send, so the lease is not written either.
        if not await self.has_outputs() or (lease := await self.leases.hold(LEASE, LEASE_SECONDS)) is None:
            return
        serving: dict[str, tuple[int, anyio.CancelScope]] = {}
        with self.leases.guard(lease):
            async with anyio.create_task_group() as group:
                while (serving or await self.has_outputs()) and await self.leases.hold(LEASE, LEASE_SECONDS) == lease:
                    outputs = await self.outputs.store.db.read(self.outputs.store.event_outputs.all)
                    enabled = {one.id: one for one in outputs if one.enabled}
                    for output_id, (version, scope) in tuple(serving.items()):
                        if output_id not in enabled or enabled[output_id].version != version:
                            scope.cancel()
                            del serving[output_id]
                    for output in enabled.values():
                        if output.id not in serving:
                            scope = anyio.CancelScope()
                            serving[output.id] = (output.version, scope)
                            group.start_soon(self._serve, output, scope)
                    await anyio.sleep(LOOK_SECONDS)
                group.cancel_scope.cancel()

    async def _serve(self, output: EventOutput, scope: anyio.CancelScope) -> None:
        with scope, suppress(LeaseLost):  # the next look ends the round
            await _OutputSender(self.outputs, output).run()


@dataclass
class _OutputSender:
    """Sends to one output until it is cancelled. output: its record, with the position and counts so far.

    is_unstored: `output` holds progress that is not in the database yet.
    """

    outputs: EventOutputs
    output: EventOutput
    is_unstored: bool = False

    async def run(self) -> None:
        """Send, and wait longer after each failure in a row. Returns when the receiver wants no more events."""
        sink: Delivery | None = None
        wait_seconds = FIRST_WAIT_SECONDS
        try:
            while True:
                try:
                    sink = sink or self.outputs.open(self.output)
                    has_sent = await self._send_batch(sink)
                    wait_seconds = FIRST_WAIT_SECONDS
                    if not has_sent:
                        await anyio.sleep(POLL_SECONDS)
                except DeliveryFailed as failure:
                    await self._record_failure(failure)
                    if failure.is_gone:
                        self.outputs.log.warning("event_output_gone", output=self.output.name)
                        await self.outputs.store.db.write(
                            lambda tx: self.outputs.store.event_outputs.disable(tx, self.output.id)
                        )
                        return
                    await anyio.sleep(wait_seconds)
                    wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)
                except StoreUnavailable:
                    await anyio.sleep(LOOK_SECONDS)
        finally:
            with anyio.move_on_after(_CLOSING_SECONDS, shield=True), suppress(GatewayError):
                if sink is not None:
                    await sink.aclose()
                if self.is_unstored:  # else the next sender would send the same events again
                    await self._store_progress()

    async def _send_batch(self, sink: Delivery) -> bool:
        """Send the next events, and return whether there were any.

        A process that was paused asks the database before it sends on, for another may send by now.

        Raises:
            DeliveryFailed: an event did not arrive and is to be sent again; those before it arrived.
            LeaseLost: another process sends.
        """
        stored_seconds = self.outputs.clock.monotonic_seconds()
        output, events = await self.outputs.store.db.read(fenced(lambda tx: self._batch(tx, self.output)))
        dropped = output.dropped - self.output.dropped
        self._count("dropped", dropped)
        self.output = output
        self.is_unstored |= dropped > 0
        for event, audit, alert in events:
            if self.outputs.clock.monotonic_seconds() - stored_seconds >= NOTE_SECONDS:
                stored_seconds = self.outputs.clock.monotonic_seconds()
                await self._store_progress()
            if is_wanted(output, event):
                await self._send(event, sink)
            self._update(audit_position=audit, alert_position=alert)
        if self.is_unstored:
            await self._store_progress()
        return bool(events)

    async def _send(self, event: OutEvent, sink: Delivery) -> None:
        try:
            await sink.deliver(event)
        except DeliveryFailed as failure:
            if not failure.is_final or failure.is_gone:
                raise
            self._count("failed")
            self._update(failed=self.output.failed + 1)
            await self._record_failure(failure)
        else:
            self._count("sent")
            self._update(sent=self.output.sent + 1, last_sent_at=self.outputs.clock.now_at())

    def _batch(self, tx: Transaction, output: EventOutput) -> tuple[EventOutput, list[tuple[OutEvent, int, int]]]:
        """Drop what is too far behind, then read the next events, each with both positions after it."""
        newest_audit = self.outputs.store.audit.newest_position(tx)
        newest_alert = self.outputs.store.alerts.newest_position(tx)
        wants_audit, wants_alert = "audit" in output.kinds, "alert" in output.kinds
        # A restored backup is behind the stored position.
        audit, alert = min(output.audit_position, newest_audit), min(output.alert_position, newest_alert)
        dropped_audit = max(newest_audit - MAX_WAITING - audit, 0) if wants_audit else 0
        dropped_alert = max(newest_alert - MAX_WAITING - alert, 0) if wants_alert else 0
        audit, alert = audit + dropped_audit, alert + dropped_alert
        dropped = output.dropped + dropped_audit + dropped_alert
        output = replace(output, audit_position=audit, alert_position=alert, dropped=dropped)
        events: list[tuple[OutEvent, int, int]] = []
        wanted = AuditFilter() if wants_audit else AuditFilter(action=REOPENED)
        rows = self.outputs.store.audit.after(tx, audit, wanted, limit=BATCH_EVENTS)
        for audit, row in rows:
            found = [from_audit(row)] if wants_audit else []
            if row.action == REOPENED and wants_alert:
                again = self.outputs.store.alerts.by_id(tx, row.resource_id or "")
                found += [] if again is None else [from_alert(again, row)]
            events += [(event, audit, alert) for event in found]
        if not wants_audit and len(rows) < BATCH_EVENTS:
            audit = newest_audit  # nothing else of the audit log is wanted
        alerts = self.outputs.store.alerts.after(tx, alert, limit=BATCH_EVENTS) if wants_alert else ()
        events += [(from_alert(one), audit, alert) for alert, one in alerts]
        return output if events else replace(output, audit_position=audit), events

    def _count(self, outcome: str, events: int = 1) -> None:
        if events:
            self.outputs.metrics.count("gateway_events_out_total", events, output=self.output.name, outcome=outcome)

    def _update(self, **changes: Any) -> None:
        self.output = replace(self.output, **changes)
        self.is_unstored = True

    async def _record_failure(self, failure: DeliveryFailed) -> None:
        self._update(last_error=failure.message[:_ERROR_CHARS], last_error_at=self.outputs.clock.now_at())
        self.outputs.log.warning("event_output_failed", output=self.output.name, reason=self.output.last_error)
        await self._store_progress()

    async def _store_progress(self) -> None:
        output = self.output
        await self.outputs.store.db.write(lambda tx: self.outputs.store.event_outputs.progress(tx, output))
        self.is_unstored = False
