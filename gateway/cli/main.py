"""The table of commands. Turns every error into one line and an exit code."""

import argparse
import gc
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from gateway import __version__
from gateway.bundle import NativeReport, build_id
from gateway.cli.command import FAILED, OK, Command, Console, shown
from gateway.errors import GatewayError
from gateway.spelling import hint

# The files of commands in the order of `--help`, and the first words of the commands in each.
_FILES = {
    "serve": ("serve",),
    "mcp": ("mcp",),
    "scan": ("scan",),
    "permissions": ("keys", "users", "access", "policies"),
    "upstream": ("providers", "detectors", "budgets"),
    "findings": ("alerts", "incidents", "acceptances"),
    "observe": ("traffic", "agents", "posture", "settings", "outputs"),
    "rules": ("rules",),
    "rules_files": ("rules",),
    "rules_stored": ("rules",),
    "documents": ("audit", "report", "incidents"),
    "upkeep": ("trust-audit", "version", "doctor", "health", "docs", "openapi", "verify"),
    "data_folder": ("backup", "restore", "db", "demo-data"),
}
# What the commands of a noun are about, for `--help`.
_NOUNS = {
    "keys": "API keys of callers, with scopes and rate limits.",
    "users": "Users who sign in, and their roles.",
    "access": "The access list: who and what is allowed or denied.",
    "policies": "Policies of keys: block or observe, thresholds, masking.",
    "providers": "Providers of models, and the order in which they are used.",
    "detectors": "Other programs that judge texts beside the shield.",
    "budgets": "Limits in dollars, tokens or requests.",
    "incidents": "Incidents: alerts of one agent and key, handled and proven as one.",
    "alerts": "Alerts: list them, change their state, resolve what was harmless.",
    "acceptances": "Accepted risks: findings that add nothing to scores.",
    "traffic": "Requests that the gateway answered, with verdict and rules.",
    "agents": "Agents that use the gateway.",
    "posture": "How well this gateway is set up, and how much it is attacked.",
    "settings": "Settings, and those that can change at run time.",
    "outputs": "Event outputs: webhooks, syslog and files.",
    "rules": "Rules of the shield: check, test and compare them, and store your own.",
    "db": "The database: move all data to another one.",
    "audit": "The audit log: verify its hash chain, export its events.",
}


def commands(word: str = "") -> tuple[Command, ...]:
    """Return the commands that begin with `word`, or all if none does. Only the files of these are imported."""
    files = [file for file, words in _FILES.items() if word in words] or _FILES
    rows = [row for file in files for row in import_module(f"gateway.cli.{file}").COMMANDS]
    return tuple(row for row in rows if row.name.split()[0] == word) or tuple(rows)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line that names the help. below: the parsers of its commands."""

    def __init__(self, **options: Any) -> None:
        self.below: list[argparse.ArgumentParser] = []
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"gateway: {message}{self._meant(message)} (see `{self.prog} --help`)\n")
        sys.exit(FAILED)

    def _meant(self, message: str) -> str:
        """Return a question with the flag or command of the nearest spelling, if one is near."""
        kind, _, words = message.partition(": ")
        if kind == "unrecognized arguments":
            flags = re.findall(r"--[\w-]+", "".join(parser.format_help() for parser in self.below))
            return hint(words.split()[0].partition("=")[0], flags)
        unknown = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        return hint(unknown[1], re.findall(r"[\w-]+", unknown[2])) if unknown else ""


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line and import its command. Ends the program if it is wrong."""
    return _parser(arguments[0] if arguments else "").parse_args(arguments)


def run(options: argparse.Namespace, native: NativeReport) -> int:
    """Run the parsed command and return its exit code. No traceback reaches the caller."""
    console = Console(sys.stdout, sys.stderr, sys.stdin.buffer, native)
    gc.freeze()  # imported modules stay: no collection needs to visit them
    # A request makes hundreds of objects and no cycles. A lower threshold would run the collector with each group of
    # concurrent requests, for a tenth of their time, and find nothing.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    try:
        code: int | None = options.run(options, console)
        sys.stdout.flush()
        return code or OK
    except GatewayError as error:
        console.note(f"gateway: {error.message}")
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output is gone
    except OSError as error:
        name = shown(str(error.filename or ""), 200)
        console.note(f"gateway: {error.strerror or 'a file or socket failed'}: {name}".rstrip(": "))
    except Exception as error:  # the last edge: one line, never a stack that may quote a prompt
        console.note(f"gateway: internal error ({type(error).__name__}); please report what you ran and this line")
    return FAILED


def _parser(word: str = "") -> argparse.ArgumentParser:
    top = _Parser(prog="gateway", description="Security gateway for LLM and agent traffic.")
    top.add_argument("--version", action="version", version=f"gateway {__version__} (build {build_id()})")
    groups: dict[str, Any] = {"": top.add_subparsers(title="commands", metavar="COMMAND", required=True)}
    for command in commands(word):
        group, _, name = command.name.rpartition(" ")
        if group not in groups:
            parent = groups[""].add_parser(group, help=_NOUNS[group], description=_NOUNS[group])
            groups[group] = parent.add_subparsers(title="commands", metavar="COMMAND", required=True)
        parser: _Parser = groups[group].add_parser(
            name,
            help=command.summary,
            description=command.summary,
            epilog=f"example: gateway.pyz {command.name} {command.example}".rstrip(),
        )
        parser.add_argument("--data-dir", metavar="DIR", help="folder of database and credentials")
        parser.add_argument("--config", metavar="FILE", help="TOML file of settings")
        if command.has_json:
            parser.add_argument("--json", action="store_true", help="print JSON")
        for declare in command.arguments:
            declare(parser)
        parser.set_defaults(run=command.run)
        top.below.append(parser)
    return top
