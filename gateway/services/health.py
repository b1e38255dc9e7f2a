"""The present state of shield, database and upstream. Sends nothing over the network."""

from collections.abc import Callable

from gateway.errors import GatewayError
from gateway.shield import Shield
from gateway.store.store import Store

HEALTHY = "healthy"


class Health:
    """The state of each service. upstream: returns the state of all enabled providers; None when there can be none."""

    def __init__(self, *, shield: Shield, store: Store, upstream: Callable[[], str] | None) -> None:
        self._shield = shield
        self._store = store
        self._upstream = upstream

    def checks(self) -> dict[str, str]:
        """Return the state of each service by name: `healthy` or `unavailable`.

        The upstream may also be `unknown` (nothing was sent yet), `degraded` (some providers fail), `unreachable` (all
        fail) or `not_configured` (the built-in model answers).
        """
        return {
            "shield": HEALTHY if self._shield.rules else "unavailable",
            "database": self._database(),
            "upstream": "not_configured" if self._upstream is None else self._upstream(),
        }

    def _database(self) -> str:
        """Check that the database can be read and, after a failed write, that it can be written again.

        The store retries a write behind until it succeeds, so this queues at most one, however many probes come.
        """
        db = self._store.db
        try:
            if not db.is_writable:
                db.write_behind(lambda tx: self._store.meta.set(tx, "written_again", "true"))
                return "unavailable"
            db.read_now(lambda tx: self._store.meta.get(tx, "instance_id"))
        except GatewayError:
            return "unavailable"
        return HEALTHY
