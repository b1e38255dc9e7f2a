"""What every way out has in common: it delivers one event, or says why not."""

from typing import Protocol

from gateway.domain.event_outputs import OutEvent
from gateway.errors import GatewayError


class DeliveryFailed(GatewayError):
    """An event did not arrive. is_final: this event never will. is_gone: the receiver wants no more at all."""

    code = "upstream_unavailable"

    def __init__(self, message: str, *, is_final: bool = False, is_gone: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final
        self.is_gone = is_gone


class Delivery(Protocol):
    """A way out, for one task at a time."""

    async def deliver(self, event: OutEvent) -> None:
        """Deliver one event and return when it has arrived, as far as the receiver tells.

        Raises:
            DeliveryFailed: it has not.
        """
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...
