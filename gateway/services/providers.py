"""The providers of models, and the test of one with a real request. `routing` chooses between them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated

from gateway.domain.addresses import BASE_URL_PROMISE, MAX_URL_CHARS
from gateway.domain.circuits import ProviderStatus
from gateway.domain.keys import KEEP_TEXT
from gateway.domain.prices import MAX_REPLY_TOKENS, MAX_USD, Price, to_micro
from gateway.domain.principals import Caller, Principal
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
)
from gateway.errors import Conflict, InvalidRequest, UpstreamUnavailable
from gateway.field_types import PlainName, glob
from gateway.llm.base import Prompt, UpstreamFault, UpstreamRefused
from gateway.llm.upstream import PAYMENT_REQUIRED, UNPAID, HttpUpstream
from gateway.schema import Bounds
from gateway.services.endpoints import Endpoints
from gateway.services.routing import ProviderConnection, Routing
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

MAX_LISTED = 100
# These statuses mean that the provider has no list of models, not that it is at fault.
_NO_LIST = (404, 405, 501)
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
    dict[Model, ModelPrice],
    Bounds(0, MAX_MODELS),
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


@dataclass(frozen=True, slots=True)
class _Outcome:
    asked: str
    http_status: int | None = 200
    models: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTestResult(_Outcome):
    """The result of a test. asked: the request, ``models`` or a tiny ``completion``.

    http_status: of the provider's answer, None if there was none. models: the first ones that it lists and the record's
    globs match. error: why it cannot be used, or None.
    """

    ok: bool
    latency_ms: float
    status: ProviderStatus


class Providers(Endpoints[Provider]):
    """The providers of this gateway. A change applies to the next prompt, in every process.

    from_settings: the provider that the settings make, if any. It is listed last, and no call changes it.
    """

    noun, nouns = "provider", "providers"
    most = MAX_PROVIDERS
    audited = (
        "name", "type", "base_url", "models", "priority", "weight", "timeout_seconds", "max_retries", "enabled",
        "allow_private",
    )  # fmt: skip

    routing: Routing
    from_settings: Provider | None = None

    async def list(self) -> tuple[Provider, ...]:
        """Return the stored providers, oldest first, then the one of the settings."""
        return (*await super().list(), *(() if self.from_settings is None else (self.from_settings,)))

    async def test(self, caller: Caller, name: str) -> ProviderTestResult:
        """Ask a provider for its models, or for a tiny completion if it lists none. Counts like any other request.

        It is asked even if it is disabled or its circuit is open.

        Raises:
            NotFound: there is no provider of this id or name.
            AuditUnavailable: the request was sent, but it cannot be recorded.
        """
        provider = await self.show(name)
        begun_seconds = self.clock.monotonic_seconds()
        outcome = await _ask(self.routing.connection(provider))
        latency_ms = round((self.clock.monotonic_seconds() - begun_seconds) * 1000, 3)
        if outcome.error is None:
            self.circuits.succeeded(provider)
        else:
            self.circuits.failed(provider, outcome.error)
        await self.record_test(caller, provider, error=outcome.error)
        return ProviderTestResult(
            **asdict(outcome), ok=outcome.error is None, latency_ms=latency_ms, status=self.circuits.status(provider)
        )

    def _blank(self, principal: Principal, new: NewProvider) -> Provider:
        return Provider(**self._born("prv", principal), name="", type=new.type)

    def _computed(self, record: Provider, changes: ChangedProvider) -> Mapping[str, object]:
        return {
            "timeout_seconds": float(changes.timeout_seconds or record.timeout_seconds),
            "prices": record.prices if changes.prices is None else _prices(changes.prices),
        }

    def _check_together(self, record: Provider) -> None:
        is_echo = record.type is ProviderType.ECHO
        for name, value in (("base_url", record.base_url), ("api_key", record.key_reference)):
            if is_echo and value is not None:
                raise InvalidRequest(f"{name} is not a field of a provider of type echo.", param=name)
        if not is_echo and record.base_url is None:
            raise InvalidRequest("base_url is missing.", param="base_url")

    def _check_change(self, record: Provider, changes: ChangedProvider) -> None:
        _check_stored(record)
        given = {"base_url": changes.base_url, "api_key": changes.api_key not in (None, KEEP_TEXT)}
        wrong = next((param for param, is_given in given.items() if is_given), None)
        if record.type is ProviderType.ECHO and wrong:
            raise Conflict(f"A provider of type echo has no {wrong}.", param=wrong)

    def _lookup(self, tx: Transaction, name: str) -> Provider | None:
        """Return a provider by id or name, a stored one first."""
        ours = self.from_settings
        found = self.store.providers.find(tx, name)
        return ours if found is None and ours is not None and name.lower() == ours.name else found

    def _check_removal(self, tx: AuthorityTransaction, record: Provider) -> None:
        _check_stored(record)
        super()._check_removal(tx, record)

    def _shown(self, record: Provider) -> dict[str, object]:
        prices = {model: [price.input, price.output] for model, price in record.prices.items()}
        return super()._shown(record) | {"prices": prices}


async def _ask(connection: ProviderConnection) -> _Outcome:
    asked = "models"
    try:
        try:
            upstream = connection.upstream()
            # An `HttpUpstream` would otherwise answer with an earlier list.
            listed = await (upstream.ask_models() if isinstance(upstream, HttpUpstream) else upstream.models())
        except UpstreamFault as error:
            literals = connection.provider.literal_models()
            if error.status not in _NO_LIST or not literals:
                raise
            asked = "completion"
            return await _complete(connection, literals[0])
        names = [str(model["id"]) for model in listed if connection.provider.serves(str(model["id"]))]
        return _Outcome(asked, models=tuple(names[:MAX_LISTED]))
    except UpstreamFault as error:
        return _Outcome(asked, error.status, error=f"The provider cannot be used: {error.detail}.")
    except UpstreamUnavailable:
        return _Outcome(asked, error="The provider cannot be used: its answer is no completion.")


async def _complete(connection: ProviderConnection, model: str) -> _Outcome:
    """Ask for a tiny completion. A refusal of it shows that the provider is there and takes the key."""
    body: Mapping[str, object] = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    try:
        await connection.upstream().complete(Prompt(model, body))
    except UpstreamRefused as error:
        reasons = {
            404: f"The provider lists no models and has none named {model}: look at base_url.",
            PAYMENT_REQUIRED: f"The provider cannot be used: {UNPAID}.",
        }
        return _Outcome("completion", error.status, error=reasons.get(error.status))
    return _Outcome("completion")


def _check_stored(record: Provider) -> None:
    if record.origin == "settings":
        raise Conflict("The settings make this provider: change GATEWAY_UPSTREAM_URL instead.", param="id")


def _prices(prices: dict[str, ModelPrice]) -> dict[str, Price]:
    micro = partial(to_micro, param="prices")
    return {
        model: Price(micro(price.input), micro(price.output), price.max_reply_tokens) for model, price in prices.items()
    }
