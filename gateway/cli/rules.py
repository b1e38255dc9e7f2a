"""`rules check|list|test`: what is in a rule file, and whether its own examples and the validation suite hold."""

import argparse

from gateway import compose
from gateway.cli import rules_import
from gateway.cli.command import FOUND, OK, Command, Console, load_settings, shown, table
from gateway.clock import SystemClock
from gateway.shield import Shield
from gateway.shield.examples import run_examples
from gateway.shield.suite import SuiteReport, run_suite


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
    """Run every rule's own true and false examples, and then the validation suite."""
    scanner = compose.load_shield(options.file or load_settings(options).settings.rules)
    report = run_examples(scanner)
    for failure in report.failures:
        wanted = "must match but does not" if failure.must_match else "must pass but matches"
        console.print(f"{failure.rule}: {wanted}: {shown(failure.example)}")
    console.print(f"{report.examples} examples of {report.rules} rules, {len(report.failures)} failed")
    suite_holds = options.no_suite or _test_suite(scanner, console)
    return OK if suite_holds and not report.failures else FOUND


def _test_suite(scanner: Shield, console: Console) -> bool:
    """Run the validation suite, known gaps included, and tell whether every other case holds."""
    report = run_suite(scanner, include_known_gaps=True, monotonic_seconds=SystemClock().monotonic_seconds)
    for failure in report.failures:
        matched = f" by {', '.join(failure.rules)}" if failure.rules else ""
        console.print(f"{failure.case}: must be {failure.expected} but is {failure.verdict}{matched}")
    console.print(_summary(report, len(scanner.rules)))
    return not report.failures


def _summary(report: SuiteReport, rules: int) -> str:
    gaps = len(report.open_gaps) + len(report.closed_gaps)
    return "\n".join(
        (
            f"{report.cases} cases of the validation suite, {len(report.failures)} failed",
            f"attacks found: {report.found} of {report.attacks} ({report.detection_rate or 0:.1%})",
            f"benign texts flagged: {report.flagged} of {report.controls} ({report.false_positive_rate or 0:.1%})",
            f"known gaps: {gaps}, {len(report.closed_gaps)} of them closed by these rules",
            f"rules that no case matched: {len(report.unexercised)} of {rules}",
            f"time of a scan: p50 {report.p50_us} us, p95 {report.p95_us} us",
        )
    )


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the rule file."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="rule file; the one of the settings if left out")


def declare_test(parser: argparse.ArgumentParser) -> None:
    """Declare the rule file, and a way to leave the suite out for one that is not meant to find everything."""
    declare(parser)
    parser.add_argument("--no-suite", action="store_true", help="run the rules' own examples alone")


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
        "rules test",
        "Run every rule's own examples and the validation suite. Exit 1 on a regression.",
        "gateway.pyz rules test",
        declare_test,
        test,
    ),
    *rules_import.COMMANDS,
)
