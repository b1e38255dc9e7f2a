"""The state of the audit chain at a glance, and the checkpoints from which it is checked on."""

from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.alerts import AlertSource
from gateway.domain.audit import ChainHead, ChainReport, Checkpoint, check_links
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.shield.detections import Severity
from gateway.store.database import Transaction, UnreadableRow
from gateway.store.store import Store

RULE = "audit-chain-broken"
_CHUNK_EVENTS = 500
_SHOWN = 50
MOST_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """One chain. first_seq: of the oldest event that is kept. noted_seq: the end that is noted beside the database."""

    instance_id: str
    first_seq: int
    last_seq: int
    last_hash: str
    noted_seq: int | None


@dataclass(frozen=True, slots=True)
class ChainStatus:
    """What was found just now. checked: events since the newest checkpoint, which was found whole at its time.

    complete: whether that reached the end of the chain; a look stops after `MOST_EVENTS`, the next checkpoint does not.
    Whether an older event was changed since is told by `audit verify`, which reads all.
    """

    ok: bool
    complete: bool
    reason: str | None
    first_broken_seq: int | None
    checked: int
    chains: tuple[ChainEnd, ...]
    checkpoints: tuple[Checkpoint, ...]


class AuditChain:
    """Follows the chain of this gateway from checkpoint to checkpoint."""

    def __init__(self, *, store: Store, clock: Clock, audit: Audit, alerts: Alerts) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._alerts = alerts

    async def status(self, most: int | None = MOST_EVENTS) -> ChainStatus:
        """Check what came since the newest checkpoint, and that all shown checkpoints are still what they were."""
        instance_id = self._store.instance_id
        place, report = await self._follow(instance_id, most)
        is_complete = most is None or report.events < most
        noted = self._store.headfile.read(instance_id)
        if report.ok and is_complete and noted is not None and noted.seq > place.seq:
            reason = f"the events after {place.seq} are missing: a later end was noted beside the database"
            report = ChainReport(False, report.events, place.seq + 1, reason)

        def work(tx: Transaction) -> ChainStatus:
            ends = tuple(self._end(tx, one) for one in self._store.audit.instances(tx))
            known = self._store.checkpoints.newest(tx, instance_id, limit=_SHOWN)
            moved = next((one.seq for one in known if self._is_moved(tx, one)), None)
            reason = report.reason if moved is None else f"event {moved} is not what the checkpoint says"
            first_broken = report.first_broken_seq if moved is None else moved
            return ChainStatus(reason is None, is_complete, reason, first_broken, report.events, ends, known)

        return await self._store.db.read(work)

    async def checkpoint(self) -> None:
        """Check what came since the newest checkpoint and note a new one; raise an alert when the chain is broken."""
        status = await self.status(None)
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> None:
            for end in status.chains:
                if status.ok and end.instance_id == self._store.instance_id and end.last_seq:
                    mark = Checkpoint(end.instance_id, end.last_seq, end.last_hash, now_at)
                    self._store.checkpoints.insert(tx, mark)
            if not status.ok:
                self._alerts.raise_event(
                    tx,
                    source=AlertSource.INTEGRITY,
                    rule=RULE,
                    severity=Severity.CRITICAL,
                    title="The audit chain is broken",
                    description=status.reason or "",
                    subject=self._store.instance_id,
                    occurred_at=now_at,
                )

        await self._store.db.write(work)

    async def _follow(self, instance_id: str, most: int | None) -> tuple[ChainHead, ChainReport]:
        """Follow the chain from its newest checkpoint to its end, or until about `most` events were read."""
        place = await self._store.db.read(lambda tx: self._begin(tx, instance_id))
        events = 0
        while True:
            before = place

            def work(tx: Transaction, start: ChainHead = before) -> tuple[ChainHead, ChainReport]:
                chunk = self._store.audit.chain(tx, instance_id, after_seq=start.seq, limit=_CHUNK_EVENTS)
                return check_links(start, chunk)

            try:
                place, report = await self._store.db.read(work)
            except UnreadableRow:
                seq = before.seq + 1
                return place, ChainReport(False, events, seq, f"an event from {seq} on cannot be read")
            events += report.events
            if not report.ok or place == before or (most is not None and events >= most):
                return place, ChainReport(report.ok, events, report.first_broken_seq, report.reason)

    def _begin(self, tx: Transaction, instance_id: str) -> ChainHead:
        known = self._store.checkpoints.newest(tx, instance_id, limit=1)
        beginning = self._store.audit.beginning(tx, instance_id)
        return ChainHead(known[0].seq, known[0].hash) if known and known[0].seq >= beginning.seq else beginning

    def _is_moved(self, tx: Transaction, checkpoint: Checkpoint) -> bool:
        if checkpoint.seq <= self._store.audit.beginning(tx, checkpoint.instance_id).seq:
            return False  # retention took the event, and left the hash of the boundary
        return self._store.audit.hash_at(tx, checkpoint.instance_id, checkpoint.seq) != checkpoint.hash

    def _end(self, tx: Transaction, instance_id: str) -> ChainEnd:
        head, beginning = self._store.audit.head(tx, instance_id), self._store.audit.beginning(tx, instance_id)
        noted = self._store.headfile.read(instance_id) if instance_id == self._store.instance_id else None
        return ChainEnd(instance_id, beginning.seq + 1, head.seq, head.hash, noted.seq if noted else None)
