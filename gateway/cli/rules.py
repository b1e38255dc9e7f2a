"""`rules check|list|test`: what is in a rule file, and whether its own examples hold."""

import argparse

from gateway import compose
from gateway.cli.command import FOUND, OK, Command, Console, load_settings, shown, table
from gateway.shield.examples import run_examples


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


def test(options: argparse.Namespace, console: Console) -> int:
    """Run every rule's own true and false examples."""
    report = run_examples(compose.load_shield(options.file or load_settings(options).settings.rules))
    for failure in report.failures:
        wanted = "must match but does not" if failure.must_match else "must pass but matches"
        console.print(f"{failure.rule}: {wanted}: {shown(failure.example)}")
    console.print(f"{report.examples} examples of {report.rules} rules, {len(report.failures)} failed")
    return FOUND if report.failures else OK


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
    Command(
        "rules test", "Run every rule's own examples. Exit 1 on a regression.", "gateway.pyz rules test", declare, test
    ),
)
