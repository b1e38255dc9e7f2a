"""Delete captured texts, traffic, alerts and audit events that are older than their retention.

Rows are deleted in small batches with pauses, so that no other write waits long. Audit events are deleted in the order
of their chain, up to the first one that is young enough; the last event always stays. The hash before the first kept
event becomes the beginning of the chain, so that the rest still verifies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio

from gateway.domain.traffic_sums import DAY_MS, FIVE_MINUTES_MS, HOUR_MS, MINUTE_MS
from gateway.services.core import Service
from gateway.store import rate_grants
from gateway.store.database import Transaction

BATCH_ROWS = 2000
_PAUSE_SECONDS = 0.05
_MOST_BATCHES = 2000
MINUTE_SUMS_DAYS = 3
HOUR_SUMS_DAYS = 400
"""Hourly sums are few and name no request, so that the charts of a year outlive its rows."""


@dataclass(frozen=True, slots=True)
class Days:
    """Retention in days. 0: for ever."""

    traffic: int
    alerts: int
    audit: int


class Retention(Service):
    """Prunes the database of this gateway. days: reads the retention in effect."""

    days: Callable[[Transaction], Days]

    async def prune(self) -> None:
        """Delete rows that are too old, at most four million of a kind."""
        store, now_at = self.store, self.clock.now_at()
        days = await store.db.read(self.days)
        before = now_at - days.traffic * DAY_MS if days.traffic else 0
        await self._repeat(lambda tx: store.captures.prune(tx, now_at=now_at, before=before, limit=BATCH_ROWS))
        await self.store.db.write(rate_grants.prune)
        await self._prune_sums(now_at, days.traffic)
        if days.traffic:
            await self._repeat(lambda tx: store.traffic.prune(tx, before=before, limit=BATCH_ROWS))
        if days.alerts:
            alerts_before = now_at - days.alerts * DAY_MS
            await self._repeat(lambda tx: store.alerts.prune(tx, before=alerts_before, limit=BATCH_ROWS))
        if days.audit:
            await self._prune_audit(now_at - days.audit * DAY_MS)

    async def _prune_sums(self, now_at: int, days: int) -> None:
        kept = {MINUTE_MS: MINUTE_SUMS_DAYS}
        if days:
            kept |= {HOUR_MS: max(HOUR_SUMS_DAYS, days), FIVE_MINUTES_MS: days}

        def work(tx: Transaction) -> None:
            for size_ms, kept_days in kept.items():
                self.store.traffic.prune_sums(tx, size_ms=size_ms, before=now_at - kept_days * DAY_MS)

        await self.store.db.write(work)

    async def _prune_audit(self, before: int) -> None:
        for instance_id in await self.store.db.read(self.store.audit.instances):
            batch = partial(self.store.audit.prune, instance_id=instance_id, before=before, limit=BATCH_ROWS)
            if count := await self._repeat(batch):
                head = await self.store.db.read(partial(self.store.audit.beginning, instance_id=instance_id))
                details = {"events": count, "before": before, "boundary_seq": head.seq, "boundary_hash": head.hash}
                note = partial(self.audit.append_change, action="audit_pruned", caller=None)
                await self.audit.commit(partial(note, kind="audit_chain", id=instance_id, details=details))

    async def _repeat(self, batch: Callable[[Transaction], int]) -> int:
        """Run `batch` until it deletes less than its limit, with pauses between, and return the total."""
        total = 0
        for _ in range(_MOST_BATCHES):
            count = await self.store.db.write(batch)
            total += count
            if count < BATCH_ROWS:
                break
            await anyio.sleep(_PAUSE_SECONDS)
        return total
