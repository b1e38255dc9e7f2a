"""One process that answers: from an open listener to the end of the last request. It knows no other worker."""

import argparse
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus
from anyio.lowlevel import current_token

from gateway import __version__, bundle, compose
from gateway.api.dispatch import Dispatch
from gateway.app import Gateway, Shared
from gateway.cli.command import CLOSING_SECONDS, Console, end_process_after, load_settings, warn_of_rules
from gateway.cli.mcp import McpPort
from gateway.errors import AuditUnavailable, GatewayError
from gateway.http.server import Server
from gateway.jobs import run_jobs
from gateway.log import Log
from gateway.services import first_start
from gateway.settings import Settings
from gateway.signals import ORDERS, STOPS, SignalReceiver, ignore_signals, unblock_signals
from gateway.store.database import StoreUnavailable
from gateway.supervisor import Child

BEAT_SECONDS = 5.0
SETTLE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Site:
    """What exists before the gateway opens anything, forks or answers.

    ready: the line that names the address. mcp_listener: the port of MCP, None when it is not enabled.
    """

    config: Settings
    options: argparse.Namespace
    console: Console
    log: Log
    listener: socket.socket
    make_server: Callable[..., Server]
    ready: str
    mcp_listener: socket.socket | None = None

    def close(self) -> None:
        """Stop listening in this process."""
        self.listener.close()
        if self.mcp_listener is not None:
            self.mcp_listener.close()


class Live:
    """The gateway and dispatch that answer now. A reload replaces them; requests in flight end with the old ones."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)

    def make_server(self, site: Site, index: int) -> Server:
        """Return the server of the API. index: the number of this worker."""
        return site.make_server(
            handle=lambda request: self.dispatch.handle(request),
            check=lambda request: self.dispatch.check(request),
            refuse=lambda error: self.dispatch.refuse(error),
            body_limit=lambda method, path: self.dispatch.body_limit(method, path),
            index=index,
        )

    async def reload(self, options: argparse.Namespace) -> None:
        """Read settings and rules again. If the new ones cannot be used, the old ones stay."""
        try:
            # In a thread, because reading the rules takes a while and requests are answered meanwhile.
            self.gateway = await to_thread.run_sync(lambda: compose.reload(self.gateway, load_settings(options)))
            self.dispatch = Dispatch(self.gateway)
            await record_reload(self.gateway)
            await anyio.sleep(SETTLE_SECONDS)  # requests in flight still use the old rules
            tidy_up()  # frees the old rules, which the last freeze had excluded from collection
        except GatewayError as error:
            self.gateway.log.error("reload_refused", reason=error.message)


async def answer(site: Site, shared: Shared | None = None, child: Child | None = None) -> None:
    """Open the gateway and answer until a signal stops it. child: this process is one of several workers."""
    report_faults(site.log)
    if child is None:
        unblock_signals(STOPS)
    async with (
        AsyncExitStack() as when_closed,
        compose.open_gateway(site.config, log=site.log, shared=shared) as gateway,
    ):
        live = Live(gateway)
        del gateway  # a reload replaces it, and nothing may keep its rules
        if child is None:
            live.gateway.shield.ready()
            tidy_up()
            await begin(live.gateway, site.console)
        elif child.is_replacement and child.number == 0:
            await record_reload(live.gateway)
        is_first = child is None or child.number == 0
        server = live.make_server(site, child.number if child else 0)
        started: Callable[[], object] = partial(site.console.note, site.ready)
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as beside:
                mcp = None
                # The sessions of MCP live in one process: among several workers, in the first.
                if site.mcp_listener is not None and is_first:
                    mcp = McpPort(lambda: live.gateway, group, drain_seconds=site.config.drain_seconds)
                    await beside.start(mcp.serve, site.mcp_listener)
                stop = partial(stop_all, server, mcp, site)
                await group.start(obey_signals, when_closed, stop, None if child else live, site.options)
                group.start_soon(partial(run_jobs, lambda: live.gateway, is_first=is_first))
                unblock_signals()
                if child is not None:
                    group.start_soon(stop_when_alone, child, stop, site.log)
                    started = partial(group.start_soon, keep_reporting, child)
                await server.serve([site.listener], started=started)
            group.cancel_scope.cancel()
            end_process_after(CLOSING_SECONDS, site.log)
        live.gateway.metrics.publish()
        if child is None:
            await end(live.gateway)


def tidy_up() -> None:
    """Collect the garbage of loading and freeze the rest. Not in a forked worker: collecting would copy its pages."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def begin(gateway: Gateway, console: Console) -> None:
    """Make the first credentials if there are none, print the hash of the archive, and record the start."""
    await greet(gateway, console)
    # A process that was killed leaves its record behind.
    await gateway.running.forget()
    warn_of_rules(gateway)
    archive_sha256 = bundle.archive_sha256()
    if archive_sha256:
        console.note(f"archive SHA-256: {archive_sha256}")
    details = {
        "version": __version__,
        "build": bundle.build_id(),
        "archive_sha256": archive_sha256,
        "pid": os.getpid(),
        "workers": gateway.settings.workers,
    }
    await gateway.audit.record(gateway.audit.event("gateway_started", source="gateway", details=details))


async def greet(gateway: Gateway, console: Console) -> None:
    """Make the first credentials on the first start, and print them or the path of their file."""
    folder = None if gateway.settings.data_dir == ":memory:" else gateway.settings.data_dir
    first = await gateway.first_start.make(folder, password_file=gateway.settings.first_password_file)
    if first is None:
        return
    if folder is None or sys.stderr.isatty():
        console.note("first credentials, shown this once:\n" + first.lines().rstrip())
        if folder is not None:
            first_start.discard(folder)
        return
    path = first_start.publish(folder)
    console.note(f"first credentials are in {path}: read them, keep them elsewhere, and delete the file")


async def record_reload(gateway: Gateway) -> None:
    """Record which rules answer from now on."""
    details = {
        "rules_sha256": gateway.shield.digest,
        "rules": len(gateway.shield.rules),
        "local_rules": gateway.shield.local_count,
    }
    await gateway.audit.record(gateway.audit.event("gateway_reloaded", source="gateway", details=details))
    gateway.log.info("reloaded", **details)
    warn_of_rules(gateway)
    await gateway.running.save()


async def end(gateway: Gateway) -> None:
    """Record the end. If that fails because the disk is full, only the log has it, and the exit code is still 0."""
    try:
        await gateway.audit.record(gateway.audit.event("gateway_stopped", source="gateway"))
        await gateway.running.forget()
    except (AuditUnavailable, StoreUnavailable) as error:
        gateway.log.error("end_not_recorded", reason=error.message)


def report_faults(log: Log) -> None:
    """Log errors inside the event loop, which no caller sees. Their text is left out."""

    def report(_: object, context: Mapping[str, Any]) -> None:
        log.error("loop_error", error=context.get("exception"), reason=context.get("message"))

    loop: Any = current_token().native_token
    loop.set_exception_handler(report)


def stop_all(server: Server, mcp: McpPort | None, site: Site) -> None:
    """Let both ports finish what is in flight, and limit the time that this may take."""
    server.stop()
    if mcp is not None:
        mcp.stop()
    end_process_after(site.config.drain_seconds + CLOSING_SECONDS, site.log)


async def obey_signals(
    when_closed: AsyncExitStack,
    stop: Callable[[], None],
    live: Live | None,
    options: argparse.Namespace,
    *,
    task_status: TaskStatus[None],
) -> None:
    """Stop on SIGTERM and SIGINT; reload `live` on SIGHUP. None: the supervisor reloads.

    Any number of SIGHUPs during a reload cause one more reload. when_closed: signals are received until it closes, and
    ignored afterwards: a second SIGTERM would end the process before it has written what is queued.
    """
    signals = SignalReceiver(ORDERS)
    when_closed.callback(signals.close)
    when_closed.callback(ignore_signals)  # runs first
    task_status.started()
    wanted = anyio.Event()

    async def reload(live: Live) -> None:
        nonlocal wanted
        while True:
            await wanted.wait()
            wanted = anyio.Event()
            await live.reload(options)

    async with anyio.create_task_group() as group:
        if live is not None:
            group.start_soon(reload, live)
        while True:
            await anyio.wait_readable(signals.descriptor)
            for number in signals.receive():
                if number == signal.SIGHUP:
                    wanted.set()
                else:
                    stop()


async def keep_reporting(child: Child) -> None:
    """Report to the supervisor that this worker's event loop runs. The supervisor kills a worker that is silent."""
    while True:
        child.report_ready()
        await anyio.sleep(BEAT_SECONDS)


async def stop_when_alone(child: Child, stop: Callable[[], None], log: Log) -> None:
    """Stop when the supervisor is gone: nothing else would stop this worker, and the port would stay taken."""
    await anyio.wait_readable(child.life)
    log.error("supervisor_gone", reason="this worker finishes requests in flight and exits")
    stop()
