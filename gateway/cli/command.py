"""The shape of a command, its console, and what commands share. The commands are in the files beside this one."""

import argparse
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, TextIO, TypeVar, cast

import anyio

from gateway import compose, settings, strict_json
from gateway.app import Gateway, Lasting
from gateway.bundle import NativeReport
from gateway.clock import Clock
from gateway.domain.principals import Caller, RequestContext, local
from gateway.log import Log
from gateway.settings import Settings
from gateway.shield import Shield

OK, FOUND, FAILED = 0, 1, 2
CLOSING_SECONDS = 15.0
"""How long an orderly end may take after the last answer."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Console:
    """Where a command reads and writes. out: the result. err: everything else."""

    out: TextIO
    err: TextIO
    stdin: BinaryIO
    native: NativeReport

    def print(self, text: str) -> None:
        """Write one line of the result."""
        self.out.write(text + "\n")

    def print_json(self, value: object) -> None:
        """Write `value` as indented JSON."""
        self.print(json.dumps(value, indent=2, ensure_ascii=False))

    def note(self, text: str) -> None:
        """Write one line for a person."""
        self.err.write(text + "\n")
        self.err.flush()


Run = Callable[[argparse.Namespace, Console], int | None]
"""Gets the parsed options and returns the exit code; None for one that ends with 0 or an error."""
Declare = Callable[[argparse.ArgumentParser], object]
"""Adds one argument or several to the parser of a command."""


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the command table. name: one or two words. example: what follows the name in a line that works."""

    name: str
    summary: str
    example: str
    arguments: tuple[Declare, ...]
    run: Run
    has_json: bool = False


def argument(*names: str, **options: Any) -> Declare:
    """Return an argument of a command, as `ArgumentParser.add_argument` takes it."""
    return lambda parser: parser.add_argument(*names, **options)


def command(
    name: str, summary: str, example: str, *arguments: Declare, has_json: bool = False
) -> Callable[[Run], Command]:
    """Make a command of the function below. example, has_json: see `Command`."""
    return lambda run: Command(name, summary, example, arguments, run, has_json)


def load_settings(options: argparse.Namespace) -> Settings:
    """Read the settings with the flags of this command line."""
    return settings.load({name: value for name, value in vars(options).items() if value is not None})


def past_time(text: str | None, flag: str) -> int | None:
    """Read a time, a date or an age such as `7d` before now; None if there is none."""
    return strict_json.read_time(text, param=flag, now_at=Clock().now_at()) if text else None


def make_log(config: Settings) -> Log:
    """Return a log on stderr."""
    return Log(sys.stderr, Clock(), config.log_level)


def with_gateway(
    options: argparse.Namespace, work: Callable[[Gateway], Awaitable[T]], *, needs_rules: bool = True
) -> T:
    """Do the work with the services of the data folder, and return its result.

    needs_rules: False for work that uses only the services of `Lasting`, so that it succeeds with a broken rule file.
    """
    config = load_settings(options)
    log = make_log(config)

    async def run() -> T:
        opening: AbstractAsyncContextManager[Lasting] = compose.open_lasting(config, log=log)
        if needs_rules:
            opening = compose.open_gateway(config, log=log, is_shell=True)
        async with opening as gateway:
            return await work(cast(Gateway, gateway))

    return anyio.run(run)


def shield_in_use(options: argparse.Namespace, config: Settings) -> Shield:
    """Return the shield of the settings, with the stored rules where there is a database."""

    async def work(gateway: Gateway) -> Shield:
        return gateway.shield

    if not compose.has_database(config):
        return compose.load_shield(config.rules, config.rules_extra)
    return with_gateway(options, work)


def warn_of_rules(gateway: Gateway) -> None:
    """Log which built-in rules a rule file leaves out, and how many local rules are in force."""
    if gateway.settings.rules_extra:
        gateway.log.info("rules_extra", rules=gateway.rules.base.local_count, files=list(gateway.settings.rules_extra))
    if gateway.settings.rules is not None and (lack := gateway.running.rules_lack):
        gateway.log.warning("rules_replaced", reason=lack)


def end_process_after(seconds: float, log: Log) -> None:
    """End the process after so many seconds as a kill would; of several calls, the earliest deadline holds.

    A disk that hangs blocks threads, and no thread can be ended. What was answered is then as safe as after a kill.
    """

    def end() -> None:
        log.error(
            "end_forced",
            reason="the disk did not answer in time: answered requests are only as safe as after a kill",
        )
        os._exit(FAILED)  # an orderly end would wait for the threads

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def caller(gateway: Gateway) -> Caller:
    """Return who types a command on this host."""
    return Caller(local("cli"), RequestContext(request_id=gateway.ids.new("req"), user_agent="cli"))


def shown(text: str, limit: int = 80) -> str:
    """Return `text` as one line that cannot move a terminal's cursor, cut to `limit` characters."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) > 126 else "·" for c in text[: limit + 1])
    return line if len(line) <= limit else line[: limit - 1] + "…"


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return rows as aligned columns under a heading."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in [head, *rows])
