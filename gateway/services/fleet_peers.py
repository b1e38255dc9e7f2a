"""Peers: other gateways, kept, asked over HTTP within a time limit, and removed. Audited; their keys never come out."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol, TypeVar

import anyio

from gateway.clock import Clock, Ids
from gateway.domain.addresses import (
    BASE_URL_PROMISE,
    MAX_URL_CHARS,
    check_host,
    may_connect,
    may_connect_privately,
    read_base_url,
)
from gateway.domain.fleet import MAX_PEER_NAME_CHARS, MAX_PEERS, Peer, read_answer
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.providers import KEY_PROMISE, MAX_KEY_BYTES, read_key
from gateway.errors import Conflict, GatewayError, InvalidRequest, NotFound
from gateway.field_types import line
from gateway.schema import Bounds, check
from gateway.services.audit import Audit
from gateway.services.fleet import Fleet
from gateway.services.provider_keys import ProviderKeys
from gateway.services.resource import AuditTrail
from gateway.services.typed_keys import commit_with_key, keep
from gateway.store.database import Transaction
from gateway.store.store import Store

PEER_SECONDS = 5.0
_AT_ONCE = 8
_PATH = "/api/v1/fleet"
_PROBLEM_CHARS = 200

Value = TypeVar("Value")
Resolve = Callable[[str], Awaitable[Sequence[str]]]


class Reader(Protocol):
    """What asks a gateway for a JSON document."""

    async def get(self, url: str, *, key: str, seconds: float, allow_address: Callable[[str], bool]) -> object:
        """Return it, or raise UpstreamUnavailable with a reason that repeats neither key nor answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPeer:
    """A peer to be made. api_key: a reference, or a key with the scope ``fleet:read`` of that gateway."""

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
    ]
    allow_private: bool = False

    def __repr__(self) -> str:
        """Leave the key out, so that no log line can hold it."""
        return f"WantedPeer(name={self.name!r})"


class FleetPeers:
    """The peers of this gateway."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        audit: Audit,
        fleet: Fleet,
        reader: Reader,
        resolve: Resolve,
        keys: ProviderKeys,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._fleet = fleet
        self._reader = reader
        self._resolve = resolve
        self._keys = keys
        self._trail = AuditTrail(audit, "fleet_peer")

    async def list(self) -> tuple[Peer, ...]:
        """Return all peers, oldest first."""
        return await self._store.db.read(self._store.peers.all)

    async def create(self, principal: Principal, wanted: WantedPeer, context: RequestContext) -> Peer:
        """Make a peer and ask it once; that it does not answer is told in the record and no reason not to keep it.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: the name is taken, or there are too many.
            AuditUnavailable: it was not made.
        """
        peer, key = self._checked(principal, wanted)
        for address in await self._resolve(peer.url):
            _named("url", check_host, address, allow_private=peer.allow_private)

        def work(tx: Transaction) -> None:
            known = self._store.peers.all(tx)
            if len(known) >= MAX_PEERS:
                raise Conflict(f"There are {MAX_PEERS} peers; remove some first.")
            if any(one.folded == peer.folded for one in known):
                raise Conflict("There is a peer of this name already.", param="name")
            keep(self._store, peer.key_reference, key)
            self._store.peers.insert(tx, peer)
            self._trail.append(tx, "fleet_peer_created", principal, context, id=peer.id, after=_shown(peer))

        await commit_with_key(
            self._audit.commit,
            self._store,
            work,
            reference=peer.key_reference,
            key=key,
            references=lambda tx: [one.key_reference for one in self._store.peers.all(tx)],
        )
        return await self._ask(peer)

    async def remove(self, principal: Principal, id: str, context: RequestContext) -> Peer:
        """Remove a peer and its key, and return what it was.

        Raises:
            NotFound: there is none. AuditUnavailable: it is still there.
        """

        def work(tx: Transaction) -> Peer:
            peer = next((one for one in self._store.peers.all(tx) if one.id == id), None)
            if peer is None:
                raise NotFound("There is no such peer.")
            self._store.peers.remove(tx, id)
            self._fleet.tell(tx, peer.id, peer.name, self._clock.now_at(), self._clock.now_at())
            self._trail.append(tx, "fleet_peer_removed", principal, context, id=id, before=_shown(peer))
            return peer

        peer = await self._audit.commit(work)
        try:
            self._store.keyfile.drop(peer.id)
        except OSError:
            pass  # a key that nothing refers to any more; the next key that is written takes the file anew
        return peer

    async def ask_all(self) -> None:
        """Ask every peer, some at a time, each within its limit, and note what came of it."""
        peers = await self.list()
        limiter = anyio.CapacityLimiter(_AT_ONCE)

        async def ask(peer: Peer) -> None:
            async with limiter:
                await self._ask(peer)

        async with anyio.create_task_group() as group:
            for peer in peers:
                group.start_soon(ask, peer)

    async def _ask(self, peer: Peer) -> Peer:
        after = await self._answered(peer)

        def work(tx: Transaction) -> None:
            if self._store.peers.change(tx, after):
                heard_at = peer.created_at if after.answered_at is None else after.answered_at
                self._fleet.tell(tx, after.id, after.name, heard_at, self._clock.now_at())

        await self._store.db.write(work)
        return after

    async def _answered(self, peer: Peer) -> Peer:
        """Return the peer with its answer, or with what was wrong."""
        allow = may_connect_privately if peer.allow_private else may_connect
        try:
            key = self._keys.read(peer.key_reference) or ""
            with anyio.fail_after(2 * PEER_SECONDS):
                value = await self._reader.get(peer.url + _PATH, key=key, seconds=PEER_SECONDS, allow_address=allow)
            instances = read_answer(value)
        except (GatewayError, ValueError) as error:
            problem = error.message if isinstance(error, GatewayError) else str(error)
            return replace(peer, asked_at=self._clock.now_at(), problem=problem[:_PROBLEM_CHARS])
        except TimeoutError:
            return replace(peer, asked_at=self._clock.now_at(), problem="it did not answer in time")
        now_at = self._clock.now_at()
        return replace(peer, asked_at=now_at, answered_at=now_at, problem=None, instances=instances)

    def _checked(self, principal: Principal, wanted: WantedPeer) -> tuple[Peer, str | None]:
        """Return the record of what is wanted, and the key that was typed in, None for a reference."""
        check(wanted)
        name = wanted.name.strip()
        url = _named("url", read_base_url, wanted.url, allow_private=wanted.allow_private)
        reference, key = read_key(wanted.api_key)
        self._keys.check(reference, param="api_key")
        peer_id = self._ids.new("peer")
        peer = Peer(
            id=peer_id,
            name=name,
            folded=name.casefold(),
            url=url,
            key_reference=reference or f"stored:{peer_id}",
            allow_private=wanted.allow_private,
            created_at=self._clock.now_at(),
            created_by=principal.name,
        )
        return peer, key


def _named(param: str, check: Callable[..., Value], text: str, *, allow_private: bool) -> Value:
    """Call what checks the URL of a provider, and name our own field in what it refuses."""
    try:
        return check(text, allow_private=allow_private)
    except InvalidRequest as error:
        raise InvalidRequest(error.message.replace("base_url", param), param=param) from None


def _shown(peer: Peer) -> dict[str, object]:
    """Return what the audit log keeps of a peer."""
    return {"name": peer.name, "url": peer.url, "allow_private": peer.allow_private, "api_key": source_of_key(peer)}


def source_of_key(peer: Peer) -> str:
    """Return where the key of a peer is, as it may be told."""
    return "stored" if peer.key_reference.startswith("stored:") else peer.key_reference
