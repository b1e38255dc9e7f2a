"""From a credential to a principal, its rate window and its scopes. Refusals are audited, in sums when they flood."""

from collections.abc import Collection, Mapping

from gateway.auth.keyhash import hash_key, prefix_of
from gateway.auth.ratelimit import Admission, LocalRateLimiter, RateExceeded, RateLimiter
from gateway.clock import Clock
from gateway.domain.keys import MAX_RATE_LIMIT, KeyRecord
from gateway.domain.policies import DEFAULT_SHIELD_POLICY
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.errors import (
    GatewayError,
    InsufficientScope,
    InvalidApiKey,
    KeyExpired,
    KeyRevoked,
    MissingApiKey,
    PermissionDenied,
    RateLimited,
)
from gateway.services.access_guard import AccessGuard, EntryDenied
from gateway.services.audit import Audit
from gateway.services.policies import Policies
from gateway.services.refusals import KEY_REFUSED, RATE_EXCEEDED, SESSION_REFUSED, Refusals
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

_RECHECK_SECONDS = 1.0
_NOTE_USE_MS = 60_000
_UNLIMITED = Admission(True, MAX_RATE_LIMIT, MAX_RATE_LIMIT, 0, 0)


class _Known:
    """A key from the database: valid until the generation moves or `recheck_seconds` has passed."""

    __slots__ = ("principal", "record", "recheck_seconds", "used_at")

    def __init__(self, record: KeyRecord, recheck_seconds: float) -> None:
        self.record = record
        self.principal = record.principal()
        self.recheck_seconds = recheck_seconds
        self.used_at = record.last_used_at


class Authentication:
    """Who may come in.

    limiter: where the rate windows are kept; this process alone when left out. refusals: noted here and by others.
    access, policies: what is read again here when the generation moves.

    Only keys that exist are remembered, by their SHA-256, so that wrong ones take no memory. A change of authority in
    any process moves the store's generation, which is read on every request. A look-up is never older than a second,
    and reads how many changes of authority the database has: a process may be killed before it moves the generation.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        audit: Audit,
        limiter: RateLimiter | None = None,
        refusals: Refusals | None = None,
        access: AccessGuard | None = None,
        policies: Policies | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._limiter = limiter or LocalRateLimiter()
        self._known: dict[str, _Known] = {}
        self._generation = -1
        self._changes: str | None = None
        self.refusals = refusals or Refusals(audit=audit, clock=clock)
        self._policies = policies
        self._access = access or AccessGuard(store=store, clock=clock)

    async def authenticate(self, credential: str | None, context: RequestContext) -> Principal:
        """Return who calls with the API key `credential`. A key used a second ago costs no SQL and no waiting.

        Raises:
            MissingApiKey, InvalidApiKey: none, of another form, or unknown.
            KeyRevoked, KeyExpired: known but no longer good. EntryDenied: the access list refuses key or address.
            PermissionDenied: the policy of the key does not exist.
            AuditUnavailable: the key's first use could not be recorded. StoreUnavailable: it could not be looked up.
        """
        now_seconds = self._clock.monotonic_seconds()
        if not credential:
            missing = "Send an API key in X-Service-Key, x-api-key, api-key or as Authorization: Bearer."
            raise self._refused(MissingApiKey(missing), context)
        try:
            digest = hash_key(credential)
        except InvalidApiKey as bad_form:
            raise self._refused(bad_form, context) from None
        known = self._find(digest, now_seconds)
        if known is None:
            raise self._refused(InvalidApiKey("The API key is not valid."), context, key_prefix=prefix_of(credential))
        now_at = self._clock.now_at()
        status = known.record.status(now_at)
        if status != "active":
            raise self._refused(_ended(status), context, principal=known.principal)
        self._check_policy(known.principal, context)
        if self._access.rules is not None:
            self._check_access(known.principal, context, now_at)
        if known.used_at is None:
            await self._record_first_use(known, context, now_at)
        elif now_at - known.used_at >= _NOTE_USE_MS:
            self._note_use(known, now_at)
        return known.principal

    def admit(
        self, principal: Principal, context: RequestContext | None = None, now_seconds: float | None = None
    ) -> Admission:
        """Count a request against the rate window of `principal`. now_seconds: monotonic, if it was just looked at.

        Raises:
            RateExceeded: the window is full; the request was not counted. Its `admission` says until when.
        """
        limit = principal.rate_limit
        if limit is None:
            return _UNLIMITED
        if now_seconds is None:
            now_seconds = self._clock.monotonic_seconds()
        admission = self._limiter.admit(principal.id, limit, now_seconds)
        if not admission.admitted:
            raise self._refused(RateExceeded(admission), context, principal=principal)
        return admission

    def require(self, principal: Principal, needs: Scope | Permission, context: RequestContext | None = None) -> None:
        """Check that `principal` may do what `needs` names.

        Raises:
            InsufficientScope, PermissionDenied: it may not.
        """
        # By type, since a scope and a permission may have the same text.
        held: Collection[str] = principal.scopes if isinstance(needs, Scope) else principal.permissions
        if needs in held:
            return
        raise self._refused(_lacking(needs), context, principal=principal)

    def flush_refusals(self) -> None:
        """Record the sum of the refusals that had no event of their own. Called when one is due and at the end."""
        self.refusals.flush()

    async def aclose(self) -> None:
        """Record what is still only counted."""
        self.flush_refusals()

    def _find(self, digest: str, now_seconds: float) -> _Known | None:
        if now_seconds >= self.refusals.due_seconds:
            self.refusals.flush()
        if self._store.generation.value() != self._generation:
            self._refresh()
        known = self._known.get(digest)
        if known is not None and now_seconds < known.recheck_seconds:
            return known
        meta, keys = self._store.meta, self._store.keys
        changes, record = self._store.db.read_now(
            lambda tx: (meta.changes_of_authority(tx), keys.by_digest(tx, digest))
        )
        if changes != self._changes:
            self._store.generation.bump()  # for the other workers too, and for all that this one remembers
            return self._find(digest, now_seconds)
        if record is None:
            self._known.pop(digest, None)
            return None
        fresh = _Known(record, now_seconds + _RECHECK_SECONDS)
        if known is not None and (fresh.used_at is None or (known.used_at or 0) > fresh.used_at):
            fresh.used_at = known.used_at  # noted here and perhaps still in the queue
        self._known[digest] = fresh
        return fresh

    def _refresh(self) -> None:
        """Read again what is known. Generation and count come first: a later change makes the next look-up refresh."""
        generation = self._store.generation.value()
        changes = self._store.db.read_now(self._store.meta.changes_of_authority)
        self._known.clear()
        self._access.refresh()
        if self._policies is not None:
            self._policies.refresh()
        self._generation, self._changes = generation, changes

    def _check_policy(self, principal: Principal, context: RequestContext) -> None:
        if self._policies is None:
            return
        try:
            self._policies.of(principal, DEFAULT_SHIELD_POLICY)
        except PermissionDenied as error:
            raise self._refused(error, context, principal=principal, details={"policy": principal.policy}) from None

    def _check_access(self, principal: Principal, context: RequestContext, now_at: int) -> None:
        try:
            self._access.check_caller(principal, context, now_at)
        except EntryDenied as error:
            raise self._refused(error, context, principal=principal, details={"access_entry": error.entry.id}) from None

    async def _record_first_use(self, known: _Known, context: RequestContext, now_at: int) -> None:
        record = known.record
        event = self._audit.event(
            "api_key_first_used",
            source="auth",
            principal=known.principal,
            request=context,
            resource_type="api_key",
            resource_id=record.id,
        )

        def work(tx: Transaction) -> None:
            if self._store.keys.mark_first_used(tx, record.id, now_at=now_at):
                self._audit.append(tx, event)

        await self._audit.commit(work)
        known.used_at = now_at

    def _note_use(self, known: _Known, now_at: int) -> None:
        key_id = known.record.id
        try:
            self._store.db.write_behind(lambda tx: self._store.keys.mark_used(tx, key_id, now_at=now_at))
        except StoreUnavailable:
            return  # no promise hangs on it; the next request notes it
        known.used_at = now_at

    def _refused(
        self,
        error: GatewayError,
        context: RequestContext | None,
        *,
        principal: Principal | None = None,
        key_prefix: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> GatewayError:
        """Note a refusal and return its error, to be raised."""
        is_of_key = principal is None or principal.kind == "key"
        action = KEY_REFUSED if is_of_key else SESSION_REFUSED
        return self.refusals.note(
            error,
            context,
            action=RATE_EXCEEDED if isinstance(error, RateLimited) else action,
            resource_type="api_key" if is_of_key else "session",
            principal=principal,
            key_prefix=key_prefix,
            details=details,
        )


# Made where nothing else names them: a frame that holds the error which holds the frame is left to the collector.


def _ended(status: str) -> GatewayError:
    return KeyRevoked("The API key was revoked.") if status == "revoked" else KeyExpired("The API key has expired.")


def _lacking(needs: Scope | Permission) -> GatewayError:
    if isinstance(needs, Scope):
        return InsufficientScope(f"The API key lacks the scope {needs.value}.")
    return PermissionDenied(f"This needs the permission {needs.value}.")
