"""The base of all event outputs: deliver one event or raise."""

from gateway.domain.event_outputs import OutEvent
from gateway.errors import GatewayError


class DeliveryFailed(GatewayError):
    """An event did not arrive. is_final: do not send it again. is_gone: the receiver wants no further events."""

    code = "upstream_unavailable"

    def __init__(self, message: str, *, is_final: bool = False, is_gone: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final
        self.is_gone = is_gone


class Delivery:
    """One output, for use by one task at a time."""

    async def deliver(self, event: OutEvent) -> None:
        """Deliver one event and return when the receiver has confirmed it, if the protocol can.

        Raises:
            DeliveryFailed: the event did not arrive.
        """
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close the connection, if one is open."""
