"""The providers of models. Their keys are write-only. `routing` chooses between them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from gateway.domain.addresses import BASE_URL_PROMISE, MAX_URL_CHARS, check_host, read_base_url
from gateway.domain.keys import KEEP_TEXT
from gateway.domain.prices import MAX_REPLY_TOKENS, MAX_USD, Price, to_micro
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.providers import (
    KEY_PROMISE,
    MAX_KEY_BYTES,
    MAX_MODEL_CHARS,
    MAX_MODELS,
    MAX_PRIORITY,
    MAX_PROVIDERS,
    MAX_RETRIES,
    MAX_TIMEOUT_SECONDS,
    MAX_WEIGHT,
    Provider,
    ProviderType,
    check_type,
    read_key,
)
from gateway.errors import Conflict, InvalidRequest
from gateway.field_types import PlainName, glob
from gateway.schema import Bounds, check
from gateway.services.circuits import Circuits
from gateway.services.provider_keys import STORED, KeyedResource, ProviderKeys
from gateway.services.resource import as_conflict, check_version, patched
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""From a base URL to the present addresses of its host; none if they cannot be resolved."""

Dollars = Annotated[float, Bounds(0, MAX_USD)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a million tokens of a model cost, in US dollars. max_reply_tokens: the most of one answer."""

    input: Dollars
    output: Dollars
    max_reply_tokens: Annotated[int, Bounds(1, MAX_REPLY_TOKENS)] | None = None


BaseUrl = Annotated[
    str,
    Bounds(1, MAX_URL_CHARS, promise=BASE_URL_PROMISE),
    "With the version in its path, such as https://api.example.com/v1. An IP address is taken as well; a private one, "
    "and localhost, with `allow_private`.",
]
Key = Annotated[
    str,
    Bounds(1, MAX_KEY_BYTES, promise=KEY_PROMISE),
    "env:NAME, file:/PATH or cred:NAME, as the settings allow it, or the key itself, of visible ASCII. Never shown "
    "again.",
]
Model = Annotated[str, glob(MAX_MODEL_CHARS)]
Models = Annotated[tuple[Model, ...], Bounds(1, MAX_MODELS), "Names or globs of the models it serves; all if left out."]
Timeout = Annotated[float, Bounds(1, MAX_TIMEOUT_SECONDS), "Longest wait for a whole answer; 600 if left out."]
Retries = Annotated[int, Bounds(0, MAX_RETRIES), "How often a request is sent again before the next provider is tried."]
ModelPrices = Annotated[
    dict[str, ModelPrice],
    Bounds(0, MAX_MODELS, names=glob(MAX_MODEL_CHARS)),
    "Dollars for a million tokens by glob of the model, before the table of list prices.",
]
Private = Annotated[bool, "Whether it may be at a private or loopback address."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedProvider:
    """Changes of a provider; None leaves a field as it is, except that a null api_key removes the key."""

    name: PlainName | None = None
    base_url: BaseUrl | None = None
    api_key: Key | None = field(default=KEEP_TEXT, repr=False)
    models: Models | None = None
    priority: Annotated[int, Bounds(0, MAX_PRIORITY), "The lowest is tried first; 100 if left out."] | None = None
    weight: Annotated[int, Bounds(1, MAX_WEIGHT), "Share among those of one priority; 1 if left out."] | None = None
    timeout_seconds: Timeout | None = None
    max_retries: Retries | None = None
    prices: ModelPrices | None = None
    enabled: bool | None = None
    allow_private: Private | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProvider(ChangedProvider):
    """A provider to create."""

    name: PlainName
    type: ProviderType = ProviderType.OPENAI
    api_key: Key | None = field(default=None, repr=False)
    version: None = field(default=None, metadata={"json_name": None})


class Providers(KeyedResource[Provider]):
    """The providers of this gateway. A change applies to the next prompt, in every process.

    from_settings: the provider that the settings make, if any. It is listed last, and no call changes it.
    """

    noun, nouns = "provider", "providers"
    most = MAX_PROVIDERS
    name_field = "name"
    is_found_by_name = True
    audited = (
        "name", "type", "base_url", "models", "priority", "weight", "timeout_seconds", "max_retries", "enabled",
        "allow_private",
    )  # fmt: skip

    circuits: Circuits
    keys: ProviderKeys
    resolve: Resolve
    from_settings: Provider | None = None

    async def list(self) -> tuple[Provider, ...]:
        """Return the stored providers, oldest first, then the one of the settings."""
        return (*await super().list(), *(() if self.from_settings is None else (self.from_settings,)))

    async def create(self, principal: Principal, new: NewProvider, context: RequestContext) -> Provider:
        """Create a provider. Raises what `Resource.create` raises."""
        blank = Provider(
            id=self.ids.new("prv"),
            name="",
            type=new.type,
            created_at=self.clock.now_at(),
            created_by=principal.name,
        )
        record, key = self._patched(blank, new)
        await self._check_addresses(record)

        return await self._commit_with_key(
            principal, context, lambda tx: self._insert(tx, record), record.key_reference, key
        )

    async def change(
        self, principal: Principal, name: str, changes: ChangedProvider, context: RequestContext
    ) -> Provider:
        """Change a provider. Raises what `Resource.change` raises.

        Conflict: also for a field that the type of the provider does not have, and for the provider of the settings.
        """
        known = await self.show(name)
        _check_stored(known)
        check_version(changes.version, known.version, self.noun)
        if known.type is ProviderType.ECHO:
            for param, is_given in (
                ("base_url", changes.base_url),
                ("api_key", changes.api_key not in (None, KEEP_TEXT)),
            ):
                if is_given:
                    raise Conflict(f"A provider of type echo has no {param}.", param=param)
        after, key = self._patched(known, changes)
        if (after.base_url, after.allow_private) != (known.base_url, known.allow_private):
            await self._check_addresses(after)

        # The version is that of the record that was checked, so that no other change in between is lost.
        return await self._commit_with_key(
            principal,
            context,
            lambda tx: self._update(tx, known.id, known.version, lambda before: after),
            after.key_reference,
            key,
        )

    async def record_test(
        self, principal: Principal, provider: Provider, context: RequestContext, *, error: str | None
    ) -> None:
        """Record a test of a provider. error: why it failed, or None. Raises AuditUnavailable."""
        details = {"ok": error is None, "error": error}
        await self.audit.commit_authority(
            principal, context, lambda tx: self._append(tx, "tested", provider.id, details=details)
        )

    def _lookup(self, tx: Transaction, name: str) -> Provider | None:
        """Return a provider by id or name, a stored one first."""
        ours = self.from_settings
        found = self.store.providers.find(tx, name)
        return ours if found is None and ours is not None and name.lower() == ours.name else found

    def _write(self, tx: AuthorityTransaction, before: Provider, after: Provider) -> dict[str, object] | None:
        self.store.providers.change(tx, after)
        if not after.enabled:
            self.circuits.end_alert(tx, after, "The provider was disabled.")
        if before.key_reference == after.key_reference:
            return None
        self._drop_key(tx, before)
        return {"api_key": "replaced"}

    def _check_removal(self, tx: AuthorityTransaction, record: Provider) -> None:
        _check_stored(record)
        self._drop_key(tx, record)
        self.circuits.end_alert(tx, record, "The provider was removed.")

    def _shown(self, record: Provider) -> dict[str, object]:
        prices = {model: [price.input, price.output] for model, price in record.prices.items()}
        return super()._shown(record) | {"api_key_source": record.key_source(), "prices": prices}

    def _patched(self, record: Provider, changes: ChangedProvider) -> tuple[Provider, str | None]:
        """Return the record with its changes, checked, and the key itself if one was given."""
        check(changes)
        reference, key = record.key_reference, None
        if changes.api_key != KEEP_TEXT:
            reference, key = (None, None) if changes.api_key is None else read_key(changes.api_key)
            if key is not None:
                reference = f"{STORED}{self.ids.new('key')}"
            self.keys.check(reference, param="api_key")
        after = patched(
            record,
            changes,
            name=record.name if changes.name is None else changes.name.strip(),
            key_reference=reference,
            timeout_seconds=float(changes.timeout_seconds or record.timeout_seconds),
            prices=record.prices if changes.prices is None else _prices(changes.prices),
        )
        check_type(after)
        if after.base_url is not None:
            with as_conflict(changes.base_url is None):
                url = read_base_url(after.base_url, allow_private=after.allow_private)
            after = replace(after, base_url=url)
        if changes.api_key == KEEP_TEXT:
            _check_key_stays(record, after)
        return after, key

    async def _check_addresses(self, record: Provider) -> None:
        """Resolve the host now, so that a mistake shows at once. Each connection checks the addresses again."""
        if record.base_url is None:
            return
        for address in await self.resolve(record.base_url):
            check_host(address, allow_private=record.allow_private)


def _check_stored(record: Provider) -> None:
    if record.origin == "settings":
        raise Conflict("The settings make this provider: change GATEWAY_UPSTREAM_URL instead.", param="id")


def _check_key_stays(before: Provider, after: Provider) -> None:
    """Refuse to send a key to another origin than it was given for, unless the change gives it again.

    Otherwise anyone who may change a provider could read its key.
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


def _prices(prices: dict[str, ModelPrice]) -> dict[str, Price]:
    micro = partial(to_micro, param="prices")
    return {
        model: Price(micro(price.input), micro(price.output), price.max_reply_tokens) for model, price in prices.items()
    }
