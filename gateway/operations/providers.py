"""The rows of providers on the internal API, and the view of one. The rules are in `services.providers`."""

from dataclasses import dataclass
from typing import Any

from gateway.app import Gateway
from gateway.domain.budgets import MICRO
from gateway.domain.circuits import ProviderStatus
from gateway.domain.paging import Page
from gateway.domain.prices import Price
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.domain.providers import UPSTREAM, Origin, Provider, ProviderType
from gateway.errors import Conflict, NotFound
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun, project, whole
from gateway.services.provider_test import ProviderTestResult
from gateway.services.providers import ChangedProvider, ModelPrice, NewProvider


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


async def show_provider(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> ProviderView:
    """Return one provider."""
    return view_provider(gateway, await find_provider(gateway, command.id))


async def change_provider(gateway: Gateway, who: Principal, command: Any, context: RequestContext) -> ProviderView:
    """Change a provider. command: a `ChangedProvider` with the id."""
    provider_id = await kept_id(gateway, command.id)
    return view_provider(gateway, await gateway.providers.change(who, provider_id, command, context))


async def remove_provider(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> ProviderView:
    """Remove a provider and show it a last time."""
    provider_id = await kept_id(gateway, command.id)
    return view_provider(gateway, await gateway.providers.remove(who, provider_id, context))


async def test_provider(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> ProviderTestResult:
    """Send one real request to a provider."""
    return await gateway.provider_test.run(who, await find_provider(gateway, command.id), context)


def _model_price(price: Price) -> ModelPrice:
    return ModelPrice(input=price.input / MICRO, output=price.output / MICRO, max_reply_tokens=price.max_reply_tokens)


_PROVIDERS = Noun("providers", ProviderView, Permission.PROVIDERS_READ, Permission.PROVIDERS_MANAGE, view=view_provider)

PROVIDER_OPERATIONS = (
    _PROVIDERS.list("List the providers, oldest first, the one of the settings last.", call=list_providers),
    _PROVIDERS.create(
        NewProvider,
        "Create a provider: `name`, `base_url`, `api_key`? (a reference or the key), `models`?, `priority`? …",
        kinds=(
            kind(("base_url",), type={"const": ProviderType.OPENAI.value}, base_url={"type": "string"}),
            kind(
                ("type",), type={"const": ProviderType.ECHO.value}, base_url={"type": "null"}, api_key={"type": "null"}
            ),
        ),
    ),
    _PROVIDERS.show(
        "Show one provider, by id or name. Its key is never shown.",
        call=show_provider,
    ),
    _PROVIDERS.change(
        ChangedProvider,
        "Change a provider; it applies to the next prompt, in every worker. `version` or `If-Match` guards.",
        call=change_provider,
    ),
    _PROVIDERS.remove("Remove a provider and its stored key.", call=remove_provider),
    _PROVIDERS.row(
        "test",
        "POST /{id}/test",
        "Send a real request to a provider: `ok`, `latency_ms`, `models`, and `error` in plain words.",
        takes=ById,
        gives=ProviderTestResult,
        call=test_provider,
    ),
)
