"""Back up the database into one file while the gateway serves, and restore it.

Every copy is opened and its audit chain verified to the last event, after it is made and again before it replaces a
database. A backup that cannot be restored is found when it is made.
"""

import json
import os
import zlib
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import cast

from anyio import to_thread

from gateway import __version__
from gateway.clock import Clock, Ids
from gateway.domain.audit import ChainHead, ChainReport
from gateway.domain.principals import Caller, Principal
from gateway.errors import SetupError
from gateway.log import Log
from gateway.services.backup_file import DATABASE, FORMAT, About, pack, sha256, unpack
from gateway.services.backup_revivals import Opener, Revivals, opened, present_in, settle
from gateway.services.core import Core
from gateway.services.database_copy import copy_to_file
from gateway.store import database_file
from gateway.store.filelock import sync
from gateway.store.migrations import schema_number
from gateway.store.sqlite import SqliteDatabase
from gateway.strict_json import write_time

_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A new backup. chain: the check of its audit chain."""

    path: str
    file_bytes: int
    sha256: str
    about: About
    chain: ChainReport


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored backup. events: the length of its chain. aside: the path of the old database, or None."""

    path: str
    events: int
    aside: str | None
    revivals: Revivals


async def back_up(core: Core, caller: Caller, path: str, *, log: Log) -> BackedUp:
    """Write a backup of the database of `core` as it is now to the new file `path` (0600).

    The audit event is committed first, so that the backup holds it.

    Raises:
        SetupError: the file exists or cannot be written, or the copy is damaged. No partial file is left.
        AuditUnavailable: no backup was made.
    """
    _refuse_existing(path)
    name, details = os.path.basename(path), {"version": __version__}
    audit, store = core.audit, core.store
    await audit.commit(lambda tx: audit.append_change(tx, "backup_created", caller, "backup", name, details=details))
    try:
        with _scratch(path) as folder:
            copy, packed = f"{folder}/{DATABASE}", f"{folder}/backup"
            if store.db.is_shared:
                await copy_to_file(store.db, copy, clock=core.clock, log=log)
            else:
                await to_thread.run_sync(cast(SqliteDatabase, store.db).copy_to, copy)
            schema, head, chain = await _inspect(copy, partial(opened, clock=core.clock, ids=core.ids, log=log))
            digest, size = await to_thread.run_sync(sha256, copy)
            about = About(
                format=FORMAT,
                version=__version__,
                made_at=write_time(core.clock.now_at()),
                schema=schema,
                instance_id=store.instance_id,
                seq=head.seq,
                hash=head.hash,
                database_bytes=size,
                database_sha256=digest,
            )
            await to_thread.run_sync(pack, packed, copy, about)
            file_sha256, file_bytes = await to_thread.run_sync(sha256, packed)
            _move_to_new(packed, path)
    except OSError as error:
        raise SetupError(f"The backup {path} cannot be written: {error.strerror or error}.") from error
    return BackedUp(path, file_bytes, file_sha256, about, chain)


async def restore(
    principal: Principal,
    backup: str,
    database: str,
    *,
    force: bool,
    revoke_newer: bool,
    clock: Clock,
    ids: Ids,
    log: Log,
) -> Restored:
    """Verify the backup in the file `backup`, then put its database at the path `database`.

    An old database is kept beside the new one. The restored database is migrated to the schema of this program. Its
    audit log records the restore, the chain end that it replaced, and which keys and users regain access.
    revoke_newer: keys and users stay as they were in the replaced database.

    Raises:
        SetupError: the file is damaged or no backup, its chain is broken, a newer program made it, a gateway has the
            database open, or a database exists and `force` is not set. Nothing was changed.
    """
    opener = partial(opened, clock=clock, ids=ids, log=log)
    try:
        _refuse_to_replace(database, force=force)
        with _scratch(database) as folder:
            new = f"{folder}/{DATABASE}"
            about = await to_thread.run_sync(unpack, backup, new)
            replaced = await to_thread.run_sync(_head_beside, database)
            try:
                _, head, chain = await _inspect(new, opener, about)
            except SetupError as error:
                raise SetupError(f"{backup} is not restored. {error.message.replace(new, backup)}") from error
            if not chain.ok:
                raise SetupError(f"The audit chain in {backup} is broken: {chain.reason}. Nothing was changed.")
            present = await present_in(database, folder, opener)
            details = {
                "file": os.path.basename(backup),
                "made_at": about.made_at if about else None,
                "made_by_version": about.version if about else None,
                "seq": head.seq,
                "hash": head.hash,
                "replaced": replaced,
                "version": __version__,
            }
            revivals = await settle(new, present, principal, details, keep_out=revoke_newer, opener=opener)
            aside = await to_thread.run_sync(_swap, new, database, clock.now_at())
    except (OSError, zlib.error) as error:
        raise SetupError(f"{backup} cannot be restored: {error}.") from error
    events = chain.events + 1 + (len(revivals.keys) + len(revivals.users) if revoke_newer else 0)
    return Restored(database, events, aside, revivals)


async def _inspect(path: str, opener: Opener, about: About | None = None) -> tuple[int, ChainHead, ChainReport]:
    """Open a copy and verify its chain, whose end must be that of `about`. Return schema, end and report."""
    async with opener(path) as core:
        store = core.store
        if not await to_thread.run_sync(cast(SqliteDatabase, store.db).is_whole):
            raise SetupError("The copy of the database is damaged: its own check fails.")
        chain = await core.audit.verify()
        head = await store.db.read(lambda tx: store.audit.head(tx, store.instance_id))
        schema = await store.db.read(schema_number)
    if about is not None and (about.instance_id, about.seq, about.hash) != (store.instance_id, head.seq, head.hash):
        chain = ChainReport(False, chain.events, head.seq, "it does not end where the backup says")
    return schema, head, chain


def _head_beside(database: str) -> dict[str, object] | None:
    """Return the end of the replaced chain, from the file beside its database."""
    try:
        with open(database + ".head", "rb") as file:
            noted = json.loads(file.read(_HEAD_BYTES))
        return {"instance_id": str(noted["instance_id"]), "seq": int(noted["seq"]), "hash": str(noted["hash"])}
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _refuse_existing(path: str) -> None:
    if os.path.lexists(path):
        raise SetupError(f"{path} exists: a backup overwrites nothing, name a new file.")


def _refuse_to_replace(database: str, *, force: bool) -> None:
    """Refuse now, because `_swap` would refuse only after long work."""
    if os.path.exists(database) and not force:
        raise SetupError(f"{database} exists: --force replaces it, and keeps it beside under another name.")
    with database_file.exclusive(database):
        return


def _swap(new: str, database: str, now_at: int) -> str | None:
    """Put the new database at its path, and return the path of the old one."""
    if os.path.exists(new + "-wal") and os.path.getsize(new + "-wal"):
        raise SetupError("The restored database could not be closed in order. Nothing was changed.")
    stamp = write_time(now_at).replace("-", "").replace(":", "")
    aside = f"{database}.replaced-{stamp}"
    with database_file.exclusive(database):
        database_file.put_in_place(new, database, aside)
    return aside if os.path.exists(aside) else None


def _scratch(path: str) -> TemporaryDirectory[str]:
    """Make a temporary folder (0700) beside `path`, to be removed afterwards."""
    beside = os.path.dirname(os.path.abspath(path))
    return TemporaryDirectory(prefix=".backup_", dir=beside, ignore_cleanup_errors=True)


def _move_to_new(source: str, target: str) -> None:
    """Move a file to a path that no other file has."""
    try:
        os.link(source, target)
    except OSError:  # the file exists by now, or the file system has no hard links
        _refuse_existing(target)
        os.rename(source, target)
    sync(os.path.dirname(os.path.abspath(target)))
