"""Leases decide which of several processes on one database runs a job, on whatever host they are.

The holder runs the job and renews its lease. When its process ends, the lease expires and another process takes it. A
process that was paused may wake up later and go on with the job. So what it writes checks first, in the transaction of
the write, that nobody has taken the lease since.
"""

from contextlib import AbstractContextManager

from gateway.clock import Ids
from gateway.domain.fleet import Lease
from gateway.store.database import LeaseLost, StoreUnavailable, fence
from gateway.store.store import Store


class Leases:
    """The leases of this process."""

    def __init__(self, *, store: Store, ids: Ids) -> None:
        self._store = store
        self._holder = ids.new("prc")

    async def hold(self, name: str, seconds: float) -> Lease | None:
        """Take the lease `name`, or renew it after a third of its time; None if another process has it."""
        leases, db, holder = self._store.leases, self._store.db, self._holder
        try:
            known = await db.read(lambda tx: leases.known(tx, name, holder, seconds))
            if isinstance(known, Lease):
                return known
            if not known:
                return None
            # Not durable: a power cut ends the holder as well.
            return await db.write(lambda tx: leases.take(tx, name, holder, seconds), is_durable=False)
        except (StoreUnavailable, LeaseLost):
            return None

    def guard(self, lease: Lease) -> AbstractContextManager[None]:
        """Let each write inside raise LeaseLost, and write nothing, once another process has taken the lease."""
        return fence(lambda tx: self._store.leases.check(tx, lease))
