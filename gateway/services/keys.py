"""API keys: made with their audit event, listed without a secret, revoked at once and everywhere."""

from gateway.auth.keyhash import KEY_RANDOM_BYTES, hash_key, make_key, prefix_of
from gateway.clock import Clock, Ids
from gateway.domain.keys import MAX_NAME_CHARS, MAX_RATE_LIMIT, CreatedKey, KeyRecord, NewKey
from gateway.domain.paging import MAX_INTEGER
from gateway.domain.principals import Principal, RequestContext, Scope
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.services.audit import Audit
from gateway.store.database import Transaction
from gateway.store.store import Store

_SOURCES = {"key": "api", "user": "api"}


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
            InvalidRequest: the name, a scope, the rate limit or the expiry; `param` says which.
            AuditUnavailable: the key was not made.
        """
        now_at = self._clock.now_at()
        name, scopes = _checked_name(new.name), _checked_scopes(new.scopes)
        if not 1 <= new.rate_limit <= MAX_RATE_LIMIT:
            raise InvalidRequest(f"rate_limit must be 1 to {MAX_RATE_LIMIT}.", param="rate_limit")
        if new.expires_at is not None and not now_at < new.expires_at <= MAX_INTEGER:
            raise InvalidRequest("expires_at must be in the future.", param="expires_at")
        key = make_key(self._ids.random_bytes(KEY_RANDOM_BYTES))
        record = KeyRecord(
            id=self._ids.new("key"),
            name=name,
            prefix=prefix_of(key),
            digest=hash_key(key),
            scopes=scopes,
            rate_limit=new.rate_limit,
            created_at=now_at,
            created_by=principal.name,
            expires_at=new.expires_at,
        )
        event = self._audit.event(
            "api_key_created",
            source=_SOURCES.get(principal.kind, principal.id),
            principal=principal,
            request=context,
            resource_type="api_key",
            resource_id=record.id,
            after={
                "name": record.name,
                "prefix": record.prefix,
                "scopes": record.scopes,
                "rate_limit": record.rate_limit,
                "expires_at": record.expires_at,
            },
        )

        def work(tx: Transaction) -> None:
            self._store.keys.insert(tx, record)
            self._audit.append(tx, event)

        await self._audit.commit(work)
        return CreatedKey(key=key, record=record)

    async def list(self) -> tuple[KeyRecord, ...]:
        """Return all records, newest first."""
        return await self._store.db.read(self._store.keys.all)

    async def show(self, id_or_prefix: str) -> KeyRecord:
        """Return one record by its id or its prefix.

        Raises:
            NotFound: there is none. Conflict: several keys have this prefix.
        """
        return await self._store.db.read(lambda tx: self._find(tx, id_or_prefix))

    async def revoke(self, principal: Principal, id_or_prefix: str, context: RequestContext) -> KeyRecord:
        """Revoke a key and return its record. It is refused from now on, by every process on this database.

        Raises:
            NotFound: there is none. Conflict: it is revoked already, or several keys have this prefix.
            AuditUnavailable: the key was not revoked.
        """
        now_at = self._clock.now_at()
        record = await self.show(id_or_prefix)
        event = self._audit.event(
            "api_key_revoked",
            source=_SOURCES.get(principal.kind, principal.id),
            principal=principal,
            request=context,
            resource_type="api_key",
            resource_id=record.id,
            before={"status": record.status(now_at)},
            after={"status": "revoked"},
            details={"name": record.name, "prefix": record.prefix},
        )

        def work(tx: Transaction) -> KeyRecord:
            if not self._store.keys.revoke(tx, record.id, now_at=now_at):
                raise Conflict(f"The key {record.id} is revoked already.")
            self._audit.append(tx, event)
            return self._find(tx, record.id)

        return await self._audit.commit(work)

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


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidRequest(f"name must be 1 to {MAX_NAME_CHARS} printable characters.", param="name")
    return name


def _checked_scopes(scopes: tuple[str, ...]) -> tuple[Scope, ...]:
    if not scopes:
        raise InvalidRequest("scopes must name at least one scope.", param="scopes")
    known = {scope.value: scope for scope in Scope}
    for number, scope in enumerate(scopes):
        if scope not in known:
            raise InvalidRequest(f"Unknown scope; the scopes are {', '.join(known)}.", param=f"scopes[{number}]")
    return tuple(scope for name, scope in known.items() if name in scopes)
