"""The port of MCP over HTTP, served beside the API: its server, its limits and its end."""

import socket
from collections.abc import Callable

from anyio.abc import TaskGroup, TaskStatus

from gateway.app import Gateway
from gateway.http.messages import Limits, connections_allowed
from gateway.http.server import Server
from gateway.mcp.door import LOCAL_HOSTS
from gateway.mcp.http import SESSIONS, HttpMcp

_WRITE_SECONDS = 10.0
_HELD_BYTES = 128 * 1024 * 1024


class McpPort:
    """MCP over HTTP for this host. gateway: returns the one that answers now. tasks: where calls run."""

    def __init__(self, gateway: Callable[[], Gateway], tasks: TaskGroup, *, drain_seconds: float) -> None:
        # The API has the larger share. Half of these are for streams, the others for what is sent beside them.
        connections = max(min(2 * SESSIONS, connections_allowed() // 4), 16)
        self._gateway = gateway
        self._edge = HttpMcp(gateway, tasks, streams=connections // 2)
        self._server = Server(
            handle=self._edge.handle,
            check=self._edge.check,
            refuse=self._edge.refuse,
            body_limit=self._edge.body_limit,
            limits=Limits(
                drain_seconds=drain_seconds,
                write_seconds=_WRITE_SECONDS,
                held_bytes=_HELD_BYTES,
                connections=connections,
            ),
            allowed_hosts=LOCAL_HOSTS,
        )

    async def serve(self, listener: socket.socket, *, task_status: TaskStatus[None]) -> None:
        """Serve until `stop`, then finish what is in flight; closes the listener."""
        host, port = listener.getsockname()[:2]

        def started() -> None:
            self._gateway().log.info("mcp_listening", address=f"http://{host}:{port}")
            task_status.started()

        await self._server.serve([listener], started=started)

    def stop(self) -> None:
        """End the streams at once, and take no more requests."""
        self._edge.stop()
        self._server.stop()
