"""Providers kept: made, changed, removed, listed, audited. Their keys go in and never come out. Routes nothing."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from gateway.clock import Clock, Ids
from gateway.domain.addresses import check_host, read_base_url
from gateway.domain.keys import KEEP_TEXT
from gateway.domain.prices import Price
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.providers import MAX_PROVIDERS, STORED, Provider, ProviderType, check, read_key
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import read_plain_name
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.services.circuits import Circuits
from gateway.services.provider_keys import ProviderKeys
from gateway.services.resource import AuditTrail, check_version
from gateway.services.typed_keys import commit_with_key, keep
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store

Value = TypeVar("Value")
Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Tells the addresses that the host of a base URL stands for now; none if that cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedProvider:
    """What is said of a provider. None leaves a field as it is, or in a new one as it is by default.

    api_key: a reference or the key itself; None for none at all.
    """

    name: str | None = None
    type: ProviderType | None = None
    base_url: str | None = None
    api_key: str | None = KEEP_TEXT
    models: tuple[str, ...] | None = None
    priority: int | None = None
    weight: int | None = None
    timeout_seconds: float | None = None
    max_retries: int | None = None
    prices: Mapping[str, Price] | None = None
    enabled: bool | None = None
    allow_private: bool | None = None
    version: int | None = None

    def __repr__(self) -> str:
        """Leave the key out, so that no log line can hold it."""
        return f"WantedProvider(name={self.name!r})"


class Providers:
    """The providers of this gateway. Who may manage them is checked by the edges."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        audit: Audit,
        circuits: Circuits,
        keys: ProviderKeys,
        resolve: Resolve,
        log: Log,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._circuits = circuits
        self._keys = keys
        self._resolve = resolve
        self._log = log
        self._trail = AuditTrail(audit, "provider")

    async def list(self) -> tuple[Provider, ...]:
        """Return all kept providers, oldest first."""
        return await self._store.db.read(self._store.providers.all)

    async def show(self, id_or_name: str) -> Provider:
        """Return one provider by id or name.

        Raises:
            NotFound: there is none.
        """
        return await self._store.db.read(lambda tx: self._find(tx, id_or_name))

    async def create(self, principal: Principal, wanted: WantedProvider, context: RequestContext) -> Provider:
        """Make a provider. It is used at the next prompt, by every process.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: the name is taken, or there are too many.
            AuditUnavailable: it was not made.
        """
        blank = Provider(id=self._ids.new("prv"), name="", created_at=self._clock.now_at(), created_by=principal.name)
        record, key = self._changed(blank, wanted)
        await self._check_addresses(record)

        def work(tx: AuthorityTransaction) -> Provider:
            if self._store.providers.count(tx) >= MAX_PROVIDERS:
                raise Conflict(f"There are {MAX_PROVIDERS} providers; remove some first.")
            self._check_name(tx, record)
            self._keep_key(record, key)
            self._store.providers.insert(tx, record)
            self._trail.note(tx, "provider_created", principal, context, id=record.id, after=_shown(record))
            return record

        return await self._commit(work, record, key)

    async def change(
        self, principal: Principal, id_or_name: str, wanted: WantedProvider, context: RequestContext
    ) -> Provider:
        """Change a provider; what holds already is left alone. It holds at the next prompt, in every process.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is none. AuditUnavailable: nothing was changed.
            Conflict: another version, the name is taken, or the field does not go with what the provider is.
        """
        known = await self.show(id_or_name)
        check_version(wanted.version, known.version, "provider")
        _check_type_has(known, wanted)
        after, key = self._changed(known, wanted)
        if after == known:
            return known
        if (after.base_url, after.allow_private) != (known.base_url, known.allow_private):
            await self._check_addresses(after)

        def work(tx: AuthorityTransaction) -> Provider:
            before = self._find(tx, known.id)
            # What was checked is what is written: another change since then is not to be lost in this one.
            check_version(known.version, before.version, "provider")
            self._check_name(tx, after)
            self._keep_key(after, key)
            self._store.providers.change(tx, after)
            if before.key_reference != after.key_reference:
                self._drop_key(tx, before)
            if not after.enabled:
                self._circuits.end_alert(tx, after, "The provider was disabled.")
            details = {"api_key": "replaced"} if before.key_reference != after.key_reference else None
            shown = {"before": _shown(before), "after": _shown(after)}
            self._trail.note(tx, "provider_changed", principal, context, id=before.id, details=details, **shown)
            return self._find(tx, before.id)

        return await self._commit(work, after, key)

    async def remove(self, principal: Principal, id_or_name: str, context: RequestContext) -> Provider:
        """Remove a provider and its key, and return what it was.

        Raises:
            NotFound: there is none. AuditUnavailable: it is still there.
        """

        def work(tx: AuthorityTransaction) -> Provider:
            record = self._find(tx, id_or_name)
            self._store.providers.remove(tx, record.id)
            self._drop_key(tx, record)
            self._circuits.end_alert(tx, record, "The provider was removed.")
            self._trail.note(tx, "provider_removed", principal, context, id=record.id, before=_shown(record))
            return record

        return await self._audit.commit_authority(work)

    async def note_test(
        self, principal: Principal, provider: Provider, context: RequestContext, *, is_good: bool, reason: str | None
    ) -> None:
        """Record that somebody tested a provider, and how that went.

        Raises:
            AuditUnavailable: it was not recorded.
        """

        def work(tx: Transaction) -> None:
            details = {"ok": is_good, "error": reason}
            self._trail.note(tx, "provider_tested", principal, context, id=provider.id, details=details)

        await self._audit.commit(work)

    def _find(self, tx: Transaction, id_or_name: str) -> Provider:
        record = self._store.providers.find(tx, id_or_name)
        if record is None:
            raise NotFound("There is no such provider.")
        return record

    def _check_name(self, tx: Transaction, record: Provider) -> None:
        other = self._store.providers.find(tx, record.name)
        if other is not None and other.id != record.id:
            raise Conflict("There is a provider of this name already.", param="name")

    def _changed(self, record: Provider, wanted: WantedProvider) -> tuple[Provider, str | None]:
        """Return the record with what is wanted, checked, and the key that was typed in, None if none was."""
        after = replace(
            record,
            name=record.name if wanted.name is None else read_plain_name(wanted.name),
            type=wanted.type or record.type,
            base_url=record.base_url if wanted.base_url is None else wanted.base_url,
            models=_or(wanted.models, record.models),
            priority=_or(wanted.priority, record.priority),
            weight=_or(wanted.weight, record.weight),
            timeout_seconds=float(_or(wanted.timeout_seconds, record.timeout_seconds)),
            max_retries=_or(wanted.max_retries, record.max_retries),
            prices=record.prices if wanted.prices is None else dict(wanted.prices),
            enabled=_or(wanted.enabled, record.enabled),
            allow_private=_or(wanted.allow_private, record.allow_private),
        )
        key = None
        if wanted.api_key != KEEP_TEXT:
            reference, key = (None, None) if wanted.api_key is None else read_key(wanted.api_key)
            if key is not None:
                reference = f"{STORED}:{self._ids.new('key')}"
            self._keys.check(reference, param="api_key")
            after = replace(after, key_reference=reference)
        check(after)
        if after.base_url is not None:
            after = replace(after, base_url=_read_base_url(after, is_kept=wanted.base_url is None))
        if wanted.api_key == KEEP_TEXT:
            _check_key_stays(record, after)
        return after, key

    async def _check_addresses(self, record: Provider) -> None:
        """Look what the name stands for now, so that a mistake shows at once. Each connection checks it again."""
        if record.base_url is None:
            return
        for address in await self._resolve(record.base_url):
            check_host(address, allow_private=record.allow_private)

    async def _commit(
        self, work: Callable[[AuthorityTransaction], Provider], record: Provider, key: str | None
    ) -> Provider:
        """Commit what keeps `key`, if one was typed in, for `record`."""

        def is_named(tx: Transaction) -> bool:
            return any(one.key_reference == record.key_reference for one in self._store.providers.all(tx))

        key_id = None if key is None else _key_id(record)
        return await commit_with_key(self._audit.commit_authority, self._store, work, key_id=key_id, is_named=is_named)

    def _keep_key(self, record: Provider, key: str | None) -> None:
        if key is not None:
            keep(self._store, _key_id(record), key)

    def _drop_key(self, tx: Transaction, record: Provider) -> None:
        """Take the key of a record out of the file once the change is committed."""
        if record.key_source() != STORED:
            return

        def drop() -> None:
            try:
                self._store.keyfile.drop(_key_id(record))
            except OSError as error:
                self._log.error("provider_key_left", error=error, provider=record.name)

        tx.after_commit(drop)


def _or(wanted: Value | None, have: Value) -> Value:
    return have if wanted is None else wanted


def _key_id(record: Provider) -> str:
    return (record.key_reference or "").partition(":")[2]


def _read_base_url(record: Provider, *, is_kept: bool) -> str:
    """Return the base URL in its one form. is_kept: it is that which the provider has already."""
    try:
        return read_base_url(record.base_url or "", allow_private=record.allow_private)
    except InvalidRequest as error:
        if not is_kept:
            raise
        raise Conflict(error.message, param=error.param) from None


def _check_type_has(known: Provider, wanted: WantedProvider) -> None:
    if known.type is not ProviderType.ECHO or wanted.type not in (None, known.type):
        return
    for name, is_given in (("base_url", wanted.base_url), ("api_key", wanted.api_key not in (None, KEEP_TEXT))):
        if is_given:
            raise Conflict(f"{name} is nothing a provider of type echo has.", param=name)


def _check_key_stays(before: Provider, after: Provider) -> None:
    """Refuse to send a key, which was not given again, to another origin than it was given for.

    Whoever may change a provider may not thereby read its key.
    """
    if before.base_url is None or after.base_url is None or before.key_reference is None:
        return
    if _origin(urlsplit(before.base_url)) != _origin(urlsplit(after.base_url)):
        raise InvalidRequest(
            "base_url names another origin: send api_key again in the same call. A key belongs to the origin it was "
            "given for.",
            param="api_key",
        )


def _origin(url: SplitResult) -> tuple[str, str | None, int]:
    return url.scheme, url.hostname, url.port or (443 if url.scheme == "https" else 80)


def _shown(record: Provider) -> dict[str, object]:
    """Return what the audit log keeps of a provider."""
    return {
        "name": record.name,
        "type": record.type,
        "base_url": record.base_url,
        "api_key_source": record.key_source(),
        "models": list(record.models),
        "priority": record.priority,
        "weight": record.weight,
        "timeout_seconds": record.timeout_seconds,
        "max_retries": record.max_retries,
        "prices": {model: [price.input, price.output] for model, price in record.prices.items()},
        "enabled": record.enabled,
        "allow_private": record.allow_private,
    }
