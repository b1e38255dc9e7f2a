"""`serve` and `mcp`: the two ways in which the gateway stays and answers."""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Awaitable

import anyio

from gateway import __version__, bundle, compose, settings
from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.cli.command import OK, Command, Console, load_settings, make_log, nothing
from gateway.domain.principals import local
from gateway.errors import GatewayError, SetupError
from gateway.http.messages import HttpError, Limits, Request, Response
from gateway.http.server import Server
from gateway.http.transport import listen, server_tls
from gateway.mcp import stdio
from gateway.mcp.server import McpServer
from gateway.settings import Loaded

SCHEME = {True: "https", False: "http"}


def serve(options: argparse.Namespace, console: Console) -> int:
    """Run the HTTP server until SIGTERM or SIGINT, then finish what is in flight."""
    loaded = load_settings(options)
    if options.show_settings:
        console.print(settings.show(loaded))
        return OK
    log = make_log(loaded.settings)
    for warning in loaded.warnings:
        log.warning("setting_ignored", reason=warning)
    anyio.run(run_server, loaded, options, console)
    return OK


class Live:
    """The dispatch that answers now. A reload puts another in its place; what is in flight ends with the old one."""

    def __init__(self, composition: compose.Composition) -> None:
        self._composition = composition
        self._dispatch = Dispatch(composition.gateway)

    def handle(self, request: Request) -> Awaitable[Response]:
        """Answer a request."""
        return self._dispatch.handle(request)

    def refuse(self, error: HttpError) -> Response:
        """Render what the protocol refuses."""
        return self._dispatch.refuse(error)

    def body_limit(self, method: str, path: str) -> int:
        """Return how many bytes the body of a request may have."""
        return self._dispatch.body_limit(method, path)

    async def reload(self, options: argparse.Namespace) -> None:
        """Read settings and rules again, and keep the old ones when the new cannot be used."""
        old = self._composition.gateway
        try:
            new = self._composition.reload(load_settings(options).settings)
        except GatewayError as error:
            old.log.error("reload_refused", reason=error.message)
            return
        details = {"rules_sha256": new.shield.digest, "rules": len(new.shield.rules)}
        await old.audit.record(old.audit.event("gateway_reloaded", source="gateway", details=details))
        self._dispatch = Dispatch(new)
        new.log.info("reloaded", **details)


async def run_server(loaded: Loaded, options: argparse.Namespace, console: Console) -> None:
    """Open the gateway, listen, and answer until told to stop."""
    config = loaded.settings
    log = make_log(config)
    listener = open_listener(config.host, config.port)
    try:
        tls = server_tls(config.tls_cert, config.tls_key) if config.tls_cert and config.tls_key else None
    except (OSError, ValueError) as error:
        listener.close()
        raise SetupError(f"the certificate or its key cannot be used: {error}") from error
    with listener:
        async with compose.open_composition(config, log=log) as composition:
            gateway = composition.gateway
            await greet(gateway, console)
            live = Live(composition)
            server = Server(
                handle=live.handle,
                refuse=live.refuse,
                body_limit=live.body_limit,
                limits=Limits(drain_seconds=config.drain_seconds),
                tls=tls,
                allowed_hosts=frozenset(config.allowed_hosts) or None,
            )
            if not settings.is_loopback(config.host) and tls is None:
                log.warning("no_tls", reason="keys and prompts cross the network in clear: set tls_cert and tls_key")
            await gateway.audit.record(gateway.audit.event("gateway_started", source="gateway", details=about()))
            ready = f"listening on {SCHEME[tls is not None]}://{address(listener)}"
            async with anyio.create_task_group() as group:
                group.start_soon(obey_signals, server, live, options)
                await server.serve([listener], started=lambda: console.note(ready))
                group.cancel_scope.cancel()
            await gateway.audit.record(gateway.audit.event("gateway_stopped", source="gateway"))


def about() -> dict[str, object]:
    """Return what the audit log keeps of a start."""
    return {"version": __version__, "archive_sha256": bundle.archive_sha256(), "pid": os.getpid()}


def open_listener(host: str, port: int) -> socket.socket:
    """Bind the address.

    Raises:
        SetupError: the address is taken, foreign or forbidden.
    """
    try:
        return listen(host, port)
    except OSError as error:
        raise SetupError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error


def address(listener: socket.socket) -> str:
    """Return HOST:PORT of a listening socket, an IPv6 address in brackets."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def greet(gateway: Gateway, console: Console) -> None:
    """Make the first credentials on the first start, and say where they are."""
    first = await gateway.first_start.make()
    if first is None:
        return
    lines = f"username: {first.username}\npassword: {first.password}\napi_key: {first.api_key}\n"
    data_dir = gateway.settings.data_dir
    if data_dir == ":memory:" or sys.stderr.isatty():
        console.note("first credentials, shown this once:\n" + lines.rstrip())
        return
    path = os.path.join(data_dir, "first-credentials.txt")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(lines)
    console.note(f"first credentials are in {path}: read them, keep them elsewhere, and delete the file")


async def obey_signals(server: Server, live: Live, options: argparse.Namespace) -> None:
    """Stop on SIGTERM and SIGINT, reload on SIGHUP."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            if number == signal.SIGHUP:
                await live.reload(options)
            else:
                server.stop()


def mcp(options: argparse.Namespace, console: Console) -> int:
    """Speak MCP on stdin and stdout until the input ends."""
    config = load_settings(options).settings

    async def run() -> None:
        async with compose.open_gateway(config, log=make_log(config)) as gateway:
            await stdio.serve(McpServer(gateway, local("mcp")))

    anyio.run(run)
    return OK


def declare_serve(parser: argparse.ArgumentParser) -> None:
    """Declare a flag for every setting that is no secret."""
    for row in settings.rows():
        if not row.metadata["secret"] and row.name != "data_dir":
            help_text = f"{row.metadata['about']} [{settings.variable(row)}]".replace("%", "%%")
            parser.add_argument(settings.flag(row), metavar="VALUE", help=help_text)
    parser.add_argument("--show-settings", action="store_true", help="print every setting and its source, and end")


COMMANDS = (
    Command(
        "serve",
        "Run the HTTP server: shield, chat proxy, API.",
        "gateway.pyz serve --port 5001 --upstream-url https://llm.internal/v1",
        declare_serve,
        serve,
    ),
    Command("mcp", "Speak MCP over stdio, for assistants on this host.", "gateway.pyz mcp", nothing, mcp),
)
