"""What works right now: shield, database, upstream. Asks nobody on the network; the last outcomes tell."""

from collections.abc import Callable

from gateway.clock import Clock, SystemClock
from gateway.errors import GatewayError
from gateway.shield import Shield
from gateway.store.store import Store

HEALTHY = "healthy"
_GOOD_SECONDS = 1.0


class Health:
    """The state of each service. upstream: tells how all enabled providers are; None when there can be none.

    That the database could be read holds for a second, so that many probes cost it little; a fault is told at once.
    """

    def __init__(
        self, *, shield: Shield, store: Store, upstream: Callable[[], str] | None, clock: Clock | None = None
    ) -> None:
        self._shield = shield
        self._store = store
        self._upstream = upstream
        self._clock = clock or SystemClock()
        self._good_until_seconds = float("-inf")

    def checks(self) -> dict[str, str]:
        """Return by name `healthy`, or what else: `unavailable`; of the upstream also `unknown` (nothing was sent yet),
        `degraded` (some providers fail), `unreachable` (all do) and `not_configured` (the built-in model answers).
        """
        return {
            "shield": HEALTHY if self._shield.rules else "unavailable",
            "database": self._database(),
            "upstream": "not_configured" if self._upstream is None else self._upstream(),
        }

    def _database(self) -> str:
        """Look whether it can be read and, after a write that failed, whether it can be written again.

        A write behind is tried until it succeeds, so that the one below is the only one, however often somebody looks.
        """
        db = self._store.db
        now_seconds = self._clock.monotonic_seconds()
        try:
            if not db.is_writable:
                db.write_behind(lambda tx: self._store.meta.set(tx, "written_again", "true"))
                return "unavailable"
            if now_seconds >= self._good_until_seconds:
                db.read_now(lambda tx: self._store.meta.get(tx, "instance_id"))
                self._good_until_seconds = now_seconds + _GOOD_SECONDS
        except GatewayError:
            return "unavailable"
        return HEALTHY
