"""`acceptances list|create|revoke`: the use-cases of the internal API for a host without a browser."""

import argparse

from gateway.app import Gateway, Lasting
from gateway.cli.access_list import read_word
from gateway.cli.command import OK, Command, Console, nothing, shown, table
from gateway.cli.manage import context, moment, read_expiry, with_gateway, with_records
from gateway.clock import SystemClock
from gateway.domain.principals import local
from gateway.domain.risk_acceptances import AcceptanceScope, RiskAcceptance
from gateway.operations.risk_acceptances import view_acceptance
from gateway.schema import encode
from gateway.services.risk_acceptances import WantedAcceptance
from gateway.store.risk_acceptances import MAX_ACCEPTANCE_LIMIT


def list_acceptances(options: argparse.Namespace, console: Console) -> int:
    """List every acceptance, newest first, revoked and expired ones too."""

    async def work(gateway: Lasting) -> int:
        found: list[RiskAcceptance] = []
        cursor = None
        while True:
            page = await gateway.risk_acceptances.page(limit=MAX_ACCEPTANCE_LIMIT, cursor=cursor)
            found += page.items
            if (cursor := page.next) is None:
                break
        now_at = gateway.clock.now_at()
        if options.json:
            console.print_json([encode(view_acceptance(one, now_at)) for one in found])
            return OK
        rows = [
            (
                one.id,
                one.scope.value,
                one.rule,
                shown(one.agent or (one.digest or "")[:12] or "-", 30),
                one.status(now_at),
                moment(one.until_at) or "",
                one.accepted_by,
                shown(one.reason, 50),
            )
            for one in found
        ]
        console.print(table(rows, ("ID", "SCOPE", "RULE", "FOR", "STATUS", "UNTIL", "BY", "REASON")))
        return OK

    return with_records(options, work)


def create(options: argparse.Namespace, console: Console) -> int:
    """Accept a risk and print the id."""
    wanted = WantedAcceptance(
        scope=read_word(AcceptanceScope, options.scope, "--scope"),
        reason=options.reason,
        until_at=read_expiry(options.until, SystemClock().now_at(), flag="--until"),
        rule=options.rule,
        agent=options.agent,
        key=options.key,
        digest=options.digest,
        alert=options.alert,
        any_key=options.any_key,
        request=options.request,
    )

    async def work(gateway: Gateway) -> int:
        rules = await gateway.rules.ids()
        one = await gateway.risk_acceptances.create(local("cli"), wanted, context(gateway), rules=rules)
        verdict = await gateway.new_verdicts.after(one, request=options.request, alert=options.alert)
        console.note(verdict.says)
        console.note(f"{one.rule} is accepted until {moment(one.until_at)}:")
        console.print(one.id)
        return OK

    return with_gateway(options, work)


def revoke(options: argparse.Namespace, console: Console) -> int:
    """Take an acceptance back. A running gateway counts the rule again at its next scan."""

    async def work(gateway: Lasting) -> int:
        one = await gateway.risk_acceptances.revoke(local("cli"), options.id, context(gateway))
        console.note(f"{one.id} ({one.rule}) is revoked")
        return OK

    return with_records(options, work)


def declare_create(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `acceptances create`."""
    parser.add_argument("--scope", required=True, help="finding, rule_agent or rule")
    parser.add_argument("--rule", help="id of the rule")
    parser.add_argument("--agent", help="for rule_agent: the agent's name")
    parser.add_argument("--key", help="for rule_agent: id or prefix of the one key it is about")
    parser.add_argument(
        "--any-key", action="store_true", help="for rule_agent without --key: whichever key claims the agent's name"
    )
    parser.add_argument("--digest", help="for finding: SHA-256 of the text, as alerts and audit events have it")
    parser.add_argument("--alert", help="for finding: id of the alert that shows it, instead of rule and digest")
    parser.add_argument("--request", metavar="ID", help="request (req_… or trf_…) whose new verdict is told")
    parser.add_argument("--until", required=True, metavar="AGE|DATE", help="such as 30d or a date, 90 days at most")
    parser.add_argument("--reason", required=True, help="why, for whoever reads it later")


def declare_id(parser: argparse.ArgumentParser) -> None:
    """Declare the acceptance's id."""
    parser.add_argument("id", help="id (ra_…) of the acceptance")


COMMANDS = (
    Command(
        "acceptances list",
        "List the risk acceptances, newest first.",
        "gateway.pyz acceptances list --json",
        nothing,
        list_acceptances,
        has_json=True,
    ),
    Command(
        "acceptances create",
        "Accept what a rule finds, for a while: it stays visible and adds nothing to scores.",
        "gateway.pyz acceptances create --scope rule --rule override-prior-orders --until 30d --reason 'test data'",
        declare_create,
        create,
    ),
    Command(
        "acceptances revoke",
        "Take a risk acceptance back.",
        "gateway.pyz acceptances revoke ra_01J…",
        declare_id,
        revoke,
    ),
)
