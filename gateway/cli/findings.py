"""`alerts` and `acceptances`: what needs a person's attention, and which risks are accepted."""

import argparse

from gateway.cli.command import Command, Console, argument, shown
from gateway.cli.resource import Flag, Row, Values, View, commands_of, expiry
from gateway.domain.paging import DEFAULT_LIMIT
from gateway.errors import InvalidRequest
from gateway.operations.alerts import OPERATIONS as ALERT_OPERATIONS
from gateway.operations.harmless import OPERATIONS as HARMLESS_OPERATIONS
from gateway.operations.incidents import OPERATIONS as INCIDENT_OPERATIONS
from gateway.operations.risk_acceptances import OPERATIONS as ACCEPTANCE_OPERATIONS

_SUBJECT = "id of a request (req_…, trf_…) or of an alert (alr_…)"


def _default_scope(values: Values, options: argparse.Namespace, console: Console) -> None:
    """List only active alerts, but every alert that counts the request of `--request-id`."""
    values.setdefault("scope", "all" if options.request_id else "active")


def _print_stopped(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    for one in view["acts"]:
        console.print(f"{one['act']}: {'done' if one['done'] else 'NOT DONE: ' + shown(one['why'], 300)}")


def _print_marked(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    for alert in view["alerts"]:
        who = f"agent {alert['agent'] or '-'}, key {alert['key_prefix'] or '-'}"
        console.note(f"{alert['id']}: {alert['title']}, {who}: false_positive")
    console.note(view["says"])
    for id in view["acceptances"]:
        console.print(id)


def _print_options(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    """Print what each exception would let through, one line each."""
    for one in view["options"]:
        lets, suite = one["lets_through"], one["suite"]
        told = one["unavailable"] or f"{one['covers']}: {', '.join(one['rules'])}. {one['new_verdict']['says']}"
        if lets:
            told += (
                f" In {lets['days']} days: {lets['lowered']} others would have passed, {lets['unblocked']} of them "
                f"blocked, {lets['confirmed']} confirmed attacks; unknown for {lets['unknown']}."
            )
        if suite:
            told += f" Suite: {suite['lost']} of {suite['found']} attacks would pass."
        console.print(f"{one['exception']}: {shown(told, 600)}")


_ALERTS = commands_of(
    "alerts",
    (*ALERT_OPERATIONS, *HARMLESS_OPERATIONS),
    "id of the alert (alr_…)",
    Row(
        "list",
        "List alerts, newest first; by default the active ones.",
        "--severity critical --since 24h",
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
        "harmless",
        "Show the exceptions for a harmless request, and what each would let through.",
        "req_01J0000000000000000000000",
        operation="harmless.preview",
        subject=_SUBJECT,
        has_json=True,
        needs_rules=True,
        after=_print_options,
    ),
)
_RESOLVED, _MARKED = commands_of(
    "alerts",
    (*ALERT_OPERATIONS, *HARMLESS_OPERATIONS),
    _SUBJECT,
    Row("resolve", "", "", fixed={"status": "resolved"}, flags=(Flag("note"),), note="{id} is {status}"),
    Row(
        "resolve",
        "",
        "",
        operation="harmless.mark",
        flags=(
            Flag("note", "what was done, or why the request is harmless"),
            Flag(
                "exception",
                "with --harmless, what passes from now on: none (default), text, key_agent, key or "
                "policy; or report, to report the rule",
                metavar="WHAT",
            ),
            expiry("until", "with --harmless: end of the exception, 30 days from now by default, 90 at most"),
        ),
        needs_rules=True,
        after=_print_marked,
    ),
)


def _resolve(options: argparse.Namespace, console: Console) -> int | None:
    if not options.harmless and (options.exception or options.until):
        raise InvalidRequest("--exception and --until need --harmless.", param="--harmless")
    return (_MARKED if options.harmless else _RESOLVED).run(options, console)


_RESOLVE = Command(
    "alerts resolve",
    "Resolve an alert; with --harmless, close what a harmless request raised and make an exception.",
    "req_01J0000000000000000000000 --harmless --exception key --note 'Our own test.'",
    (*_MARKED.arguments, argument("--harmless", action="store_true", help="the request was harmless")),
    _resolve,
)

_INCIDENTS = commands_of(
    "incidents",
    INCIDENT_OPERATIONS,
    "id of the incident (inc_…)",
    Row(
        "list",
        "List incidents, newest first; by default the active ones.",
        "--severity critical --since 24h",
        flags=(
            *map(Flag, ("scope", "severity", "rule", "agent", "key")),
            Flag("request_id", "incidents that count this request (req_…)", metavar="ID"),
            Flag("since", "seen at or after: a time, a date, or an age such as 24h", metavar="TIME"),
            Flag("limit", f"most incidents to list ({DEFAULT_LIMIT})"),
        ),
        columns=(
            *("id", "severity", "status", "alerts", "requests", "last_seen"),
            ("WHO", lambda view: shown(f"{view['agent'] or '-'}, {view['key_prefix'] or '-'}", 40)),
            ("TITLE", lambda view: shown(view["title"], 50)),
        ),
    ),
    Row("show", "Show an incident with alerts, requests and timeline, as JSON.", "inc_01J0000000000000000000000"),
    Row(
        "stop",
        "Deny or revoke the key of an incident, and block its agent.",
        "inc_01J0000000000000000000000 --deny-key --block-agent --reason 'It leaks.'",
        flags=(
            Flag("deny_key", "deny the key for a day"),
            Flag("revoke_key", "revoke the key, which cannot be undone"),
            Flag("block_agent", "block the agent until someone unblocks it"),
            Flag("reason", "why, for the access list and the audit log"),
        ),
        after=_print_stopped,
        is_good=lambda view: all(one["done"] for one in view["acts"]),
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
        columns=(
            *("id", "scope", "rule"),
            (
                "FOR",
                lambda view: shown(view["agent"] or view["key"] or view["policy"] or (view["digest"] or "")[:12], 30),
            ),
            *("status", "until", ("BY", "accepted_by")),
            ("REASON", lambda view: shown(view["reason"], 50)),
        ),
    ),
    Row(
        "create",
        "Accept what a rule finds, temporarily: it stays visible but adds nothing to scores.",
        "--scope rule --rule override-prior-orders --until 30d --reason 'test data'",
        flags=(
            Flag("scope", "finding, rule_agent, rule_key, rule_policy or rule"),
            Flag("rule", "id of the rule"),
            Flag("agent", "for rule_agent: the agent's name"),
            Flag("key", "for rule_agent, rule_key: id or prefix of the one key it applies to"),
            Flag("policy", "for rule_policy: id or name of the policy"),
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
    Row("approve", "Approve a proposed risk acceptance.", "ra_01J…", note="{id} ({rule}) is in force until {until}"),
    Row("revoke", "Revoke a risk acceptance, or decline a proposal.", "ra_01J…", note="{id} ({rule}) is {status}"),
)

COMMANDS = (*_ALERTS, _RESOLVE, *_INCIDENTS, *_ACCEPTANCES)
