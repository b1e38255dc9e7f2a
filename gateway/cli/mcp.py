"""MCP as `mcp` serves it over stdin and stdout, and as `serve` serves it over HTTP on a port beside the API."""

import argparse
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from gateway import compose
from gateway.app import Gateway
from gateway.cli.command import (
    CLOSING_SECONDS,
    Console,
    command,
    end_process_after,
    load_settings,
    make_log,
    warn_of_rules,
)
from gateway.http.messages import Limits, connections_allowed
from gateway.http.server import Server
from gateway.jobs import FOLLOWING, run_jobs
from gateway.mcp import stdio
from gateway.mcp.door import LOCAL_HOSTS
from gateway.mcp.http import SESSIONS, HttpMcp
from gateway.mcp.server import McpServer
from gateway.signals import STOPS, SignalReceiver, ignore_signals

_WRITE_SECONDS = 10.0
_HELD_BYTES = 128 * 1024 * 1024


@command("mcp", "Serve MCP over stdio to an assistant on this host.", "")
def _mcp(options: argparse.Namespace, console: Console) -> None:
    """Serve MCP on stdin and stdout until the input ends or a signal comes. Queued answers are still written."""
    config = load_settings(options)

    async def run() -> None:
        log = make_log(config)
        async with (
            AsyncExitStack() as when_closed,
            compose.open_gateway(config, log=log, is_shell=True) as gateway,
        ):
            gateway.shield.ready()  # a call right before the end of the input has two seconds
            warn_of_rules(gateway)
            signals = SignalReceiver(STOPS)
            when_closed.callback(signals.close)
            when_closed.callback(ignore_signals)  # runs first
            ending = partial(end_process_after, CLOSING_SECONDS, log)
            async with anyio.create_task_group() as group:
                group.start_soon(run_jobs, lambda: gateway, FOLLOWING)
                await stdio.serve(McpServer(lambda: gateway), signals=signals, ending=ending)
                group.cancel_scope.cancel()

    anyio.run(run)


class McpPort:
    """MCP over HTTP for this host. gateway: returns the one that answers now. tasks: where calls run."""

    def __init__(self, gateway: Callable[[], Gateway], tasks: TaskGroup, *, drain_seconds: float) -> None:
        # The API has the larger share. Half of these are for streams, the others for what is sent beside them.
        connections = max(min(2 * SESSIONS, connections_allowed() // 4), 16)
        self._gateway = gateway
        self._edge = edge = HttpMcp(gateway, tasks, streams=connections // 2)
        self._server = Server(
            handle=edge.handle,
            check=edge.check,
            refuse=edge.refuse,
            body_limit=edge.body_limit,
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


COMMANDS = (_mcp,)
