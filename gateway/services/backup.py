"""Back up and restore the database as one file: taken while serving, checked to its last event before it is used."""

import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
from anyio import to_thread

from gateway import __version__
from gateway.clock import Clock, Ids
from gateway.domain.audit import ChainHead, ChainReport
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import SetupError
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.services.backup_file import DATABASE, FORMAT, About, pack, sha256, unpack
from gateway.services.backup_revivals import Revivals, present_in, settle
from gateway.store import backup as copies
from gateway.store import exchange
from gateway.store.migrations import schema_number
from gateway.store.store import Store, open_store
from gateway.strict_json import write_time

_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup that was made. chain: what the check of the audit chain in it found."""

    path: str
    file_bytes: int
    sha256: str
    about: About
    chain: ChainReport


@dataclass(frozen=True, slots=True)
class Restored:
    """A backup that was restored. events: how many its chain has. aside: where the old database is kept, or None."""

    path: str
    events: int
    aside: str | None
    revivals: Revivals


class Backups:
    """Makes backups of an open store. The audit chain of each copy is followed to its end before it is packed."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, log: Log, audit: Audit) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._log = log
        self._audit = audit

    async def make(self, principal: Principal, path: str, context: RequestContext) -> BackedUp:
        """Write a backup of the database as it is now to the new file `path`, readable by its owner alone.

        The audit event of it is committed first, so that the backup holds it.

        Raises:
            SetupError: the file exists or cannot be written, or the copy is damaged. No half file is left.
            AuditUnavailable: nothing was done.
        """
        _refuse_existing(path)
        event = self._audit.event(
            "backup_created",
            source=principal.id,
            principal=principal,
            request=context,
            resource_type="backup",
            resource_id=_name(path),
            details={"version": __version__},
        )
        await self._audit.record(event)
        try:
            with _scratch(path, self._ids) as folder:
                return await self._make(path, folder)
        except OSError as error:
            raise SetupError(f"The backup {path} cannot be written: {error.strerror or error}.") from error

    async def _make(self, path: str, folder: str) -> BackedUp:
        copy = f"{folder}/{DATABASE}"
        await to_thread.run_sync(copies.copy_database, self._store.db, copy)
        found = await _look(copy, self._clock, self._ids, self._log)
        digest, size = await to_thread.run_sync(sha256, copy)
        about = About(
            format=FORMAT,
            version=__version__,
            made_at=write_time(self._clock.now_at()),
            schema=found.schema,
            instance_id=found.instance_id,
            seq=found.head.seq,
            hash=found.head.hash,
            database_bytes=size,
            database_sha256=digest,
        )
        packed = f"{folder}/backup"
        await to_thread.run_sync(pack, packed, copy, about)
        file_sha256, file_bytes = await to_thread.run_sync(sha256, packed)
        _move_to_new(packed, path)
        return BackedUp(path, file_bytes, file_sha256, about, found.chain)


async def restore(
    principal: Principal,
    backup: str,
    database: str,
    *,
    force: bool,
    revoke_newer: bool = False,
    clock: Clock,
    ids: Ids,
    log: Log,
) -> Restored:
    """Put the database in the file `backup` at the path `database`, once all of it was found good.

    The old database, if any, is kept beside it. The restored one is brought to this program's schema, and its audit log
    says what was restored, which chain end it replaced, and what keys and users get back by it. revoke_newer:
    whether they stay as they were in the database that is replaced.

    Raises:
        SetupError: the file is no whole backup, its chain is broken, a newer program made it, a gateway has the
            database open, or there is one already and `force` is not given. Nothing was changed.
    """
    try:
        _refuse_to_replace(database, force=force)
        with _scratch(database, ids) as folder:
            new = f"{folder}/{DATABASE}"
            about = await to_thread.run_sync(unpack, backup, new)
            replaced = await to_thread.run_sync(_noted_head, database)
            try:
                found = await _look(new, clock, ids, log, about=about)
            except SetupError as error:
                raise SetupError(f"{backup} is not restored. {error.message.replace(new, backup)}") from error
            if not found.chain.ok:
                raise SetupError(f"The audit chain in {backup} is broken: {found.chain.reason}. Nothing was changed.")
            present = await present_in(database, folder, clock=clock, ids=ids, log=log)
            details = _details(backup, found, about, replaced)
            revivals = await settle(
                new, present, principal, details, keep_out=revoke_newer, clock=clock, ids=ids, log=log
            )
            aside = await to_thread.run_sync(_swap, new, database, clock.now_at())
    except (OSError, zlib.error) as error:
        raise SetupError(f"{backup} cannot be restored: {error}.") from error
    events = found.chain.events + 1 + (len(revivals.keys) + len(revivals.users) if revoke_newer else 0)
    return Restored(database, events, aside, revivals)


@dataclass(frozen=True, slots=True)
class _Found:
    instance_id: str
    schema: int
    head: ChainHead
    chain: ChainReport


async def _look(path: str, clock: Clock, ids: Ids, log: Log, *, about: About | None = None) -> _Found:
    """Open a copy, follow its chain, and see whether it ends where the backup says."""
    store = await open_store(path, clock=clock, ids=ids, log=log)
    try:
        if not await to_thread.run_sync(store.db.is_whole):
            raise SetupError("The copy of the database is damaged: its own check fails.")
        audit = Audit(store=store, clock=clock, ids=ids, instance_id=store.instance_id)
        chain = await audit.verify()
        head = await store.db.read(lambda tx: store.audit.head(tx, store.instance_id))
        schema = await store.db.read(schema_number)
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()
    if about is not None and (about.instance_id, about.seq, about.hash) != (store.instance_id, head.seq, head.hash):
        chain = ChainReport(False, chain.events, head.seq, "it does not end where the backup says")
    return _Found(store.instance_id, schema, head, chain)


def _details(backup: str, found: _Found, about: About | None, replaced: dict[str, object] | None) -> dict[str, object]:
    return {
        "file": _name(backup),
        "made_at": about.made_at if about else None,
        "made_by_version": about.version if about else None,
        "seq": found.head.seq,
        "hash": found.head.hash,
        "replaced": replaced,
        "version": __version__,
    }


def _noted_head(database: str) -> dict[str, object] | None:
    """Return where the chain of the database that is replaced ended, as noted beside it."""
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
    """Refuse early what `_swap` would refuse after long work."""
    if os.path.exists(database) and not force:
        raise SetupError(f"{database} exists: --force replaces it, and keeps it beside under another name.")
    with exchange.held(database):
        return


def _swap(new: str, database: str, now_at: int) -> str | None:
    """Put the new database in its place, and return where the old one is kept."""
    if os.path.exists(new + "-wal") and os.path.getsize(new + "-wal"):
        raise SetupError("The restored database could not be closed in order. Nothing was changed.")
    stamp = write_time(now_at).replace("-", "").replace(":", "")
    aside = f"{database}.replaced-{stamp}"
    with exchange.held(database):
        exchange.put_in_place(new, database, aside)
    return aside if os.path.exists(aside) else None


def _name(path: str) -> str:
    return os.path.basename(path)


@contextmanager
def _scratch(path: str, ids: Ids) -> Iterator[str]:
    """Make a folder beside `path` for this work alone, and remove it with all that is in it."""
    folder = os.path.join(os.path.dirname(os.path.abspath(path)), ids.new(".backup"))
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move_to_new(source: str, target: str) -> None:
    """Give a file its name, if nothing else has it by now."""
    try:
        os.link(source, target)
    except FileExistsError as error:
        raise SetupError(f"{target} exists: a backup overwrites nothing, name a new file.") from error
    except OSError:  # a file system without hard links
        os.rename(source, target)
    copies.sync(os.path.dirname(os.path.abspath(target)))
