"""`rules add|remove|history`: the rules of one's own in the database, which every process uses."""

import argparse
from pathlib import Path
from typing import Any

from gateway.app import Gateway, Lasting
from gateway.cli.command import Console, argument, caller, command, shown, with_gateway
from gateway.cli.resource import Row, commands_of
from gateway.domain.local_rules import LocalRule
from gateway.errors import Conflict, InvalidRequest, SetupError
from gateway.operations.shield import OPERATIONS
from gateway.services.local_rules import ChangedRule, NewRule, RemoveRule
from gateway.strict_json import read_json

_REASON = argument("--reason", required=True, help="why, for readers of the audit log")
_SUBJECT = "id of the rule, such as local:code-names"


@command(
    "rules add",
    "Store rules of your own, which every process uses without a reload.",
    "my.json --reason 'seen in tickets'",
    argument("file", metavar="FILE", help="a rule, or a rule file; - reads stdin"),
    _REASON,
    argument("--replace", action="store_true", help="store a new version of a rule that is there already"),
)
def _add(options: argparse.Namespace, console: Console) -> None:
    rules = _read(options.file, console)

    async def work(gateway: Gateway) -> None:
        service, who = gateway.local_rules, caller(gateway)
        there = {one.id for one in await service.list()}
        for rule in rules:
            name = str(rule.get("id"))
            try:
                if options.replace and name in there:
                    stored = await service.change(who, name, ChangedRule(rule=rule, reason=options.reason))
                else:
                    stored = await service.create(who, NewRule(rule=rule, reason=options.reason))
            except (InvalidRequest, Conflict) as error:
                raise SetupError(f"{shown(name)}: {error.message}") from error
            console.note(f"stored {stored.id}, version {stored.version}")

    with_gateway(options, work)


@command(
    "rules remove",
    "Remove a rule of your own. Works even if a stored rule stops the start.",
    "local:code-names --reason 'too noisy'",
    argument("id", help=_SUBJECT),
    _REASON,
)
def _remove(options: argparse.Namespace, console: Console) -> None:
    async def work(lasting: Lasting) -> LocalRule:
        wanted = RemoveRule(id=options.id, reason=options.reason)
        return await lasting.local_rules.remove(caller(lasting), wanted)  # type: ignore[arg-type]

    console.note(f"removed {with_gateway(options, work, needs_rules=False).id}")


_HISTORY = commands_of(
    "rules",
    OPERATIONS,
    _SUBJECT,
    Row(
        "history",
        "List the versions of a rule of your own, newest first.",
        "local:code-names",
        operation="shield.rules.history",
        columns=(
            *("version", "changed_at", ("BY", "changed_by")),
            ("REMOVED", lambda view: "-" if view["rule"] else "yes"),
            "reason",
        ),
    ),
)


def _read(path: str, console: Console) -> list[dict[str, Any]]:
    raw = console.stdin.read() if path == "-" else Path(path).read_bytes()
    document = read_json(raw)
    rules = document.get("rules", [document]) if isinstance(document, dict) else None
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, dict) for rule in rules):
        raise SetupError(f"{shown(path)} contains no rule: write one rule as a JSON object, or a rule file.")
    return rules


COMMANDS = (_add, _remove, *_HISTORY)
