"""`alerts list|show|set`: the use-cases of the internal API for a host without a browser."""

import argparse

from gateway import strict_json
from gateway.app import Gateway, Lasting
from gateway.cli.command import OK, Command, Console, shown, table
from gateway.cli.manage import context, read_expiry, with_gateway, with_records
from gateway.domain.alerts import (
    DEFAULT_ALERT_LIMIT,
    MAX_ALERT_LIMIT,
    AlertFilter,
    AlertSource,
    AlertStatus,
    WantedAlert,
)
from gateway.domain.principals import local, read_request_id
from gateway.errors import InvalidRequest
from gateway.operations.alerts import write_case
from gateway.schema import encode
from gateway.services.false_positives import MarkFalsePositive
from gateway.shield.detections import Severity


def list_alerts(options: argparse.Namespace, console: Console) -> int:
    """List alerts, newest first."""

    async def work(gateway: Gateway) -> int:
        now_at = gateway.clock.now_at()
        wanted = AlertFilter(
            status=AlertStatus(options.status) if options.status else None,
            severity=Severity(options.severity) if options.severity else None,
            source=AlertSource(options.source) if options.source else None,
            scope=options.scope or ("all" if options.request_id else "active"),
            since=strict_json.read_time(options.since, param="--since", now_at=now_at) if options.since else None,
            request_id=read_request_id(options.request_id, param="--request-id") if options.request_id else None,
            limit=strict_json.read_integer(options.limit, param="--limit", low=1, high=MAX_ALERT_LIMIT),
        )
        alerts = (await gateway.alerts.page(wanted)).items
        if options.json:
            console.print_json([encode(alert) for alert in alerts])
            return OK
        rows = [
            (
                alert.id,
                alert.severity.value,
                alert.status.value,
                str(alert.count),
                strict_json.write_time(alert.last_seen_at),
                shown(alert.agent or alert.key_prefix or "", 24),
                shown(alert.title, 60),
            )
            for alert in alerts
        ]
        console.print(table(rows, ("ID", "SEVERITY", "STATUS", "COUNT", "LAST SEEN", "WHO", "TITLE")))
        return OK

    return with_gateway(options, work)


def show_alert(options: argparse.Namespace, console: Console) -> int:
    """Print one alert with its evidence and its timeline."""

    async def work(gateway: Gateway) -> int:
        console.print_json(write_case(await gateway.alerts.show(options.id)))
        return OK

    return with_gateway(options, work)


def set_alert(options: argparse.Namespace, console: Console) -> int:
    """Move an alert to another state."""

    async def work(gateway: Gateway) -> int:
        until_at = None
        if options.until:
            until_at = read_expiry(options.until, gateway.clock.now_at(), flag="--until")
        wanted = WantedAlert(
            status=_status(options.status),
            note=options.note,
            assigned_to=options.assign,
            suppressed_until_at=until_at,
            acceptance=options.acceptance,
        )
        alert = await gateway.alerts.change(local("cli"), options.id, wanted, context(gateway))
        console.note(f"{alert.id} is {alert.status.value}")
        return OK

    return with_gateway(options, work)


def mark_false_positive(options: argparse.Namespace, console: Console) -> int:
    """Close the alerts of a request that was harmless, and print their ids."""

    async def work(gateway: Lasting) -> int:
        wanted = MarkFalsePositive(id=options.request, note=options.note)
        marked = await gateway.false_positives.mark(local("cli"), wanted, context(gateway))
        for alert in marked.alerts:
            console.note(f"{alert.title}, agent {alert.agent or '-'}, key {alert.key_prefix or '-'}: false_positive")
            console.print(alert.id)
        return OK

    return with_records(options, work)


def declare_list(parser: argparse.ArgumentParser) -> None:
    """Declare the filters."""
    parser.add_argument("--status", choices=[one.value for one in AlertStatus])
    parser.add_argument("--severity", choices=[one.value for one in Severity])
    parser.add_argument("--source", choices=[one.value for one in AlertSource])
    parser.add_argument("--scope", choices=["active", "terminal", "all"], help="which (active; all with --request-id)")
    parser.add_argument(
        "--request-id", metavar="ID", help="alerts that a request (req_…) was counted on, with any state"
    )
    parser.add_argument("--since", metavar="TIME", help="seen at or after: a time, a date, or an age such as 24h")
    parser.add_argument("--limit", default=str(DEFAULT_ALERT_LIMIT), metavar="N", help=f"most ({DEFAULT_ALERT_LIMIT})")


def declare_id(parser: argparse.ArgumentParser) -> None:
    """Declare the alert's id."""
    parser.add_argument("id", help="id of the alert (alr_…)")


def declare_request(parser: argparse.ArgumentParser) -> None:
    """Declare which request was harmless, and why."""
    parser.add_argument("request", metavar="REQUEST", help="id of the request (req_… or trf_…)")
    parser.add_argument("--note", required=True, help="why it is harmless; the resolution of its alerts")


def declare_set(parser: argparse.ArgumentParser) -> None:
    """Declare what is to become of the alert."""
    declare_id(parser)
    parser.add_argument("--status", metavar="STATUS", help="acknowledged, investigating, resolved, false_positive, …")
    parser.add_argument("--note", help="why; the resolution of an alert that is closed by it")
    parser.add_argument("--assign", metavar="NAME", help="who looks after it")
    parser.add_argument("--until", metavar="AGE|DATE", help="end of a suppression, such as 7d or a date")
    parser.add_argument("--acceptance", metavar="ID", help="risk acceptance (ra_…) as long as which it is suppressed")


def _status(text: str | None) -> AlertStatus | None:
    known = [one.value for one in AlertStatus]
    if text is not None and text not in known:
        raise InvalidRequest(f"--status must be one of {', '.join(known)}", param="--status")
    return AlertStatus(text) if text else None


COMMANDS = (
    Command(
        "alerts list",
        "List alerts, newest first; the active ones if nothing else is said.",
        "gateway.pyz alerts list --severity critical --since 24h",
        declare_list,
        list_alerts,
        has_json=True,
    ),
    Command(
        "alerts show",
        "Show one alert with its evidence and its timeline, as JSON.",
        "gateway.pyz alerts show alr_01J0000000000000000000000",
        declare_id,
        show_alert,
    ),
    Command(
        "alerts set",
        "Move an alert to another state, give it to somebody, or note something.",
        "gateway.pyz alerts set alr_01J0000000000000000000000 --status resolved --note 'Prompt was changed.'",
        declare_set,
        set_alert,
    ),
    Command(
        "alerts false-positive",
        "Mark a request as harmless: closes the alerts that it added to, and no other.",
        "gateway.pyz alerts false-positive req_01J0000000000000000000000 --note 'A test of ours.'",
        declare_request,
        mark_false_positive,
    ),
)
