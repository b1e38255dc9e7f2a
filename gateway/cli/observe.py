"""`traffic`, `agents`, `posture`, `settings` and `outputs`: what passed, who sent it, and where events go."""

import argparse
from functools import partial

from gateway.cli.command import Console, shown
from gateway.cli.resource import Flag, Row, Values, View, as_text, commands_of
from gateway.cli.upstream import TRUE_OR_FALSE, read_secret
from gateway.domain.paging import DEFAULT_LIMIT
from gateway.operations.agents import OPERATIONS as AGENT_OPERATIONS
from gateway.operations.event_outputs import OPERATIONS as EVENT_OUTPUT_OPERATIONS
from gateway.operations.self_checks import TRUST_AUDIT_OPERATIONS
from gateway.operations.settings import SETTING_OPERATIONS
from gateway.operations.traffic import OPERATIONS as TRAFFIC_OPERATIONS

_SINCE = Flag("since", "at or after: a time, a date, or an age such as 24h", metavar="TIME")
_UNTIL = Flag("until", "at or before: a time, a date, or an age such as 1h", metavar="TIME")
_LIMIT = Flag("limit", f"most to list ({DEFAULT_LIMIT})")


def _print_posture(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    score = view["posture_score"]
    console.print(f"posture: {'unknown, run `trust-audit`' if score is None else f'{score} of 100'}")
    console.print(f"threat: {view['threat_score']} of 100")
    for part in view["threat"]:
        console.print(f"  {part['name'].replace('_', ' ')}: {part['points']:g} of at most {part['limit']}")


def _print_output(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    if view["secret"] is not None:
        console.note("the secret of its signatures is shown this once:")
        console.print(view["secret"])


def _print_test(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    console.print("the test event arrived" if view["ok"] else f"it did not arrive: {shown(view['reason'] or '', 300)}")


_TRAFFIC = commands_of(
    "traffic",
    TRAFFIC_OPERATIONS,
    "id of the request (req_… or trf_…)",
    Row(
        "list",
        "List requests, newest first.",
        "--verdict BLOCK --since 24h",
        flags=(
            *(Flag("verdict"), Flag("key", "prefix of the key (svc_…)")),
            *(Flag(noun, f"name of the {noun}") for noun in ("agent", "model", "provider")),
            *(Flag("rule", "id of a rule that matched"), Flag("search", "text in any of these, request id or SHA-256")),
            *(_SINCE, _UNTIL, _LIMIT),
        ),
        columns=(
            *(("TIME", "occurred_at"), ("REQUEST", "request_id"), "verdict", "score", "status", "agent"),
            *(("KEY", "key_prefix"), "model"),
            ("RULES", lambda view: as_text([one["rule"] for one in view["detections"]], separator=",", limit=60)),
        ),
    ),
    Row("show", "Show one request with its score and its alerts, as JSON.", "req_01J0000000000000000000000"),
    Row("summary", "Sum up a period (24 hours), as JSON.", "--since 7d", flags=(_SINCE, _UNTIL, Flag("bucket"))),
    needs_rules=True,
)

_WORDS = (
    *(Flag("owner", "who is responsible for it"), Flag("role", "what it does"), Flag("model", "model that it uses")),
    *(Flag("tools", "comma-separated"), Flag("tags", "comma-separated")),
)
_AGENTS = commands_of(
    "agents",
    AGENT_OPERATIONS,
    "id of the agent (agt_…)",
    Row(
        "list",
        "List the agents, newest first, with their last 24 hours.",
        "--risk high",
        flags=(*map(Flag, ("status", "source", "risk")), Flag("search", "text in name, owner, role or tags"), _LIMIT),
        columns=(
            *("id", "name", "status", "risk", ("REQUESTS", "requests_24h"), ("BLOCKS", "blocks_24h"), "owner"),
            "last_seen",
        ),
    ),
    Row("show", "Show one agent.", "agt_01J…", has_json=True),
    Row(
        "register",
        "Register an agent before it sends anything.",
        "--name helpdesk-bot --owner support",
        flags=(Flag("name", "as its requests state it"), *_WORDS),
        note="{name} is registered:",
        prints="id",
    ),
    Row(
        "update",
        "Change an agent; `--status blocked` refuses its requests.",
        "agt_01J… --status blocked",
        flags=(Flag("status"), *_WORDS),
        note="{id} ({name}) is {status}",
    ),
)

_POSTURE = commands_of(
    "posture",
    TRUST_AUDIT_OPERATIONS,
    "",
    Row("show", "Show both scores, and what raises the threat.", "--json", has_json=True, after=_print_posture),
    needs_rules=True,
)

_COLUMNS = ("name", ("VALUE", lambda view: as_text(view["value"], separator=",", limit=60)), "source")
_SETTINGS = commands_of(
    "settings",
    SETTING_OPERATIONS,
    "",
    Row("list", "List the settings of this shell, with those that were changed at run time.", "", columns=_COLUMNS),
    Row(
        "set",
        "Change a setting at run time, in every process of the data folder.",
        "--retention-audit-days 730",
        flags=(
            *(Flag(f"retention_{what}_days") for what in ("traffic", "alerts", "audit")),
            Flag("reset", "settings to set back to their values at startup, comma-separated"),
        ),
        columns=_COLUMNS,
    ),
    needs_rules=True,
)

_OUTPUT_FIELDS = (
    Flag("secret", "of a webhook: env:NAME, file:/PATH, cred:NAME, or - to read it from stdin", metavar="REF"),
    Flag("kinds", "audit, alert, or both, comma-separated"),
    Flag("min_severity"),
    Flag("format"),
    Flag("allow_private", "allow a private or loopback address", **TRUE_OR_FALSE),
)
_READ_SECRET = partial(read_secret, "secret")
_OUTPUTS = commands_of(
    "outputs",
    EVENT_OUTPUT_OPERATIONS,
    "id of the output (out_…)",
    Row(
        "list",
        "List the event outputs: what they sent, what waits and what was dropped.",
        "--json",
        columns=(
            *("id", "name", "kind", "target", "min_severity", "enabled", "waiting", "sent", "failed", "dropped"),
            ("LAST ERROR", lambda view: as_text(view["last_error"], limit=60)),
        ),
    ),
    Row(
        "add",
        "Add an output; it begins with the next event.",
        "--name siem --kind webhook --target https://siem.example.com/events",
        flags=(Flag("name", "its name"), Flag("kind"), Flag("target"), *_OUTPUT_FIELDS),
        before=_READ_SECRET,
        note="{id} ({name}) gets the next events",
        after=_print_output,
    ),
    Row(
        "update",
        "Change an output.",
        "out_01J… --min-severity high",
        flags=(
            *(Flag("name", "new name"), Flag("target"), *_OUTPUT_FIELDS),
            Flag("enabled", "false stops it for now", **TRUE_OR_FALSE),
        ),
        note="{id} ({name}) is changed",
        before=_READ_SECRET,
    ),
    Row("remove", "Remove an output.", "out_01J…", note="{id} ({name}) is removed"),
    Row(
        "test",
        "Send a test event; exit 1 if it is lost.",
        "out_01J…",
        after=_print_test,
        is_good=lambda view: bool(view["ok"]),
    ),
    needs_rules=True,
)

COMMANDS = (*_TRAFFIC, *_AGENTS, *_POSTURE, *_SETTINGS, *_OUTPUTS)
