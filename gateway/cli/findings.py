"""`alerts` and `acceptances`: what needs a person's attention, and which risks are accepted."""

import argparse

from gateway.cli.command import OK, Console, shown
from gateway.cli.resource import Flag, Row, Values, View, commands_of, expiry
from gateway.domain.paging import DEFAULT_LIMIT
from gateway.operations.alerts import ALERT_OPERATIONS
from gateway.operations.risk_acceptances import ACCEPTANCE_OPERATIONS
from gateway.operations.traffic import TRAFFIC_OPERATIONS


def _default_scope(values: Values, options: argparse.Namespace, console: Console) -> None:
    """List only active alerts, but every alert that counts the request of `--request-id`."""
    values.setdefault("scope", "all" if options.request_id else "active")


def _print_marked(view: View, values: Values, options: argparse.Namespace, console: Console) -> int:
    for alert in view["alerts"]:
        who = f"agent {alert['agent'] or '-'}, key {alert['key_prefix'] or '-'}"
        console.note(f"{alert['title']}, {who}: false_positive")
        console.print(alert["id"])
    return OK


_ALERTS = commands_of(
    "alerts",
    (*ALERT_OPERATIONS, *TRAFFIC_OPERATIONS),
    "id of the alert (alr_…)",
    Row(
        "list",
        "List alerts, newest first; by default the active ones.",
        "--severity critical --since 24h",
        operation="alerts.find",
        flags=(
            *map(Flag, ("status", "severity", "source")),
            Flag("scope", "which (active; all with --request-id)"),
            Flag("request_id", "alerts in any state that count this request (req_…)", metavar="ID"),
            Flag("since", "seen at or after: a time, a date, or an age such as 24h", metavar="TIME"),
            Flag("limit", f"most alerts to list ({DEFAULT_LIMIT})"),
        ),
        columns=(
            *("id", "severity", "status", "count", "last_seen"),
            ("WHO", lambda view: shown(view["agent"] or view["key_prefix"] or "", 24)),
            ("TITLE", lambda view: shown(view["title"], 60)),
        ),
        before=_default_scope,
    ),
    Row("show", "Show one alert with its evidence and its timeline, as JSON.", "alr_01J0000000000000000000000"),
    Row(
        "set",
        "Change the state of an alert, assign it, or add a note.",
        "alr_01J0000000000000000000000 --status resolved --note 'Prompt was changed.'",
        operation="alerts.change",
        flags=(
            Flag("status", "acknowledged, investigating, resolved, false_positive, …", metavar="STATUS"),
            Flag("note", "why; the resolution of an alert that this closes"),
            Flag("assigned_to", "person who handles it", "assign", "NAME"),
            expiry("suppressed_until", "end of a suppression, such as 7d or a date", "until"),
            Flag("acceptance", "suppress it while this risk acceptance (ra_…) is valid", metavar="ID"),
        ),
        note="{id} is {status}",
    ),
    Row(
        "false-positive",
        "Mark a request as harmless: closes the alerts that it added to, and no other.",
        "req_01J0000000000000000000000 --note 'A test of ours.'",
        operation="traffic.false_positive",
        subject="id of the request (req_… or trf_…)",
        flags=(Flag("note", "why it is harmless; the resolution of its alerts"),),
        after=_print_marked,
    ),
)

_ACCEPTANCES = commands_of(
    "acceptances",
    ACCEPTANCE_OPERATIONS,
    "id (ra_…) of the acceptance",
    Row(
        "list",
        "List the risk acceptances, newest first.",
        "--json",
        operation="risk_acceptances.list",
        columns=(
            *("id", "scope", "rule"),
            ("FOR", lambda view: shown(view["agent"] or (view["digest"] or "")[:12] or "-", 30)),
            *("status", "until", ("BY", "accepted_by")),
            ("REASON", lambda view: shown(view["reason"], 50)),
        ),
    ),
    Row(
        "create",
        "Accept what a rule finds, temporarily: it stays visible but adds nothing to scores.",
        "--scope rule --rule override-prior-orders --until 30d --reason 'test data'",
        operation="risk_acceptances.create",
        flags=(
            Flag("scope", "finding, rule_agent or rule"),
            Flag("rule", "id of the rule"),
            Flag("agent", "for rule_agent: the agent's name"),
            Flag("key", "for rule_agent: id or prefix of the one key it applies to"),
            Flag("any_key", "for rule_agent without --key: any key that claims the agent's name"),
            Flag("digest", "for finding: SHA-256 of the text, as alerts and audit events have it"),
            Flag("alert", "for finding: id of the alert that shows it, instead of rule and digest"),
            Flag("request", "request (req_… or trf_…) whose new verdict to print", metavar="ID"),
            expiry("until", "such as 30d or a date, 90 days at most"),
            Flag("reason", "why, for later readers"),
        ),
        note="{new_verdict[says]}\n{rule} is accepted until {until}:",
        prints="id",
        needs_rules=True,
    ),
    Row(
        "revoke",
        "Revoke a risk acceptance.",
        "ra_01J…",
        operation="risk_acceptances.revoke",
        note="{id} ({rule}) is revoked",
    ),
)

COMMANDS = (*_ALERTS, *_ACCEPTANCES)
