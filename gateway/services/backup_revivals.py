"""Find the keys and users that a restore gives access back to, and keep them out if asked.

A backup holds keys and users as they were. One that was revoked, disabled or restricted since then regains its access
by the restore, so the operator must see it, and can choose to keep the newer state.
"""

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

import anyio
from anyio import to_thread

from gateway.clock import Clock, Ids
from gateway.domain.keys import KeyRecord
from gateway.domain.principals import Caller, Principal, RequestContext
from gateway.domain.users import User
from gateway.errors import GatewayError, SetupError
from gateway.log import Log
from gateway.services.backup_file import unpack
from gateway.services.core import Core
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store, open_store
from gateway.strict_json import write_time

T = TypeVar("T", KeyRecord, User)

_KEY_FIELDS = {
    "scopes": "scopes",
    "rate_limit": "rate limit",
    "expires_at": "expiry",
    "policy": "policy",
    "models": "models",
}
_NONE = {"expires_at": "never", "policy": "the default", "models": "all"}


Opener = Callable[[str], AbstractAsyncContextManager[Core]]
"""Opens a database and its audit log, and closes them afterwards."""


@dataclass(frozen=True, slots=True)
class Present:
    """The contents of the database to be replaced."""

    keys: Mapping[str, KeyRecord]
    users: Mapping[str, User]
    rules: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the backup and the present database."""

    what: str
    backup: str
    present: str


@dataclass(frozen=True, slots=True)
class Revival(Generic[T]):
    """A key or user with access in the backup. record: as in the backup. now: as in the present database."""

    record: T
    now: T
    changes: tuple[Change, ...]

    @property
    def is_ended(self) -> bool:
        """Whether the present database refuses it altogether."""
        return any(change.what == "status" for change in self.changes)

    def shown(self, *names: str) -> Mapping[str, object]:
        """Return these fields of the record, and the changes."""
        return {name: getattr(self.record, name) for name in names} | {"changes": [*map(asdict, self.changes)]}


@dataclass(frozen=True, slots=True)
class Revivals:
    """The access that a restore gives back. are_kept_out: the newer state was kept instead.

    is_known: the present database could be compared. rules: how many of each kind of rule differ.
    """

    keys: tuple[Revival[KeyRecord], ...] = ()
    users: tuple[Revival[User], ...] = ()
    are_kept_out: bool = False
    is_known: bool = True
    rules: Mapping[str, int] = field(default_factory=dict)

    def shown(self) -> Mapping[str, object]:
        """Return the form for the output and the audit log."""
        return {
            "keys": [one.shown("id", "name", "prefix") for one in self.keys],
            "users": [one.shown("id", "username") for one in self.users],
            "kept_out": self.are_kept_out,
            "known": self.is_known,
            "differ": dict(self.rules),
        }


async def present_in(database: str, folder: str, opener: Opener) -> Present | None:
    """Read the database to be replaced, from a copy of it in `folder`. None: it does not exist or cannot be read."""
    if not await anyio.Path(database).exists():
        return None
    copy = os.path.join(folder, "present.db")
    try:
        await to_thread.run_sync(unpack, database, copy)
        async with opener(copy) as core:
            return await core.store.db.read(lambda tx: _read(core.store, tx))
    except (GatewayError, OSError):
        return None


async def settle(
    path: str, present: Present | None, principal: Principal, details: Mapping[str, object], *, keep_out: bool,
    opener: Opener,
) -> Revivals:  # fmt: skip
    """Record the restore in the restored database at `path`; with `keep_out`, keep the newer state of keys and users.

    Raises:
        SetupError: `keep_out` is set, and the present database could not be compared. Nothing was changed.
    """
    if keep_out and present is None:
        raise SetupError(
            "The present database is missing or cannot be read, so --revoke-newer cannot tell what to keep revoked. "
            "Restore without it, then revoke keys and disable users by hand."
        )
    async with opener(path) as core:
        store, now_at = core.store, core.clock.now_at()
        caller = Caller(principal, RequestContext(request_id=core.ids.new("req"), user_agent="cli"))
        backup = await store.db.read(lambda tx: _read(store, tx))
        found = _compare(backup, present, now_at, keep_out=keep_out)

        def record(tx: AuthorityTransaction, action: str, kind: str, id: str, more: Mapping[str, object]) -> None:
            core.audit.append_change(tx, action, caller, kind, id, details=more)

        def work(tx: AuthorityTransaction) -> None:
            record(tx, "backup_restored", "backup", str(details["file"]), {**details, "revived": found.shown()})
            if not keep_out:
                return
            for key in found.keys:
                # Without its policy in the backup, the key would get the default policy.
                if key.is_ended or key.now.policy not in {None, *backup.rules["policies"]}:
                    store.keys.revoke(tx, key.record.id, now_at=now_at)
                    record(tx, "api_key_revoked", "api_key", key.record.id, {"reason": "kept out by the restore"})
                else:
                    store.keys.change(tx, key.now)
                    record(tx, "api_key_changed", "api_key", key.record.id, {"reason": "newer than the backup"})
            for user in found.users:
                disabled_at = now_at if user.is_ended else None
                store.users.change(tx, replace(user.now, disabled_at=disabled_at))
                store.sessions.end_of_user(tx, user.record.id)
                record(tx, "user_changed", "user", user.record.id, {"reason": "newer than the backup"})

        await core.audit.commit_authority(caller, work)
        return found


def _read(store: Store, tx: Transaction) -> Present:
    return Present(
        {key.id: key for key in store.keys.all(tx)},
        {user.id: user for user in store.users.all(tx)},
        {
            "policies": {policy.id: policy for policy in store.policies.all(tx)},
            "access entries": dict(store.access_list.versions(tx)),
            "providers": {provider.id: provider for provider in store.providers.all(tx)},
            "detectors": {detector.id: detector for detector in store.detectors.all(tx)},
        },
    )


def _compare(backup: Present, present: Present | None, now_at: int, *, keep_out: bool) -> Revivals:
    """Find keys and users with access in the backup whose record differs in the present database."""
    if present is None:
        return Revivals(is_known=False)
    keys = [key for key in backup.keys.values() if key.status_at(now_at) == "active"]
    users = [user for user in backup.users.values() if user.disabled_at is None]
    differ = {
        name: sum(old.get(id) != present.rules[name].get(id) for id in {*old, *present.rules[name]})
        for name, old in backup.rules.items()
    }
    revived = _revived(keys, present.keys, partial(_key_changes, now_at=now_at))
    return Revivals(revived, _revived(users, present.users, _user_changes), keep_out, rules=differ)


def _revived(
    records: Iterable[T], present: Mapping[str, T], changes: Callable[[T, T], tuple[Change, ...]]
) -> tuple[Revival[T], ...]:
    known = ((one, present[one.id]) for one in records if one.id in present)
    return tuple(Revival(one, now, found) for one, now in known if (found := changes(one, now)))


def _key_changes(then: KeyRecord, now: KeyRecord, now_at: int) -> tuple[Change, ...]:
    status = "revoked" if now.revoked_at is not None else now.status_at(now_at)
    ended = (Change("status", "active", status),) if status != "active" else ()
    return ended + tuple(
        Change(what, _show(name, getattr(then, name)), _show(name, getattr(now, name)))
        for name, what in _KEY_FIELDS.items()
        if getattr(then, name) != getattr(now, name)
    )


def _user_changes(then: User, now: User) -> tuple[Change, ...]:
    changes = []
    if now.disabled_at is not None:
        changes.append(Change("status", "active", "disabled"))
    if then.role != now.role:
        changes.append(Change("role", then.role.value, now.role.value))
    if then.password_hash != now.password_hash:
        changes.append(Change("password", "old", "new"))
    return tuple(changes)


def _show(name: str, value: object) -> str:
    if value is None or value == ():
        return _NONE.get(name, "none")
    if isinstance(value, tuple):
        return ", ".join(str(getattr(one, "value", one)) for one in value)
    return write_time(value) if name == "expires_at" and isinstance(value, int) else str(value)


@asynccontextmanager
async def opened(path: str, *, clock: Clock, ids: Ids, log: Log) -> AsyncGenerator[Core]:
    """Open a database and its audit log, and close them whatever happens."""
    store = await open_store(path, clock=clock, ids=ids, log=log)
    try:
        yield Core(store, clock, ids)
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()
