"""Check the audit chain from its newest checkpoint, and make the checkpoints.

A full check reads every event. Most callers want the state now, so a job makes checkpoints and the status reads only
the events after the newest one.
"""

from dataclasses import dataclass

from gateway.domain.alerts import AlertSource
from gateway.domain.audit import ChainHead, Checkpoint
from gateway.services.alerts import Alerts
from gateway.services.core import Service
from gateway.shield.detections import Severity
from gateway.store.database import Transaction

RULE = "audit-chain-broken"
_SHOWN = 50
MOST_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """One chain. first_seq: of the oldest event kept. noted_seq: the end according to the file beside the database."""

    instance_id: str
    first_seq: int
    last_seq: int
    last_hash: str
    noted_seq: int | None


@dataclass(frozen=True, slots=True)
class ChainStatus:
    """The result of a check. checked: the number of events after the newest checkpoint that were read.

    complete: the check reached the end of the chain; a status check stops after `MOST_EVENTS`. Only `audit verify`
    reads the events before the newest checkpoint again.
    """

    ok: bool
    complete: bool
    reason: str | None
    first_broken_seq: int | None
    checked: int
    chains: tuple[ChainEnd, ...]
    checkpoints: tuple[Checkpoint, ...]


class AuditChain(Service):
    """Checks the chain of this gateway and makes its checkpoints."""

    alerts: Alerts

    async def status(self, most: int | None = MOST_EVENTS) -> ChainStatus:
        """Check the events after the newest checkpoint, and that each checkpoint shown still matches its event."""
        instance_id = self.store.instance_id
        begin = await self.store.db.read(lambda tx: self._begin(tx, instance_id))
        report = await self.audit.follow(instance_id, begin, most)
        is_complete = most is None or report.events < most

        def work(tx: Transaction) -> ChainStatus:
            ends = tuple(self._end(tx, one) for one in self.store.audit.instances(tx))
            known = self.store.checkpoints.newest(tx, instance_id, limit=_SHOWN)
            moved = next((one.seq for one in known if self._is_moved(tx, one)), None)
            reason = report.reason if moved is None else f"event {moved} is not what the checkpoint says"
            first_broken = report.first_broken_seq if moved is None else moved
            return ChainStatus(reason is None, is_complete, reason, first_broken, report.events, ends, known)

        return await self.store.db.read(work)

    async def checkpoint(self) -> None:
        """Check the events after the newest checkpoint, then make a new one or, if the chain is broken, an alert."""
        status = await self.status(None)
        now_at = self.clock.now_at()

        def work(tx: Transaction) -> None:
            for end in status.chains:
                if status.ok and end.instance_id == self.store.instance_id and end.last_seq:
                    mark = Checkpoint(end.instance_id, end.last_seq, end.last_hash, now_at)
                    self.store.checkpoints.insert_new(tx, mark)
            if not status.ok:
                self.alerts.raise_event(
                    tx,
                    source=AlertSource.INTEGRITY,
                    rule=RULE,
                    severity=Severity.CRITICAL,
                    title="The audit chain is broken",
                    description=status.reason or "",
                    subject=self.store.instance_id,
                    occurred_at=now_at,
                )

        await self.store.db.write(work)

    def _begin(self, tx: Transaction, instance_id: str) -> ChainHead:
        known = self.store.checkpoints.newest(tx, instance_id, limit=1)
        beginning = self.store.audit.beginning(tx, instance_id)
        return ChainHead(known[0].seq, known[0].hash) if known and known[0].seq >= beginning.seq else beginning

    def _is_moved(self, tx: Transaction, checkpoint: Checkpoint) -> bool:
        if checkpoint.seq <= self.store.audit.beginning(tx, checkpoint.instance_id).seq:
            return False  # retention deleted the event and kept the hash of the boundary
        return self.store.audit.hash_at(tx, checkpoint.instance_id, checkpoint.seq) != checkpoint.hash

    def _end(self, tx: Transaction, instance_id: str) -> ChainEnd:
        head, beginning = self.store.audit.head(tx, instance_id), self.store.audit.beginning(tx, instance_id)
        noted = self.store.headfile.read(instance_id) if instance_id == self.store.instance_id else None
        return ChainEnd(instance_id, beginning.seq + 1, head.seq, head.hash, noted.seq if noted else None)
