"""The sockets that `serve` answers on: bound by the gateway, or passed in by its parent process (socket activation)."""

import re
import socket

from gateway.errors import SetupError
from gateway.http.accept import adopt, listen
from gateway.settings import Settings, is_loopback

MCP_KEY_CHARS = 16
"""The fewest characters of the key for MCP. The trust audit asks for more."""


def open_listener(config: Settings, given: int | None = None) -> socket.socket:
    """Bind the address of the API, or take the socket that was given.

    Raises:
        SetupError: the address is taken, foreign or forbidden, or what was given is no listening TCP socket.
    """
    return _bind(config.host, config.port) if given is None else _take(given)


def open_mcp_listener(config: Settings, given: int | None = None) -> socket.socket | None:
    """Bind the port of MCP, on the loopback address, or take the socket that was given. None: it is not enabled.

    Raises:
        SetupError: the key is missing, too short, or not fit for a header; the port is taken; or other hosts can reach
            it.
    """
    if not config.mcp_enabled:
        if given is not None:
            raise SetupError("a socket for MCP was given and MCP_ENABLED is off: set it, or take the socket away")
        return None
    key = config.mcp_api_key or ""
    if re.fullmatch(f"[!-~]{{{MCP_KEY_CHARS},}}", key) is None:
        raise SetupError(
            f"MCP_ENABLED needs MCP_API_KEY: at least {MCP_KEY_CHARS} letters, digits and signs without blanks, such "
            "as `openssl rand -hex 32` prints",
            param="mcp_api_key",
        )
    if given is None:
        return _bind("127.0.0.1", config.mcp_port)
    listener = _take(given)
    if not is_loopback(listener.getsockname()[0]):
        listener.close()
        raise SetupError("the socket for MCP can be reached from elsewhere: let it listen on 127.0.0.1")
    return listener


def address(listener: socket.socket) -> str:
    """Return HOST:PORT of a listening socket, an IPv6 address in brackets."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise SetupError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error


def _take(descriptor: int) -> socket.socket:
    try:
        return adopt(descriptor)
    except OSError as error:
        raise SetupError(f"the socket that was given (descriptor {descriptor}) cannot be used: {error}") from error
