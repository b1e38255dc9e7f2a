"""The way to one provider: its record, and the connection made of it and its key. Decides nothing."""

from collections.abc import Callable, Mapping

import anyio

from gateway.clock import Clock
from gateway.domain.providers import Provider, ProviderType
from gateway.errors import UpstreamUnavailable
from gateway.llm.base import Upstream, UpstreamFault
from gateway.metrics import Cell
from gateway.services.circuits import Standing
from gateway.services.provider_keys import KeyMissing, ProviderKeys

Connect = Callable[[Provider, str | None], Upstream]
"""Makes the connection to a provider of its record and its key."""

KEY_SECONDS = 10.0
"""How long a key that was read is good: one that is exchanged in its file holds after this."""
LIST_SECONDS = 10.0
LIST_AGAIN_SECONDS = 10.0


class Lane:
    """One provider as this process reaches it. turn: of the choice by weight.

    is_echo: the built-in model answers, so that nothing leaves this process. standing: how it fares. outcomes: what
    counts its requests, by how they ended.
    """

    __slots__ = ("_clock", "_connect", "_key", "_keys", "_read_again_seconds", "_silent_until_seconds", "_upstream",
                 "is_echo", "outcomes", "provider", "standing", "turn")  # fmt: skip

    def __init__(
        self, provider: Provider, standing: Standing, *, connect: Connect, keys: ProviderKeys, clock: Clock
    ) -> None:
        self.provider = provider
        self.standing = standing
        self.is_echo = provider.type is ProviderType.ECHO
        self.turn = 0
        self.outcomes: dict[str, Cell] = {}
        self._connect = connect
        self._keys = keys
        self._clock = clock
        self._key: str | None = None
        self._upstream: Upstream | None = None
        self._read_again_seconds = float("-inf")
        self._silent_until_seconds = float("-inf")

    def upstream(self) -> Upstream:
        """Return the connection, with the key as it stands now.

        Raises:
            UpstreamFault: the key is not where the record says.
        """
        upstream, provider = self._upstream, self.provider
        if upstream is not None and provider.key_reference is None:
            return upstream
        now_seconds = self._clock.monotonic_seconds()
        if upstream is not None and now_seconds < self._read_again_seconds:
            return upstream
        try:
            key = self._keys.read(provider.key_reference)
        except KeyMissing as error:
            message = "The model gateway has no credentials for its provider."
            raise UpstreamFault(message, detail=_reason(error)) from error
        if upstream is None or key != self._key:
            upstream = self._upstream = self._connect(provider, key)
            self._key = key
        self._read_again_seconds = now_seconds + KEY_SECONDS
        return upstream

    async def models(self) -> tuple[Mapping[str, object], ...]:
        """Return the models that the record names, and those of the provider that its globs let through.

        Asks the provider, unless the record names them all.

        Raises:
            UpstreamUnavailable: it did not tell, or did not a few seconds ago.
        """
        provider = self.provider
        names = provider.literal_models()
        named: dict[str, Mapping[str, object]] = {
            name: {"id": name, "object": "model", "created": 0, "owned_by": provider.name} for name in names
        }
        if len(names) == len(provider.models):
            return tuple(named.values())
        if self._clock.monotonic_seconds() < self._silent_until_seconds:
            raise UpstreamUnavailable("The model gateway did not list its models.")
        listed: tuple[Mapping[str, object], ...] | None = None
        try:
            with anyio.move_on_after(LIST_SECONDS):
                listed = await self.upstream().models()
        finally:
            if listed is None:
                self._silent_until_seconds = self._clock.monotonic_seconds() + LIST_AGAIN_SECONDS
        if listed is None:
            raise UpstreamUnavailable("The model gateway did not list its models in time.")
        found = {str(model["id"]): model for model in listed if provider.serves(str(model["id"]))}
        return tuple((named | found).values())


def _reason(error: KeyMissing) -> str:
    text = error.message.rstrip(".")
    return text[:1].lower() + text[1:]
