"""`serve`: one process or a group of them that stays and answers over HTTP."""

import argparse
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import Field, replace
from functools import partial
from typing import Any, Literal, get_args, get_origin

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
from gateway.cli.worker import Site, answer, begin, end, tidy_up
from gateway.clock import Clock
from gateway.errors import GatewayError, SetupError
from gateway.http.accept import Shares, adopt, listen
from gateway.http.messages import Limits
from gateway.http.server import Server
from gateway.http.transport import client_tls, server_tls
from gateway.log import Log
from gateway.settings import Settings
from gateway.signals import block_signals, ignore_signals, unblock_signals
from gateway.store import metric_board, rate_windows
from gateway.store.database_file import identify
from gateway.supervisor import Child, Supervisor

_CLOSING_SECONDS = 20.0
HUNG_SECONDS = 60.0
SWITCH_SECONDS = 0.000_05
MCP_KEY_CHARS = 16
"""The fewest characters of the key for MCP. The trust audit asks for more."""


def _declare_settings(parser: argparse.ArgumentParser) -> None:
    """Declare a flag for every setting that is not secret, in groups, with its choices and its default."""
    parser.usage = "gateway serve [OPTION VALUE ...]"
    for row in settings.rows():
        if title := row.metadata["group"]:
            group = parser.add_argument_group(title)
        if not row.metadata["secret"] and row.name != "data_dir":
            default = _as_text(row.default)
            parts = (row.metadata["about"], default and f"Default: {default}.", f"[{settings.variable(row)}]")
            help_text = " ".join(filter(None, parts)).replace("%", "%%")
            group.add_argument(settings.flag(row), metavar=_form(row), help=help_text)


def _form(row: Field[Any]) -> str:
    """Return what the flag of a setting takes."""
    if get_origin(row.type) is Literal:
        return "|".join(get_args(row.type))
    return {bool: "true|false", int: "N", float: "N", tuple: "A,B"}.get(type(row.default), "VALUE")


def _as_text(value: object) -> str:
    """Return the value of a setting as its flag takes it; "" if there is none."""
    if isinstance(value, bool | None):
        return "" if value is None else str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def _print_settings(config: Settings, console: Console) -> None:
    """Print name, value and source of each setting. Secrets are masked."""
    for row in settings.rows():
        value = getattr(config, row.name)
        shown = "****" if row.metadata["secret"] and value else _as_text(value) or "-"
        console.print(f"{row.name} = {shown}  ({config.sources[row.name]})")


@command(
    "serve",
    "Run the HTTP server: shield, chat proxy, API.",
    "--port 5001 --upstream-url https://llm.internal/v1",
    _declare_settings,
    argument("--show-settings", action="store_true", help="print every setting and its source, and exit"),
)
def _serve(options: argparse.Namespace, console: Console) -> int:
    # Nothing can handle it yet, and its default action ends the program. The archive's launcher has blocked it already.
    block_signals((signal.SIGHUP,))
    config = load_settings(options)
    if options.show_settings:
        _print_settings(config, console)
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
        listener = sockets.enter_context(_open(config.host, config.port, given.get("")))
        if "" in given:
            config = settings.bound_to(config, *listener.getsockname()[:2])
        mcp_listener = open_mcp_listener(config, given.get("mcp"))
        if mcp_listener is not None:
            sockets.enter_context(mcp_listener)
        bundle.load_all()  # so that the archive may be replaced while the gateway serves
        shield.read_all()
        ready = f"listening on {'https' if config.tls_cert else 'http'}://{address(listener)}"
        site = Site(config, options, console, log, listener, server_maker(config, log), ready, mcp_listener)
        if config.workers > 1:
            return serve_group(site)
        block_signals()  # until an event loop can end in order on an interrupt
        anyio.run(answer, site)
    return OK


def open_mcp_listener(config: Settings, given: int | None = None) -> socket.socket | None:
    """Bind the port of MCP, on the loopback address, or take the socket that was given. None: it is not enabled.

    Raises:
        SetupError: the key is missing, too short, or not fit for a header; the port is taken; or other hosts can reach
            it.
    """
    if not config.mcp_enabled:
        if given is not None:
            raise SetupError("there is a socket for MCP, but MCP_ENABLED is off: set it, or remove the socket")
        return None
    key = config.mcp_api_key or ""
    if re.fullmatch(f"[!-~]{{{MCP_KEY_CHARS},}}", key) is None:
        raise SetupError(
            f"MCP_ENABLED needs MCP_API_KEY: at least {MCP_KEY_CHARS} letters, digits and symbols without spaces, such "
            "as `openssl rand -hex 32` prints",
            param="mcp_api_key",
        )
    listener = _open("127.0.0.1", config.mcp_port, given)
    if not settings.is_loopback(listener.getsockname()[0]):
        listener.close()
        raise SetupError("the socket for MCP can be reached from elsewhere: let it listen on 127.0.0.1")
    return listener


def address(listener: socket.socket) -> str:
    """Return HOST:PORT of a listening socket, an IPv6 address in brackets."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _open(host: str, port: int, given: int | None) -> socket.socket:
    try:
        return listen(host, port) if given is None else adopt(given)
    except OSError as error:
        if given is None:
            raise SetupError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
        raise SetupError(f"the socket that was given (descriptor {given}) cannot be used: {error}") from error


def raise_descriptor_limit() -> None:
    """Take all the file descriptors that the host allows: each connection is one, and each may need one upstream."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a system that allows less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def keep_to_cpu(number: int, workers: int) -> None:
    """Run the threads of a worker on one CPU, if there are as many workers as CPUs. number: of the worker, from 0.

    Only one thread at a time has the interpreter. On two CPUs they would move it, and its caches, to and fro.
    """
    if not hasattr(os, "sched_setaffinity"):  # on macOS
        return
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == workers:
        with suppress(OSError):  # a CPU was taken away meanwhile, or the host does not allow it
            os.sched_setaffinity(0, {cpus[number]})


def server_maker(config: Settings, log: Log) -> Callable[..., Server]:
    """Return what makes the server of the API in each worker.

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
        log.warning("no_tls", reason="keys and prompts cross the network unencrypted: set tls_cert and tls_key")
    return partial(
        Server,
        limits=Limits(drain_seconds=config.drain_seconds),
        tls=tls,
        allowed_hosts=frozenset(config.allowed_hosts) or None,
        shares=Shares(config.workers) if config.workers > 1 else None,
    )


def serve_group(site: Site) -> int:
    """Answer with several processes: one makes the database ready, then the workers serve, then one records the end."""
    group = Group(site)
    keeper = Supervisor(
        clock=Clock(),
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
    if not site.config.has_server:
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


class Group:
    """What the next worker starts with. A reload replaces it, so a restarted worker is like the others."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.shared = Shared(
            shield=compose.load_shield(site.config.rules, site.config.rules_extra, is_ready=True),
            limiter=rate_windows.RateWindows(),
            # A reload replaces the workers one by one, so there may be twice as many.
            board=metric_board.MetricBoard(2 * site.config.workers + 1),
            started_at=Clock().now_at(),
        )

    def reload(self) -> bool:
        """Read settings and rules again. Return whether they are valid, so that new workers may take over with them."""
        try:
            config = load_settings(self.site.options)
            scanner = compose.load_shield(config.rules, config.rules_extra, is_ready=True)
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
