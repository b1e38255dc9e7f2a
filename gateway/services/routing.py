"""Which provider gets a prompt, and which the next when it fails. Knows the text of no prompt and makes no record.

Theory of operation. Providers whose globs match the model are tried in the order of their priority; among those of one
priority turns are taken by weight, exactly: out of weights 3 and 1, three of four in a row. One that fails is asked
again as often as its record says, if a repetition makes sense, then the next is tried: no byte of an answer has been
given out before it is whole. A provider whose circuit is open is passed over. The table of providers is read again when
the generation of the store has moved, so that a change holds in every process at its next prompt; without any provider
all that a prompt costs is to look at that number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import anyio

from gateway.clock import Clock
from gateway.domain.circuits import ProviderStatus
from gateway.domain.prices import Prices
from gateway.domain.providers import Provider, ProviderType
from gateway.errors import GatewayError, NotFound, UpstreamUnavailable
from gateway.llm.base import Prompt, Reply, UpstreamFault, UpstreamRefused
from gateway.llm.echo import ECHO_MODEL
from gateway.metrics import Metrics
from gateway.services.circuits import Circuits
from gateway.services.health import HEALTHY
from gateway.services.lanes import Connect, Lane
from gateway.services.provider_keys import ProviderKeys
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store

MAX_KNOWN_MODELS = 1000
ATTEMPTS_SECONDS = 600.0
_GRACE_SECONDS = 1.0  # so that a provider's own limit ends its request first, and counts against it
FIRST_WAIT_SECONDS = 0.1
"""Before a repetition; each one waits twice as long as the one before."""
# What another provider may do better: it wants to be paid, has no such model, took too long, or has had enough of us.
_ANOTHER_MAY = (402, 404, 408, 429)
_FAILING = (ProviderStatus.DEGRADED, ProviderStatus.OPEN)
_ECHO = Provider(id=ECHO_MODEL, name=ECHO_MODEL, type=ProviderType.ECHO, origin="built-in")
# Before the provider of the settings, for the one model of this name.
_ECHO_BY_NAME = replace(_ECHO, models=(ECHO_MODEL,), priority=0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A provider that may get a prompt. prices: its own, if it has any. is_echo: the built-in model answers."""

    id: str
    name: str
    type: ProviderType
    prices: Prices | None
    is_echo: bool
    lane: Lane = field(repr=False, compare=False)


class Routing:
    """The ways to all providers. upstream: the one that the settings make, None if they make none. keys: of all.

    attempts_seconds: longest wait for all attempts of one prompt, if no provider alone may take longer.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        circuits: Circuits,
        keys: ProviderKeys,
        connect: Connect,
        upstream: Provider | None = None,
        metrics: Metrics | None = None,
        attempts_seconds: float = ATTEMPTS_SECONDS,
    ) -> None:
        self._attempts_seconds = attempts_seconds
        self._metrics = metrics or Metrics()
        self._store = store
        self._clock = clock
        self._circuits = circuits
        self._keys = keys
        self._connect = connect
        self._settings_provider = upstream
        self._generation: int | None = None
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._candidates: tuple[Candidate, ...] = ()
        self._serving: dict[str, tuple[Candidate, ...]] = {}

    @property
    def settings_provider(self) -> Provider | None:
        """The provider that the settings make."""
        return self._settings_provider

    def candidates(self, model: str, generation: int) -> tuple[Candidate, ...]:
        """Return who may get a prompt for `model`, in the order of trying. Each call takes a turn.

        generation: the store's, as it is now.

        Raises:
            NotFound: no provider serves the model. StoreUnavailable: the providers cannot be read.
        """
        if generation != self._generation:
            self._read_again()
        found = self._serving.get(model)
        if found is None:
            found = self._look_for(model)
        if len(found) == 1:
            return found
        if not found:
            raise NotFound("No provider serves this model.", param="model")
        return _in_turn(found)

    async def complete(
        self, prompt: Prompt, candidates: Sequence[Candidate], begun_seconds: float, traceparent: str | None = None
    ) -> tuple[Reply, Candidate]:
        """Send the prompt to the first of `candidates` that completes it. Return the completion and who made it.

        candidates: one at least. begun_seconds: since when all attempts together are waited for, monotonic.

        Raises:
            UpstreamUnavailable: none did. UpstreamRefused: the prompt is at fault, or all had enough of us.
            InvalidRequest: the built-in model cannot answer it.
        """
        first = candidates[0]
        lane = first.lane
        failed: GatewayError | None = None
        if self._circuits.begin(lane.standing):
            # Its own limit ends it: a scope around all attempts costs more than everything else that is done here.
            try:
                reply = await lane.upstream().complete(prompt, traceparent)
            except BaseException as error:
                self._ended(lane, error)
                if not isinstance(error, UpstreamUnavailable | UpstreamRefused):
                    raise
                failed = error
            else:
                self._ended(lane, None)
                return reply, first
        longest = max(one.lane.provider.timeout_seconds for one in candidates)
        left_seconds = max(self._attempts_seconds, longest + _GRACE_SECONDS)
        left_seconds -= self._clock.monotonic_seconds() - begun_seconds
        failures: list[GatewayError] = []
        with anyio.move_on_after(left_seconds):
            routed = await self._try_all(prompt, candidates, traceparent, failures, failed)
            if routed is not None:
                return routed
            if not failures:
                raise self._all_paused(candidates)
        raise min(failures, key=_rank, default=UpstreamUnavailable("No provider of this model answered in time."))

    async def _try_all(
        self,
        prompt: Prompt,
        candidates: Sequence[Candidate],
        traceparent: str | None,
        failures: list[GatewayError],
        failed: GatewayError | None,
    ) -> tuple[Reply, Candidate] | None:
        """Send the prompt to one after another; None when nobody completed it. What fails is added to `failures`.

        failed: how the very first attempt ended, if it was made already.

        Raises:
            UpstreamRefused: the prompt is at fault.
        """
        for candidate in candidates:
            lane = candidate.lane
            wait_seconds = FIRST_WAIT_SECONDS
            for repetitions in range(lane.provider.max_retries, -1, -1):
                if failed is None and not self._circuits.begin(lane.standing):
                    break
                try:
                    if failed is not None:
                        error, failed = failed, None
                        raise error
                    reply = await self._ask(lane, prompt, traceparent)
                except UpstreamUnavailable as error:
                    failures.append(error)
                    if not repetitions or not isinstance(error, UpstreamFault) or not error.may_repeat:
                        break
                    await anyio.sleep(wait_seconds)
                    wait_seconds *= 2
                except UpstreamRefused as error:
                    if error.status not in _ANOTHER_MAY:
                        raise
                    failures.append(error)
                    break
                else:
                    return reply, candidate
        return None

    async def models(self, *, allowed: Callable[[str], bool] | None = None) -> tuple[Mapping[str, object], ...]:
        """Return the models of all providers, each once, as OpenAI model objects. One that fails to tell is left out.

        Raises:
            UpstreamUnavailable: not one told. StoreUnavailable: the providers cannot be read.
        """
        lanes = [lane for lane in self.lanes() if allowed is None or allowed(lane.provider.name)]
        # The built-in model beside the provider of the settings is for trying things out, and not on offer.
        listed = [lane for lane in lanes if lane.provider.origin != "built-in"] or lanes
        told: dict[int, tuple[Mapping[str, object], ...]] = {}
        failures: list[UpstreamUnavailable] = []

        async def ask(number: int, lane: Lane) -> None:
            try:
                told[number] = await lane.models()
            except UpstreamUnavailable as error:
                failures.append(error)

        async with anyio.create_task_group() as group:
            for number, lane in enumerate(listed):
                group.start_soon(ask, number, lane)
        if failures and not told:
            raise failures[0]
        found: dict[object, Mapping[str, object]] = {}
        for number in sorted(told):
            for model in told[number]:
                found.setdefault(model["id"], model)
        return tuple(found.values())

    def lanes(self) -> tuple[Lane, ...]:
        """Return the ways to all enabled providers, by priority.

        Raises:
            StoreUnavailable: the providers cannot be read.
        """
        if self._generation != self._store.generation.value():
            self._read_again()
        return tuple(candidate.lane for candidate in self._candidates)

    def lane(self, provider: Provider) -> Lane:
        """Return the way to a provider, enabled or not."""
        return self._lanes.get((provider.id, provider.version)) or self._make(provider)

    def health(self) -> str:
        """Return how the providers are, in one word of the health answer. Asks nobody."""
        try:
            lanes = self.lanes()
        except StoreUnavailable:
            return "unknown"
        if all(lane.provider.origin == "built-in" for lane in lanes):
            return "not_configured"
        states = [self._circuits.status(lane.provider) for lane in lanes if lane.provider.origin != "built-in"]
        failing = sum(state in _FAILING for state in states)
        if failing:
            return "unreachable" if failing == len(states) else "degraded"
        return HEALTHY if ProviderStatus.HEALTHY in states or all(lane.is_echo for lane in lanes) else "unknown"

    async def _ask(self, lane: Lane, prompt: Prompt, traceparent: str | None) -> Reply:
        """Send one request, which has begun, and note how it went."""
        try:
            reply = await lane.upstream().complete(prompt, traceparent)
        except BaseException as error:
            self._ended(lane, error)
            raise
        self._ended(lane, None)
        return reply

    def _ended(self, lane: Lane, error: BaseException | None) -> None:
        """Note how a request went. error: what it ended with, None for a completion."""
        if lane.is_echo:  # which never fails
            return
        circuits, standing, outcome = self._circuits, lane.standing, "ok"
        if error is None:
            circuits.succeeded(standing)
        elif isinstance(error, UpstreamUnavailable):
            outcome = "failed"
            detail = error.detail if isinstance(error, UpstreamFault) else "its answer is no completion"
            circuits.failed(standing, detail)
        elif isinstance(error, UpstreamRefused):
            outcome = "refused"
            # It works, and refuses this request; that it has had enough of us, or wants to be paid, says nothing.
            (circuits.let_go if error.status in (402, 429) else circuits.succeeded)(standing)
        else:
            outcome = "given_up"
            circuits.let_go(standing)
        counter = lane.outcomes.get(outcome)
        if counter is None:
            name, provider = "gateway_provider_requests_total", lane.provider.name
            counter = lane.outcomes[outcome] = self._metrics.counter(name, provider=provider, outcome=outcome)
        counter.value += 1

    def _look_for(self, model: str) -> tuple[Candidate, ...]:
        """Return who serves a model, by priority, and remember it for the next prompt."""
        found = tuple(one for one in self._candidates if one.lane.provider.serves(model))
        if len(self._serving) >= MAX_KNOWN_MODELS:
            self._serving.clear()
        self._serving[model] = found
        return found

    def _read_again(self) -> None:
        """Make the table of providers anew, if one of them was changed: the generation moves with other things too."""
        generation = self._store.generation.value()
        records = self._store.db.read_now(self._store.providers.all)
        providers = [provider for provider in records if provider.enabled]
        if self._settings_provider is not None:
            providers.append(self._settings_provider)
        if not records:
            alone = self._settings_provider is None
            providers.append(_ECHO if alone else _ECHO_BY_NAME)
        providers.sort(key=lambda provider: (provider.priority, provider.id))
        self._lanes = {
            (one.id, one.version): self._lanes.get((one.id, one.version)) or self._make(one) for one in providers
        }
        self._candidates = tuple(_candidate(self._lanes[one.id, one.version]) for one in providers)
        self._serving = {}
        self._circuits.keep_only((*records, *providers))
        self._generation = generation

    def _make(self, provider: Provider) -> Lane:
        standing = self._circuits.standing(provider)
        return Lane(provider, standing, connect=self._connect, keys=self._keys, clock=self._clock)

    def _all_paused(self, candidates: Sequence[Candidate]) -> UpstreamUnavailable:
        waits = [self._circuits.wait_seconds(candidate.lane.provider) for candidate in candidates]
        return UpstreamUnavailable(
            "Every provider of this model failed again and again and is left alone for a while.",
            retry_after_seconds=min(waits, default=1),
        )


def _candidate(lane: Lane) -> Candidate:
    provider = lane.provider
    prices = Prices(provider.prices) if provider.prices else None
    return Candidate(provider.id, provider.name, provider.type, prices, lane.is_echo, lane)


def _in_turn(found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Return candidates, which are sorted by priority, so that those of one priority take turns by weight.

    Everyone's turn grows by its weight; the highest is next and pays what all have got.
    """
    ordered: list[Candidate] = []
    for _, same in groupby(found, key=lambda one: one.lane.provider.priority):
        group = list(same)
        if len(group) > 1:
            for one in group:
                one.lane.turn += one.lane.provider.weight
            group.sort(key=lambda one: -one.lane.turn)
            group[0].lane.turn -= sum(one.lane.provider.weight for one in group)
        ordered += group
    return tuple(ordered)


def _rank(error: GatewayError) -> int:
    """Return how soon a failure is told: too much to do, no answer in time, no answer, then a refusal."""
    if isinstance(error, UpstreamRefused):
        return 0 if error.status == 429 else 3
    return 1 if isinstance(error, UpstreamFault) and error.is_late else 2
