"""`serve`: one process or a group of them that stays and answers over HTTP."""

import argparse
import os
import resource
import socket
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import anyio

from gateway import bundle, compose, settings, shield
from gateway.app import Shared
from gateway.cli.command import (
    CLOSING_SECONDS,
    FAILED,
    OK,
    Console,
    argument,
    command,
    end_process_after,
    load_settings,
    make_log,
)
from gateway.cli.listeners import address, open_listener, open_mcp_listener
from gateway.cli.worker import Site, answer, begin, end, tidy_up
from gateway.clock import SystemClock
from gateway.errors import GatewayError, SetupError
from gateway.http.accept import Shares
from gateway.http.messages import Limits
from gateway.http.server import Server
from gateway.http.transport import client_tls, server_tls
from gateway.log import Log
from gateway.settings import Settings
from gateway.shield import Shield
from gateway.signals import block_reload, block_signals, ignore_signals, unblock_signals
from gateway.store import metric_board, rate_windows
from gateway.store.database_file import identify
from gateway.supervisor import Child, Supervisor

_SCHEME = {True: "https", False: "http"}
_CLOSING_SECONDS = 20.0
HUNG_SECONDS = 60.0
SWITCH_SECONDS = 0.000_05


def _declare_settings(parser: argparse.ArgumentParser) -> None:
    """Declare a flag for every setting that is not secret."""
    for row in settings.rows():
        if not row.metadata["secret"] and row.name != "data_dir":
            help_text = f"{row.metadata['about']} [{settings.variable(row)}]".replace("%", "%%")
            parser.add_argument(settings.flag(row), metavar="VALUE", help=help_text)


@command(
    "serve",
    "Run the HTTP server: shield, chat proxy, API.",
    "--port 5001 --upstream-url https://llm.internal/v1",
    _declare_settings,
    argument("--show-settings", action="store_true", help="print every setting and its source, and end"),
)
def _serve(options: argparse.Namespace, console: Console) -> int:
    """Run the HTTP server until SIGTERM or SIGINT, then finish what is in flight."""
    block_reload()  # the launcher of the archive has done so already
    config = load_settings(options)
    if options.show_settings:
        console.print(settings.show(config))
        return OK
    raise_descriptor_limit()
    # A thread gives up the interpreter after this long when another asks. With the usual 5 ms, the writer would wait
    # after each step of SQLite, and the event loop after each byte that it sends while a long text is scanned.
    sys.setswitchinterval(SWITCH_SECONDS)
    log = make_log(config)
    for warning in config.warnings:
        log.warning("setting_ignored", reason=warning)
    with ExitStack() as sockets:
        given = settings.given_sockets()
        listener = sockets.enter_context(open_listener(config, given.get("")))
        if "" in given:
            config = settings.bound_to(config, *listener.getsockname()[:2])
        mcp_listener = open_mcp_listener(config, given.get("mcp"))
        if mcp_listener is not None:
            sockets.enter_context(mcp_listener)
        bundle.load_all()  # so that the archive may be replaced while the gateway serves
        shield.read_all()
        site = make_site(config, options, console, log=log, listener=listener, mcp_listener=mcp_listener)
        if config.workers > 1:
            return serve_group(site)
        block_signals()  # until an event loop can end in order on an interrupt
        anyio.run(answer, site)
    return OK


def raise_descriptor_limit() -> None:
    """Take all the file descriptors that the host allows: each connection is one, and each may need one upstream."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return  # a system that allows less than it says; the server keeps within what it has


def keep_to_cpu(number: int, workers: int) -> None:
    """Run the threads of a worker on one CPU, if there are as many workers as CPUs. number: of the worker, from 0.

    Only one thread at a time has the interpreter. On two CPUs they would move it, and its caches, to and fro.
    """
    if not hasattr(os, "sched_setaffinity"):  # on macOS
        return
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == workers:
        try:
            os.sched_setaffinity(0, {cpus[number]})
        except OSError:
            return  # a CPU was taken away meanwhile, or the host does not allow it


def make_site(
    config: Settings,
    options: argparse.Namespace,
    console: Console,
    *,
    log: Log,
    listener: socket.socket,
    mcp_listener: socket.socket | None = None,
) -> Site:
    """Make what every worker shares.

    Raises:
        SetupError: the certificate, its key or the certificates to trust cannot be used.
    """
    try:
        tls = server_tls(config.tls_cert, config.tls_key) if config.tls_cert and config.tls_key else None
    except (OSError, ValueError) as error:
        raise SetupError(f"the certificate or its key cannot be used: {error}") from error
    try:
        if config.upstream_ca_file:
            client_tls(config.upstream_ca_file)
    except OSError as error:
        name = config.upstream_ca_file
        raise SetupError(f"upstream_ca_file {name} cannot be used: {error.strerror or error}") from error
    if not settings.is_loopback(config.host) and tls is None:
        log.warning("no_tls", reason="keys and prompts cross the network in clear: set tls_cert and tls_key")
    make_server = partial(
        Server,
        limits=Limits(drain_seconds=config.drain_seconds),
        tls=tls,
        allowed_hosts=frozenset(config.allowed_hosts) or None,
        shares=Shares(config.workers) if config.workers > 1 else None,
    )
    ready = f"listening on {_SCHEME[tls is not None]}://{address(listener)}"
    return Site(config, options, console, log, listener, make_server, ready, mcp_listener)


def serve_group(site: Site) -> int:
    """Answer with several processes: one makes the database ready, then the workers serve, then one records the end."""
    group = Group(site)
    keeper = Supervisor(
        clock=SystemClock(),
        log=site.log,
        stop_seconds=site.config.drain_seconds + _CLOSING_SECONDS,
        hung_seconds=HUNG_SECONDS,
    )
    tidy_up()  # after a fork, the collector would copy every page that it visits
    first = keeper.once()
    if isinstance(first, Child):
        anyio.run(begin_group, site, group.shared)
        return OK
    if keeper.is_stopping or first != OK:
        return OK if keeper.is_stopping else FAILED
    group.shared = replace(group.shared, database=identify(compose.database_path(site.config)))
    ended = keeper.keep(
        site.config.workers,
        ready=lambda: site.console.note(site.ready),
        reload=group.reload,
        stopping=site.close,
    )
    if isinstance(ended, Child):
        if group.site.config.worker_cpu_affinity == "auto":
            keep_to_cpu(ended.number, group.site.config.workers)
        anyio.run(answer, group.site, group.shared, ended)
        return OK
    last = keeper.once(is_last=True)
    if isinstance(last, Child):
        anyio.run(end_group, site, group.shared)
        return OK
    ignore_signals()
    return ended or (FAILED if last else OK)


def ready_shield(config: Settings) -> Shield:
    """Load the rules and make them ready to scan, once for all workers.

    Raises:
        SetupError: the rules cannot be used.
    """
    scanner = compose.load_shield(config.rules)
    scanner.ready()
    return scanner


class Group:
    """What the next worker starts with. A reload replaces it, so a restarted worker is like the others."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.shared = Shared(
            shield=ready_shield(site.config),
            limiter=rate_windows.RateWindows(),
            # A reload replaces the workers one by one, so there may be twice as many.
            board=metric_board.MetricBoard(2 * site.config.workers + 1),
            started_at=SystemClock().now_at(),
        )

    def reload(self) -> bool:
        """Read settings and rules again. Return whether they are valid, so that new workers may take over with them."""
        try:
            config = load_settings(self.site.options)
            scanner = ready_shield(config)
        except GatewayError as error:
            self.site.log.error("reload_refused", reason=error.message)
            return False
        self.site = replace(self.site, config=compose.keep_lasting(self.site.config, config, self.site.log))
        self.shared = replace(self.shared, shield=scanner)
        tidy_up()
        return True


async def begin_group(site: Site, shared: Shared) -> None:
    """Make the database and the first credentials, and record the start."""
    unblock_signals()
    async with compose.open_gateway(site.config, log=site.log, shared=shared) as gateway:
        await begin(gateway, site.console)


async def end_group(site: Site, shared: Shared) -> None:
    """Record the end."""
    end_process_after(CLOSING_SECONDS, site.log)
    async with compose.open_gateway(site.config, log=site.log, shared=shared) as gateway:
        await end(gateway)


COMMANDS = (_serve,)
