"""The rows of providers on the internal API, and the view of one. The rules are in `services.providers`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from gateway.app import Gateway
from gateway.domain.addresses import BASE_URL_PROMISE, MAX_URL_CHARS
from gateway.domain.budgets import MICRO
from gateway.domain.circuits import ProviderStatus
from gateway.domain.keys import KEEP_TEXT
from gateway.domain.paging import Page
from gateway.domain.prices import MAX_REPLY_TOKENS, MAX_USD, Price, read_prices
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.domain.providers import (
    KEY_PROMISE,
    MAX_KEY_BYTES,
    MAX_MODEL_CHARS,
    MAX_MODELS,
    MAX_PRIORITY,
    MAX_RETRIES,
    MAX_TIMEOUT_SECONDS,
    MAX_WEIGHT,
    UPSTREAM,
    Origin,
    Provider,
    ProviderType,
)
from gateway.errors import Conflict, NotFound
from gateway.field_types import PlainName, glob
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun, whole
from gateway.operations.views import project
from gateway.schema import Bounds
from gateway.services.provider_test import ProviderTestResult
from gateway.services.providers import WantedProvider

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
Priority = Annotated[int, Bounds(0, MAX_PRIORITY), "The lowest is tried first; 100 if left out."]
Weight = Annotated[int, Bounds(1, MAX_WEIGHT), "Share among those of one priority; 1 if left out."]
Timeout = Annotated[float, Bounds(1, MAX_TIMEOUT_SECONDS), "Longest wait for a whole answer; 600 if left out."]
Retries = Annotated[int, Bounds(0, MAX_RETRIES), "How often a request is sent again before the next provider is tried."]
ModelPrices = Annotated[
    dict[str, ModelPrice],
    Bounds(0, MAX_MODELS, names=glob(MAX_MODEL_CHARS)),
    "Dollars for a million tokens by glob of the model, before the table of list prices.",
]
Private = Annotated[bool, "Whether it may be at a private or loopback address."]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProvider:
    """A provider to create."""

    name: PlainName
    type: ProviderType = ProviderType.OPENAI
    base_url: BaseUrl | None = None
    api_key: Key | None = field(default=None, repr=False)
    models: Models | None = None
    priority: Priority | None = None
    weight: Weight | None = None
    timeout_seconds: Timeout | None = None
    max_retries: Retries | None = None
    prices: ModelPrices | None = None
    enabled: bool | None = None
    allow_private: Private | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchProvider:
    """Changes of a provider; None leaves a field as it is, except that a null api_key removes the key."""

    name: PlainName | None = None
    base_url: BaseUrl | None = None
    api_key: Key | None = field(default=KEEP_TEXT, repr=False)
    models: Models | None = None
    priority: Priority | None = None
    weight: Weight | None = None
    timeout_seconds: Timeout | None = None
    max_retries: Retries | None = None
    prices: ModelPrices | None = None
    enabled: bool | None = None
    allow_private: Private | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderView:
    """A provider and its status in the process that answers. Never holds its key.

    api_key_source: the reference, ``stored`` for a key kept by the gateway, null for none. has_api_key: whether the key
    is there now. problem: why there is no key to send, null if there is one or none is needed. origin: ``record``, or
    ``settings`` for the provider that the settings define.
    """

    id: str
    name: str
    type: ProviderType
    base_url: str | None
    api_key_source: str | None
    has_api_key: bool
    models: tuple[str, ...]
    priority: int
    weight: int
    timeout_seconds: float
    max_retries: int
    prices: dict[str, ModelPrice]
    enabled: bool
    status: ProviderStatus
    problem: str | None
    allow_private: bool
    origin: Origin
    created_at: int
    created_by: str
    version: int


def view_provider(gateway: Gateway, provider: Provider) -> ProviderView:
    """Return the view of a provider."""
    is_ours = provider.origin == "settings"
    problem = gateway.secrets.problem(provider.key_reference)
    return project(
        ProviderView,
        provider,
        api_key_source="settings" if is_ours and gateway.settings.upstream_api_key else provider.key_source(),
        has_api_key=bool(gateway.settings.upstream_api_key)
        if is_ours
        else provider.key_reference is not None and problem is None,
        problem=problem,
        prices={model: _model_price(price) for model, price in provider.prices.items()},
        status=gateway.circuits.status(provider),
    )


async def all_providers(gateway: Gateway) -> tuple[Provider, ...]:
    """Return the stored providers, oldest first, then the one that the settings define."""
    ours = gateway.routing.settings_provider
    return (*await gateway.providers.list(), *(() if ours is None else (ours,)))


async def find_provider(gateway: Gateway, id_or_name: str) -> Provider:
    """Return a provider by id or name, a stored one first.

    Raises:
        NotFound: there is none.
    """
    ours = gateway.routing.settings_provider
    try:
        return await gateway.providers.show(id_or_name)
    except NotFound:
        if ours is None or id_or_name.lower() != UPSTREAM:
            raise
        return ours


async def kept_id(gateway: Gateway, id_or_name: str) -> str:
    """Return the id of a provider that may be changed.

    Raises:
        NotFound: there is none. Conflict: the settings define it.
    """
    provider = await find_provider(gateway, id_or_name)
    if provider.origin == "settings":
        raise Conflict("The settings make this provider: change GATEWAY_UPSTREAM_URL instead.", param="id")
    return provider.id


async def list_providers(
    gateway: Gateway, who: Principal, command: None, context: RequestContext
) -> Page[ProviderView]:
    """Return all providers as one page."""
    return whole(tuple(view_provider(gateway, provider) for provider in await all_providers(gateway)))


async def create_provider(
    gateway: Gateway, who: Principal, command: NewProvider, context: RequestContext
) -> ProviderView:
    """Create a provider."""
    wanted = project(WantedProvider, command, prices=_prices(command), version=None)
    return view_provider(gateway, await gateway.providers.create(who, wanted, context))


async def show_provider(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> ProviderView:
    """Return one provider."""
    return view_provider(gateway, await find_provider(gateway, command.id))


async def change_provider(gateway: Gateway, who: Principal, command: Any, context: RequestContext) -> ProviderView:
    """Change a provider. command: a `PatchProvider` with the id."""
    wanted = project(WantedProvider, command, prices=_prices(command), type=None)
    provider_id = await kept_id(gateway, command.id)
    return view_provider(gateway, await gateway.providers.change(who, provider_id, wanted, context))


async def remove_provider(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> ProviderView:
    """Remove a provider and show it a last time."""
    provider_id = await kept_id(gateway, command.id)
    return view_provider(gateway, await gateway.providers.remove(who, provider_id, context))


async def test_provider(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> ProviderTestResult:
    """Send one real request to a provider."""
    return await gateway.provider_test.run(who, await find_provider(gateway, command.id), context)


def _prices(command: NewProvider | PatchProvider) -> Mapping[str, Price] | None:
    if command.prices is None:
        return None
    return read_prices({model: _fields(price) for model, price in command.prices.items()})


def _fields(price: ModelPrice) -> Mapping[str, object]:
    most = {} if price.max_reply_tokens is None else {"max_reply_tokens": price.max_reply_tokens}
    return {"input": price.input, "output": price.output} | most


def _model_price(price: Price) -> ModelPrice:
    return ModelPrice(input=price.input / MICRO, output=price.output / MICRO, max_reply_tokens=price.max_reply_tokens)


_PROVIDERS = Noun(
    name="providers",
    path="/api/providers",
    service=lambda gateway: gateway.providers,
    gives=ProviderView,
    reads=Permission.PROVIDERS_READ,
    manages=Permission.PROVIDERS_MANAGE,
)

PROVIDER_OPERATIONS = (
    _PROVIDERS.list("List the providers, oldest first, the one of the settings last.", call=list_providers),
    _PROVIDERS.create(
        NewProvider,
        "Create a provider: `name`, `base_url`, `api_key`? (a reference or the key), `models`?, `priority`? …",
        call=create_provider,
        kinds=(
            kind(("base_url",), type={"const": ProviderType.OPENAI.value}, base_url={"type": "string"}),
            kind(
                ("type",), type={"const": ProviderType.ECHO.value}, base_url={"type": "null"}, api_key={"type": "null"}
            ),
        ),
    ),
    _PROVIDERS.show("Show one provider, by id or name. Its key is never shown.", call=show_provider),
    _PROVIDERS.change(
        PatchProvider,
        "Change a provider; it holds at the next prompt, in every worker. `version` or `If-Match` guards.",
        call=change_provider,
    ),
    _PROVIDERS.remove("Remove a provider and the key that was typed in for it.", call=remove_provider),
    _PROVIDERS.row(
        "test",
        "POST /{id}/test",
        "Send a real request to a provider: `ok`, `latency_ms`, `models`, and `error` in plain words.",
        takes=ById,
        gives=ProviderTestResult,
        call=test_provider,
    ),
)
