"""How far a long call is, told to the peer that asked for it (MCP, "Progress"): notifications before the answer."""

from collections.abc import Awaitable, Callable, Mapping

from gateway.mcp.jsonrpc import RequestId
from gateway.strict_json import write_json

Notify = Callable[[bytes], Awaitable[None]]
"""Takes a message to the peer of a call, without a line break."""


class Progress:
    """Tells the peer of one call how far it is; says nothing to a peer that asked for nothing."""

    def __init__(self, token: RequestId | None, notify: Notify | None) -> None:
        self._token = token
        self._notify = notify
        self._last = -1.0

    async def tell(self, done: float, total: float, text: str) -> None:
        """Say that `done` of `total` is done. What is no more than was said last is left out, as the protocol wants."""
        if self._token is None or self._notify is None or done <= self._last:
            return
        self._last = done
        params = {"progressToken": self._token, "progress": done, "total": total, "message": text}
        await self._notify(write_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))


def token_of(params: Mapping[str, object]) -> RequestId | None:
    """Return the token under which the peer of a request wants to hear of its progress, or None."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None
