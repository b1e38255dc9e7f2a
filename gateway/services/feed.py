"""Send new traffic and alerts to watchers, soon after any process commits them. Knows no transport.

A job reads the new rows while there are watchers, so no request waits for the feed. A watcher that lost its permission
is disconnected.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.domain.principals import Permission, Principal
from gateway.errors import Overloaded
from gateway.services.core import Service
from gateway.store.feed import Item, News, news_since

MOST_WATCHERS = 64
MOST_OF_ONE = 8
_MOST_AT_ONCE = 100
_NEEDS = {"traffic": Permission.TRAFFIC_READ, "alert": Permission.ALERTS_READ}


@dataclass(frozen=True, slots=True, eq=False)
class Watcher:
    """A watcher. send: takes the kind of an item and the item. end: disconnects. is_welcome: may still watch."""

    principal: Principal
    send: Callable[[str, Item], None] = field(repr=False)
    end: Callable[[], None] = field(repr=False)
    is_welcome: Callable[[], Awaitable[bool]] = field(repr=False)


class Feed(Service):
    """The watchers of this process, and the newest rows that were sent to them."""

    _watchers: list[Watcher] = field(default_factory=list, init=False)
    _sent: News | None = field(default=None, init=False)

    async def join(self, watcher: Watcher) -> None:
        """Add a watcher, which receives every item from now on. Raises Overloaded if there are too many."""
        if not self._watchers:
            now_at = self.clock.now_at()
            sent = News(await self.store.db.read(self.store.traffic.newest_position), now_at)
            self._sent = self._sent if self._watchers else sent  # somebody may have joined meanwhile
        own = sum(1 for one in self._watchers if one.principal.id == watcher.principal.id)
        if len(self._watchers) >= MOST_WATCHERS or own >= MOST_OF_ONE:
            raise Overloaded("Too many pages are open that show what happens; close some.", retry_after_seconds=10)
        self._watchers.append(watcher)

    def leave(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    async def publish(self) -> None:
        sent = self._sent
        if not self._watchers or sent is None:
            return
        for watcher in list(self._watchers):
            if not await watcher.is_welcome():
                self.leave(watcher)
                watcher.end()
        news = await self.store.db.read(lambda tx: news_since(tx, sent, limit=_MOST_AT_ONCE))
        self._sent = news
        items: list[tuple[str, Item]] = [("traffic", row) for row in news.traffic]
        items += [("alert", row) for row in news.alerts]
        for watcher in list(self._watchers):
            for kind, item in items:
                if _NEEDS[kind] in watcher.principal.permissions:
                    watcher.send(kind, item)
