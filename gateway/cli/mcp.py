"""`mcp`: the MCP server for one assistant on this host, over stdin and stdout."""

import argparse
from contextlib import ExitStack
from functools import partial

import anyio

from gateway import compose
from gateway.cli.answering import warn_of_rules
from gateway.cli.command import OK, Command, Console, load_settings, make_log, nothing
from gateway.cli.deadline import CLOSING_SECONDS, Deadline
from gateway.domain.principals import local
from gateway.mcp import stdio
from gateway.mcp.server import McpServer
from gateway.signals import STOPS, Ear, ignore_signals


def mcp(options: argparse.Namespace, console: Console) -> int:
    """Serve MCP on stdin and stdout until the input ends or a signal comes. Queued answers are still written."""
    config = load_settings(options).settings

    async def run(when_closed: ExitStack) -> None:
        log = make_log(config)
        async with compose.open_gateway(config, log=log, is_shell=True) as gateway:
            warn_of_rules(gateway)
            ear = Ear(STOPS)
            when_closed.callback(ear.close)
            when_closed.callback(ignore_signals)  # runs first
            ending = partial(Deadline(log).set, CLOSING_SECONDS)
            await stdio.serve(McpServer(gateway, local("mcp")), ear=ear, ending=ending)

    with ExitStack() as when_closed:
        anyio.run(run, when_closed)
    return OK


COMMANDS = (Command("mcp", "Serve MCP over stdio to an assistant on this host.", "", nothing, mcp),)
