"""Admission to the MCP port over HTTP, what headers say of a message, and the form of answers. Pure; knows no path.

Only programs and pages of this host may call, with the key. A page of another site can make a browser send requests to
this host, and a DNS name that changes its address can make them look like the site's own. So an Origin must name this
host, and so must Host (the server checks it).

A request of MCP 2026-07-28 repeats parts of its body in headers, for proxies that do not read bodies.
"""

import base64
import binascii
import hmac
import re

from gateway.auth.keyhash import without_keys
from gateway.domain.principals import RequestContext
from gateway.errors import AccessDenied, InvalidApiKey, MissingApiKey
from gateway.http.messages import Headers, Request, Response
from gateway.mcp import jsonrpc
from gateway.mcp.jsonrpc import Batch, Fault, Message, Reply, RequestId
from gateway.mcp.server import META, STATELESS_VERSION
from gateway.responses import JSON
from gateway.responses import Headers as HeaderList

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LOCAL_ORIGIN = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.ASCII)
_MAY_SEND = (
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, "
    "x-service-key"
)
_MAY_READ = "mcp-session-id, www-authenticate, x-request-id"
_PREFLIGHT_SECONDS = "600"
_USER_AGENT_CHARS = 200
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


def caller_of(request: Request, request_id: str) -> RequestContext:
    """Return the origin of a request, for the audit log."""
    agent = request.headers.get("user-agent")
    user_agent = without_keys(agent)[:_USER_AGENT_CHARS] if agent else None
    return RequestContext(request_id=request_id, ip=request.peer or None, user_agent=user_agent)


def check_origin(headers: Headers) -> None:
    """Admit a request that comes from no page, or from a page of this host.

    Raises:
        AccessDenied: the page belongs to another site, or hides its site.
    """
    origin = headers.get("origin")
    if origin is not None and not _is_local(origin):
        raise AccessDenied("Only pages of this host may call.")


def check_key(headers: Headers, key: str | None) -> None:
    """Admit a request with `key` in `X-Service-Key`, or else in `Authorization: Bearer`.

    Raises:
        MissingApiKey: there is none. InvalidApiKey: it is wrong, or `key` is None.
    """
    given = headers.get("x-service-key")
    if given is None:
        scheme, _, token = (headers.get("authorization") or "").partition(" ")
        given = token.strip(" ") if scheme.lower() == "bearer" else ""
    if not given:
        raise MissingApiKey("An API key is needed: Authorization: Bearer, or X-Service-Key.")
    if key is None or not hmac.compare_digest(given.encode(), key.encode()):
        raise InvalidApiKey("The API key is not the one of this server.")


def cors_headers(headers: Headers) -> HeaderList:
    """Return the headers that let a page of this host read an answer. Every answer varies by the origin."""
    origin = headers.get("origin")
    if origin is None or not _is_local(origin):
        return (("vary", "Origin"),)
    return (("vary", "Origin"), ("access-control-allow-origin", origin), ("access-control-expose-headers", _MAY_READ))


def preflight_headers(methods: str) -> HeaderList:
    """Return the answer to a browser's question before it sends a request with a key. methods: as in Allow."""
    return (
        ("allow", methods),
        ("access-control-allow-methods", methods),
        ("access-control-allow-headers", _MAY_SEND),
        ("access-control-max-age", _PREFLIGHT_SECONDS),
    )


def is_stateless(message: Message | Batch, headers: Headers) -> bool:
    """Tell whether a request uses the stateless version, or tries to."""
    if headers.get("mcp-protocol-version") == STATELESS_VERSION:
        return True
    if not isinstance(message, jsonrpc.Request):
        return False
    if message.method == "server/discover" and "mcp-session-id" not in headers:
        return True
    return _VERSION in message.meta


def mismatch(message: jsonrpc.Request, headers: Headers) -> Fault | None:
    """Return the fault of a request whose headers and body differ, or lack a required field."""
    version = message.meta.get(_VERSION)
    if version is None:
        return Fault(jsonrpc.INVALID_PARAMS, f"Invalid params: _meta must hold {_VERSION}")
    if headers.get("mcp-protocol-version") != version:
        return _differs("MCP-Protocol-Version")
    if headers.get("mcp-method") != message.method:
        return _differs("Mcp-Method")
    param = _NAMED_BY.get(message.method)
    name = message.params.get(param) if param else None
    if name is not None and _plain(headers.get("mcp-name")) != name:
        return _differs("Mcp-Name")
    return None


def status_of(reply: Reply) -> int:
    """Return the HTTP status of a reply."""
    return _STATUS.get(reply.outcome.code, 200) if isinstance(reply.outcome, Fault) else 200


def answered(body: bytes | None, status: int = 200) -> Response:
    """Return the answer that carries a rendered reply; 202 without one."""
    return Response(202) if body is None else Response(status, JSON, body)


def faulty(request_id: RequestId | None, reason: str, code: int = jsonrpc.INVALID_REQUEST) -> Response:
    """Refuse a bad message with 400 and a JSON-RPC error."""
    return Response(400, JSON, jsonrpc.render(Reply(request_id, Fault(code, reason))))


def _is_local(origin: str) -> bool:
    return _LOCAL_ORIGIN.fullmatch(origin) is not None


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
