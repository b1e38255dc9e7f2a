"""`keys create|list|show|rotate|revoke`: the use-cases of the internal API for a host without a browser."""

import argparse
from collections.abc import Awaitable, Callable

import anyio

from gateway import compose, strict_json
from gateway.app import Gateway, Lasting
from gateway.cli.command import OK, Command, Console, load_settings, make_log, nothing, table
from gateway.clock import SystemClock
from gateway.domain.keys import DEFAULT_GRACE_SECONDS, MAX_GRACE_SECONDS, KeyRecord, NewKey
from gateway.domain.principals import RequestContext, local
from gateway.errors import InvalidRequest
from gateway.field_types import read_ahead
from gateway.operations.keys import view_key
from gateway.schema import encode

Work = Callable[[Gateway], Awaitable[int]]
LightWork = Callable[[Lasting], Awaitable[int]]


def with_gateway(options: argparse.Namespace, work: Work) -> int:
    """Open the data folder, do the work with the services, and close it again."""
    config = load_settings(options).settings

    async def run() -> int:
        async with compose.open_gateway(config, log=make_log(config), is_shell=True) as gateway:
            return await work(gateway)

    return anyio.run(run)


def with_records(options: argparse.Namespace, work: LightWork) -> int:
    """Do the work with what needs no rules, which is there at once, and close it again."""
    config = load_settings(options).settings

    async def run() -> int:
        async with compose.open_lasting(config, log=make_log(config)) as lasting:
            return await work(lasting)

    return anyio.run(run)


def context(gateway: Gateway | Lasting) -> RequestContext:
    """Return the context of a command typed on this host."""
    return RequestContext(request_id=gateway.ids.new("req"), user_agent="cli")


def create(options: argparse.Namespace, console: Console) -> int:
    """Create a key and print it once, alone on stdout."""
    expires_at = None
    if options.expires:
        expires_at = read_expiry(options.expires, SystemClock().now_at())
    new = NewKey(
        name=options.name,
        scopes=tuple(part.strip() for part in options.scopes.split(",") if part.strip()),
        rate_limit=strict_json.read_integer(options.rate_limit, param="--rate-limit", low=1, high=10_000_000),
        expires_at=expires_at,
        policy=options.policy,
        models=tuple(part.strip() for part in (options.models or "").split(",") if part.strip()),
    )

    async def work(gateway: Lasting) -> int:
        created = await gateway.keys.create(local("cli"), new, context(gateway))
        console.note(f"{created.record.id} created; the key is shown this once:")
        console.print(created.key)
        return OK

    return with_records(options, work)


def list_keys(options: argparse.Namespace, console: Console) -> int:
    """List every key record; a key itself is never shown again."""

    async def work(gateway: Lasting) -> int:
        records = await gateway.keys.list()
        now_at = gateway.clock.now_at()
        if options.json:
            console.print_json([as_json(record, now_at) for record in records])
            return OK
        rows = [
            (
                record.id,
                record.name,
                record.prefix,
                record.status(now_at),
                str(record.rate_limit),
                ",".join(record.scopes),
                moment(record.last_used_at) or "never used",
            )
            for record in records
        ]
        console.print(table(rows, ("ID", "NAME", "PREFIX", "STATUS", "PER MINUTE", "SCOPES", "LAST USED")))
        return OK

    return with_records(options, work)


def show(options: argparse.Namespace, console: Console) -> int:
    """Print one key record."""

    async def work(gateway: Lasting) -> int:
        record = await gateway.keys.show(options.id)
        value = as_json(record, gateway.clock.now_at())
        if options.json:
            console.print_json(value)
        else:
            for name, shown_value in value.items():
                console.print(f"{name}: {as_text(shown_value)}")
        return OK

    return with_records(options, work)


def revoke(options: argparse.Namespace, console: Console) -> int:
    """Revoke a key. A running gateway refuses it within a second."""

    async def work(gateway: Lasting) -> int:
        record = await gateway.keys.revoke(local("cli"), options.id, context(gateway))
        console.note(f"{record.id} ({record.name}) is revoked")
        return OK

    return with_records(options, work)


def rotate(options: argparse.Namespace, console: Console) -> int:
    """Make a key that takes another's place and print it once, alone on stdout."""
    grace_seconds = strict_json.read_integer(
        options.grace_seconds, param="--grace-seconds", low=0, high=MAX_GRACE_SECONDS
    )

    async def work(gateway: Lasting) -> int:
        created = await gateway.keys.rotate(local("cli"), options.id, context(gateway), grace_seconds=grace_seconds)
        record = created.record
        console.note(f"{record.id} takes the place of {record.rotated_from}; the new key is shown this once:")
        console.print(created.key)
        return OK

    return with_records(options, work)


def read_expiry(text: str, now_at: int, *, flag: str = "--expires") -> int:
    """Read `90d`, `12h` or `30m` from now, or a date or time that is still to come."""
    is_date = len(text) == len("2030-01-31")
    expires_at = read_ahead(f"{text}T00:00:00Z" if is_date else text, param=flag, now_at=now_at)
    if expires_at <= now_at:
        raise InvalidRequest(f"{flag} must be in the future, such as 90d or 2030-01-31", param=flag)
    return expires_at


def moment(at: int | None) -> str | None:
    """Return a time as RFC 3339, or None."""
    return None if at is None else strict_json.write_time(at)


def as_text(value: object) -> str:
    """Return a field of a record as a person reads it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)


def as_json(record: KeyRecord, now_at: int) -> dict[str, object]:
    """Return a key record as the API shows it: everything but the key and its hash."""
    return encode(view_key(record, now_at))


def declare_create(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `keys create`."""
    parser.add_argument("--name", required=True, help="what the key is for")
    parser.add_argument("--scopes", required=True, help="comma-separated, such as shield:scan,chat:completions")
    parser.add_argument("--rate-limit", default="60", metavar="N", help="requests a minute (60)")
    parser.add_argument("--expires", metavar="AGE|DATE", help="such as 90d or 2030-01-31; never if left out")
    parser.add_argument("--policy", help="id or name of the policy that holds for the key")
    parser.add_argument("--models", help="comma-separated models it may use, * and ? stand for any; all if left out")


def declare_id(parser: argparse.ArgumentParser) -> None:
    """Declare the key's id."""
    parser.add_argument("id", help="id (key_…) or prefix (svc_…) of the key")


def declare_rotate(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `keys rotate`."""
    declare_id(parser)
    parser.add_argument(
        "--grace-seconds",
        default=str(DEFAULT_GRACE_SECONDS),
        metavar="N",
        help="how long the old key still works (86400, a day)",
    )


COMMANDS = (
    Command(
        "keys create",
        "Create an API key; it is printed once, alone on stdout.",
        "gateway.pyz keys create --name ci --scopes shield:scan --expires 90d",
        declare_create,
        create,
    ),
    Command("keys list", "List the API keys.", "gateway.pyz keys list --json", nothing, list_keys, has_json=True),
    Command(
        "keys show", "Show one API key's record.", "gateway.pyz keys show svc_1a2b3c", declare_id, show, has_json=True
    ),
    Command("keys revoke", "Revoke an API key.", "gateway.pyz keys revoke svc_1a2b3c", declare_id, revoke),
    Command(
        "keys rotate",
        "Make a key that takes another's place; the old one is revoked when the grace is over.",
        "gateway.pyz keys rotate svc_1a2b3c --grace-seconds 3600",
        declare_rotate,
        rotate,
    ),
)
