"""`alerts list|show|set|false-positive`: what needs a person's attention. Rules are kept in `services.alerts`."""

import argparse

from gateway.cli.command import OK, Console, shown
from gateway.cli.resource import Flag, Row, Values, View, commands_of, expiry
from gateway.domain.paging import DEFAULT_LIMIT
from gateway.operations.alerts import ALERT_OPERATIONS
from gateway.operations.traffic import TRAFFIC_OPERATIONS


def _default_scope(values: Values, options: argparse.Namespace, console: Console) -> None:
    """List active alerts alone, but every alert that a request was counted on."""
    values.setdefault("scope", "all" if options.request_id else "active")


def _print_marked(view: View, values: Values, options: argparse.Namespace, console: Console) -> int:
    for alert in view["alerts"]:
        who = f"agent {alert['agent'] or '-'}, key {alert['key_prefix'] or '-'}"
        console.note(f"{alert['title']}, {who}: false_positive")
        console.print(alert["id"])
    return OK


COMMANDS = commands_of(
    "alerts",
    (*ALERT_OPERATIONS, *TRAFFIC_OPERATIONS),
    "id of the alert (alr_…)",
    Row(
        "list",
        "List alerts, newest first; by default the active ones.",
        "--severity critical --since 24h",
        operation="alerts.find",
        flags=(
            "status",
            "severity",
            "source",
            Flag("scope", "which (active; all with --request-id)"),
            Flag("request_id", "alerts in any state that count this request (req_…)", metavar="ID"),
            Flag("since", "seen at or after: a time, a date, or an age such as 24h", metavar="TIME"),
            Flag("limit", f"most alerts to list ({DEFAULT_LIMIT})"),
        ),
        columns={
            "ID": "id",
            "SEVERITY": "severity",
            "STATUS": "status",
            "COUNT": "count",
            "LAST SEEN": "last_seen",
            "WHO": lambda view: shown(view["agent"] or view["key_prefix"] or "", 24),
            "TITLE": lambda view: shown(view["title"], 60),
        },
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
