"""Check the running archive against its manifest from time to time, and raise an alert when it was changed."""

import anyio.to_thread

from gateway import bundle
from gateway.clock import Clock
from gateway.domain.alerts import AlertSource
from gateway.services.alerts import Alerts
from gateway.services.archive_check import archive_problem
from gateway.shield.detections import Severity
from gateway.store.database import Transaction
from gateway.store.store import Store

RULE = "archive-changed"


class ArchiveWatch:
    """Watches the archive that this program was started from. A checkout has no manifest and is not watched."""

    def __init__(self, *, store: Store, clock: Clock, alerts: Alerts) -> None:
        self._store = store
        self._clock = clock
        self._alerts = alerts

    async def look(self) -> None:
        """Raise an alert if the archive on the disk was changed; resolve the alert if it matches again."""
        problem = await anyio.to_thread.run_sync(archive_problem, bundle.archive_path())
        if problem is None:
            return
        occurred_at, subject = self._clock.now_at(), self._store.instance_id

        def work(tx: Transaction) -> None:
            if not problem:
                self._alerts.end_event(
                    tx,
                    source=AlertSource.INTEGRITY,
                    rule=RULE,
                    subject=subject,
                    occurred_at=occurred_at,
                    resolution="The archive is as its manifest says.",
                )
                return
            self._alerts.raise_event(
                tx,
                source=AlertSource.INTEGRITY,
                rule=RULE,
                severity=Severity.CRITICAL,
                title="The program on the disk was changed",
                description=problem,
                subject=subject,
                occurred_at=occurred_at,
            )

        await self._store.db.write(work)
