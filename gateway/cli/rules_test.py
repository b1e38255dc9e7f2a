"""`rules test`: the rules' own examples and the validation suite, and what changed since the last run."""

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gateway import compose
from gateway.app import Gateway
from gateway.cli.command import FOUND, OK, Command, Console, load_settings, shown, table
from gateway.cli.data_folder import context, with_gateway
from gateway.clock import SystemClock
from gateway.domain.principals import local
from gateway.errors import SetupError
from gateway.services.shield_tests import RunShieldTests
from gateway.settings import Settings
from gateway.shield import Shield
from gateway.shield.examples import ExampleReport, run_examples
from gateway.shield.suite import SuiteReport, run_suite
from gateway.strict_json import write_time

BASELINE = "rules-test.json"
_VERSION = 1
# Results of so many rule files are kept.
_MOST_RUNS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of a run.

    ran_at: Unix milliseconds. failing: examples and cases that do not hold. open_gaps: known gaps that are open.
    """

    ran_at: int
    digest: str
    with_suite: bool
    failing: tuple[str, ...]
    open_gaps: tuple[str, ...]
    unexercised: tuple[str, ...]
    detection_rate: float | None
    false_positive_rate: float | None
    p50_us: int | None
    p95_us: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """A run less the one before: what holds no longer, and what holds again."""

    since_at: int
    rules_changed: bool
    worse: tuple[str, ...]
    better: tuple[str, ...]


def test(options: argparse.Namespace, console: Console) -> int:
    """Run every rule's own true and false examples, and then the validation suite; compare with the last run."""
    settings = load_settings(options).settings
    source = options.file or settings.rules
    scanner = compose.load_shield(source)
    place = _place(options.baseline, settings.data_dir)
    runs = _read(place, must_be_one=bool(options.baseline))
    clock = SystemClock()
    examples = run_examples(scanner)
    suite = None
    if not options.no_suite and not options.file and has_database(settings):
        suite = run_recorded(options)
    elif not options.no_suite:
        suite = run_suite(scanner, include_known_gaps=True, monotonic_seconds=clock.monotonic_seconds)
    outcome = _outcome(scanner, examples, suite, clock.now_at())
    name = os.path.abspath(source) if source else "built-in"
    change = _change(_kept(runs.get(name)), outcome)
    if place:
        runs.pop(name, None)
        kept = {**dict(list(runs.items())[1 - _MOST_RUNS :]), name: asdict(outcome)}
        try:
            _write(place, kept, mode=0o666 if options.baseline else 0o600)
        except SetupError as error:
            if options.baseline:
                raise
            console.note(error.message)
    if options.json:
        console.print_json({"now": asdict(outcome), "change": asdict(change) if change else None})
    else:
        _print(console, scanner, examples, suite, change)
        if options.unexercised:
            console.print(table([(rule,) for rule in outcome.unexercised], ("NEVER EXERCISED",)))
    return FOUND if outcome.failing or (change and change.worse) else OK


def has_database(settings: Settings) -> bool:
    """Tell whether there is a gateway whose rules are tested, and not only a file."""
    return settings.data_dir != ":memory:" and os.path.exists(compose.database_path(settings))


def run_recorded(options: argparse.Namespace) -> SuiteReport:
    """Run the suite over the rules in use, and record the run as the API does."""
    reports: list[SuiteReport] = []

    async def work(gateway: Gateway) -> int:
        command = RunShieldTests(include_known_gaps=True)
        reports.append((await gateway.shield_tests.run(local("cli"), command, context(gateway))).report)
        return OK

    with_gateway(options, work)
    return reports[0]


def _outcome(scanner: Shield, examples: ExampleReport, suite: SuiteReport | None, ran_at: int) -> Outcome:
    failing = [f"example of {one.rule}: {shown(one.example)}" for one in examples.failures]
    failing += [f"case {one.case}" for one in (suite.failures if suite else ())]
    return Outcome(
        ran_at=ran_at,
        digest=scanner.digest,
        with_suite=suite is not None,
        failing=tuple(failing),
        open_gaps=suite.open_gaps if suite else (),
        unexercised=suite.unexercised if suite else (),
        detection_rate=suite.detection_rate if suite else None,
        false_positive_rate=suite.false_positive_rate if suite else None,
        p50_us=suite.p50_us if suite else None,
        p95_us=suite.p95_us if suite else None,
    )


def _change(before: Outcome | None, now: Outcome) -> Change | None:
    """Return what changed, or None if there was no run of the same kind."""
    if before is None or before.with_suite != now.with_suite:
        return None
    gone = {*before.failing, *(f"known gap {case}" for case in before.open_gaps)}
    held = {*now.failing, *(f"known gap {case}" for case in now.open_gaps)}
    return Change(
        since_at=before.ran_at,
        rules_changed=before.digest != now.digest,
        worse=tuple(sorted(held - gone)),
        better=tuple(sorted(gone - held)),
    )


def _print(
    console: Console, scanner: Shield, examples: ExampleReport, suite: SuiteReport | None, change: Change | None
) -> None:
    for failed in examples.failures:
        wanted = "must match but does not" if failed.must_match else "must pass but matches"
        console.print(f"{failed.rule}: {wanted}: {shown(failed.example)}")
    console.print(f"{examples.examples} examples of {examples.rules} rules, {len(examples.failures)} failed")
    if suite:
        for failure in suite.failures:
            matched = f" by {', '.join(failure.rules)}" if failure.rules else ""
            console.print(f"{failure.case}: must be {failure.expected} but is {failure.verdict}{matched}")
        console.print(_summary(suite, len(scanner.rules)))
    if change:
        rules = "other rules" if change.rules_changed else "the same rules"
        said = f"{len(change.worse)} hold no longer, {len(change.better)} hold again"
        console.print(f"since {write_time(change.since_at)}, with {rules}: {said}")
        for one in change.worse:
            console.print(f"worse: {one}")


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


def _place(baseline: str | None, data_dir: str) -> Path | None:
    """Return where the last results are kept: the file that was named, or one in the data folder if there is one."""
    if baseline:
        return Path(baseline)
    return Path(data_dir, BASELINE) if data_dir != ":memory:" and os.path.isdir(data_dir) else None


def _read(place: Path | None, *, must_be_one: bool) -> dict[str, Any]:
    """Return the last results by rule file. One in the data folder that cannot be read is as good as none."""
    if place is None:
        return {}
    try:
        document = json.loads(place.read_bytes())
        runs = document["runs"] if document["version"] == _VERSION else {}
        return dict(runs)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if must_be_one:
            raise SetupError(f"{shown(str(place))} holds no results of rules test") from error
        return {}


def _kept(entry: object) -> Outcome | None:
    """Return a stored result, or None if it is not of this form."""
    try:
        fields: dict[str, Any] = dict(entry)  # type: ignore[call-overload]
        for name, value in fields.items():
            fields[name] = tuple(value) if isinstance(value, list) else value
        return Outcome(**fields)
    except (TypeError, ValueError):
        return None


def _write(place: Path, runs: dict[str, Any], *, mode: int) -> None:
    new = place.with_name(place.name + ".new")
    try:
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(json.dumps({"version": _VERSION, "runs": runs}, indent=1))
        os.replace(new, place)
    except OSError as error:
        raise SetupError(f"{shown(str(place))} cannot be written: {error.strerror or error}") from error


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the rule file, where the last results are, and a way to leave the suite out for rules of one's own."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="rule file; the one of the settings if left out")
    parser.add_argument("--no-suite", action="store_true", help="run the rules' own examples alone")
    parser.add_argument(
        "--baseline", metavar="FILE", help=f"where the last results are kept; {BASELINE} in the data folder if left out"
    )
    parser.add_argument("--unexercised", action="store_true", help="name the rules that no case of the suite matched")


COMMANDS = (
    Command(
        "rules test",
        "Run every rule's own examples and the validation suite. Exit 1 on a failure or a regression.",
        "gateway.pyz rules test --baseline results.json",
        declare,
        test,
        has_json=True,
    ),
)
