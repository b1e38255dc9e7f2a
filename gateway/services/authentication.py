"""Authenticate API keys, apply their rate limits and check scopes. Refusals are audited; a flood of them is summed up.

Only keys that exist are cached, by their SHA-256, so wrong keys take no memory. The cache holds for one state of
authority, and each key in it for a second: then it is read again.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from gateway.auth.keyhash import hash_key, prefix_of
from gateway.auth.ratelimit import Admission, RateExceeded
from gateway.domain.keys import MAX_RATE_LIMIT, KeyRecord
from gateway.domain.policies import DEFAULT_SHIELD_POLICY
from gateway.domain.principals import Caller, Permission, Principal, RequestContext, Scope
from gateway.errors import (
    AuditUnavailable,
    GatewayError,
    InsufficientScope,
    InvalidApiKey,
    KeyExpired,
    KeyRevoked,
    MissingApiKey,
    PermissionDenied,
)
from gateway.services.access_guard import AccessGuard, EntryDenied
from gateway.services.core import Core, Service
from gateway.services.policies import Policies
from gateway.services.refusals import Refusals
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.followed_authority import Authority
from gateway.store.rate_grants import RateGrants
from gateway.store.rate_windows import RateWindows

_RECHECK_SECONDS = 1.0
_RECORD_USE_MS = 60_000
_UNLIMITED = Admission(True, MAX_RATE_LIMIT, MAX_RATE_LIMIT, 0, 0)


@dataclass(slots=True)
class _CachedKey:
    """A key from the database: valid until authority changes or the monotonic clock reaches `recheck_seconds`."""

    record: KeyRecord
    principal: Principal
    used_at: int | None
    recheck_seconds: float


class Authentication(Service):
    """Authenticates callers."""

    limiter: RateWindows | RateGrants
    refusals: Refusals
    access: AccessGuard
    policies: Policies

    def __post_init__(self, core: Core) -> None:
        super().__post_init__(core)
        self._cached: dict[str, _CachedKey] = {}
        self._authority: Authority | None = None

    async def authenticate(self, credential: str | None, context: RequestContext) -> Principal:
        """Return the principal of the API key `credential`. A key used within the last second costs no SQL.

        Raises:
            MissingApiKey, InvalidApiKey: no key, a malformed key, or an unknown key.
            KeyRevoked, KeyExpired: the key is no longer valid. EntryDenied: the access list refuses key or address.
            PermissionDenied: the policy of the key does not exist.
            AuditUnavailable: the key could not be looked up, or its first use not be recorded.
        """
        if not credential:
            missing = "Send an API key in X-Service-Key, x-api-key, api-key or as Authorization: Bearer."
            raise self.refusals.record(MissingApiKey(missing), context)
        try:
            digest = hash_key(credential)
        except InvalidApiKey as bad_form:
            raise self.refusals.record(bad_form, context) from None
        with _nothing_done():
            cached = await self._find(digest)
        if cached is None:
            raise self.refusals.record(
                InvalidApiKey("The API key is not valid."), context, key_prefix=prefix_of(credential)
            )
        now_at = self.clock.now_at()
        status = cached.record.status_at(now_at)
        if status != "active":
            raise self.refusals.record(_ended(status), context, principal=cached.principal)
        self._check_principal(Caller(cached.principal, context))
        if cached.used_at is None:
            await self._record_first_use(cached, context, now_at)
        elif now_at - cached.used_at >= _RECORD_USE_MS:
            self._record_use(cached, now_at)
        return cached.principal

    async def admit(self, caller: Caller) -> Admission:
        """Count a request against the rate window of `caller`. Raises RateExceeded or AuditUnavailable."""
        limit = caller.principal.rate_limit
        if limit is None:
            return _UNLIMITED
        with _nothing_done():
            admission = await self.limiter.count(caller.principal.id, limit, self.clock)
        if not admission.admitted:
            raise self.refusals.record(RateExceeded(admission), caller.context, principal=caller.principal)
        return admission

    def require(self, caller: Caller, needs: Scope | Permission) -> None:
        """Check that `caller` may do what `needs` names. Raises InsufficientScope or PermissionDenied."""
        # By type, because a scope and a permission may have the same text.
        held: Collection[str] = caller.principal.scopes if isinstance(needs, Scope) else caller.principal.permissions
        if needs not in held:
            raise self.refusals.record(_lacking(needs), caller.context, principal=caller.principal)

    async def _find(self, digest: str) -> _CachedKey | None:
        """Return a key, for a request that needs to follow authority first."""
        if self.clock.monotonic_seconds() >= self.refusals.due_seconds:
            self.refusals.flush()
        authority = await self.store.authority.follow()
        if authority is not self._authority:
            self._authority, self._cached = authority, {}
        keys = self._cached  # a request that reads a key while authority changes puts it into the old cache
        now_seconds = self.clock.monotonic_seconds()
        cached = keys.get(digest)
        if cached is not None and now_seconds < cached.recheck_seconds:
            return cached
        record = await self.store.db.read(lambda tx: self.store.keys.by_digest(tx, digest), is_quick=True)
        if record is None:
            keys.pop(digest, None)
            return None
        used_at, cached = record.last_used_at, keys.get(digest)
        if cached is not None and cached.used_at is not None:
            used_at = max(used_at or 0, cached.used_at)  # the cached time may still be in the queue of the writer
        keys[digest] = found = _CachedKey(record, record.principal(), used_at, now_seconds + _RECHECK_SECONDS)
        return found

    def _check_principal(self, caller: Caller) -> None:
        """Check that the policy of a key exists, and the access list."""
        try:
            self.policies.of(caller.principal, DEFAULT_SHIELD_POLICY)
            self.access.check_caller(caller)
        except (EntryDenied, PermissionDenied) as error:
            details: dict[str, object] = {"policy": caller.principal.policy}
            if isinstance(error, EntryDenied):
                details = {"access_entry": error.entry.id}
            raise self.refusals.record(error, caller.context, principal=caller.principal, details=details) from None

    async def _record_first_use(self, cached: _CachedKey, context: RequestContext, now_at: int) -> None:
        def work(tx: Transaction) -> None:
            key = cached.record.id
            if self.store.keys.mark_first_used(tx, key, now_at=now_at):
                self.audit.append_change(
                    tx, "api_key_first_used", Caller(cached.principal, context), "api_key", key, source="auth"
                )

        await self.audit.commit(work)
        cached.used_at = now_at

    def _record_use(self, cached: _CachedKey, now_at: int) -> None:
        with suppress(StoreUnavailable):  # the next request tries again
            self.store.db.write_behind(lambda tx: self.store.keys.mark_used(tx, cached.record.id, now_at=now_at))
            cached.used_at = now_at


# Functions, so that no local variable holds the error: a frame and its error would form a reference cycle.


def _ended(status: str) -> GatewayError:
    return KeyRevoked("The API key was revoked.") if status == "revoked" else KeyExpired("The API key has expired.")


def _lacking(needs: Scope | Permission) -> GatewayError:
    if isinstance(needs, Scope):
        return InsufficientScope(f"The API key lacks the scope {needs.value}.")
    return PermissionDenied(f"This needs the permission {needs.value}.")


@contextmanager
def _nothing_done() -> Iterator[None]:
    """Refuse as what cannot be recorded is refused, when the database does not answer even before."""
    try:
        yield
    except StoreUnavailable as error:
        message = "The database does not answer, so nothing was decided or recorded."
        raise AuditUnavailable(message, retry_after_seconds=error.retry_after_seconds) from error
