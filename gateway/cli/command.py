"""What a command is, and what it may write to. The rows stand in the files beside this one."""

import argparse
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from gateway import settings
from gateway.bundle import NativeReport
from gateway.clock import SystemClock
from gateway.log import Log
from gateway.settings import Loaded, Settings

OK, FOUND, FAILED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Console:
    """Where a command reads and writes. out carries what was asked for, err everything else."""

    out: TextIO
    err: TextIO
    stdin: BinaryIO
    native: NativeReport

    def print(self, text: str) -> None:
        """Write one line of what was asked for."""
        self.out.write(text + "\n")

    def print_json(self, value: object) -> None:
        """Write `value` as indented JSON."""
        self.print(json.dumps(value, indent=2, ensure_ascii=False))

    def note(self, text: str) -> None:
        """Write one line for a person."""
        self.err.write(text + "\n")
        self.err.flush()


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the command table.

    name: one or two words. example: a line that works. declare: adds the command's own arguments.
    run: gets the parsed options and returns the exit code.
    """

    name: str
    summary: str
    example: str
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Console], int]
    has_json: bool = False


def nothing(_: argparse.ArgumentParser) -> None:
    """Declare no argument."""


def load_settings(options: argparse.Namespace, more: Mapping[str, str] | None = None) -> Loaded:
    """Read the settings with the flags of this command line."""
    names = {row.name for row in settings.rows()} | {"config"}
    flags = {name: value for name, value in vars(options).items() if name in names and value is not None}
    return settings.load(flags | dict(more or {}))


def make_log(config: Settings, stream: TextIO | None = None) -> Log:
    """Return a log on stderr."""
    return Log(stream or sys.stderr, SystemClock(), config.log_level)


def shown(text: str, limit: int = 80) -> str:
    """Return `text` as one line that cannot move a terminal's cursor, cut to `limit` characters."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) > 126 else "·" for c in text[: limit + 1])
    return line if len(line) <= limit else line[: limit - 1] + "…"


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return rows as aligned columns under a heading."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    out = io.StringIO()
    for row in [head, *rows]:
        out.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")
    return out.getvalue().rstrip("\n")
