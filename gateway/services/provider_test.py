"""Test a provider with one real request: its latency, its models, and in plain words why it cannot be used."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.circuits import ProviderStatus
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import UpstreamUnavailable
from gateway.llm.base import Prompt, Upstream, UpstreamFault, UpstreamRefused
from gateway.llm.upstream import PAYMENT_REQUIRED, UNPAID, HttpUpstream
from gateway.services.circuits import Circuits
from gateway.services.providers import Providers
from gateway.services.routing import ProviderConnection, Routing

MAX_MODELS = 100
# These statuses mean that the provider has no list of models, not that it is at fault.
_NO_LIST = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class ProviderTestResult:
    """The result of a test. asked: the request, ``models`` or a tiny ``completion``.

    http_status: of the provider's answer, None if there was none. models: the first ones that it lists and the record's
    globs match. error: why it cannot be used, or None.
    """

    ok: bool
    latency_ms: float
    status: ProviderStatus
    asked: str
    http_status: int | None
    models: tuple[str, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class _Outcome:
    asked: str
    http_status: int | None = 200
    models: tuple[str, ...] = ()
    error: str | None = None


class ProviderTest:
    """Tests providers, even if they are disabled or their circuit is open."""

    def __init__(self, *, routing: Routing, circuits: Circuits, providers: Providers, clock: Clock) -> None:
        self._routing = routing
        self._circuits = circuits
        self._providers = providers
        self._clock = clock

    async def run(self, principal: Principal, name: str, context: RequestContext) -> ProviderTestResult:
        """Ask a provider for its models, or for a tiny completion if it lists none. Counts like any other request.

        Raises:
            NotFound: there is no provider of this id or name.
            AuditUnavailable: the request was sent, but it cannot be recorded.
        """
        provider = await self._providers.show(name)
        connection = self._routing.connection(provider)
        begun_seconds = self._clock.monotonic_seconds()
        outcome = await _ask(connection)
        latency_ms = round((self._clock.monotonic_seconds() - begun_seconds) * 1000, 3)
        if outcome.error is None:
            self._circuits.succeeded(provider)
        elif provider.enabled:  # a disabled provider is not reported down
            self._circuits.failed(provider, outcome.error)
        await self._providers.record_test(principal, provider, context, error=outcome.error)
        return ProviderTestResult(
            ok=outcome.error is None,
            latency_ms=latency_ms,
            status=self._circuits.status(provider),
            asked=outcome.asked,
            http_status=outcome.http_status,
            models=outcome.models[:MAX_MODELS],
            error=outcome.error,
        )


async def _ask(connection: ProviderConnection) -> _Outcome:
    asked = "models"
    try:
        try:
            listed = await _list(connection.upstream())
        except UpstreamFault as error:
            literals = connection.provider.literal_models()
            if error.status not in _NO_LIST or not literals:
                raise
            asked = "completion"
            return await _complete(connection, literals[0])
        names = (str(model["id"]) for model in listed)
        return _Outcome(asked, models=tuple(name for name in names if connection.provider.serves(name)))
    except UpstreamFault as error:
        return _Outcome(asked, error.status, error=f"The provider cannot be used: {error.detail}.")
    except UpstreamUnavailable:
        return _Outcome(asked, error="The provider cannot be used: its answer is no completion.")


async def _list(upstream: Upstream) -> tuple[Mapping[str, object], ...]:
    """Ask for the models now, past the list of an earlier answer."""
    return await (upstream.ask_models() if isinstance(upstream, HttpUpstream) else upstream.models())


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
        reason = reasons.get(error.status)
        return _Outcome("completion", error.status, error=reason)
    return _Outcome("completion")
