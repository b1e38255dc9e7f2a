"""The rows that machines ask for to see how the gateway is. They are there from the first request on."""

from gateway.domain.principals import Scope
from gateway.operations.operation import Answer, Door, Operation

PROBE_OPERATIONS = (
    Operation(
        name="health",
        route=("GET", "/api/v1/health"),
        door=Door.OPTIONAL,
        needs=None,
        answer=Answer.BARE,
        summary="Tell whether the service answers. A good key adds version, uptime and checks; a wrong one nothing.",
    ),
    Operation(
        name="openapi",
        route=("GET", "/api/v1/openapi.json"),
        door=Door.OPEN,
        needs=None,
        answer=Answer.BARE,
        summary="Return this description of the API.",
    ),
    Operation(
        name="metrics",
        route=("GET", "/metrics"),
        door=Door.LOOPBACK,
        needs=Scope.FLEET_READ,
        answer=Answer.BARE,
        summary="Return metrics as Prometheus text, to a user of this host or with a key.",
    ),
)
