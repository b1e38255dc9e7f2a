"""`mcp`: the MCP server for one assistant on this host, over stdin and stdout."""

import argparse
from contextlib import ExitStack
from functools import partial

import anyio

from gateway import compose
from gateway.cli.command import OK, Command, Console, load_settings, make_log, nothing
from gateway.cli.shutdown_watchdog import CLOSING_SECONDS, ShutdownWatchdog
from gateway.cli.worker import warn_of_rules
from gateway.domain.principals import local
from gateway.mcp import stdio
from gateway.mcp.server import McpServer
from gateway.signals import STOPS, SignalReceiver, ignore_signals


def mcp(options: argparse.Namespace, console: Console) -> int:
    """Serve MCP on stdin and stdout until the input ends or a signal comes. Queued answers are still written."""
    config = load_settings(options).settings

    async def run(when_closed: ExitStack) -> None:
        log = make_log(config)
        async with compose.open_gateway(config, log=log, is_shell=True) as gateway:
            gateway.shield.ready()  # a call right before the end of the input has two seconds
            warn_of_rules(gateway)
            signals = SignalReceiver(STOPS)
            when_closed.callback(signals.close)
            when_closed.callback(ignore_signals)  # runs first
            ending = partial(ShutdownWatchdog(log).set, CLOSING_SECONDS)
            await stdio.serve(McpServer(gateway, local("mcp")), signals=signals, ending=ending)

    with ExitStack() as when_closed:
        anyio.run(run, when_closed)
    return OK


COMMANDS = (Command("mcp", "Serve MCP over stdio to an assistant on this host.", "", nothing, mcp),)
