"""`rules check|list|test|import`: what is in a rule file, whether its rules hold, and rules of gitleaks as ours."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from gateway import compose
from gateway.app import Gateway
from gateway.cli.command import (
    FOUND,
    OK,
    Console,
    argument,
    caller,
    command,
    load_settings,
    shield_in_use,
    shown,
    table,
    with_gateway,
)
from gateway.cli.gitleaks import import_rules
from gateway.clock import Clock
from gateway.errors import SetupError
from gateway.schema import encode
from gateway.services.shield_tests import RunShieldTests
from gateway.settings import Settings, parse_toml
from gateway.shield import Shield
from gateway.shield.suite import ExampleReport, SuiteReport, run_examples, run_suite
from gateway.strict_json import write_time

_SHOWN = ("id", "name", "category", "severity", "confidence", "description", "direction", "standards")
_EXTRA = argument("--rules-extra", metavar="FILES", help="rule files or folders to add on top, comma-separated")
_FILE = argument("file", nargs="?", metavar="FILE", help="rule file; the one of the settings if left out")
BASELINE = "rules-test.json"
_VERSION = 1
_MOST_RUNS = 20  # rule files whose last results are kept
_MEASURED = ("detection_rate", "false_positive_rate", "p50_us", "p95_us")

Outcome = dict[str, Any]
"""The results of one run as they are kept: what fails, which known gaps are open, and the rates and times."""


@command(
    "rules check", "Check a rule file; an error names the rule, the field and the reason.", "my.json", _FILE, _EXTRA
)
def _check(options: argparse.Namespace, console: Console) -> None:
    settings = load_settings(options)
    scanner = compose.load_shield(options.file or settings.rules, settings.rules_extra)
    local = f", {scanner.local_count} of them local" if settings.rules_extra else ""
    categories = {rule.category for rule in scanner.rules}
    console.print(f"ok: {len(scanner.rules)} rules in {len(categories)} categories{local}, SHA-256 {scanner.digest}")


@command("rules list", "List the rules.", "--json", _FILE, _EXTRA, has_json=True)
def _list_rules(options: argparse.Namespace, console: Console) -> None:
    settings = load_settings(options)
    rules = _shield(options, settings).rules
    if options.json:
        console.print_json([{name: view[name] for name in _SHOWN} for view in map(encode, rules)])
        return
    rows = [(rule.id, rule.category, rule.severity.value, shown(rule.description)) for rule in rules]
    console.print(table(rows, ("RULE", "CATEGORY", "SEVERITY", "DESCRIPTION")))


@command(
    "rules test",
    "Run every rule's own examples and the validation suite. Exit 1 on a failure or a regression.",
    "--baseline results.json",
    _FILE,
    _EXTRA,
    argument("--no-suite", action="store_true", help="run only the rules' own examples"),
    argument("--baseline", metavar="FILE", help=f"file of the last results; {BASELINE} in the data folder if left out"),
    argument("--unexercised", action="store_true", help="name the rules that no case of the suite matched"),
    has_json=True,
)
def _test(options: argparse.Namespace, console: Console) -> int:
    settings = load_settings(options)
    source = options.file or settings.rules
    scanner = _shield(options, settings)
    path = Path(options.baseline) if options.baseline else Path(settings.data_dir, BASELINE)
    runs = _read_runs(path, is_named=bool(options.baseline))
    clock = Clock()
    examples = run_examples(scanner)
    suite = None
    if not options.no_suite and not options.file and compose.has_database(settings):
        suite = with_gateway(options, _run_recorded)
    elif not options.no_suite:
        suite = run_suite(scanner, include_known_gaps=True, monotonic_seconds=clock.monotonic_seconds)
    now = _outcome(scanner, examples, suite, clock.now_at())
    name = os.path.abspath(source) if source else "built-in"
    change = _change(runs.pop(name, None), now)
    if options.baseline or os.path.isdir(settings.data_dir):
        try:
            _write_runs(path, [*list(runs.items())[1 - _MOST_RUNS :], (name, now)], is_named=bool(options.baseline))
        except SetupError as error:
            if options.baseline:
                raise
            console.note(error.message)
    if options.json:
        console.print_json({"now": now, "change": change})
    else:
        _print(console, scanner, examples, suite, change)
        if options.unexercised:
            console.print("\n".join(("NEVER EXERCISED", *now["unexercised"])))
    return FOUND if now["failing"] or (change and change["worse"]) else OK


def _shield(options: argparse.Namespace, settings: Settings) -> Shield:
    """Return the shield of the file that was named, or the one in use."""
    return compose.load_shield(options.file, settings.rules_extra) if options.file else shield_in_use(options, settings)


async def _run_recorded(gateway: Gateway) -> SuiteReport:
    """Run the suite over the rules in use, and record the run as the API does."""
    wanted = RunShieldTests(include_known_gaps=True)
    return (await gateway.shield_tests.run(caller(gateway), wanted)).report


def _outcome(scanner: Shield, examples: ExampleReport, suite: SuiteReport | None, ran_at: int) -> Outcome:
    failing = [f"example of {one.rule}: {shown(one.example)}" for one in examples.failures]
    failing += [f"case {one.case}" for one in (suite.failures if suite else ())]
    return {
        "ran_at": ran_at,
        "digest": scanner.digest,
        "with_suite": suite is not None,
        "failing": failing,
        "open_gaps": list(suite.open_gaps) if suite else [],
        "unexercised": list(suite.unexercised) if suite else [],
        **{name: getattr(suite, name, None) for name in _MEASURED},
    }


def _change(before: Any, now: Outcome) -> dict[str, Any] | None:
    """Return what changed since the run before; None if there was none of the same kind, or its entry is damaged."""
    try:
        if before["with_suite"] != now["with_suite"]:
            return None
        failed, fails = (
            {*run["failing"], *(f"known gap {case}" for case in run["open_gaps"])} for run in (before, now)
        )
        return {
            "since_at": int(before["ran_at"]),
            "rules_changed": before["digest"] != now["digest"],
            "worse": sorted(fails - failed),
            "better": sorted(failed - fails),
        }
    except (TypeError, ValueError, KeyError):
        return None


def _print(
    console: Console, scanner: Shield, examples: ExampleReport, suite: SuiteReport | None, change: Outcome | None
) -> None:
    for failed in examples.failures:
        wanted = "must match but does not" if failed.must_match else "must pass but matches"
        console.print(f"{failed.rule}: {wanted}: {shown(failed.example)}")
    console.print(f"{examples.examples} examples of {examples.rules} rules, {len(examples.failures)} failed")
    if suite:
        for failure in suite.failures:
            matched = f" by {', '.join(failure.rules)}" if failure.rules else ""
            console.print(f"{failure.case}: must be {failure.expected} but is {failure.verdict}{matched}")
        gaps = len(suite.open_gaps) + len(suite.closed_gaps)
        rates = suite.detection_rate or 0, suite.false_positive_rate or 0
        console.print(f"{suite.cases} cases of the validation suite, {len(suite.failures)} failed")
        console.print(f"attacks found: {suite.found} of {suite.attacks} ({rates[0]:.1%})")
        console.print(f"benign texts flagged: {suite.flagged} of {suite.controls} ({rates[1]:.1%})")
        console.print(f"known gaps: {gaps}, {len(suite.closed_gaps)} of them closed by these rules")
        console.print(f"rules that no case matched: {len(suite.unexercised)} of {len(scanner.rules)}")
        console.print(f"time of a scan: p50 {suite.p50_us} us, p95 {suite.p95_us} us")
    if change:
        rules = "other rules" if change["rules_changed"] else "the same rules"
        counts = f"{len(change['worse'])} hold no longer, {len(change['better'])} hold again"
        console.print(f"since {write_time(change['since_at'])}, with {rules}: {counts}")
        for one in change["worse"]:
            console.print(f"worse: {one}")


def _read_runs(path: Path, *, is_named: bool) -> dict[str, Any]:
    """Return the last results by rule file. Damaged ones in the data folder count as none."""
    try:
        document: Any = json.loads(path.read_bytes())
        return dict(document["runs"]) if document["version"] == _VERSION else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if is_named:
            raise SetupError(f"{shown(str(path))} contains no results of `rules test`") from error
        return {}


def _write_runs(path: Path, runs: list[tuple[str, Any]], *, is_named: bool) -> None:
    new = path.with_name(path.name + ".new")
    mode = 0o666 if is_named else 0o600
    try:
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(json.dumps({"version": _VERSION, "runs": dict(runs)}, indent=1))
        os.replace(new, path)
    except OSError as error:
        raise SetupError(f"{shown(str(path))} cannot be written: {error.strerror or error}") from error


@command(
    "rules import",
    "Turn a gitleaks configuration into a rule file. Exit 1 if it left out a rule.",
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
    for rule, reason in done.left_out:
        console.note(f"left out: {rule}: {shown(reason, 160)}")
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


COMMANDS = (_check, _list_rules, _test, _import_file)
