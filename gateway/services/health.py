"""The present state of shield, database and upstream. Sends nothing over the network."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gateway.errors import AuditUnavailable, GatewayError
from gateway.shield import Shield
from gateway.store.database import StoreUnavailable
from gateway.store.meta import INSTANCE_ID
from gateway.store.store import Store

HEALTHY = "healthy"


@dataclass(kw_only=True, eq=False, repr=False)
class Health:
    """The state of each service. upstream, detectors: return the state of all enabled ones; None if there are none."""

    shield: Shield
    store: Store
    upstream: Callable[[], str] | None
    detectors: Callable[[], str | None] = lambda: None

    async def checks(self) -> dict[str, str]:
        """Read the database, and return the state of each service by name, as `states` does."""
        try:
            await self.store.db.read(lambda tx: self.store.meta.get(tx, INSTANCE_ID), is_quick=True)
        except GatewayError:
            return self.states(is_readable=False)
        return self.states()

    async def check_ready(self) -> None:
        """Raise AuditUnavailable as long as nothing can be decided or recorded. Reads at most once a second."""
        with suppress(StoreUnavailable):
            await self.store.authority.follow()
            if self._is_writable():
                return
        raise AuditUnavailable("The database does not answer, so this gateway can serve nobody.", retry_after_seconds=1)

    def states(self, *, is_readable: bool = True) -> dict[str, str]:
        """Return the state of each service by name: `healthy` or `unavailable`.

        is_readable: whether the database was just read.

        The upstream may also be `unknown` (nothing was sent yet), `degraded` (some providers fail), `unreachable` (all
        fail) or `not_configured` (the built-in model answers). Detectors are named if there are any.
        """
        states = {
            "shield": HEALTHY if self.shield.rules else "unavailable",
            "database": HEALTHY if self._is_writable() and is_readable else "unavailable",
            "upstream": "not_configured" if self.upstream is None else self.upstream(),
        }
        detectors = self.detectors() if is_readable else None
        return states if detectors is None else states | {"detectors": detectors}

    def _is_writable(self) -> bool:
        """Check that the database can be written and, after a failed write, try whether it can be again.

        The store retries a write behind until it succeeds, so this queues at most one, however many probes come.
        """
        db = self.store.db
        if not db.is_writable:
            with suppress(GatewayError):
                db.write_behind(lambda tx: self.store.meta.set(tx, "written_again", "true"))
            return False
        return True
