"""API keys: create, list, change, rotate and revoke them. A change applies at once in every process."""

from collections.abc import Collection
from typing import Any

from gateway.auth.keyhash import KEY_RANDOM_BYTES, hash_key, make_key, prefix_of
from gateway.domain.keys import (
    DEFAULT_GRACE_SECONDS,
    KEEP_AT,
    KEEP_TEXT,
    MAX_GRACE_SECONDS,
    ChangedKey,
    CreatedKey,
    KeyRecord,
    NewKey,
)
from gateway.domain.principals import Caller, Permission, Principal, Scope
from gateway.errors import Conflict, InvalidRequest, PermissionDenied
from gateway.schema import check
from gateway.services.resource import Resource, check_future, patched
from gateway.spelling import hint
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.strict_json import LAST_AT


class Keys(Resource[KeyRecord]):
    """The API keys of this gateway."""

    noun, nouns = "API key", "API keys"
    resource_type = "api_key"
    repository = "keys"
    audited = ("name", "prefix", "scopes", "rate_limit", "expires_at", "policy", "models")

    async def create(self, caller: Caller, new: NewKey) -> CreatedKey:
        """Create a key. Only this answer contains its text; the store keeps the SHA-256.

        Raises:
            InvalidRequest: a field; `param` names it. Conflict: there is no such policy.
            PermissionDenied: scopes that `principal` does not hold, or a policy without the permission to write one.
            AuditUnavailable: the key was not created.
        """
        return await self.audit.commit_authority(caller, lambda tx: self.issue(tx, new))

    def issue(self, tx: AuthorityTransaction, new: NewKey) -> CreatedKey:
        """Create a key in a transaction. Raises what `create` does."""
        check(new)
        check_future(new.expires_at, self.clock.now_at())
        _check_grant(tx.caller.principal, new.scopes)
        policy = self._policy(tx, new.policy)
        _check_policy(tx.caller.principal, None, policy)
        made = self._new(
            tx,
            name=new.name.strip(),
            scopes=_in_order(new.scopes),
            rate_limit=new.rate_limit,
            expires_at=new.expires_at,
            policy=policy,
            models=_distinct(new.models),
        )
        self._insert(tx, made.record)
        return made

    async def rotate(self, caller: Caller, name: str, *, grace_seconds: int = DEFAULT_GRACE_SECONDS) -> CreatedKey:
        """Create a key that replaces another. The old key is revoked after `grace_seconds`.

        The new key has the name, scopes, rate limit, policy and models of the old one, and its lifetime from now on.

        Raises:
            InvalidRequest: `grace_seconds`. NotFound: there is none.
            Conflict: it is revoked or expired, is being rotated already, or several keys have this prefix.
            PermissionDenied: the key has scopes that `principal` does not hold. AuditUnavailable: nothing was changed.
        """
        if not 0 <= grace_seconds <= MAX_GRACE_SECONDS:
            raise InvalidRequest(f"grace_seconds must be 0 to {MAX_GRACE_SECONDS}.", param="grace_seconds")
        now_at = self.clock.now_at()
        revoked_at = now_at + grace_seconds * 1000

        def work(tx: AuthorityTransaction) -> CreatedKey:
            old = self.find(tx, name)
            if old.status_at(now_at) != "active":
                raise Conflict(f"The key {old.id} is {old.status_at(now_at)}: create a new one.")
            if old.revoked_at is not None:
                raise Conflict(f"The key {old.id} is being rotated already.")
            _check_grant(caller.principal, old.scopes)
            made = self._new(
                tx,
                **{name: getattr(old, name) for name in ("name", "scopes", "rate_limit", "policy", "models")},
                expires_at=_same_lifetime(old, now_at),
                rotated_from=old.id,
                lineage=old.lineage or old.id,
            )
            self.store.keys.insert(tx, made.record)
            self.store.keys.revoke(tx, old.id, now_at=now_at, revoked_at=revoked_at)
            after = {"rotated_to": made.record.id, "revoked_at": revoked_at}
            details = {"name": old.name, "prefix": old.prefix, "new_prefix": made.record.prefix}
            self._append(tx, "rotated", old.id, after=after, details=details)
            return made

        return await self.audit.commit_authority(caller, work)

    async def revoke(self, caller: Caller, name: str) -> KeyRecord:
        """Revoke a key and return its record. Every process on this database refuses it at once.

        Raises:
            NotFound: there is none. Conflict: it is revoked already, or several keys have this prefix.
            AuditUnavailable: the key was not revoked.
        """
        now_at = self.clock.now_at()

        def work(tx: AuthorityTransaction) -> KeyRecord:
            record = self.find(tx, name)
            if not self.store.keys.revoke(tx, record.id, now_at=now_at):
                raise Conflict(f"The key {record.id} is revoked already.")
            shown = {"before": {"status": record.status_at(now_at)}, "after": {"status": "revoked"}}
            details = {"name": record.name, "prefix": record.prefix}
            self._append(tx, "revoked", record.id, details=details, **shown)
            return self.find(tx, record.id)

        return await self.audit.commit_authority(caller, work)

    def _changed(self, tx: AuthorityTransaction, before: KeyRecord, changes: ChangedKey) -> KeyRecord:
        now_at = self.clock.now_at()
        if changes.expires_at != KEEP_AT:
            check_future(changes.expires_at, now_at)
        if before.status_at(now_at) == "revoked":
            raise Conflict(f"The key {before.id} is revoked.")
        after = patched(
            before,
            changes,
            name=before.name if changes.name is None else changes.name.strip(),
            scopes=before.scopes if changes.scopes is None else _in_order(changes.scopes),
            expires_at=before.expires_at if changes.expires_at == KEEP_AT else changes.expires_at,
            policy=before.policy if changes.policy == KEEP_TEXT else self._policy(tx, changes.policy),
            models=before.models if changes.models is None else _distinct(changes.models),
        )
        _check_policy(tx.caller.principal, before.policy, after.policy)
        _check_grant(tx.caller.principal, [scope for scope in after.scopes if scope not in before.scopes])
        return after

    def _new(self, tx: AuthorityTransaction, **fields: Any) -> CreatedKey:
        key, key_id = make_key(self.ids.random_bytes(KEY_RANDOM_BYTES)), self.ids.new("key")
        record = KeyRecord(
            **{"lineage": key_id} | fields,
            id=key_id,
            prefix=prefix_of(key),
            digest=hash_key(key),
            created_at=self.clock.now_at(),
            created_by=tx.caller.principal.name,
        )
        return CreatedKey(key=key, record=record)

    def _policy(self, tx: Transaction, id_or_name: str | None) -> str | None:
        if id_or_name is None:
            return None
        found = self.store.policies.find(tx, id_or_name)
        if found is None:
            near = hint(id_or_name, (one.name for one in self.store.policies.all(tx)))
            raise Conflict(f"policy must be the id or the name of a policy.{near}", param="policy")
        return found.id

    def _lookup(self, tx: Transaction, name: str) -> KeyRecord | None:
        if name.startswith("key_"):
            return self.store.keys.by_id(tx, name)
        records = self.store.keys.by_prefix(tx, name)
        if len(records) > 1:
            raise Conflict("Several keys have this prefix; name the key by its id.")
        return records[0] if records else None


def _check_grant(principal: Principal, scopes: Collection[Scope]) -> None:
    missing = [scope.value for scope in scopes if scope not in principal.scopes]
    if missing:
        raise PermissionDenied(f"You cannot grant what you do not hold: {', '.join(missing)}.", param="scopes")


def _check_policy(principal: Principal, before: str | None, after: str | None) -> None:
    # A policy can remove the protection of a key, so giving one to a key needs the permission to write one.
    if before != after and Permission.POLICIES_MANAGE not in principal.permissions:
        raise PermissionDenied(f"This needs the permission {Permission.POLICIES_MANAGE.value}.", param="policy")


def _same_lifetime(old: KeyRecord, now_at: int) -> int | None:
    if old.expires_at is None:
        return None
    # The new expiry must not pass the last date that can be written.
    return max(old.expires_at, min(now_at + old.expires_at - old.created_at, LAST_AT))


def _in_order(scopes: Collection[Scope]) -> tuple[Scope, ...]:
    return tuple(scope for scope in Scope if scope in scopes)


def _distinct(models: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(model.strip() for model in models))
