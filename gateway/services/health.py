"""What works right now: shield, database, upstream. Asks nobody on the network; the upstream's last outcome tells."""

from collections.abc import Mapping

from gateway.errors import GatewayError, UpstreamUnavailable
from gateway.llm.base import Prompt, Reply, Upstream
from gateway.shield import Shield
from gateway.store.store import Store

HEALTHY = "healthy"


class WatchedUpstream:
    """An upstream whose last outcome is remembered."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.state = "unknown"

    async def complete(self, prompt: Prompt, *, traceparent: str | None = None) -> Reply:
        """Do what the upstream does. A refusal of the caller's request is an outcome of a healthy upstream."""
        try:
            reply = await self._upstream.complete(prompt, traceparent=traceparent)
        except UpstreamUnavailable:
            self.state = "unreachable"
            raise
        except GatewayError:
            self.state = HEALTHY
            raise
        self.state = HEALTHY
        return reply

    async def models(self) -> tuple[Mapping[str, object], ...]:
        """Do what the upstream does."""
        try:
            models = await self._upstream.models()
        except UpstreamUnavailable:
            self.state = "unreachable"
            raise
        self.state = HEALTHY
        return models


class Health:
    """The state of each service. upstream: None when none is configured and the built-in model answers."""

    def __init__(self, *, shield: Shield, store: Store, upstream: WatchedUpstream | None) -> None:
        self._shield = shield
        self._store = store
        self._upstream = upstream

    def checks(self) -> dict[str, str]:
        """Return by name `healthy`, or what else: `unavailable`, `unknown`, `unreachable`, `not_configured`."""
        return {
            "shield": HEALTHY if self._shield.rules else "unavailable",
            "database": self._database(),
            "upstream": "not_configured" if self._upstream is None else self._upstream.state,
        }

    def _database(self) -> str:
        """Look whether it can be read and, after a write that failed, whether it can be written again.

        A write behind is tried until it succeeds, so that the one below is the only one, however often somebody looks.
        """
        db = self._store.db
        try:
            if not db.is_writable:
                db.write_behind(lambda tx: self._store.meta.set(tx, "written_again", "true"))
                return "unavailable"
            self._store.db.read_now(lambda tx: self._store.meta.get(tx, "instance_id"))
        except GatewayError:
            return "unavailable"
        return HEALTHY
