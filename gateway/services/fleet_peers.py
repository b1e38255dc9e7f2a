"""Peers: other gateways, which this one asks over HTTP how they are. Their keys go in and never come out."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, TypeVar

import anyio

from gateway.domain.addresses import BASE_URL_PROMISE, MAX_URL_CHARS, address_check, check_host, read_base_url
from gateway.domain.fleet import MAX_PEER_NAME_CHARS, MAX_PEERS, Peer, read_answer
from gateway.domain.principals import Caller
from gateway.domain.providers import KEY_PROMISE, MAX_KEY_BYTES, read_key
from gateway.errors import GatewayError, InvalidRequest
from gateway.field_types import line
from gateway.llm.upstream import JsonReader
from gateway.schema import Bounds, check
from gateway.services.endpoints import Resolve
from gateway.services.fleet import Fleet
from gateway.services.provider_keys import STORED, KeyedResource, ProviderKeys
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

PEER_SECONDS = 5.0
_AT_ONCE = 8
_PATH = "/api/v1/fleet"
_PROBLEM_CHARS = 200

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPeer:
    """A peer to create. api_key: a reference, or a key with the scope ``fleet:read`` of that gateway."""

    name: Annotated[str, line(MAX_PEER_NAME_CHARS)]
    url: Annotated[
        str,
        Bounds(1, MAX_URL_CHARS, promise=BASE_URL_PROMISE),
        "Its base, such as https://gateway.example.com. An IP address is taken as well; a private one, and localhost, "
        "with `allow_private`.",
    ]
    api_key: Annotated[
        str,
        Bounds(1, MAX_KEY_BYTES, promise=KEY_PROMISE),
        "A key of that gateway with the scope `fleet:read`: env:NAME, file:/PATH, cred:NAME, or the key itself. Never "
        "shown again.",
    ] = field(repr=False)
    allow_private: bool = False


class FleetPeers(KeyedResource[Peer]):
    """The peers of this gateway."""

    noun, nouns = "peer", "peers"
    resource_type = "fleet_peer"
    name_field = "name"
    most = MAX_PEERS

    fleet: Fleet
    reader: JsonReader
    resolve: Resolve
    keys: ProviderKeys
    _limiter: anyio.CapacityLimiter = field(default_factory=partial(anyio.CapacityLimiter, _AT_ONCE), init=False)

    async def create(self, caller: Caller, new: WantedPeer) -> Peer:
        """Create a peer and ask it once. Raises what `Resource.create` raises.

        Without an answer the peer is kept, and its record shows the problem.
        """
        check(new)
        url = _checked_url(read_base_url, new.url, new)
        reference, key = read_key(new.api_key)
        self.keys.check(reference, param="api_key")
        for address in await self.resolve(url):
            _checked_url(check_host, address, new)
        born, name = self._born("peer", caller.principal), new.name.strip()
        reference = reference or f"{STORED}{born['id']}"
        peer = Peer(
            **born,
            name=name,
            folded=name.casefold(),
            url=url,
            key_reference=reference,
            allow_private=new.allow_private,
        )
        made = await self._commit_with_key(caller, lambda tx: self._insert(tx, peer), reference, key)
        return await self._ask(made)

    def _namesake(self, tx: Transaction, record: Peer) -> Peer | None:
        return next((one for one in self.store.peers.all(tx) if one.folded == record.folded), None)

    def _check_removal(self, tx: AuthorityTransaction, record: Peer) -> None:
        self._drop_key(tx, record)
        now_at = self.clock.now_at()
        self.fleet.track(tx, record.id, record.name, now_at, now_at)

    def _shown(self, record: Peer) -> dict[str, object]:
        shown = {"name": record.name, "url": record.url, "allow_private": record.allow_private}
        return shown | {"api_key": source_of_key(record)}

    async def ask_all(self) -> None:
        """Ask every peer, a few at a time, and store their answers."""
        async with anyio.create_task_group() as group:
            for peer in await self.list():
                group.start_soon(self._ask, peer)

    async def _ask(self, peer: Peer) -> Peer:
        async with self._limiter:
            after = await self._answered(peer)

        def work(tx: Transaction) -> None:
            if self.store.peers.change(tx, after):
                heard_at = peer.created_at if after.answered_at is None else after.answered_at
                self.fleet.track(tx, after.id, after.name, heard_at, self.clock.now_at())

        await self.store.db.write(work)
        return after

    async def _answered(self, peer: Peer) -> Peer:
        """Return the peer with its answer or its problem."""
        allow = address_check(allow_private=peer.allow_private)
        problem, instances = None, peer.instances
        try:
            key = self.keys.read(peer.key_reference) or ""
            with anyio.fail_after(2 * PEER_SECONDS):
                value = await self.reader.ask(
                    peer.url + _PATH, {"x-service-key": key}, key=key, seconds=PEER_SECONDS, allow_address=allow
                )
            instances = read_answer(value)
        except GatewayError as error:
            problem = error.message[:_PROBLEM_CHARS]
        except ValueError as error:
            problem = str(error)[:_PROBLEM_CHARS]
        except TimeoutError:
            problem = "it did not answer in time"
        now_at = self.clock.now_at()
        answered_at = now_at if problem is None else peer.answered_at
        return replace(peer, asked_at=now_at, answered_at=answered_at, problem=problem, instances=instances)


def _checked_url(check: Callable[..., Value], text: str, peer: WantedPeer) -> Value:
    """Call a check of a provider's URL, and name the field of a peer in its message."""
    try:
        return check(text, allow_private=peer.allow_private)
    except InvalidRequest as error:
        raise InvalidRequest(error.message.replace("base_url", "url"), param="url") from None


def source_of_key(peer: Peer) -> str:
    """Return where the key of a peer is: a reference, or ``stored`` for a typed-in key."""
    return "stored" if peer.key_reference.startswith(STORED) else peer.key_reference
