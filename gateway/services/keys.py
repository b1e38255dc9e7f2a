"""API keys: made with their audit event, listed without a secret, changed, rotated, revoked at once everywhere."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from gateway.auth.keyhash import KEY_RANDOM_BYTES, hash_key, make_key, prefix_of
from gateway.clock import Clock, Ids
from gateway.domain.audit import AuditEvent
from gateway.domain.keys import (
    DEFAULT_GRACE_SECONDS,
    DEFAULT_KEY_LIMIT,
    KEEP_AT,
    KEEP_TEXT,
    MAX_GRACE_SECONDS,
    MAX_MODEL_CHARS,
    MAX_MODELS,
    MAX_NAME_CHARS,
    MAX_RATE_LIMIT,
    ChangedKey,
    CreatedKey,
    KeyRecord,
    NewKey,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from gateway.field_types import is_line
from gateway.services.audit import Audit, source_of
from gateway.services.audit_trail import check_version
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store
from gateway.strict_json import LAST_AT


class Keys:
    """The API keys of this gateway. Who may manage them is checked by the edges."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit

    async def create(self, principal: Principal, new: NewKey, context: RequestContext) -> CreatedKey:
        """Make a key. Its text is in the answer and never again; only its SHA-256 is stored.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: there is no such policy.
            PermissionDenied: scopes that `principal` does not hold, or a policy without leave to write one.
            AuditUnavailable: the key was not made.
        """
        key, insert = self.prepare(principal, new, context)
        return CreatedKey(key=key, record=await self._audit.commit_authority(insert))

    def prepare(
        self, principal: Principal, new: NewKey, context: RequestContext
    ) -> tuple[str, Callable[[AuthorityTransaction], KeyRecord]]:
        """Return the text of a new key, and what makes it within a transaction. Raises what `create` does."""
        now_at = self._clock.now_at()
        scopes = _checked_scopes(new.scopes)
        _check_grant(principal, scopes)
        key, record = self._make(
            principal,
            now_at=now_at,
            name=_checked_name(new.name),
            scopes=scopes,
            rate_limit=_checked_rate(new.rate_limit),
            expires_at=_checked_expiry(new.expires_at, now_at),
            models=_checked_models(new.models),
        )

        def work(tx: AuthorityTransaction) -> KeyRecord:
            made = replace(record, policy=self._policy(tx, new.policy))
            _check_policy(principal, None, made.policy)
            self._store.keys.insert(tx, made)
            self._audit.append(tx, self._event("api_key_created", principal, context, made, after=_shown(made)))
            return made

        return key, work

    async def list(self) -> tuple[KeyRecord, ...]:
        """Return all records, newest first."""
        return await self._store.db.read(self._store.keys.all)

    async def page(self, *, limit: int = DEFAULT_KEY_LIMIT, cursor: str | None = None) -> Page[KeyRecord]:
        """Return a part of all records, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        return await self._store.db.read(lambda tx: self._store.keys.page(tx, limit=limit, cursor=cursor))

    async def show(self, id_or_prefix: str) -> KeyRecord:
        """Return one record by its id or its prefix.

        Raises:
            NotFound: there is none. Conflict: several keys have this prefix.
        """
        return await self._store.db.read(lambda tx: self._find(tx, id_or_prefix))

    async def change(
        self, principal: Principal, id_or_prefix: str, wanted: ChangedKey, context: RequestContext
    ) -> KeyRecord:
        """Change what is wanted of a key that is not revoked; what holds already is left alone.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is none.
            Conflict: it is revoked, its version is another than `wanted.version`, or there is no such policy.
            PermissionDenied: scopes that `principal` does not hold, or a policy without leave to write one.
            AuditUnavailable: nothing was changed.
        """
        now_at = self._clock.now_at()
        name = None if wanted.name is None else _checked_name(wanted.name)
        scopes = None if wanted.scopes is None else _checked_scopes(wanted.scopes)
        rate_limit = None if wanted.rate_limit is None else _checked_rate(wanted.rate_limit)
        models = None if wanted.models is None else _checked_models(wanted.models)
        keeps_expiry = wanted.expires_at == KEEP_AT
        expires_at = None if keeps_expiry else _checked_expiry(wanted.expires_at, now_at)

        def work(tx: AuthorityTransaction) -> KeyRecord:
            before = self._find(tx, id_or_prefix)
            check_version(wanted.version, before.version, "key")
            if before.status(now_at) == "revoked":
                raise Conflict(f"The key {before.id} is revoked.")
            after = replace(
                before,
                name=before.name if name is None else name,
                scopes=before.scopes if scopes is None else scopes,
                rate_limit=before.rate_limit if rate_limit is None else rate_limit,
                expires_at=before.expires_at if keeps_expiry else expires_at,
                policy=before.policy if wanted.policy == KEEP_TEXT else self._policy(tx, wanted.policy),
                models=before.models if models is None else models,
            )
            if after == before:
                return before
            _check_policy(principal, before.policy, after.policy)
            _check_grant(principal, [scope for scope in after.scopes if scope not in before.scopes])
            self._store.keys.change(tx, after)
            shown = {"before": _shown(before), "after": _shown(after)}
            self._audit.append(tx, self._event("api_key_changed", principal, context, before, **shown))
            return self._find(tx, before.id)

        return await self._audit.commit_authority(work)

    async def rotate(
        self,
        principal: Principal,
        id_or_prefix: str,
        context: RequestContext,
        *,
        grace_seconds: int = DEFAULT_GRACE_SECONDS,
    ) -> CreatedKey:
        """Make a key that takes the place of another, which is revoked when `grace_seconds` are over.

        The new key has name, scopes, rate limit, policy and models of the old one and, counted from now, its lifetime.

        Raises:
            InvalidRequest: `grace_seconds`. NotFound: there is none.
            Conflict: it is revoked or expired, is being rotated already, or several keys have this prefix.
            PermissionDenied: the key has scopes that `principal` does not hold. AuditUnavailable: nothing was changed.
        """
        if not 0 <= grace_seconds <= MAX_GRACE_SECONDS:
            raise InvalidRequest(f"grace_seconds must be 0 to {MAX_GRACE_SECONDS}.", param="grace_seconds")
        now_at = self._clock.now_at()
        revoked_at = now_at + grace_seconds * 1000

        def work(tx: AuthorityTransaction) -> CreatedKey:
            old = self._find(tx, id_or_prefix)
            if old.status(now_at) != "active":
                raise Conflict(f"The key {old.id} is {old.status(now_at)}: create a new one.")
            if old.revoked_at is not None:
                raise Conflict(f"The key {old.id} is being rotated already.")
            _check_grant(principal, old.scopes)
            key, record = self._make(
                principal,
                now_at=now_at,
                name=old.name,
                scopes=old.scopes,
                rate_limit=old.rate_limit,
                expires_at=_same_lifetime(old, now_at),
                rotated_from=old.id,
                policy=old.policy,
                models=old.models,
                lineage=old.lineage or old.id,
            )
            self._store.keys.insert(tx, record)
            self._store.keys.revoke(tx, old.id, now_at=now_at, revoked_at=revoked_at)
            event = self._event(
                "api_key_rotated",
                principal,
                context,
                old,
                after={"rotated_to": record.id, "revoked_at": revoked_at},
                details={"name": old.name, "prefix": old.prefix, "new_prefix": record.prefix},
            )
            self._audit.append(tx, event)
            return CreatedKey(key=key, record=record)

        return await self._audit.commit_authority(work)

    async def revoke(self, principal: Principal, id_or_prefix: str, context: RequestContext) -> KeyRecord:
        """Revoke a key and return its record. It is refused from now on, by every process on this database.

        Raises:
            NotFound: there is none. Conflict: it is revoked already, or several keys have this prefix.
            AuditUnavailable: the key was not revoked.
        """
        now_at = self._clock.now_at()

        def work(tx: AuthorityTransaction) -> KeyRecord:
            record = self._find(tx, id_or_prefix)
            if not self._store.keys.revoke(tx, record.id, now_at=now_at):
                raise Conflict(f"The key {record.id} is revoked already.")
            event = self._event(
                "api_key_revoked",
                principal,
                context,
                record,
                before={"status": record.status(now_at)},
                after={"status": "revoked"},
                details={"name": record.name, "prefix": record.prefix},
            )
            self._audit.append(tx, event)
            return self._find(tx, record.id)

        return await self._audit.commit_authority(work)

    def _make(
        self,
        principal: Principal,
        *,
        now_at: int,
        name: str,
        scopes: tuple[Scope, ...],
        rate_limit: int,
        expires_at: int | None,
        rotated_from: str | None = None,
        policy: str | None = None,
        models: tuple[str, ...] = (),
        lineage: str | None = None,
    ) -> tuple[str, KeyRecord]:
        """Return a new key and its record, both of checked values."""
        key = make_key(self._ids.random_bytes(KEY_RANDOM_BYTES))
        key_id = self._ids.new("key")
        record = KeyRecord(
            id=key_id,
            name=name,
            prefix=prefix_of(key),
            digest=hash_key(key),
            scopes=scopes,
            rate_limit=rate_limit,
            created_at=now_at,
            created_by=principal.name,
            expires_at=expires_at,
            rotated_from=rotated_from,
            policy=policy,
            models=models,
            lineage=lineage or key_id,
        )
        return key, record

    def _event(
        self,
        action: str,
        principal: Principal,
        context: RequestContext,
        record: KeyRecord,
        *,
        before: Mapping[str, object] | None = None,
        after: Mapping[str, object] | None = None,
        details: Mapping[str, object] | None = None,
    ) -> AuditEvent:
        return self._audit.event(
            action,
            source=source_of(principal),
            principal=principal,
            request=context,
            resource_type="api_key",
            resource_id=record.id,
            before=before,
            after=after,
            details=details,
        )

    def _policy(self, tx: Transaction, id_or_name: str | None) -> str | None:
        if id_or_name is None:
            return None
        found = self._store.policies.find(tx, id_or_name)
        if found is None:
            raise Conflict("policy must be the id or the name of a policy.", param="policy")
        return found.id

    def _find(self, tx: Transaction, id_or_prefix: str) -> KeyRecord:
        if id_or_prefix.startswith("key_"):
            record = self._store.keys.by_id(tx, id_or_prefix)
            records: tuple[KeyRecord, ...] = (record,) if record else ()
        else:
            records = self._store.keys.by_prefix(tx, id_or_prefix)
        if not records:
            raise NotFound("There is no such API key.")
        if len(records) > 1:
            raise Conflict("Several keys have this prefix; name the key by its id.")
        return records[0]


def _shown(record: KeyRecord) -> dict[str, object]:
    """Return what the audit log keeps of a key's fields."""
    return {
        "name": record.name,
        "prefix": record.prefix,
        "scopes": record.scopes,
        "rate_limit": record.rate_limit,
        "expires_at": record.expires_at,
        "policy": record.policy,
        "models": record.models,
    }


def _check_grant(principal: Principal, scopes: Collection[Scope]) -> None:
    missing = [scope.value for scope in scopes if scope not in principal.scopes]
    if missing:
        raise PermissionDenied(f"You cannot grant what you do not hold: {', '.join(missing)}.", param="scopes")


def _check_policy(principal: Principal, before: str | None, after: str | None) -> None:
    # A policy can take the protection off a key, so whoever gives one must be able to write one.
    if before != after and Permission.POLICIES_MANAGE not in principal.permissions:
        raise PermissionDenied(f"This needs the permission {Permission.POLICIES_MANAGE.value}.", param="policy")


def _same_lifetime(old: KeyRecord, now_at: int) -> int | None:
    if old.expires_at is None:
        return None
    # A key for ever and a day would end where no date is written any more.
    return max(old.expires_at, min(now_at + old.expires_at - old.created_at, LAST_AT))


def _checked_rate(rate_limit: int) -> int:
    if not 1 <= rate_limit <= MAX_RATE_LIMIT:
        raise InvalidRequest(f"rate_limit must be 1 to {MAX_RATE_LIMIT}.", param="rate_limit")
    return rate_limit


def _checked_expiry(expires_at: int | None, now_at: int) -> int | None:
    if expires_at is not None and not now_at < expires_at <= LAST_AT:
        raise InvalidRequest("expires_at must be in the future, before the year 10000.", param="expires_at")
    return expires_at


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS or not is_line(name):
        raise InvalidRequest(f"name must be 1 to {MAX_NAME_CHARS} printable characters.", param="name")
    return name


def _checked_models(models: tuple[str, ...]) -> tuple[str, ...]:
    if len(models) > MAX_MODELS:
        raise InvalidRequest(f"models must name at most {MAX_MODELS} models.", param="models")
    models = tuple(model.strip() for model in models)
    for number, model in enumerate(models):
        if not 1 <= len(model) <= MAX_MODEL_CHARS or not is_line(model):
            raise InvalidRequest(
                f"A model must be 1 to {MAX_MODEL_CHARS} printable characters; * and ? stand for any.",
                param=f"models[{number}]",
            )
    return tuple(dict.fromkeys(models))


def _checked_scopes(scopes: tuple[str, ...]) -> tuple[Scope, ...]:
    if not scopes:
        raise InvalidRequest("scopes must name at least one scope.", param="scopes")
    known = {scope.value: scope for scope in Scope}
    for number, scope in enumerate(scopes):
        if scope not in known:
            raise InvalidRequest(f"Unknown scope; the scopes are {', '.join(known)}.", param=f"scopes[{number}]")
    return tuple(scope for name, scope in known.items() if name in scopes)
