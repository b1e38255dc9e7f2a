"""The sections of each type of report, and how each section gets its rows. Reads the store and changes nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.domain.posture import Check, CheckStatus, PosturePoint
from gateway.domain.reports import ReportType, Section, Shape, filled, read_columns
from gateway.services.shield_tests import last_run
from gateway.shield.detections import Severity
from gateway.shield.suite import SuiteGroup, SuiteReport
from gateway.store.database import Transaction
from gateway.store.report_queries import QUERIES, ask
from gateway.store.store import Store

_MOST_ROWS = 200
_GRAVEST_FIRST = tuple(Severity)
_WORST_FIRST = (CheckStatus.FAIL, CheckStatus.WARN, CheckStatus.PASS, CheckStatus.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class Source:
    """The input of a section: the period, the length of a bucket of time, and the present.

    scores: returns the present posture and threat score.
    """

    store: Store
    since_at: int
    until_at: int
    step: int
    now_at: int
    scores: Callable[[Transaction], PosturePoint]


Make = Callable[[Source, Transaction], Section]


def asked(
    name: str, title: str, shape: Shape = "table", most: int | None = None, *, largest: str | None = None
) -> Make:
    """Return the maker of a section from a query of `report_queries`.

    most: how many rows to show. largest: the column to sort by, the largest number first, instead of the query's order.
    """
    query = QUERIES[name]
    columns = read_columns(query.named)

    def make(source: Source, tx: Transaction) -> Section:
        since, until, step = source.since_at, source.until_at, source.step
        origin = source.store.traffic.origin
        rows = ask(tx, name, since=since, until=until, step=step, now=source.now_at, origin=origin)
        if largest is not None:
            at = query.named.split(", ").index(largest)
            rows.sort(key=lambda row: float(str(row[at])), reverse=True)
        kept = min(query.most, most or query.most)
        shown = tuple(rows[:kept])
        if shape == "lines":
            empty = None if query.has_gaps else 0
            shown = filled(shown, since, until, step, empty=empty)
        return Section(title, shape, query.about, columns, shown, query.is_current, is_cut=len(rows) > kept)

    return make


def _present(title: str, shape: Shape, query: str, named: str, rows: Iterable[Iterable[object]]) -> Section:
    """Return a section about the present. named: its columns, as in `read_columns`."""
    kept = tuple(map(tuple, rows))
    columns, is_cut = read_columns(named), len(kept) > _MOST_ROWS
    return Section(title, shape, query, columns, kept[:_MOST_ROWS], is_current=True, is_cut=is_cut)


def scores(source: Source, tx: Transaction) -> Section:
    """Make posture and threat score as they are now."""
    latest, now = source.store.trust_audits.latest(tx), source.scores(tx)
    row = (now.posture_score, now.threat_score, latest and latest.failed, latest and latest.warned)
    query = "newest trust audit, and the threat score of the last 24 hours"
    named = "posture score, threat score, checks that fail, checks that warn"
    return _present("Security state", "figures", query, named, (row,))


def course(source: Source, tx: Transaction) -> Section:
    """Make the history of both scores. If the period lasts until now, the last point holds the present scores."""
    section = _HISTORY(source, tx)
    if not section.rows or source.until_at < source.now_at:
        return section
    now = source.scores(tx)
    return replace(section, rows=(*section.rows[:-1], (section.rows[-1][0], now.posture_score, now.threat_score)))


_HISTORY = asked("course", "Posture and threat over time", "lines")


def checks(title: str, wanted: Callable[[Check], bool]) -> Make:
    """Return the maker of a section of checks of the newest trust audit."""

    def make(source: Source, tx: Transaction) -> Section:
        latest = source.store.trust_audits.latest(tx)
        found = [check for check in latest.checks if wanted(check)] if latest else []
        rows = [
            (_words(one.status), one.severity.value, one.title, one.evidence, one.why, one.fix, ", ".join(one.refs))
            for one in sorted(found, key=lambda one: _GRAVEST_FIRST.index(one.severity))
        ]
        query = f"checks of trust audit {latest.id}" if latest else "no trust audit was run yet"
        return _present(title, "table", query, "status, severity, check, evidence, why, fix, refs", rows)

    return make


def _words(status: CheckStatus) -> str:
    return status.value.replace("_", " ")


def controls(source: Source, tx: Transaction) -> Section:
    """Make the table of controls, each with the checks that are its evidence."""
    latest = source.store.trust_audits.latest(tx)
    by_control: dict[str, list[Check]] = {}
    for check in latest.checks if latest else ():
        for ref in check.refs:
            if not ref.startswith("docs/"):
                by_control.setdefault(ref, []).append(check)
    rows = []
    for control, found in sorted(by_control.items()):
        status = _words(min((check.status for check in found), key=_WORST_FIRST.index))
        evidence = "; ".join(f"{check.title}: {check.status.value} ({check.evidence})" for check in found)
        rows.append((control, status, len(found), evidence))
    query = f"checks of trust audit {latest.id} by the controls they refer to" if latest else "no trust audit yet"
    return _present("Controls", "table", query, "control, status, checks, evidence", rows)


def suite_figures(source: Source, tx: Transaction) -> Section:
    """Make the rates of the newest run of the validation suite."""
    run = last_run(source.store, tx)
    named = (
        "ran:time, cases, attacks found, detection rate:percent, false positive rate:percent, unexpected verdicts, "
        "median scan:ms, p95 scan:ms"
    )
    if run is None:
        return _present("Validation suite", "figures", "the suite was never run", named, ())
    report = run.report
    rates = [None if rate is None else 100 * rate for rate in (report.detection_rate, report.false_positive_rate)]
    times = (report.p50_us / 1000, report.p95_us / 1000)
    row = (run.ran_at, report.cases, report.found, *rates, len(report.failures), *times)
    query = f"newest run of the validation suite, rules {run.rules_digest[:16]}"
    return _present("Validation suite", "figures", query, named, (row,))


def suite_table(
    title: str,
    query: str,
    named: str,
    rows_of: Callable[[SuiteReport], Iterable[tuple[object, ...]]],
    shape: Shape = "table",
) -> Make:
    """Return the maker of a section from the newest run of the validation suite."""

    def make(source: Source, tx: Transaction) -> Section:
        run = last_run(source.store, tx)
        return _present(title, shape, query, named, rows_of(run.report) if run else ())

    return make


def suite_rates(noun: str, groups_of: Callable[[SuiteReport], Sequence[SuiteGroup]]) -> Make:
    """Return the maker of a section of the rates of groups of cases."""

    def rows_of(report: SuiteReport) -> Iterable[tuple[object, ...]]:
        for one in groups_of(report):
            found = 100 * one.found / one.attacks if one.attacks else None
            flagged = 100 * one.flagged / one.controls if one.controls else None
            yield one.name, one.attacks, one.found, found, one.controls, one.flagged, flagged

    named = f"{noun}, attacks, found, detection rate:percent, controls, flagged, false positive rate:percent"
    return suite_table(f"By {noun}", f"cases of the suite, by {noun}", named, rows_of, "rates")


_FAILURES = suite_table(
    "Unexpected verdicts",
    "cases of the suite whose verdict is not the expected one",
    "case, category, language, expected, verdict, score, rules",
    lambda report: [
        (one.case, one.category, one.language, one.expected.value, one.verdict.value, one.score, ", ".join(one.rules))
        for one in report.failures
    ],
)
_UNEXERCISED = suite_table(
    "Rules that no case exercises",
    "rules that matched in no case of the suite; their own examples exercise them",
    "rule",
    lambda report: [(rule,) for rule in report.unexercised],
)
_TO_MEND = checks("What to mend", lambda check: check.status in _WORST_FIRST[:2])

SECTIONS: Mapping[ReportType, tuple[Make, ...]] = {
    ReportType.EXECUTIVE_SUMMARY: (
        scores,
        asked("totals", "Traffic", "figures"),
        asked("alert_totals", "Alerts", "figures"),
        asked("by_time", "Requests over time", "lines"),
        course,
        asked("by_rule", "What the shield found most", "bars", 10),
        asked("by_model", "Models", "table", 10),
        _TO_MEND,
        asked("active_alerts", "Alerts that wait", "table", 10),
    ),
    ReportType.SECURITY_POSTURE: (
        scores,
        course,
        _TO_MEND,
        checks("All checks", lambda check: True),
        asked("instances", "Gateways"),
        asked("policies", "Policies"),
        asked("acceptances", "Accepted risks"),
    ),
    ReportType.THREAT_SUMMARY: (
        asked("alert_totals", "Alerts", "figures"),
        asked("threats_by_time", "Blocked and reviewed over time", "lines"),
        asked("by_rule", "By rule", "bars", 20),
        asked("blocked_by_agent", "By agent", "bars", 20),
        asked("blocked_by_key", "By key", "bars", 20),
        asked("blocked_by_model", "By model", "table", 20),
        asked("alerts_by_severity", "Alerts by severity", "bars"),
        asked("alerts_by_source", "Alerts by source", "bars"),
        asked("refusals", "Refused keys, sessions and sign-ins"),
        asked("active_alerts", "Alerts that wait"),
    ),
    ReportType.SHIELD_ANALYSIS: (
        asked("totals", "Traffic", "figures"),
        asked("by_verdict", "By verdict", "bars"),
        asked("scores", "By score", "bars"),
        asked("threats_by_time", "Blocked and reviewed over time", "lines"),
        asked("by_rule", "By rule", "bars", 20),
        asked("by_direction", "By direction"),
        asked("by_action", "By action taken"),
        asked("times", "Times", "figures"),
        suite_figures,
    ),
    ReportType.TRAFFIC_SUMMARY: (
        asked("totals", "Traffic", "figures"),
        asked("by_time", "Requests over time", "lines"),
        asked("times", "Times", "figures"),
        asked("by_operation", "By operation", "bars"),
        asked("by_model", "By model", "bars"),
        asked("by_provider", "By provider", "bars"),
        asked("by_agent", "By agent", "bars"),
        asked("by_key", "By key", "bars"),
        asked("by_status", "By status"),
    ),
    ReportType.COST_ANALYSIS: (
        asked("totals", "Traffic", "figures"),
        asked("cost_by_time", "Cost over time", "lines"),
        asked("by_model", "By model", largest="cost:usd"),
        asked("by_provider", "By provider", largest="cost:usd"),
        asked("by_agent", "By agent", largest="cost:usd"),
        asked("by_key", "By key", largest="cost:usd"),
        asked("budgets", "Budgets"),
        asked("unpriced", "Models without a price"),
    ),
    ReportType.AGENT_ACTIVITY: (
        asked("by_agent", "Requests by agent", "bars"),
        asked("blocked_by_agent", "Blocked and reviewed by agent", "bars"),
        asked("new_agents", "New agents"),
        asked("agents", "All agents"),
        checks("Checks about agents", lambda check: check.category == "agents"),
    ),
    ReportType.AUDIT_EXPORT: (
        asked("chains", "Chains"),
        asked("events_by_action", "By action", "bars", 20),
        asked("events_by_actor", "By actor", "bars", 20),
        asked("events_by_outcome", "By outcome"),
        asked("events", "Events"),
    ),
    ReportType.COMPLIANCE_EVIDENCE: (
        scores,
        controls,
        asked("chains", "Audit chains"),
        asked("checkpoints", "Checkpoints of the audit chain"),
        asked("events_by_action", "Recorded actions"),
        asked("acceptances", "Accepted risks"),
        suite_figures,
        asked("users", "Who may sign in"),
    ),
    ReportType.ACCESS_REVIEW: (
        asked("users", "Users"),
        asked("keys", "API keys"),
        asked("access_entries", "Access list"),
        asked("policies", "Policies"),
        asked("sessions", "Sessions"),
        asked("access_changes", "Changes"),
        checks("Checks about access", lambda check: check.category in ("keys", "access", "exposure")),
    ),
    ReportType.SHIELD_VALIDATION: (
        suite_figures,
        suite_rates("category", lambda report: report.categories),
        suite_rates("language", lambda report: report.languages),
        _FAILURES,
        _UNEXERCISED,
    ),
}
