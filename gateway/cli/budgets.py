"""`budgets list|create|update|override|remove`: the use-cases of the internal API for a host without a browser."""

import argparse
import math

from gateway import strict_json
from gateway.app import Lasting
from gateway.cli.access_list import read_word
from gateway.cli.command import OK, Command, Console, nothing, shown, table
from gateway.cli.manage import context, moment, read_expiry, with_records
from gateway.clock import SystemClock
from gateway.domain.budgets import DEFAULT_SOFT_PCT, BudgetAction, BudgetScope, BudgetUnit, BudgetWindow
from gateway.domain.principals import local
from gateway.errors import InvalidRequest
from gateway.operations.budgets import view_budget
from gateway.schema import encode
from gateway.services.budgets import ChangedBudget, WantedBudget, WantedOverride


def list_budgets(options: argparse.Namespace, console: Console) -> int:
    """List every budget and how it stands."""

    async def work(gateway: Lasting) -> int:
        now_at = gateway.clock.now_at()
        views = [view_budget(standing, now_at) for standing in await gateway.budgets.list()]
        if options.json:
            console.print_json([encode(view) for view in views])
            return OK
        rows = [
            (
                view.id,
                view.scope.value + (f" {shown(view.scope_value, 40)}" if view.scope_value else ""),
                f"{view.effective_limit:g} {view.unit.value} a {view.window.value}",
                f"{view.spent:g}",
                f"{view.reserved:g}",
                f"{view.remaining:g}",
                view.status,
                moment(view.resets_at) or "",
            )
            for view in views
        ]
        console.print(table(rows, ("ID", "SCOPE", "LIMIT", "SPENT", "RESERVED", "LEFT", "STATUS", "RESETS")))
        return OK

    return with_records(options, work)


def create(options: argparse.Namespace, console: Console) -> int:
    """Make a budget and print its id."""
    wanted = WantedBudget(
        limit=read_amount(options.limit, "--limit"),
        unit=read_word(BudgetUnit, options.unit, "--unit"),
        scope=read_word(BudgetScope, options.scope, "--scope"),
        scope_value=options.scope_value,
        window=read_word(BudgetWindow, options.window, "--window"),
        soft_pct=strict_json.read_integer(options.soft_pct, param="--soft-pct", low=1, high=100),
        action=read_word(BudgetAction, options.action, "--action"),
        name=options.name or "",
    )

    async def work(gateway: Lasting) -> int:
        standing = await gateway.budgets.create(local("cli"), wanted, context(gateway))
        console.note("the budget counts from now on:")
        console.print(standing.budget.id)
        return OK

    return with_records(options, work)


def update(options: argparse.Namespace, console: Console) -> int:
    """Change a budget. What was spent in this period stays spent."""
    wanted = ChangedBudget(
        limit=None if options.limit is None else read_amount(options.limit, "--limit"),
        soft_pct=None
        if options.soft_pct is None
        else strict_json.read_integer(options.soft_pct, param="--soft-pct", low=1, high=100),
        action=read_word(BudgetAction, options.action, "--action") if options.action else None,
        name=options.name,
    )

    async def work(gateway: Lasting) -> int:
        standing = await gateway.budgets.change(local("cli"), options.id, wanted, context(gateway))
        console.note(f"{standing.budget.id} has version {standing.budget.version}")
        return OK

    return with_records(options, work)


def override(options: argparse.Namespace, console: Console) -> int:
    """Raise the limit of a budget until a time, or end that early."""
    wanted = None
    if not options.end:
        if options.limit is None or options.until is None or options.reason is None:
            raise InvalidRequest("--limit, --until and --reason are needed, or --end", param="--limit")
        wanted = WantedOverride(
            limit=read_amount(options.limit, "--limit"),
            until_at=read_expiry(options.until, SystemClock().now_at(), flag="--until"),
            reason=options.reason,
        )

    async def work(gateway: Lasting) -> int:
        standing = await gateway.budgets.override(local("cli"), options.id, wanted, context(gateway))
        view = view_budget(standing, gateway.clock.now_at())
        until = f" until {moment(view.override.until_at)}" if view.override else ""
        console.note(f"{view.id}: {view.effective_limit:g} {view.unit.value} a {view.window.value}{until}")
        return OK

    return with_records(options, work)


def remove(options: argparse.Namespace, console: Console) -> int:
    """Remove a budget and what was counted in it."""

    async def work(gateway: Lasting) -> int:
        standing = await gateway.budgets.remove(local("cli"), options.id, context(gateway))
        console.note(f"{standing.budget.id} is removed")
        return OK

    return with_records(options, work)


def read_amount(text: str, flag: str) -> float:
    """Return a number such as 100 or 0.25."""
    try:
        value = float(text) if text.isascii() and text.replace(".", "", 1).isdigit() else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InvalidRequest(f"{flag} must be a number such as 100 or 0.25", param=flag)
    return value


def declare_create(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `budgets create`."""
    parser.add_argument("--limit", required=True, metavar="N", help="most that is spent in a period, in the unit")
    parser.add_argument("--unit", default="usd", help="usd (default), tokens or requests")
    parser.add_argument("--scope", default="global", help="global (default), key, agent, model or provider")
    parser.add_argument("--scope-value", metavar="VALUE", help="which key, agent, model (a glob) or provider")
    parser.add_argument("--window", default="day", help="hour, day (default), week or month, of the UTC calendar")
    parser.add_argument("--soft-pct", default=str(DEFAULT_SOFT_PCT), metavar="N", help="when to warn, in per cent (80)")
    parser.add_argument("--action", default="block", help="block (default) or warn")
    parser.add_argument("--name", help="what it is for")


def declare_update(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `budgets update`."""
    declare_id(parser)
    parser.add_argument("--limit", metavar="N", help="another limit, in the unit")
    parser.add_argument("--soft-pct", metavar="N", help="when to warn, in per cent")
    parser.add_argument("--action", help="block or warn")
    parser.add_argument("--name", help="what it is for")


def declare_override(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `budgets override`."""
    declare_id(parser)
    parser.add_argument("--limit", metavar="N", help="the limit for a while, in the unit")
    parser.add_argument("--until", metavar="AGE|DATE", help="such as 4h, 2d or 2030-01-31")
    parser.add_argument("--reason", help="why, for the audit log")
    parser.add_argument("--end", action="store_true", help="let the usual limit hold again")


def declare_id(parser: argparse.ArgumentParser) -> None:
    """Declare the budget's id."""
    parser.add_argument("id", help="id (bud_…) of the budget")


COMMANDS = (
    Command(
        "budgets list",
        "List the budgets: what is spent, reserved and left.",
        "gateway.pyz budgets list --json",
        nothing,
        list_budgets,
        has_json=True,
    ),
    Command(
        "budgets create",
        "Limit what is spent in a period.",
        "gateway.pyz budgets create --limit 25 --window day --scope model --scope-value 'gpt-4o*'",
        declare_create,
        create,
    ),
    Command(
        "budgets update",
        "Change a budget; what was spent stays spent.",
        "gateway.pyz budgets update bud_01J… --limit 40",
        declare_update,
        update,
    ),
    Command(
        "budgets override",
        "Raise the limit of a budget for a while.",
        "gateway.pyz budgets override bud_01J… --limit 100 --until 4h --reason 'release night'",
        declare_override,
        override,
    ),
    Command(
        "budgets remove",
        "Remove a budget.",
        "gateway.pyz budgets remove bud_01J…",
        declare_id,
        remove,
    ),
)
