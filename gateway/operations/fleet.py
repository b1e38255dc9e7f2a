"""The rows of the fleet, public and internal, and of its peers. `services.fleet` collects what they show."""

from dataclasses import dataclass, field

from gateway.app import Gateway
from gateway.domain.fleet import FleetView, Peer
from gateway.domain.principals import Permission, Scope
from gateway.operations.operation import Since, time
from gateway.operations.rows import Noun, public, row
from gateway.records import project
from gateway.services.fleet_peers import WantedPeer, source_of_key


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerView(Peer):
    """A peer without its key. instance_count: how many gateways its last good answer listed."""

    api_key: str
    instance_count: int = field(metadata={"json_name": "instances"})


def _view(gateway: Gateway, peer: Peer) -> PeerView:
    return project(PeerView, peer, api_key=source_of_key(peer), instance_count=len(peer.instances))


_FLEET = row(
    "fleet.find",
    "GET /api/fleet",
    Permission.FLEET_READ,
    "Show the gateways: status, load, threats, alerts, agents, sessions and posture of each.",
    takes=Since,
    gives=FleetView,
    call=lambda gateway, caller, wanted: gateway.fleet.view(wanted.since),
    query=(time("since", "Seen at or after: an RFC 3339 time, a date, or an age such as 5m."),),
)
_PEERS = Noun(
    "fleet.peers", PeerView, Permission.FLEET_READ, Permission.SETTINGS_MANAGE, view=_view, service="fleet_peers"
)

PUBLIC_OPERATIONS = (public(_FLEET, "fleet.show", Scope.FLEET_READ),)
OPERATIONS = (
    _FLEET,
    _PEERS.list("List the other gateways that this one polls over HTTP, oldest first."),
    _PEERS.create(
        WantedPeer,
        "Add a gateway to poll: `name`, `url`, `api_key` (a reference or a key of its own), `allow_private`?.",
    ),
    _PEERS.remove("Stop polling a gateway, and delete its key."),
)
