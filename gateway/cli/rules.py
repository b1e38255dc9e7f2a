"""`rules check|list`: what is in a rule file. The rows of `rules test` and `rules import` stand beside this file."""

import argparse

from gateway import compose
from gateway.cli import rules_import, rules_test
from gateway.cli.command import OK, Command, Console, load_settings, shown, table


def check(options: argparse.Namespace, console: Console) -> int:
    """Load a rule file as the gateway would, and say how many rules it has."""
    scanner = compose.load_shield(options.file or load_settings(options).settings.rules)
    categories = {rule.category for rule in scanner.rules}
    console.print(f"ok: {len(scanner.rules)} rules in {len(categories)} categories, SHA-256 {scanner.digest}")
    return OK


def list_rules(options: argparse.Namespace, console: Console) -> int:
    """Print every rule."""
    rules = compose.load_shield(options.file or load_settings(options).settings.rules).rules
    if options.json:
        console.print_json(
            [
                {
                    "id": rule.id,
                    "name": rule.name,
                    "category": rule.category,
                    "severity": rule.severity.value,
                    "confidence": rule.confidence,
                    "description": rule.description,
                    "direction": [direction.value for direction in rule.direction],
                    "standards": list(rule.standards),
                }
                for rule in rules
            ]
        )
        return OK
    rows = [(rule.id, rule.category, rule.severity.value, shown(rule.description)) for rule in rules]
    console.print(table(rows, ("RULE", "CATEGORY", "SEVERITY", "DESCRIPTION")))
    return OK


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the rule file."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="rule file; the one of the settings if left out")


COMMANDS = (
    Command(
        "rules check",
        "Check a rule file; says rule, field and reason.",
        "gateway.pyz rules check my.json",
        declare,
        check,
    ),
    Command("rules list", "List the rules.", "gateway.pyz rules list --json", declare, list_rules, has_json=True),
    *rules_test.COMMANDS,
    *rules_import.COMMANDS,
)
