"""Open the data folder for one command, and close it again."""

import argparse
from collections.abc import Awaitable, Callable
from typing import cast

import anyio

from gateway import compose
from gateway.app import Gateway
from gateway.cli.command import load_settings, make_log
from gateway.domain.principals import RequestContext

Work = Callable[[Gateway], Awaitable[int]]


def with_gateway(options: argparse.Namespace, work: Work) -> int:
    """Do the work with every service, and return its exit code."""
    config = load_settings(options).settings

    async def run() -> int:
        async with compose.open_gateway(config, log=make_log(config), is_shell=True) as gateway:
            return await work(gateway)

    return anyio.run(run)


def with_records(options: argparse.Namespace, work: Work) -> int:
    """Do the work with the services of `Lasting` alone: they load no rules, so a broken rule file stops nobody."""
    config = load_settings(options).settings

    async def run() -> int:
        async with compose.open_lasting(config, log=make_log(config)) as lasting:
            return await work(cast(Gateway, lasting))

    return anyio.run(run)


def context(gateway: Gateway) -> RequestContext:
    """Return the context of a command typed on this host."""
    return RequestContext(request_id=gateway.ids.new("req"), user_agent="cli")
