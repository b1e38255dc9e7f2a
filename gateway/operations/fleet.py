"""The rows of the fleet, public and internal. What is shown is put together in `services.fleet`."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.fleet import FleetView, Peer
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.operations.operation import Answer, ById, Door, Operation, time
from gateway.operations.views import project
from gateway.services.fleet_peers import WantedPeer, source_of_key

_SINCE = time("since", "Heard of at or after: an RFC 3339 time, a date, or an age such as 5m.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFilter:
    """Which gateways to show."""

    since: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerView:
    """A peer without its key. instances: how many gateways its last good answer told of."""

    id: str
    name: str
    url: str
    api_key: str
    allow_private: bool
    created_at: int
    created_by: str
    asked_at: int | None
    answered_at: int | None
    problem: str | None
    instances: int


def view_peer(peer: Peer) -> PeerView:
    """Return what is shown of a peer."""
    return project(PeerView, peer, api_key=source_of_key(peer), instances=len(peer.instances))


async def show_fleet(gateway: Gateway, who: Principal, wanted: FleetFilter, context: RequestContext) -> FleetView:
    """Return the fleet."""
    return await gateway.fleet.view(wanted.since)


async def list_peers(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[PeerView]:
    """Return all peers as one page."""
    peers = tuple(view_peer(peer) for peer in await gateway.fleet_peers.list())
    return Page(peers, len(peers), None)


async def create_peer(gateway: Gateway, who: Principal, command: WantedPeer, context: RequestContext) -> PeerView:
    """Make a peer and ask it once."""
    return view_peer(await gateway.fleet_peers.create(who, command, context))


async def remove_peer(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> PeerView:
    """Remove a peer and show it a last time."""
    return view_peer(await gateway.fleet_peers.remove(who, command.id, context))


PUBLIC_FLEET_OPERATIONS = (
    Operation(
        name="fleet.show",
        route=("GET", "/api/v1/fleet"),
        door=Door.KEY,
        needs=Scope.FLEET_READ,
        takes=FleetFilter,
        gives=FleetView,
        call=show_fleet,
        query=(_SINCE,),
        summary="Show the gateways: status, load, threats, alerts, agents, sessions and posture of each.",
    ),
)
FLEET_OPERATIONS = (
    Operation(
        name="fleet.find",
        route=("GET", "/api/fleet"),
        door=Door.SESSION,
        needs=Permission.FLEET_READ,
        takes=FleetFilter,
        gives=FleetView,
        call=show_fleet,
        query=(_SINCE,),
        summary="Show the gateways: status, load, threats, alerts, agents, sessions and posture of each.",
    ),
    Operation(
        name="fleet.peers.list",
        route=("GET", "/api/fleet/peers"),
        door=Door.SESSION,
        needs=Permission.FLEET_READ,
        answer=Answer.PAGE,
        gives=PeerView,
        call=list_peers,
        summary="List the other gateways that are asked over HTTP, oldest first.",
    ),
    Operation(
        name="fleet.peers.create",
        route=("POST", "/api/fleet/peers"),
        door=Door.SESSION,
        needs=Permission.SETTINGS_MANAGE,
        takes=WantedPeer,
        gives=PeerView,
        call=create_peer,
        status=201,
        summary="Add a gateway to ask: `name`, `url`, `api_key` (a reference or a key of its own), `allow_private`?.",
    ),
    Operation(
        name="fleet.peers.remove",
        route=("DELETE", "/api/fleet/peers/{id}"),
        door=Door.SESSION,
        needs=Permission.SETTINGS_MANAGE,
        takes=ById,
        gives=PeerView,
        call=remove_peer,
        summary="Stop asking a gateway, and forget its key.",
    ),
)
