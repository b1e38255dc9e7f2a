"""`rules check|list|import`: what is in a rule file. `rules test` is in the file beside this one."""

import argparse
import json
from pathlib import Path
from typing import Any

from gateway import compose
from gateway.cli import rules_test
from gateway.cli.command import FOUND, OK, Console, argument, command, load_settings, shown, table
from gateway.errors import SetupError
from gateway.settings import parse_toml
from gateway.shield.gitleaks import import_rules

_SHOWN = ("id", "name", "category", "severity", "confidence", "description")


@command(
    "rules check",
    "Check a rule file; an error names the rule, the field and the reason.",
    "my.json",
    argument("file", nargs="?", metavar="FILE", help="rule file; the one of the settings if left out"),
)
def _check(options: argparse.Namespace, console: Console) -> int:
    scanner = compose.load_shield(options.file or load_settings(options).rules)
    categories = {rule.category for rule in scanner.rules}
    console.print(f"ok: {len(scanner.rules)} rules in {len(categories)} categories, SHA-256 {scanner.digest}")
    return OK


@command(
    "rules list",
    "List the rules.",
    "--json",
    argument("file", nargs="?", metavar="FILE", help="rule file; the one of the settings if left out"),
    has_json=True,
)
def _list_rules(options: argparse.Namespace, console: Console) -> int:
    rules = compose.load_shield(options.file or load_settings(options).rules).rules
    if options.json:
        console.print_json(
            [
                {name: getattr(rule, name) for name in _SHOWN}
                | {"direction": list(rule.direction), "standards": list(rule.standards)}
                for rule in rules
            ]
        )
        return OK
    rows = [(rule.id, rule.category, rule.severity.value, shown(rule.description)) for rule in rules]
    console.print(table(rows, ("RULE", "CATEGORY", "SEVERITY", "DESCRIPTION")))
    return OK


@command(
    "rules import",
    "Turn a gitleaks configuration into a rule file. Exit 1 if some rule had to be left out.",
    "gitleaks.toml --merge rules.json --output my.json",
    argument("file", metavar="FILE", help="gitleaks configuration (TOML)"),
    argument("--output", metavar="FILE", help="where the rules are written; standard output if left out"),
    argument("--merge", metavar="FILE", help="rule file to add them to; its own rules stay as they are"),
)
def _import_file(options: argparse.Namespace, console: Console) -> int:
    base = _base(options.merge)
    raw = Path(options.file).read_bytes()
    try:
        done = import_rules(parse_toml(raw), taken={str(rule.get("id")) for rule in base["rules"]})
        document = base | {"rules": [*base["rules"], *done.rules]}
        # Encoded before the file is opened, so that half of a surrogate pair cannot leave an empty file behind.
        data = (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
    except ValueError as error:
        raise SetupError(f"{shown(options.file)} cannot be imported: {error}") from error
    if options.output:
        Path(options.output).write_bytes(data)
    elif done.rules or options.merge:
        console.print(data.decode().rstrip("\n"))
    for note in done.notes:
        console.note(shown(note, 160))
    for left in done.left_out:
        console.note(f"left out: {left.rule}: {shown(left.reason, 160)}")
    console.note(f"{len(done.rules)} rules imported, {len(done.left_out)} left out")
    return FOUND if done.left_out else OK


def _base(path: str | None) -> dict[str, Any]:
    if not path:
        return {"version": 1, "rules": []}
    try:
        document = json.loads(Path(path).read_bytes())
        rules = document["rules"]
        if document["version"] != 1 or not all(isinstance(rule, dict) for rule in rules):
            raise ValueError("of another version")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SetupError(f"{shown(path)} is not a rule file") from error
    return dict(document)


COMMANDS = (_check, _list_rules, *rules_test.COMMANDS, _import_file)
