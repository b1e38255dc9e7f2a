"""Choose the provider for a prompt, and the next one when it fails. Reads no text and records nothing.

Providers whose globs match the model are tried in the order of their priority. Those of one priority take turns by
weight: with weights 3 and 1, three of four prompts go to the first. The gateway asks a provider again as often as its
record says, if a repetition makes sense, and then the next one. No byte of an answer is given out before all of it is
there. A provider with an open circuit is passed over.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import TypeVar

import anyio

from gateway.clock import Clock
from gateway.domain.circuits import ProviderStatus
from gateway.domain.prices import Prices
from gateway.domain.providers import Provider, ProviderType
from gateway.errors import GatewayError, NotFound, UpstreamUnavailable
from gateway.llm.base import Prompt, Reply, ReplyStream, Upstream, UpstreamFault, UpstreamRefused
from gateway.llm.echo import ECHO_MODEL
from gateway.services.circuits import Circuits
from gateway.services.core import Service
from gateway.services.health import HEALTHY
from gateway.services.provider_keys import KeyMissing, ProviderKeys
from gateway.store.database import StoreUnavailable

Answered = TypeVar("Answered", Reply, ReplyStream)
Connect = Callable[[Provider, str | None], Upstream]
"""Makes the connection to a provider of its record and its key."""

ATTEMPTS_SECONDS = 600.0
_GRACE_SECONDS = 1.0  # so that a provider's own limit ends its request first, and counts against it
FIRST_WAIT_SECONDS = 0.1
"""Before a repetition; each one waits twice as long as the one before."""
KEY_SECONDS = 10.0
"""How long a key is used before its file is read again."""
LIST_SECONDS = 10.0
LIST_AGAIN_SECONDS = 10.0
"""After a provider did not list its models. A list is used for `LISTED_SECONDS`."""
LISTED_SECONDS = 60.0
# What another provider may do better: it wants to be paid, has no such model, took too long, or takes no more requests.
_ANOTHER_MAY = (402, 404, 408, 429)
_FAILING = (ProviderStatus.DEGRADED, ProviderStatus.OPEN)
_ECHO = Provider(id=ECHO_MODEL, name=ECHO_MODEL, type=ProviderType.ECHO, origin="built-in")
# Before the provider of the settings, for the one model of this name.
_ECHO_BY_NAME = replace(_ECHO, models=(ECHO_MODEL,), priority=0)


class ProviderConnection:
    """One provider as this process reaches it.

    prices: its own, if it has any. is_echo: the built-in model answers. credit: what the choice by weight owes it.
    """

    def __init__(self, provider: Provider, *, connect: Connect, keys: ProviderKeys, clock: Clock) -> None:
        self.provider = provider
        self.id = provider.id
        self.name = provider.name
        self.prices = Prices(provider.prices) if provider.prices else None
        self.is_echo = provider.type is ProviderType.ECHO
        self.credit = 0
        self._connect = connect
        self._keys = keys
        self._clock = clock
        self._key: str | None = None
        self._upstream: Upstream | None = None
        self._read_again_seconds = float("-inf")
        self._listed: tuple[Mapping[str, object], ...] | None = None
        self._list_again_seconds = float("-inf")

    def upstream(self) -> Upstream:
        """Return the connection, with the key as it stands now.

        Raises:
            UpstreamFault: the key is not where the record says.
        """
        now_seconds = self._clock.monotonic_seconds()
        if self._upstream is not None and now_seconds < self._read_again_seconds:
            return self._upstream
        try:
            key = self._keys.read(self.provider.key_reference)
        except KeyMissing as error:
            message, reason = "The model gateway has no credentials for its provider.", error.message.rstrip(".")
            raise UpstreamFault(message, detail=reason[:1].lower() + reason[1:]) from error
        if self._upstream is None or key != self._key:
            self._upstream, self._key = self._connect(self.provider, key), key
            self._list_again_seconds = now_seconds
        self._read_again_seconds = now_seconds + KEY_SECONDS
        return self._upstream

    async def models(self) -> tuple[Mapping[str, object], ...]:
        """Return the models that the record names, and those of the provider that its globs let through.

        Raises:
            UpstreamUnavailable: the provider did not list them, or did not a few seconds ago.
        """
        provider, now_seconds = self.provider, self._clock.monotonic_seconds
        names = provider.literal_models()
        found: dict[str, Mapping[str, object]] = {
            name: {"id": name, "object": "model", "created": 0, "owned_by": provider.name} for name in names
        }
        if len(names) == len(provider.models):
            return tuple(found.values())
        upstream = self.upstream()
        if now_seconds() >= self._list_again_seconds:
            self._listed = None
            try:
                with anyio.move_on_after(LIST_SECONDS):
                    self._listed = await upstream.models()
            finally:
                wait_seconds = LIST_AGAIN_SECONDS if self._listed is None else LISTED_SECONDS
                self._list_again_seconds = now_seconds() + wait_seconds
            if self._listed is None:
                raise UpstreamUnavailable("The model gateway did not list its models in time.")
        if self._listed is None:
            raise UpstreamUnavailable("The model gateway did not list its models.")
        found |= {str(model["id"]): model for model in self._listed if provider.serves(str(model["id"]))}
        return tuple(found.values())


class Routing(Service):
    """The connections to all providers. upstream: the provider that the settings make, if they make one.

    attempts_seconds: longest wait for all attempts of one prompt, if no provider alone may take longer.
    """

    circuits: Circuits
    keys: ProviderKeys
    connect: Connect
    upstream: Provider | None = None
    attempts_seconds: float = ATTEMPTS_SECONDS
    _providers: Sequence[Provider] | None = field(default=None, init=False)
    _connections: dict[tuple[str, int], ProviderConnection] = field(default_factory=dict, init=False)

    def candidates(self, model: str) -> tuple[ProviderConnection, ...]:
        """Return who may get a prompt for `model`, in the order of trying. Each call takes a turn.

        Raises:
            NotFound: no provider serves the model. StoreUnavailable: no providers were read yet.
        """
        found = [one for one in self.connections() if one.provider.serves(model)]
        if not found:
            raise NotFound("No provider serves this model.", param="model")
        return _in_turn(found)

    async def complete(
        self, prompt: Prompt, candidates: Sequence[ProviderConnection], traceparent: str | None = None
    ) -> tuple[Reply, ProviderConnection]:
        """Send the prompt to the first of `candidates` that completes it. Return the completion and who made it.

        Raises:
            UpstreamUnavailable: none did. UpstreamRefused: the prompt is at fault, or all take no more requests.
            InvalidRequest: the built-in model cannot answer it.
        """
        return await self._first(candidates, lambda upstream: upstream.complete(prompt, traceparent))

    async def stream(
        self, prompt: Prompt, candidates: Sequence[ProviderConnection], traceparent: str | None = None
    ) -> tuple[ReplyStream, ProviderConnection]:
        """Send the prompt to the first of `candidates` that begins a completion. Raises as `complete`."""
        return await self._first(candidates, lambda upstream: upstream.stream(prompt, traceparent))

    def broke_off(self, connection: ProviderConnection, error: UpstreamUnavailable) -> None:
        """Note that a completion that had begun did not come to its end."""
        if not connection.is_echo:
            self.circuits.failed(connection.provider, _detail(error))

    async def _first(
        self, candidates: Sequence[ProviderConnection], send: Callable[[Upstream], Awaitable[Answered]]
    ) -> tuple[Answered, ProviderConnection]:
        longest_seconds = max(one.provider.timeout_seconds for one in candidates)
        failures: list[GatewayError] = []
        with anyio.move_on_after(max(self.attempts_seconds, longest_seconds + _GRACE_SECONDS)):
            for connection in candidates:
                reply = await self._try(connection, send, failures)
                if reply is not None:
                    return reply, connection
            if not failures:
                raise UpstreamUnavailable(
                    "Every provider of this model failed again and again and is left alone for a while.",
                    retry_after_seconds=min(self.circuits.wait_seconds(one.provider) for one in candidates),
                )
        raise min(failures, key=_rank, default=UpstreamUnavailable("No provider of this model answered in time."))

    async def models(self, *, allowed: Callable[[str], bool] | None = None) -> tuple[Mapping[str, object], ...]:
        """Return the models of all providers, each once, as OpenAI model objects. One that does not list is left out.

        Raises:
            UpstreamUnavailable: no provider listed any. StoreUnavailable: no providers were read yet.
        """
        usable = [one for one in self.connections() if allowed is None or allowed(one.name)]
        # The built-in model beside the provider of the settings is for trying things out, and not on offer.
        asked = [one for one in usable if one.provider.origin != "built-in"] or usable
        listed: dict[str, tuple[Mapping[str, object], ...]] = {}
        failures: list[UpstreamUnavailable] = []

        async def ask(connection: ProviderConnection) -> None:
            try:
                listed[connection.id] = await connection.models()
            except UpstreamUnavailable as error:
                failures.append(error)

        async with anyio.create_task_group() as group:
            for connection in asked:
                group.start_soon(ask, connection)
        if failures and not listed:
            raise failures[0]
        found: dict[object, Mapping[str, object]] = {}
        for connection in asked:
            for model in listed.get(connection.id, ()):
                found.setdefault(model["id"], model)
        return tuple(found.values())

    def connections(self) -> tuple[ProviderConnection, ...]:
        """Return the connections to all enabled providers, by priority.

        Raises:
            StoreUnavailable: no providers were read yet.
        """
        records = self.store.authority.now.providers
        if records is not self._providers:
            self._connect_all(records)
            self._providers = records
        return tuple(self._connections.values())

    def connection(self, provider: Provider) -> ProviderConnection:
        """Return the connection to a provider, enabled or not."""
        known = self._connections.get((provider.id, provider.version))
        return known or ProviderConnection(provider, connect=self.connect, keys=self.keys, clock=self.clock)

    def health(self) -> str:
        """Return how the providers are, in one word of the health answer. Asks nobody."""
        try:
            connections = self.connections()
        except StoreUnavailable:
            return "unknown"
        providers = [one.provider for one in connections if one.provider.origin != "built-in"]
        if not providers:
            return "not_configured"
        states = [self.circuits.status(provider) for provider in providers]
        failing = sum(state in _FAILING for state in states)
        if failing:
            return "unreachable" if failing == len(states) else "degraded"
        return HEALTHY if ProviderStatus.HEALTHY in states or all(one.is_echo for one in connections) else "unknown"

    async def _try(
        self,
        connection: ProviderConnection,
        send: Callable[[Upstream], Awaitable[Answered]],
        failures: list[GatewayError],
    ) -> Answered | None:
        """Ask one provider, as often as makes sense. None: another may do better; why is added to `failures`."""
        wait_seconds = FIRST_WAIT_SECONDS
        for repetitions in range(connection.provider.max_retries, -1, -1):
            # The provider of the settings is always asked: nothing replaces it, and nobody can test it by hand.
            may_ask = self.circuits.begin(connection.provider) or connection.provider.origin == "settings"
            if not may_ask:
                return None
            try:
                return await self._ask(connection, send)
            except UpstreamUnavailable as error:
                failures.append(error)
                if not repetitions or not isinstance(error, UpstreamFault) or not error.may_repeat:
                    return None
            except UpstreamRefused as error:
                if error.status not in _ANOTHER_MAY:
                    raise
                failures.append(error)
                return None
            await anyio.sleep(wait_seconds)
            wait_seconds *= 2
        return None

    async def _ask(self, connection: ProviderConnection, send: Callable[[Upstream], Awaitable[Answered]]) -> Answered:
        """Send one request, and note in circuit and metrics how it ended."""
        if connection.is_echo:  # which never fails
            return await send(connection.upstream())
        circuits, provider, outcome = self.circuits, connection.provider, "given_up"
        try:
            reply = await send(connection.upstream())
            circuits.succeeded(provider)
            outcome = "ok"
            return reply
        except UpstreamUnavailable as error:
            circuits.failed(provider, _detail(error))
            outcome = "failed"
            raise
        except UpstreamRefused as error:
            outcome = "refused"
            # It works, and refuses this request. That it takes no more, or wants to be paid, says nothing.
            (circuits.let_go if error.status in (402, 429) else circuits.succeeded)(provider)
            raise
        except BaseException:
            circuits.let_go(provider)
            raise
        finally:
            self.metrics.count("gateway_provider_requests_total", provider=connection.name, outcome=outcome)

    def _connect_all(self, records: Sequence[Provider]) -> None:
        """Make the table of providers anew. An unchanged provider keeps its connection."""
        providers = [provider for provider in records if provider.enabled]
        if self.upstream is not None:
            providers.append(self.upstream)
        if not records:
            providers.append(_ECHO if self.upstream is None else _ECHO_BY_NAME)
        providers.sort(key=lambda provider: (provider.priority, provider.id))
        self._connections = {(one.id, one.version): self.connection(one) for one in providers}
        self.circuits.keep_only((*records, *providers))


def _in_turn(found: Sequence[ProviderConnection]) -> tuple[ProviderConnection, ...]:
    """Return connections, which are sorted by priority, so that those of one priority take turns by weight.

    The credit of each grows by its weight; the highest is next and pays what all have got.
    """
    ordered: list[ProviderConnection] = []
    for _, same in groupby(found, key=lambda one: one.provider.priority):
        group = list(same)
        if len(group) > 1:
            for one in group:
                one.credit += one.provider.weight
            group.sort(key=lambda one: -one.credit)
            group[0].credit -= sum(one.provider.weight for one in group)
        ordered += group
    return tuple(ordered)


def _detail(error: UpstreamUnavailable) -> str:
    return error.detail if isinstance(error, UpstreamFault) else "its answer is no completion"


def _rank(error: GatewayError) -> int:
    """Return which failure a client hears of: too many requests, no answer in time, no answer, then a refusal."""
    if isinstance(error, UpstreamRefused):
        return 0 if error.status == 429 else 3
    return 1 if isinstance(error, UpstreamFault) and error.is_late else 2
