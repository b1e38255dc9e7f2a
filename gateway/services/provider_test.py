"""Test a provider with one real request: its latency, its models, and in plain words why it cannot be used."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from gateway.domain.circuits import ProviderStatus
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import UpstreamUnavailable
from gateway.llm.base import Prompt, UpstreamFault, UpstreamRefused
from gateway.llm.upstream import PAYMENT_REQUIRED, UNPAID, HttpUpstream
from gateway.services.circuits import Circuits
from gateway.services.core import Service
from gateway.services.providers import Providers
from gateway.services.routing import ProviderConnection, Routing

MAX_MODELS = 100
# These statuses mean that the provider has no list of models, not that it is at fault.
_NO_LIST = (404, 405, 501)


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


class ProviderTest(Service):
    """Tests providers, even if they are disabled or their circuit is open."""

    routing: Routing
    circuits: Circuits
    providers: Providers

    async def run(self, principal: Principal, name: str, context: RequestContext) -> ProviderTestResult:
        """Ask a provider for its models, or for a tiny completion if it lists none. Counts like any other request.

        Raises:
            NotFound: there is no provider of this id or name.
            AuditUnavailable: the request was sent, but it cannot be recorded.
        """
        provider = await self.providers.show(name)
        connection = self.routing.connection(provider)
        begun_seconds = self.clock.monotonic_seconds()
        outcome = await _ask(connection)
        latency_ms = round((self.clock.monotonic_seconds() - begun_seconds) * 1000, 3)
        if outcome.error is None:
            self.circuits.succeeded(provider)
        else:
            self.circuits.failed(provider, outcome.error)
        await self.providers.record_test(principal, provider, context, error=outcome.error)
        return ProviderTestResult(
            **asdict(outcome), ok=outcome.error is None, latency_ms=latency_ms, status=self.circuits.status(provider)
        )


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
        return _Outcome(asked, models=tuple(names[:MAX_MODELS]))
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
