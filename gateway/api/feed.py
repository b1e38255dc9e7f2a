"""Stream the live feed of the dashboard as server-sent events. `services.feed` finds the news."""

from gateway.app import Gateway
from gateway.auth.sessions import read_cookie
from gateway.domain.principals import Principal, RequestContext
from gateway.http.messages import Request, Response
from gateway.http.sse import SSE_HEADERS, EventStream, render_event
from gateway.services.feed import Watcher
from gateway.store.feed import Item
from gateway.strict_json import write_json, write_time

_WAITING_BYTES = 256 * 1024


class FeedEdge:
    """Answers with a stream that ends with the session."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def watch(self, request: Request, who: Principal, context: RequestContext, command: None) -> Response:
        """Stream `hello`, then the `traffic` and `alert` events that the caller may see."""
        token = read_cookie(request.headers.get("cookie")) if who.kind == "user" else None
        stream = EventStream(lambda: self._gateway.feed.leave(watcher), limit_bytes=_WAITING_BYTES)
        watcher = Watcher(
            principal=who,
            send=lambda kind, row: stream.send(render_event(write_json(_shown(row)), kind)),
            end=stream.end,
            is_welcome=lambda: who.kind != "user" or self._gateway.signin.is_live(token),
        )
        await self._gateway.feed.join(watcher)
        stream.send(render_event(b"{}", "hello"))
        return Response(200, SSE_HEADERS, stream=stream, ends_with_peer=True)


def _shown(item: Item) -> dict[str, object]:
    return {
        name: write_time(value) if isinstance(value, int) and name.endswith("_at") else value
        for name, value in item.items()
    }
