"""The checks of MCP 2026-07-28 over HTTP: which requests use it, and whether headers and body agree. Pure.

A request of that version repeats parts of its body in headers, for proxies that do not read bodies.
"""

import base64
import binascii

from gateway.http.messages import Headers
from gateway.mcp import jsonrpc
from gateway.mcp.jsonrpc import Batch, Fault, Message, Reply, Request
from gateway.mcp.server import META, STATELESS_VERSION

# Assigned by MCP 2026-07-28, "Error codes".
HEADER_MISMATCH = -32020
_STATUS = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.UNSUPPORTED_VERSION: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
}
_VERSION = META + "protocolVersion"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def is_stateless(message: Message | Batch, headers: Headers) -> bool:
    """Tell whether a request uses the stateless version, or tries to."""
    if headers.get("mcp-protocol-version") == STATELESS_VERSION:
        return True
    if not isinstance(message, Request):
        return False
    if message.method == "server/discover" and "mcp-session-id" not in headers:
        return True
    return _VERSION in message.meta


def mismatch(request: Request, headers: Headers) -> Fault | None:
    """Return the fault of a request whose headers and body differ, or lack a required field."""
    version = request.meta.get(_VERSION)
    if version is None:
        return Fault(jsonrpc.INVALID_PARAMS, f"Invalid params: _meta must hold {_VERSION}")
    if headers.get("mcp-protocol-version") != version:
        return _differs("MCP-Protocol-Version")
    if headers.get("mcp-method") != request.method:
        return _differs("Mcp-Method")
    param = _NAMED_BY.get(request.method)
    name = request.params.get(param) if param else None
    if name is not None and _plain(headers.get("mcp-name")) != name:
        return _differs("Mcp-Name")
    return None


def status_of(reply: Reply) -> int:
    """Return the HTTP status of a reply."""
    return _STATUS.get(reply.outcome.code, 200) if isinstance(reply.outcome, Fault) else 200


def _plain(value: str | None) -> str | None:
    """Decode ``=?base64?...?=``, the form of a header value beyond ASCII. None: it is malformed."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


def _differs(name: str) -> Fault:
    return Fault(HEADER_MISMATCH, f"Header mismatch: {name} must say the same as the body")
