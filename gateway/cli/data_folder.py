"""`backup`, `restore`, `db copy`, `demo-data`: all data in a file, brought back, moved, or a made-up day."""

import argparse
import shlex
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import TypeVar

import anyio

from gateway import compose, strict_json
from gateway.app import Gateway
from gateway.cli.command import (
    FOUND,
    OK,
    Console,
    argument,
    caller,
    command,
    load_settings,
    make_log,
    past_time,
    with_gateway,
)
from gateway.clock import Clock, Ids
from gateway.domain.principals import local
from gateway.errors import SetupError
from gateway.schema import encode
from gateway.services import backup as backups
from gateway.services.backup_revivals import Change, Revivals
from gateway.services.database_copy import copy_database
from gateway.services.demo_data import DemoData, DemoReport
from gateway.settings import Settings
from gateway.store.postgres_address import Address

T = TypeVar("T")
DEFAULT_REQUESTS = 100_000
MOST_REQUESTS = 10_000_000


@command(
    "backup",
    "Write the whole database to one file, while serving.",
    "/var/backups/gateway-2026-01-31.backup",
    argument("file", metavar="FILE", help="new file to write, readable only by its owner"),
    has_json=True,
)
def _backup(options: argparse.Namespace, console: Console) -> int:
    config = load_settings(options)
    if config.data_dir == ":memory:":
        raise SetupError("the database of :memory: is inside the running gateway and cannot be backed up from outside")
    if not compose.has_database(config):  # opening the folder would create an empty one
        raise SetupError(f"there is no database in {config.data_dir}, so there is nothing to back up")

    async def work(gateway: Gateway) -> int:
        made = await backups.back_up(gateway, caller(gateway), options.file, log=gateway.log)
        if options.json:
            written = {"file": made.path, "bytes": made.file_bytes, "sha256": made.sha256}
            about = {name: getattr(made.about, name) for name in ("version", "schema", "seq", "hash")}
            console.print_json(written | about | {"events": made.chain.events, "chain_ok": made.chain.ok})
        else:
            console.print(f"{made.sha256}  {made.path}")
            console.note(f"{made.file_bytes} bytes, {made.chain.events} audit events up to {made.about.seq}")
        if not made.chain.ok:
            console.note(f"the audit chain in it is BROKEN: {made.chain.reason}")
        return OK if made.chain.ok else FOUND

    return with_gateway(options, work)


@command(
    "restore",
    "Replace the database with a backup, with the gateway stopped.",
    "/var/backups/gateway-2026-01-31.backup --force",
    argument("file", metavar="FILE", help="backup, or a copy of the database made before an upgrade"),
    argument("--force", action="store_true", help="replace an existing database, which is kept beside it"),
    argument(
        "--revoke-newer", action="store_true", help="keep keys and users as they are now where the backup differs"
    ),
    has_json=True,
)
def _restore(options: argparse.Namespace, console: Console) -> None:
    config = load_settings(options)
    if config.data_dir == ":memory:":
        raise SetupError("there is nothing to restore to in :memory:, name a folder with --data-dir")
    if config.has_server and (options.force or options.revoke_newer):
        raise SetupError("--force and --revoke-newer are for a data folder: database_url has to name an empty database")
    compose.make_data_dir(config.data_dir)
    with ExitStack() as stack:
        path = compose.database_path(config)
        if config.has_server:
            folder = stack.enter_context(TemporaryDirectory(prefix=".restore_", dir=config.data_dir))
            path = f"{folder}/{compose.DATABASE}"
        wishes = {"force": options.force, "revoke_newer": options.revoke_newer}
        done = _run(config, backups.restore, local("cli"), options.file, path, **wishes)
        if config.has_server:
            server = str(config.database_url)
            _run(config, copy_database, f"sqlite:{path}", server, password_file=config.database_password_file)
            done = replace(done, path=Address.parse(server, password_file=config.database_password_file).shown)
    if options.json:
        about = {"database": done.path, "events": done.events, "replaced": done.aside}
        console.print_json(about | {"revived": done.revivals.shown()})
        return
    console.print(f"restored to {done.path}: {done.events} audit events, the chain is whole")
    if done.aside:
        console.note(f"the previous database is kept as {done.aside}")
    _print_revivals(done.revivals, config.data_dir, console)


def _run(config: Settings, work: Callable[..., Awaitable[T]], *arguments: object, **options: object) -> T:
    """Do work on a database that no gateway has open."""
    clock = Clock()
    return anyio.run(partial(work, *arguments, **options, clock=clock, ids=Ids(clock), log=make_log(config)))


@command(
    "db copy",
    "Copy all data to another database, with every gateway stopped.",
    "--from sqlite:/var/lib/gateway/gateway.db --to postgresql://gateway@db.example.com/gateway",
    argument(
        "--from", dest="source", required=True, metavar="ADDRESS", help="sqlite:/PATH or postgresql://USER@HOST/NAME"
    ),
    argument("--to", dest="target", required=True, metavar="ADDRESS", help="of an empty database"),
    has_json=True,
)
def _copy(options: argparse.Namespace, console: Console) -> None:
    def told(name: str, rows: int) -> None:
        console.note(f"{name}: {rows} rows")

    config = load_settings(options)
    where = options.source, options.target
    copied = _run(config, copy_database, *where, password_file=config.database_password_file, told=told)
    if options.json:
        console.print_json({"rows": dict(copied.rows), "events": copied.events})
        return
    total = sum(copied.rows.values())
    console.print(f"copied {total} rows of {len(copied.rows)} tables; the chain of {copied.events} events is whole")
    console.note("copy the file of the seal key to each host: GATEWAY_SEAL_KEY_FILE names it")


def _print_revivals(revivals: Revivals, data_dir: str, console: Console) -> None:
    """Name the keys and users that the backup restores to an older state, and the commands that undo it."""
    remedies = []
    where = f" --data-dir {shlex.quote(data_dir)}"
    for key in revivals.keys:
        console.note(f"key {key.record.name} ({key.record.prefix}…): {_changes(key.changes, revivals)}")
        remedies.append(f"gateway.pyz keys revoke {key.record.id}{where}")
    for user in revivals.users:
        console.note(f"user {user.record.username}: {_changes(user.changes, revivals)}")
        is_password = all(change.what == "password" for change in user.changes)
        remedies.append(f"gateway.pyz users {'passwd' if is_password else 'disable'} {user.record.username}{where}")
    if remedies and not revivals.are_kept_out:
        console.note("Check them before you start the gateway. These commands keep them out:")
        for remedy in remedies:
            console.note(f"  {remedy}")
    differ = ", ".join(f"{name} {count}" for name, count in revivals.rules.items() if count)
    console.note(
        "access list, policies, providers and detectors are those of the backup"
        + (f"; these differ: {differ}" * bool(differ))
    )
    if not revivals.is_known:
        console.note(
            "the present database was missing or unreadable, so it is unknown what was revoked since the backup; "
            "check keys list and users list"
        )


def _changes(changes: tuple[Change, ...], revivals: Revivals) -> str:
    if revivals.are_kept_out:
        kept = (f"{one.what} in the backup is {one.backup}, newer is {one.present}" for one in changes)
        return "; ".join(kept) + ": kept out"
    return "; ".join(f"{one.what} is {one.backup} again, was {one.present}" for one in changes)


@command(
    "demo-data",
    "Fill a fresh data folder with a made-up day of traffic.",
    "--data-dir /tmp/demo --seed 7",
    argument("--seed", default="1", metavar="N", help="which day; the same number makes the same data (1)"),
    argument(
        "--requests", default=str(DEFAULT_REQUESTS), metavar="N", help=f"requests of the day ({DEFAULT_REQUESTS})"
    ),
    argument("--until", metavar="TIME", help="when the day ends, such as 2030-01-31T12:00:00Z; now"),
    has_json=True,
)
def _demo_data(options: argparse.Namespace, console: Console) -> None:
    config = load_settings(options)
    if config.data_dir == ":memory:":
        raise SetupError("demo data goes into a folder: name a fresh one with --data-dir")
    if compose.has_database(config):
        raise SetupError(f"{config.data_dir} is in use: demo data goes into a fresh folder, name one with --data-dir")
    seed = strict_json.read_integer(options.seed, param="--seed", low=0, high=2**31)
    requests = strict_json.read_integer(options.requests, param="--requests", low=1, high=MOST_REQUESTS)
    until_at = past_time(options.until, "--until") or Clock().now_at()

    async def work(gateway: Gateway) -> DemoReport:
        made = DemoData(store=gateway.store, shield=gateway.shield, seed=seed, until_at=until_at, requests=requests)
        return await made.write()

    report = with_gateway(options, work)
    if options.json:
        console.print_json(encode(report))
    else:
        console.print(
            f"{report.requests} requests of {report.agents} agents, {report.keys} keys and {report.providers} "
            f"providers; {report.blocks} blocked, {report.reviews} to review; {report.alerts} alerts, "
            f"{report.audit_events} audit events"
        )
        console.note(f"look at it with: gateway.pyz serve --data-dir {config.data_dir}")


COMMANDS = (_backup, _restore, _copy, _demo_data)
