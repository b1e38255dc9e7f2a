"""Syslog (RFC 5424) over UDP, over TCP with octet counting (RFC 6587), and over TLS (RFC 5425)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import anyio
from anyio.abc import ByteStream

from gateway.domain.event_formats import syslog_message
from gateway.domain.event_outputs import OutEvent, OutputFormat
from gateway.outputs.delivery import Delivery, DeliveryFailed

CONNECT_SECONDS = 5.0
SEND_SECONDS = 10.0
_NETWORK_ERRORS = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


@dataclass(eq=False, repr=False)
class Syslog(Delivery):
    """One receiver. transport: udp, tcp or tls. sender: the HOSTNAME field. A stream stays open between events."""

    transport: str
    host: str
    port: int
    _: KW_ONLY
    sender: str
    form: OutputFormat
    allow_address: Callable[[str], bool]
    _stream: ByteStream | None = field(default=None, init=False)

    async def deliver(self, event: OutEvent) -> None:
        """Send one message. UDP reports no failure; TCP reports a closed connection."""
        message = syslog_message(event, self.form, host=self.sender)
        try:
            with anyio.fail_after(SEND_SECONDS):
                if self.transport == "udp":
                    await self._send_datagram(message)
                else:
                    await self._send_counted(message)
        except _NETWORK_ERRORS as error:
            await self.aclose()
            raise DeliveryFailed(f"The syslog receiver cannot be reached ({type(error).__name__}).") from error

    async def aclose(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            with anyio.move_on_after(1, shield=True):
                await anyio.aclose_forcefully(stream)

    async def _send_datagram(self, message: bytes) -> None:
        async with await anyio.create_connected_udp_socket(await self._address(), self.port) as udp:
            await udp.send(message)

    async def _send_counted(self, message: bytes) -> None:
        if self._stream is not None and await self._is_gone(self._stream):
            await self.aclose()
        if self._stream is None:
            address = await self._address()
            with anyio.fail_after(CONNECT_SECONDS):
                if self.transport == "tls":
                    self._stream = await anyio.connect_tcp(address, self.port, tls=True, tls_hostname=self.host)
                else:
                    self._stream = await anyio.connect_tcp(address, self.port)
        await self._stream.send(b"%d " % len(message) + message)

    async def _is_gone(self, stream: ByteStream) -> bool:
        """Return whether the receiver has closed the connection. A write to it would be lost without an error."""
        try:
            with anyio.move_on_after(0.001):
                await stream.receive(1)
        except _NETWORK_ERRORS:
            return True
        return False

    async def _address(self) -> str:
        """Return an address of the host, if all its addresses are allowed."""
        found = await anyio.getaddrinfo(self.host, self.port)
        addresses = [str(entry[4][0]) for entry in found]
        if not addresses or not all(self.allow_address(address.partition("%")[0]) for address in addresses):
            raise DeliveryFailed("The syslog receiver has an address that is not allowed.")
        return addresses[0]
