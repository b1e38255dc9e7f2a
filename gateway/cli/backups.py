"""`backup` and `restore`: the whole database as one file, and back."""

import argparse
import os

import anyio

from gateway import compose
from gateway.app import Gateway
from gateway.cli.command import FOUND, OK, Command, Console, load_settings, make_log
from gateway.cli.manage import context, with_gateway
from gateway.clock import SystemClock, SystemIds
from gateway.domain.principals import local
from gateway.errors import SetupError
from gateway.services import backup as backups
from gateway.services.backup import Backups
from gateway.services.backup_revivals import Revivals


def backup(options: argparse.Namespace, console: Console) -> int:
    """Write a backup while the gateway serves. Exit 1 when the audit chain in it is broken."""
    _need_folder(options)

    async def work(gateway: Gateway) -> int:
        maker = Backups(store=gateway.store, clock=gateway.clock, ids=gateway.ids, log=gateway.log, audit=gateway.audit)
        made = await maker.make(local("cli"), options.file, context(gateway))
        about = {
            "file": made.path,
            "bytes": made.file_bytes,
            "sha256": made.sha256,
            "version": made.about.version,
            "schema": made.about.schema,
            "events": made.chain.events,
            "seq": made.about.seq,
            "hash": made.about.hash,
            "chain_ok": made.chain.ok,
        }
        if options.json:
            console.print_json(about)
        else:
            console.print(f"{made.sha256}  {made.path}")
            console.note(f"{made.file_bytes} bytes, {made.chain.events} audit events up to {made.about.seq}")
        if not made.chain.ok:
            console.note(f"the audit chain in it is BROKEN: {made.chain.reason}")
        return OK if made.chain.ok else FOUND

    return with_gateway(options, work)


def restore(options: argparse.Namespace, console: Console) -> int:
    """Put a backup in the place of the database, with the gateway stopped."""
    config = load_settings(options).settings
    if config.data_dir == ":memory:":
        raise SetupError("there is nothing to restore to in :memory:, name a folder with --data-dir")
    compose.make_data_dir(config.data_dir)
    clock = SystemClock()

    async def run() -> backups.Restored:
        return await backups.restore(
            local("cli"),
            options.file,
            compose.database_path(config),
            force=options.force,
            revoke_newer=options.revoke_newer,
            clock=clock,
            ids=SystemIds(clock),
            log=make_log(config),
        )

    done = anyio.run(run)
    if options.json:
        about = {"database": done.path, "events": done.events, "replaced": done.aside}
        console.print_json(about | {"revived": done.revivals.told()})
        return OK
    console.print(f"restored to {done.path}: {done.events} audit events, the chain is whole")
    if done.aside:
        console.note(f"the database that was there is kept as {done.aside}")
    _tell(done.revivals, console)
    return OK


def _tell(revivals: Revivals, console: Console) -> None:
    """Name the keys and users that the present database had ended and the backup has not."""
    state = "stays out" if revivals.are_kept_out else "LIVES AGAIN"
    for key in revivals.keys:
        console.note(f"key {key.name} ({key.prefix}…) was revoked before this restore and {state}")
    for user in revivals.users:
        console.note(f"user {user.username} was disabled before this restore and {state}")
    if (revivals.keys or revivals.users) and not revivals.are_kept_out:
        console.note("revoke and disable them, or restore again with --revoke-newer")
    if not revivals.is_known:
        console.note("the replaced database cannot be read: check which keys and users should not live again")


def _need_folder(options: argparse.Namespace) -> None:
    """Refuse to back up a database that would only be made by that."""
    config = load_settings(options).settings
    if config.data_dir == ":memory:":
        raise SetupError("the database of :memory: is inside the running gateway and cannot be backed up from outside")
    if not os.path.exists(compose.database_path(config)):
        raise SetupError(f"there is no database in {config.data_dir}, so there is nothing to back up")


def declare_backup(parser: argparse.ArgumentParser) -> None:
    """Declare the file to write."""
    parser.add_argument("file", metavar="FILE", help="new file to write; its owner alone may read it")


def declare_restore(parser: argparse.ArgumentParser) -> None:
    """Declare the file to read."""
    parser.add_argument("file", metavar="FILE", help="backup, or a copy of the database made before an upgrade")
    parser.add_argument("--force", action="store_true", help="replace a database that is there; it is kept beside")
    parser.add_argument(
        "--revoke-newer", action="store_true", help="keep out the keys and users that are revoked or disabled now"
    )


COMMANDS = (
    Command(
        "backup",
        "Write the whole database to one file, while serving.",
        "gateway.pyz backup /var/backups/gateway-2026-01-31.backup",
        declare_backup,
        backup,
        has_json=True,
    ),
    Command(
        "restore",
        "Put a backup in the place of the database, with the gateway stopped.",
        "gateway.pyz restore /var/backups/gateway-2026-01-31.backup --force",
        declare_restore,
        restore,
        has_json=True,
    ),
)
