"""News for those who watch: traffic and alerts, soon after they are committed by whatever process. Knows no transport.

Nothing that a request does waits for it: now and then, and only while somebody watches, what is new in the tables is
read and handed on. A watcher who may no longer be here is sent away.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.clock import Clock
from gateway.domain.principals import Permission, Principal
from gateway.errors import Overloaded
from gateway.store.feed import Item, News
from gateway.store.store import Store

MOST_WATCHERS = 64
MOST_OF_ONE = 8
_MOST_AT_ONCE = 100
_NEEDS = {"traffic": Permission.TRAFFIC_READ, "alert": Permission.ALERTS_READ}


@dataclass(frozen=True, slots=True, eq=False)
class Watcher:
    """Somebody who watches. send: takes a kind of news and what it is. end: sends away. is_welcome: may still watch."""

    principal: Principal
    send: Callable[[str, Item], None] = field(repr=False)
    end: Callable[[], None] = field(repr=False)
    is_welcome: Callable[[], bool] = field(repr=False)


class Feed:
    """The watchers of this process and up to where they have been told."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._watchers: list[Watcher] = []
        self._seen: News | None = None

    async def join(self, watcher: Watcher) -> None:
        """Tell somebody what happens from now on.

        Raises:
            Overloaded: too many watch, or too often the same.
        """
        own = sum(1 for one in self._watchers if one.principal.id == watcher.principal.id)
        if len(self._watchers) >= MOST_WATCHERS or own >= MOST_OF_ONE:
            raise Overloaded("Too many pages are open that show what happens; close some.", retry_after_seconds=10)
        is_first = not self._watchers
        self._watchers.append(watcher)
        if not is_first:
            return
        self._seen = None
        now_at = self._clock.now_at()
        try:
            self._seen = await self._store.db.read(lambda tx: self._store.feed.start(tx, now_at=now_at))
        except BaseException:
            self.leave(watcher)
            raise

    def leave(self, watcher: Watcher) -> None:
        """Tell somebody no more."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    async def publish(self) -> None:
        """Hand on what is new, if anybody watches. Called now and then."""
        seen = self._seen
        if not self._watchers or seen is None:
            return
        for watcher in [one for one in self._watchers if not one.is_welcome()]:
            self.leave(watcher)
            watcher.end()
        news = await self._store.db.read(lambda tx: self._store.feed.since(tx, seen, limit=_MOST_AT_ONCE))
        self._seen = news
        for kind, rows in (("traffic", news.traffic), ("alert", news.alerts)):
            self._tell(kind, rows)

    def _tell(self, kind: str, rows: Sequence[Item]) -> None:
        for watcher in list(self._watchers):
            if _NEEDS[kind] in watcher.principal.permissions:
                for row in rows:
                    watcher.send(kind, row)
