"""Leases decide which of several processes on one database runs a job.

The holder runs the job and renews its lease. When its process ends, the lease expires and another process takes it.
"""

from gateway.clock import Clock, Ids
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store


class Leases:
    """The leases of this process."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._holder = ids.new("prc")

    async def hold(self, name: str, seconds: float) -> bool:
        """Take the lease `name`, or renew it after a third of its time. Return whether this process holds it."""
        now_at = self._clock.now_at()
        until_at = now_at + round(seconds * 1000)
        leases, holder = self._store.leases, self._holder
        try:
            is_ours = self._store.db.read_now(
                lambda tx: leases.is_held(tx, name, holder, now_at=now_at, until_at=until_at)
            )
            if is_ours is not None:
                return is_ours
            return await self._store.db.write(
                lambda tx: leases.take(tx, name, holder, now_at=now_at, until_at=until_at),
                is_durable=False,  # a power cut ends the holder as well
            )
        except StoreUnavailable:
            return False
