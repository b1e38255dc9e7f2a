"""One real request to a provider, made by hand: how long it took, what it lists, and what was wrong in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.circuits import ProviderStatus
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.providers import Provider
from gateway.errors import UpstreamUnavailable
from gateway.llm.base import Prompt, Upstream, UpstreamFault, UpstreamRefused
from gateway.llm.upstream import PAYMENT_REQUIRED, UNPAID, HttpUpstream
from gateway.services.circuits import Circuits
from gateway.services.providers import Providers
from gateway.services.routing import ProviderConnection, Routing

MAX_TOLD_MODELS = 100
# Says that there is no list of models, and not that the provider is at fault.
_NO_LIST = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class ProviderTestResult:
    """What came of a test. asked: what was sent, ``models`` or a tiny ``completion``.

    http_status: of the provider's answer, None if there was none. models: the first of those it lists, as far as the
    record's globs let them through. error: why it cannot be used; None if it can.
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
    """Tests providers, whatever their circuit says and also while they are disabled."""

    def __init__(self, *, routing: Routing, circuits: Circuits, providers: Providers, clock: Clock) -> None:
        self._routing = routing
        self._circuits = circuits
        self._providers = providers
        self._clock = clock

    async def run(self, principal: Principal, provider: Provider, context: RequestContext) -> ProviderTestResult:
        """Ask a provider for its models, or for a tiny completion if it lists none. Counts like any other request.

        Raises:
            AuditUnavailable: it was asked, and that cannot be recorded.
        """
        connection = self._routing.connection(provider)
        begun_seconds = self._clock.monotonic_seconds()
        outcome = await _ask(connection)
        latency_ms = round((self._clock.monotonic_seconds() - begun_seconds) * 1000, 3)
        if outcome.error is None:
            self._circuits.succeeded(provider)
        elif provider.enabled:  # one that is not used is not reported down
            self._circuits.failed(provider, outcome.error)
        await self._providers.note_test(
            principal, provider, context, is_good=outcome.error is None, reason=outcome.error
        )
        return ProviderTestResult(
            ok=outcome.error is None,
            latency_ms=latency_ms,
            status=self._circuits.status(provider),
            asked=outcome.asked,
            http_status=outcome.http_status,
            models=outcome.models[:MAX_TOLD_MODELS],
            error=outcome.error,
        )


async def _ask(connection: ProviderConnection) -> _Outcome:
    asked = "models"
    try:
        try:
            listed = await _list(connection.upstream())
        except UpstreamFault as error:
            names = connection.provider.literal_models()
            if error.status not in _NO_LIST or not names:
                raise
            asked = "completion"
            return await _complete(connection, names[0])
        told = (str(model["id"]) for model in listed)
        return _Outcome(asked, models=tuple(name for name in told if connection.provider.serves(name)))
    except UpstreamFault as error:
        return _Outcome(asked, error.status, error=f"The provider cannot be used: {error.detail}.")
    except UpstreamUnavailable:
        return _Outcome(asked, error="The provider cannot be used: its answer is no completion.")


async def _list(upstream: Upstream) -> tuple[Mapping[str, object], ...]:
    """Ask for the models now, whatever was told a moment ago."""
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
