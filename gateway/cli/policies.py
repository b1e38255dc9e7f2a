"""`policies list|create|update|remove`: the use-cases of the internal API for a host without a browser."""

import argparse
from collections.abc import Mapping
from typing import cast

from gateway import strict_json
from gateway.app import Lasting
from gateway.cli.access_list import read_word
from gateway.cli.command import OK, Command, Console, nothing, table
from gateway.cli.manage import context, with_records
from gateway.domain.captures import MAX_CAPTURE_DAYS, Capture
from gateway.domain.policies import OutboundAction, ShieldMode, Unscannable
from gateway.domain.principals import local
from gateway.errors import InvalidRequest
from gateway.schema import encode
from gateway.services.policies import WantedPolicy
from gateway.shield.scoring import HIGHEST_SCORE, Action

_ACTIONS = ("block", "review", "allow", "redact")


def list_policies(options: argparse.Namespace, console: Console) -> int:
    """List every policy, oldest first."""

    async def work(gateway: Lasting) -> int:
        policies = await gateway.policies.list()
        if options.json:
            console.print_json([encode(policy) for policy in policies])
            return OK
        rows = [
            (
                policy.id,
                policy.name,
                policy.mode.value,
                str(policy.block_score),
                str(policy.review_score),
                ",".join(f"{name}={action}" for name, action in policy.category_actions.items()) or "-",
            )
            for policy in policies
        ]
        console.print(table(rows, ("ID", "NAME", "MODE", "BLOCK", "REVIEW", "CATEGORIES")))
        return OK

    return with_records(options, work)


def create(options: argparse.Namespace, console: Console) -> int:
    """Make a policy and print its id."""
    wanted = read_wanted(options)

    async def work(gateway: Lasting) -> int:
        policy = await gateway.policies.create(local("cli"), wanted, context(gateway))
        console.note(f"{policy.name} is a policy; give it to a key with `keys create --policy` or the API:")
        console.print(policy.id)
        return OK

    return with_records(options, work)


def update(options: argparse.Namespace, console: Console) -> int:
    """Change a policy. It holds for its keys at their next request."""
    wanted = read_wanted(options)

    async def work(gateway: Lasting) -> int:
        policy = await gateway.policies.change(local("cli"), options.id, wanted, context(gateway))
        console.note(f"{policy.id} ({policy.name}) has version {policy.version}")
        return OK

    return with_records(options, work)


def remove(options: argparse.Namespace, console: Console) -> int:
    """Remove a policy that no key has."""

    async def work(gateway: Lasting) -> int:
        policy = await gateway.policies.remove(local("cli"), options.id, context(gateway))
        console.note(f"{policy.id} ({policy.name}) is removed")
        return OK

    return with_records(options, work)


def read_wanted(options: argparse.Namespace) -> WantedPolicy:
    """Return what the options say of a policy."""
    return WantedPolicy(
        name=options.name,
        mode=read_word(ShieldMode, options.mode, "--mode") if options.mode else None,
        block_score=read_score(options.block_score, "--block-score"),
        review_score=read_score(options.review_score, "--review-score"),
        category_actions=read_actions(options.category) if options.category else None,
        unscannable=read_word(Unscannable, options.unscannable, "--unscannable") if options.unscannable else None,
        outbound=read_word(OutboundAction, options.outbound, "--outbound") if options.outbound else None,
        capture=read_word(Capture, options.capture, "--capture") if options.capture else None,
        capture_days=read_days(options.capture_days),
    )


def read_score(text: str | None, flag: str) -> int | None:
    """Return a score, or None if there is none."""
    return None if text is None else strict_json.read_integer(text, param=flag, low=1, high=HIGHEST_SCORE)


def read_days(text: str | None) -> int | None:
    """Return a number of days, or None if there is none."""
    return (
        None if text is None else strict_json.read_integer(text, param="--capture-days", low=1, high=MAX_CAPTURE_DAYS)
    )


def read_actions(texts: list[str]) -> Mapping[str, Action]:
    """Read ``pii=redact``, as often as it was given. ``none`` alone takes all away."""
    if texts == ["none"]:
        return {}
    actions: dict[str, Action] = {}
    for text in texts:
        category, _, action = text.partition("=")
        if action not in _ACTIONS:
            raise InvalidRequest(
                f"--category must be a category, = and one of {', '.join(_ACTIONS)}, such as pii=redact",
                param="--category",
            )
        actions[category] = cast(Action, action)
    return actions


def declare_fields(parser: argparse.ArgumentParser) -> None:
    """Declare what can be said of a policy."""
    parser.add_argument("--mode", help="block or observe")
    parser.add_argument("--block-score", metavar="N", help="least score of a BLOCK, 1 to 100")
    parser.add_argument("--review-score", metavar="N", help="least score of a REVIEW, 1 to 100")
    parser.add_argument(
        "--category",
        action="append",
        metavar="NAME=ACTION",
        help="weight of a category: block, review, allow or redact; may be given again; none takes all away",
    )
    parser.add_argument("--unscannable", help="allow, review or block parts that cannot be read")
    parser.add_argument("--outbound", help="block or redact replies")
    parser.add_argument("--capture", help="keep none of the texts, redacted ones, or full ones")
    parser.add_argument("--capture-days", metavar="N", help=f"how long texts are kept, 1 to {MAX_CAPTURE_DAYS} (7)")


def declare_create(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `policies create`."""
    parser.add_argument("--name", required=True, help="what the policy is called")
    declare_fields(parser)


def declare_update(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `policies update`."""
    declare_id(parser)
    parser.add_argument("--name", help="another name")
    declare_fields(parser)


def declare_id(parser: argparse.ArgumentParser) -> None:
    """Declare the policy."""
    parser.add_argument("id", help="id (pol_…) or name of the policy")


COMMANDS = (
    Command(
        "policies list",
        "List the policies that keys may have.",
        "gateway.pyz policies list --json",
        nothing,
        list_policies,
        has_json=True,
    ),
    Command(
        "policies create",
        "Make a policy: mode, thresholds and weights for the keys that get it.",
        "gateway.pyz policies create --name lab --mode observe --category pii=redact",
        declare_create,
        create,
    ),
    Command(
        "policies update",
        "Change a policy; it holds for its keys at their next request.",
        "gateway.pyz policies update lab --block-score 80",
        declare_update,
        update,
    ),
    Command(
        "policies remove",
        "Remove a policy that no key has.",
        "gateway.pyz policies remove lab",
        declare_id,
        remove,
    ),
)
