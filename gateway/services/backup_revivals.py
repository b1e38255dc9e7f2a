"""Keys and users that a restore would let in again: ended in the present database, active in the backup."""

import os
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from gateway.clock import Clock, Ids
from gateway.domain.keys import KeyRecord
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.users import User
from gateway.errors import GatewayError, SetupError
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.services.backup_file import unpack
from gateway.store.authority import AuthorityTransaction
from gateway.store.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@dataclass(frozen=True, slots=True)
class Ended:
    """The ids of keys and users that may no longer come in. is_known: whether the database could be read."""

    keys: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Revivals:
    """Who lives again after a restore, or would but for `are_kept_out`. is_known: whether that could be told."""

    keys: tuple[KeyRecord, ...] = ()
    users: tuple[User, ...] = ()
    are_kept_out: bool = False
    is_known: bool = True

    def told(self) -> Mapping[str, object]:
        """Return what output and audit log say of it."""
        return {
            "keys": [{"id": key.id, "name": key.name, "prefix": key.prefix} for key in self.keys],
            "users": [{"id": user.id, "username": user.username} for user in self.users],
            "kept_out": self.are_kept_out,
            "known": self.is_known,
        }


async def ended_in(database: str, folder: str, *, clock: Clock, ids: Ids, log: Log) -> Ended:
    """Return who may no longer come in, by a copy in `folder` of the database that is to be replaced."""
    if not await anyio.Path(database).exists():
        return Ended()
    copy = os.path.join(folder, "present.db")
    try:
        await to_thread.run_sync(unpack, database, copy)
        async with _open(copy, clock=clock, ids=ids, log=log) as store:
            keys, users = await store.db.read(lambda tx: (store.keys.all(tx), store.users.all(tx)))
    except (GatewayError, OSError):
        return Ended(is_known=False)
    now_at = clock.now_at()
    return Ended(
        frozenset(key.id for key in keys if key.status(now_at) != "active" or key.revoked_at is not None),
        frozenset(user.id for user in users if user.disabled_at is not None),
    )


async def settle(
    path: str, ended: Ended, principal: Principal, details: Mapping[str, object], *, keep_out: bool,
    clock: Clock, ids: Ids, log: Log,
) -> Revivals:  # fmt: skip
    """Note the restore in the restored database at `path`, and end there again who was ended, if `keep_out`.

    Raises:
        SetupError: `keep_out`, and nobody knows who was ended. Nothing was changed.
    """
    if keep_out and not ended.is_known:
        raise SetupError("The present database cannot be read, so --revoke-newer cannot tell what to keep revoked.")
    now_at, context = clock.now_at(), RequestContext(request_id=ids.new("req"), user_agent="cli")
    async with _open(path, clock=clock, ids=ids, log=log) as store:
        audit = Audit(store=store, clock=clock, ids=ids, instance_id=store.instance_id)
        keys, users = await store.db.read(lambda tx: (store.keys.all(tx), store.users.all(tx)))
        found = Revivals(
            tuple(key for key in keys if key.id in ended.keys and key.status(now_at) == "active"),
            tuple(user for user in users if user.id in ended.users and user.disabled_at is None),
            keep_out,
            ended.is_known,
        )

        def note(tx: AuthorityTransaction, action: str, kind: str, id: str, more: Mapping[str, object]) -> None:
            event = audit.event(
                action,
                source=principal.id,
                principal=principal,
                request=context,
                resource_type=kind,
                resource_id=id,
                details=more,
            )
            audit.append(tx, event)

        def work(tx: AuthorityTransaction) -> None:
            note(tx, "backup_restored", "backup", str(details["file"]), {**details, "revived": found.told()})
            if not keep_out:
                return
            for key in found.keys:
                store.keys.revoke(tx, key.id, now_at=now_at)
                note(tx, "api_key_revoked", "api_key", key.id, {"reason": "revoked before the restore"})
            for user in found.users:
                store.users.change(tx, replace(user, disabled_at=now_at))
                store.sessions.end_of_user(tx, user.id)
                note(tx, "user_changed", "user", user.id, {"reason": "disabled before the restore"})

        await audit.commit_authority(work)
        return found


@asynccontextmanager
async def _open(path: str, *, clock: Clock, ids: Ids, log: Log) -> "AsyncGenerator[Store]":
    store = await open_store(path, clock=clock, ids=ids, log=log)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()
