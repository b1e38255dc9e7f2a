"""Write the heartbeat of this gateway, and show it with the other gateways of its database and with its peers."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from gateway import __version__
from gateway.bundle import archive_sha256
from gateway.domain.alerts import AlertSource
from gateway.domain.fleet import (
    STALE_MS,
    Connection,
    FleetView,
    Heartbeat,
    InstanceStatus,
    connection_of,
    sum_up,
    view_of,
    views_of,
)
from gateway.domain.posture import PosturePoint
from gateway.domain.traffic_sums import ALL, DAY_MS
from gateway.services.alerts import Alerts
from gateway.services.health import HEALTHY, Health
from gateway.services.host_load import HostLoad
from gateway.services.traffic import Traffic
from gateway.shield.detections import Severity
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

OFFLINE_RULE = "instance-offline"
BEAT_SECONDS = 15.0
_FORGET_MS = 30 * DAY_MS
_CRITICAL_CHECKS = ("shield", "database")
_HEALTHY_UPSTREAM = (HEALTHY, "not_configured", "unknown")

Scores = Callable[[Transaction], PosturePoint]
"""Reads the posture and threat scores as they are now."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The heartbeat of this gateway and the view of all. started_at: when its process group began to serve."""

    store: Store
    alerts: Alerts
    health: Health
    traffic: Traffic
    load: HostLoad
    scores: Scores
    started_at: int

    async def beat(self) -> None:
        """Write this gateway's heartbeat, and raise or end the alerts of gateways that are offline or back."""
        cpu_percent, memory_bytes = self.load.measure()
        await self.traffic.keep_up()
        status = self._status(await self.health.checks())

        def work(tx: Transaction) -> None:
            store, now_at = self.store, tx.now_at()
            sums = self.traffic.last_day(tx, ALL, now_at)
            has_integrity = not store.alerts.count_active(tx, AlertSource.INTEGRITY)
            beat = Heartbeat(
                id=store.node_id,
                name=os.uname().nodename[:100] or store.node_id,
                version=__version__,
                archive_sha256=archive_sha256(),
                status=status if has_integrity else InstanceStatus.CRITICAL,
                started_at=self.started_at,
                last_seen_at=now_at,
                cpu_percent=cpu_percent,
                memory_bytes=memory_bytes,
                threats=sum(one.blocks for one in sums.values()),
                alerts=store.alerts.count_active(tx),
                agents=store.agents.count(tx),
                sessions=store.sessions.count_live(tx, now_at=now_at),
            )
            store.instances.put(tx, beat)
            store.instances.forget(tx, before=now_at - _FORGET_MS)
            for other in store.instances.all(tx):
                if other.id != store.node_id:
                    self.track(tx, other.id, other.name, other.last_seen_at, now_at)

        await self.store.db.write(work, is_durable=False)

    async def view(self, since: int | None = None) -> FleetView:
        """Return all gateways with a heartbeat since a time; without a time, also peers that never answered."""
        known, now_at = await self.store.db.read(lambda tx: (self.store.instances.all(tx), tx.now_at()))
        own = next((one for one in known if one.id == self.store.node_id), None)
        if own is None or connection_of(own.last_seen_at, now_at) is not Connection.ONLINE:
            with suppress(StoreUnavailable):  # then the last heartbeat is shown
                await self.beat()  # no server runs its jobs yet, or they are late

        def work(tx: Transaction) -> FleetView:
            scores = self.scores(tx)
            found = {beat.id: view_of(beat, scores, now_at) for beat in self.store.instances.all(tx)}
            for peer in self.store.peers.all(tx):
                for one in views_of(peer, now_at):
                    found.setdefault(one.id, one)
            return sum_up([one for one in found.values() if since is None or (one.last_seen_at or 0) >= since])

        return await self.store.db.read(work)

    def track(self, tx: Transaction, id: str, name: str, last_seen_at: int | None, now_at: int) -> None:
        """Raise in `tx` the alert of a gateway that is offline, or end it.

        A gateway without a heartbeat for a day was taken down and raises no further alert.
        """
        age_ms = now_at - (last_seen_at or 0)
        if age_ms <= DAY_MS:
            self.alerts.raise_or_end(
                tx,
                age_ms > STALE_MS,
                source=AlertSource.FLEET,
                rule=OFFLINE_RULE,
                severity=Severity.HIGH,
                title=f"The gateway {name} is offline",
                description="Nothing was heard of it for more than five minutes.",
                resolution="It was heard of again.",
                subject=id,
                occurred_at=now_at,
            )

    def _status(self, checks: Mapping[str, str]) -> InstanceStatus:
        head = self.store.headfile
        has_lost_chain = head.path is not None and not head.is_trusted
        if has_lost_chain or any(checks.get(name) != HEALTHY for name in _CRITICAL_CHECKS):
            return InstanceStatus.CRITICAL
        return InstanceStatus.HEALTHY if checks.get("upstream") in _HEALTHY_UPSTREAM else InstanceStatus.DEGRADED
