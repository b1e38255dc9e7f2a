"""`budgets list|create|update|override|remove`: spending limits. Rules are kept in `services.budgets`."""

import argparse

from gateway.cli.command import OK, Command, Console, shown
from gateway.cli.resource import Flag, Row, Values, View, commands_of, expiry
from gateway.errors import InvalidRequest
from gateway.operations.budgets import BUDGET_OPERATIONS


def _scope(view: View) -> str:
    return f"{view['scope']} {shown(view['scope_value'] or '', 40)}".rstrip()


def _limit(view: View) -> str:
    return f"{view['effective_limit']:g} {view['unit']} a {view['window']}"


def _raised(view: View, values: Values, options: argparse.Namespace, console: Console) -> int:
    until = f" until {view['override']['until']}" if view["override"] else ""
    console.note(f"{view['id']}: {_limit(view)}{until}")
    return OK


def _override(options: argparse.Namespace, console: Console) -> int:
    """Raise the limit of a budget until a time, or end that early."""
    if options.end:
        return _END.run(options, console)
    if None in (options.limit, options.until, options.reason):
        raise InvalidRequest("--limit, --until and --reason are needed, or --end", param="--limit")
    return _RAISE.run(options, console)


def _declare_override(parser: argparse.ArgumentParser) -> None:
    _RAISE.declare(parser)
    parser.add_argument("--end", action="store_true", help="end the override now: the usual limit holds again")


_LIST, _CREATE, _UPDATE, _RAISE, _END, _REMOVE = commands_of(
    "budgets",
    BUDGET_OPERATIONS,
    "id (bud_…) of the budget",
    Row(
        "list",
        "List the budgets: what is spent, reserved and left.",
        "--json",
        columns={
            "ID": "id",
            "SCOPE": _scope,
            "LIMIT": _limit,
            "SPENT": "spent",
            "RESERVED": "reserved",
            "LEFT": "remaining",
            "STATUS": "status",
            "RESETS": "resets_at",
        },
    ),
    Row(
        "create",
        "Limit what is spent in a period.",
        "--limit 25 --window day --scope model --scope-value 'gpt-4o*'",
        flags=(
            Flag("limit", "most that is spent in a period, in the unit"),
            "unit",
            "scope",
            Flag("scope_value", "which key, agent, model (a glob) or provider", metavar="VALUE"),
            Flag("window", "hour, day (default), week or month, of the UTC calendar"),
            Flag("soft_pct", "percentage of the limit at which to warn (80)"),
            "action",
            Flag("name", "what it is for"),
        ),
        note="the budget counts from now on:",
        prints="id",
    ),
    Row(
        "update",
        "Change a budget; what was spent stays spent.",
        "bud_01J… --limit 40",
        operation="budgets.change",
        flags=(
            Flag("limit", "new limit, in the unit"),
            Flag("soft_pct", "percentage of the limit at which to warn"),
            "action",
            Flag("name", "what it is for"),
        ),
        note="{id} has version {version}",
    ),
    Row(
        "override",
        "Raise the limit of a budget for a while.",
        "bud_01J… --limit 100 --until 4h --reason 'release night'",
        flags=(
            Flag("limit", "the temporary limit, in the unit", required=False),
            expiry("until", "such as 4h, 2d or 2030-01-31", required=False),
            Flag("reason", "why, for the audit log", required=False),
        ),
        after=_raised,
    ),
    Row("override", "End an override.", "", operation="budgets.override.end", after=_raised),
    Row("remove", "Remove a budget.", "bud_01J…", note="{id} is removed"),
)

COMMANDS = (
    _LIST,
    _CREATE,
    _UPDATE,
    Command(_RAISE.name, _RAISE.summary, _RAISE.example, _declare_override, _override),
    _REMOVE,
)
