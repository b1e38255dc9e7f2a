"""Which sections each type of report has, and where their rows come from. Reads the store and changes nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.posture import Check, CheckStatus, PosturePoint
from gateway.domain.reports import Column, ReportType, Section, Shape, filled
from gateway.services.shield_tests import last_run
from gateway.shield.detections import Severity
from gateway.store.database import Transaction
from gateway.store.report_queries import QUERIES, ask
from gateway.store.store import Store

_GRAVEST_FIRST = tuple(Severity)
_BAD = (CheckStatus.FAIL, CheckStatus.WARN)


@dataclass(frozen=True, slots=True)
class Source:
    """What a section is made from: one look at the database, the period, and the length of a bucket of time.

    scores: tells posture and threat score as they are now.
    """

    store: Store
    tx: Transaction
    since_at: int
    until_at: int
    step: int
    now_at: int
    scores: Callable[[Transaction], PosturePoint]


Make = Callable[[Source], Section]


def asked(
    name: str, title: str, shape: Shape = "table", most: int | None = None, *, largest: str | None = None
) -> Make:
    """Return what makes a section of a query of `report_queries`.

    most: rows that are shown. largest: the column by which they are sorted instead, the largest number first.
    """
    query = QUERIES[name]

    def make(source: Source) -> Section:
        rows = ask(
            source.tx,
            name,
            since=source.since_at,
            until=source.until_at,
            step=source.step,
            now=source.now_at,
            origin=source.store.traffic.origin,
        )
        if largest is not None:
            at = query.named.split(", ").index(largest)
            rows.sort(key=lambda row: float(str(row[at])), reverse=True)
        kept = min(query.most, most or query.most)
        shown = tuple(rows[:kept])
        if shape == "lines":
            empty = None if query.has_gaps else 0
            shown = filled(shown, source.since_at, source.until_at, source.step, empty=empty)
        is_cut = len(rows) > kept
        return Section(title, shape, query.about, query.columns(), shown, query.is_current, is_cut)

    return make


def scores(source: Source) -> Section:
    """Make posture and threat score as they are now."""
    latest = source.store.trust_audits.latest(source.tx)
    now = source.scores(source.tx)
    row = (
        now.posture_score,
        now.threat_score,
        latest.failed if latest else None,
        latest.warned if latest else None,
    )
    columns = tuple(Column(name) for name in ("posture score", "threat score", "checks that fail", "checks that warn"))
    query = "newest trust audit, and the threat score of the last 24 hours"
    return Section("Security state", "figures", query, columns, (row,), is_current=True)


def course(source: Source) -> Section:
    """Make the course of both scores. A period that lasts until now ends with the scores as they are now."""
    section = _NOTED(source)
    if not section.rows or source.until_at < source.now_at:
        return section
    now = source.scores(source.tx)
    return replace(section, rows=(*section.rows[:-1], (section.rows[-1][0], now.posture_score, now.threat_score)))


_NOTED = asked("course", "Posture and threat over time", "lines")


def checks(title: str, wanted: Callable[[Check], bool]) -> Make:
    """Return what makes a section of checks of the newest trust audit."""

    def make(source: Source) -> Section:
        latest = source.store.trust_audits.latest(source.tx)
        found = [check for check in latest.checks if wanted(check)] if latest else []
        columns = ("status", "severity", "check", "evidence", "why", "fix", "refs")
        rows = tuple(
            (
                one.status.value.replace("_", " "),
                one.severity.value,
                one.title,
                one.evidence,
                one.why,
                one.fix,
                ", ".join(one.refs),
            )
            for one in sorted(found, key=lambda one: _GRAVEST_FIRST.index(one.severity))
        )
        query = f"checks of trust audit {latest.id}" if latest else "no trust audit was run yet"
        return Section(title, "table", query, tuple(Column(name) for name in columns), rows, is_current=True)

    return make


def controls(source: Source) -> Section:
    """Make the table of controls, each with the checks that are its evidence."""
    latest = source.store.trust_audits.latest(source.tx)
    by_control: dict[str, list[Check]] = {}
    for check in latest.checks if latest else ():
        for ref in check.refs:
            if not ref.startswith("docs/"):
                by_control.setdefault(ref, []).append(check)
    rows = []
    for control in sorted(by_control):
        found = by_control[control]
        judged = [check for check in found if check.status is not CheckStatus.NOT_APPLICABLE]
        graver = [check.status for check in judged if check.status in _BAD]
        status = "fail" if CheckStatus.FAIL in graver else "warn" if graver else "pass" if judged else "not applicable"
        evidence = "; ".join(f"{check.title}: {check.status.value} ({check.evidence})" for check in found)
        rows.append((control, status, len(found), evidence))
    columns = tuple(Column(name) for name in ("control", "status", "checks", "evidence"))
    query = f"checks of trust audit {latest.id} by the controls they refer to" if latest else "no trust audit yet"
    return Section("Controls", "table", query, columns, tuple(rows), is_current=True)


def suite_figures(source: Source) -> Section:
    """Make the rates of the newest run of the validation suite."""
    run = last_run(source.store, source.tx)
    columns = (
        Column("ran", "time"), Column("cases"), Column("attacks found"), Column("detection rate", "percent"),
        Column("false positive rate", "percent"), Column("unexpected verdicts"), Column("median scan", "ms"),
        Column("p95 scan", "ms"),
    )  # fmt: skip
    rows: tuple[tuple[object, ...], ...] = ()
    if run is not None:
        report = run.report
        rows = ((
            run.ran_at, report.cases, report.found, _percent(report.detection_rate),
            _percent(report.false_positive_rate), len(report.failures), report.p50_us / 1000, report.p95_us / 1000,
        ),)  # fmt: skip
    query = f"newest run of the validation suite, rules {run.rules_digest[:16]}" if run else "the suite was never run"
    return Section("Validation suite", "figures", query, columns, rows, is_current=True)


def suite_table(
    title: str, query: str, names: tuple[str, ...], rows_of: Callable[[Any], list[Any]], shape: Shape = "table"
) -> Make:
    """Return what makes a section of the newest run of the validation suite."""

    def make(source: Source) -> Section:
        run = last_run(source.store, source.tx)
        rows = tuple(tuple(row) for row in rows_of(run.report)) if run else ()
        columns = tuple(Column(name, "percent" if name.endswith("rate") else "") for name in names)
        return Section(title, shape, query, columns, rows[:200], is_current=True, is_cut=len(rows) > 200)

    return make


def _percent(rate: float | None) -> float | None:
    return None if rate is None else 100 * rate


def _groups(groups: Any) -> list[Any]:
    return [
        (
            one.name,
            one.attacks,
            one.found,
            100 * one.found / one.attacks if one.attacks else None,
            one.controls,
            one.flagged,
            100 * one.flagged / one.controls if one.controls else None,
        )
        for one in groups
    ]


_GROUP = ("attacks", "found", "detection rate", "controls", "flagged", "false positive rate")
_CATEGORIES = suite_table(
    "By category",
    "cases of the suite, by category",
    ("category", *_GROUP),
    lambda report: _groups(report.categories),
    "rates",
)
_LANGUAGES = suite_table(
    "By language",
    "cases of the suite, by language",
    ("language", *_GROUP),
    lambda report: _groups(report.languages),
    "rates",
)
_FAILURES = suite_table(
    "Unexpected verdicts",
    "cases of the suite whose verdict is not the expected one",
    ("case", "category", "language", "expected", "verdict", "score", "rules"),
    lambda report: [
        (one.case, one.category, one.language, one.expected.value, one.verdict.value, one.score, ", ".join(one.rules))
        for one in report.failures
    ],
)
_UNEXERCISED = suite_table(
    "Rules that no case exercises",
    "rules that matched in no case of the suite; their own examples exercise them",
    ("rule",),
    lambda report: [(rule,) for rule in report.unexercised],
)
_TRAFFIC_LINES = asked("by_time", "Requests over time", "lines")
_THREAT_LINES = asked("threats_by_time", "Blocked and reviewed over time", "lines")
_TO_MEND = checks("What to mend", lambda check: check.status in _BAD)

SECTIONS: Mapping[ReportType, tuple[Make, ...]] = {
    ReportType.EXECUTIVE_SUMMARY: (
        scores,
        asked("totals", "Traffic", "figures"),
        asked("alert_totals", "Alerts", "figures"),
        _TRAFFIC_LINES,
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
        _THREAT_LINES,
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
        _THREAT_LINES,
        asked("by_rule", "By rule", "bars", 20),
        asked("by_direction", "By direction"),
        asked("by_action", "By action taken"),
        asked("times", "Times", "figures"),
        suite_figures,
    ),
    ReportType.TRAFFIC_SUMMARY: (
        asked("totals", "Traffic", "figures"),
        _TRAFFIC_LINES,
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
    ReportType.SHIELD_VALIDATION: (suite_figures, _CATEGORIES, _LANGUAGES, _FAILURES, _UNEXERCISED),
}
