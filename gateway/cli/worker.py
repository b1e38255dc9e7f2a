"""One process that answers: from an open listener to the end of the last request. It knows no other worker."""

import argparse
import gc
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
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
from gateway.cli.command import Console, load_settings
from gateway.cli.mcp_port import McpPort
from gateway.cli.shutdown_watchdog import CLOSING_SECONDS, ShutdownWatchdog
from gateway.errors import AuditUnavailable, GatewayError
from gateway.http.messages import HttpError, Request, Response
from gateway.http.server import Server
from gateway.jobs import run_jobs
from gateway.log import Log
from gateway.services import first_start
from gateway.settings import Settings
from gateway.signals import ORDERS, SignalReceiver, heed_signals, heed_stops, ignore_signals
from gateway.store.database import StoreUnavailable
from gateway.supervisor import Child

BEAT_SECONDS = 5.0
SETTLE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Site:
    """What is there before anything is opened, forked or answered.

    ready: the line that says where we listen. mcp_listener: the port of MCP, None when it is not enabled.
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
    """The dispatch that answers now. A reload replaces it; requests in flight end with the old one."""

    def __init__(self, composition: compose.Composition) -> None:
        self._composition = composition
        self._dispatch = Dispatch(composition.gateway)

    def gateway(self) -> Gateway:
        """Return the gateway that answers now."""
        return self._composition.gateway

    def handle(self, request: Request) -> Awaitable[Response]:
        """Answer a request."""
        return self._dispatch.handle(request)

    def check(self, request: Request) -> Awaitable[Response | None]:
        """Check the head of a request with a large body, before the body is read."""
        return self._dispatch.check(request)

    def refuse(self, error: HttpError) -> Response:
        """Render what the protocol refuses."""
        return self._dispatch.refuse(error)

    def body_limit(self, method: str, path: str) -> int:
        """Return how many bytes the body of a request may have."""
        return self._dispatch.body_limit(method, path)

    async def reload(self, options: argparse.Namespace) -> None:
        """Read settings and rules again, and keep the old ones when the new cannot be used."""
        log = self._composition.gateway.log
        try:
            # In a thread, because reading the rules takes a while and requests are answered meanwhile.
            new = await to_thread.run_sync(self._reload, options)
            self._dispatch = Dispatch(new)
            await note_reload(new)
            await anyio.sleep(SETTLE_SECONDS)  # requests in flight still use the old rules
            tidy_up()  # which had taken the old rules for what stays
        except GatewayError as error:
            log.error("reload_refused", reason=error.message)

    def _reload(self, options: argparse.Namespace) -> Gateway:
        gateway = self._composition.reload(load_settings(options).settings)
        gateway.shield.ready()
        return gateway


async def answer(site: Site, shared: Shared | None = None, child: Child | None = None) -> None:
    """Open the gateway and answer until told to stop. child: this process is one of several workers."""
    report_faults(site.log)
    if child is None:
        heed_stops()
    with ExitStack() as when_closed:
        await _answer(site, shared, child, when_closed)


async def _answer(site: Site, shared: Shared | None, child: Child | None, when_closed: ExitStack) -> None:
    async with compose.open_composition(site.config, log=site.log, shared=shared) as composition:
        if child is None:
            composition.gateway.shield.ready()
            tidy_up()
            await begin(composition.gateway, site.console)
        elif child.is_replacement and child.number == 0:
            await note_reload(composition.gateway)
        is_first = child is None or child.number == 0
        live = Live(composition)
        server = site.make_server(
            handle=live.handle,
            check=live.check,
            refuse=live.refuse,
            body_limit=live.body_limit,
            index=child.number if child else 0,
        )
        started: Callable[[], object] = partial(site.console.note, site.ready)
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as beside:
                mcp = None
                # The sessions of MCP live in one process: among several workers, in the first.
                if site.mcp_listener is not None and is_first:
                    mcp = McpPort(live.gateway, group, drain_seconds=site.config.drain_seconds)
                    await beside.start(mcp.serve, site.mcp_listener)
                watchdog = ShutdownWatchdog(site.log)
                stop = partial(stop_all, server, mcp, watchdog, site.config.drain_seconds + CLOSING_SECONDS)
                await group.start(obey_signals, when_closed, stop, None if child else live, site.options)
                group.start_soon(partial(run_jobs, live.gateway, is_first=is_first))
                heed_signals()
                if child is not None:
                    group.start_soon(stop_when_alone, child, stop, site.log)
                    started = partial(group.start_soon, keep_telling, child)
                await server.serve([site.listener], started=started)
            group.cancel_scope.cancel()
            watchdog.set(CLOSING_SECONDS)
        composition.gateway.metrics.publish()
        if child is None:
            await end(composition.gateway)


def tidy_up() -> None:
    """Collect the garbage of loading and freeze the rest. Not in a forked worker: collecting would copy its pages."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def begin(gateway: Gateway, console: Console) -> None:
    """Make the first credentials if there are none, show which file runs, and record the start."""
    await greet(gateway, console)
    await forget_running(gateway)  # left behind by a process that was killed
    warn_of_rules(gateway)
    archive_sha256 = bundle.archive_sha256()
    if archive_sha256:
        console.note(f"archive SHA-256: {archive_sha256}")
    details = {
        "version": __version__,
        "archive_sha256": archive_sha256,
        "pid": os.getpid(),
        "workers": gateway.settings.workers,
    }
    await gateway.audit.record(gateway.audit.event("gateway_started", source="gateway", details=details))


async def forget_running(gateway: Gateway) -> None:
    """Delete the record that a process keeps of itself while it serves."""
    await gateway.store.db.write(gateway.store.running.forget, is_durable=False)


def warn_of_rules(gateway: Gateway) -> None:
    """Log what a rule file leaves out that the built-in rules have."""
    if gateway.settings.rules is not None and (lack := gateway.posture.running.rules_lack):
        gateway.log.warning("rules_replaced", reason=lack)


async def greet(gateway: Gateway, console: Console) -> None:
    """Make the first credentials on the first start, and say where they are."""
    folder = None if gateway.settings.data_dir == ":memory:" else gateway.settings.data_dir
    first = await gateway.first_start.make(folder)
    if first is None:
        return
    if folder is None or sys.stderr.isatty():
        console.note("first credentials, shown this once:\n" + first.lines().rstrip())
        if folder is not None:
            first_start.discard(folder)
        return
    path = first_start.publish(folder)
    console.note(f"first credentials are in {path}: read them, keep them elsewhere, and delete the file")


async def note_reload(gateway: Gateway) -> None:
    """Record which rules answer from now on."""
    details = {"rules_sha256": gateway.shield.digest, "rules": len(gateway.shield.rules)}
    await gateway.audit.record(gateway.audit.event("gateway_reloaded", source="gateway", details=details))
    gateway.log.info("reloaded", **details)
    warn_of_rules(gateway)
    await gateway.posture.running.note()


async def end(gateway: Gateway) -> None:
    """Record the end. If the disk takes no more, only the log has it, and the exit code is still 0."""
    try:
        await gateway.audit.record(gateway.audit.event("gateway_stopped", source="gateway"))
        await forget_running(gateway)
    except (AuditUnavailable, StoreUnavailable) as error:
        gateway.log.error("end_not_recorded", reason=error.message)


def report_faults(log: Log) -> None:
    """Log errors inside the event loop, which no caller sees. Their text is left out."""

    def report(_: object, context: Mapping[str, Any]) -> None:
        log.error("loop_error", error=context.get("exception"), reason=context.get("message"))

    loop: Any = current_token().native_token
    loop.set_exception_handler(report)


def stop_all(server: Server, mcp: McpPort | None, watchdog: ShutdownWatchdog, seconds: float) -> None:
    """Let both ports finish what is in flight, and end the process after this many seconds at the latest."""
    server.stop()
    if mcp is not None:
        mcp.stop()
    watchdog.set(seconds)


async def obey_signals(
    when_closed: ExitStack,
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
    when_closed.callback(ignore_signals)  # which comes first
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


async def keep_telling(child: Child) -> None:
    """Tell the supervisor that this worker's event loop runs. The supervisor kills a worker that is silent."""
    while True:
        child.report_ready()
        await anyio.sleep(BEAT_SECONDS)


async def stop_when_alone(child: Child, stop: Callable[[], None], log: Log) -> None:
    """Stop when the supervisor is gone: nothing else would stop this worker, and the port would stay taken."""
    await anyio.wait_readable(child.life)
    log.error("supervisor_gone", reason="this worker finishes what is in flight and ends")
    stop()
