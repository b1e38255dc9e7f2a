"""The rows of providers on the internal API, and the view of one. The rules are in `services.providers`."""

from dataclasses import dataclass, field

from gateway.app import Gateway
from gateway.domain.budgets import MICRO
from gateway.domain.circuits import ProviderStatus
from gateway.domain.prices import Price
from gateway.domain.principals import Permission
from gateway.domain.providers import Provider, ProviderType, key_source
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun
from gateway.records import project
from gateway.services.providers import ChangedProvider, ModelPrice, NewProvider, ProviderTestResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderView(Provider):
    """A provider and its status in the process that answers. Never holds its key.

    api_key_source: the reference, ``stored`` for a key kept by the gateway, null for none. has_api_key: whether the key
    is there now. problem: why there is no key to send, null if there is one or none is needed. origin: ``record``, or
    ``settings`` for the provider that the settings define.
    """

    api_key_source: str | None
    has_api_key: bool
    shown_prices: dict[str, ModelPrice] = field(metadata={"json_name": "prices"})
    status: ProviderStatus
    problem: str | None


def _view(gateway: Gateway, provider: Provider) -> ProviderView:
    is_ours = provider.origin == "settings"
    problem = gateway.secrets.problem(provider.key_reference)
    return project(
        ProviderView,
        provider,
        api_key_source="settings"
        if is_ours and gateway.settings.upstream_api_key
        else key_source(provider.key_reference),
        has_api_key=bool(gateway.settings.upstream_api_key)
        if is_ours
        else provider.key_reference is not None and problem is None,
        problem=problem,
        shown_prices={model: _model_price(price) for model, price in provider.prices.items()},
        status=gateway.circuits.status(provider),
    )


def _model_price(price: Price) -> ModelPrice:
    return ModelPrice(input=price.input / MICRO, output=price.output / MICRO, max_reply_tokens=price.max_reply_tokens)


_PROVIDERS = Noun("providers", ProviderView, Permission.PROVIDERS_READ, Permission.PROVIDERS_MANAGE, view=_view)

OPERATIONS = (
    _PROVIDERS.list("List the providers, oldest first, the one of the settings last."),
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
    _PROVIDERS.show("Show one provider, by id or name. Its key is never shown."),
    _PROVIDERS.change(
        ChangedProvider,
        "Change a provider; it applies to the next prompt, in every worker. `version` or `If-Match` guards.",
    ),
    _PROVIDERS.remove("Remove a provider and its stored key."),
    _PROVIDERS.row(
        "test",
        "POST /{id}/test",
        "Send a real request to a provider: `ok`, `latency_ms`, `models`, and `error` in plain words.",
        takes=ById,
        gives=ProviderTestResult,
        call=lambda gateway, caller, command: gateway.providers.test(caller, command.id),
    ),
)
