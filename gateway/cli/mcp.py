"""`mcp`: the gateway for one assistant on this host, over stdin and stdout."""

import argparse

import anyio

from gateway import compose
from gateway.cli.command import OK, Command, Console, load_settings, make_log, nothing
from gateway.domain.principals import local
from gateway.mcp import stdio
from gateway.mcp.server import McpServer


def mcp(options: argparse.Namespace, console: Console) -> int:
    """Speak MCP on stdin and stdout until the input ends."""
    config = load_settings(options).settings

    async def run() -> None:
        async with compose.open_gateway(config, log=make_log(config)) as gateway:
            await stdio.serve(McpServer(gateway, local("mcp")))

    anyio.run(run)
    return OK


COMMANDS = (Command("mcp", "Speak MCP over stdio, for assistants on this host.", "gateway.pyz mcp", nothing, mcp),)
