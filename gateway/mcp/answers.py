"""Answers of the MCP port: a call's outcome, a JSON-RPC error, the one error shape, the headers that all have."""

from gateway.http.messages import HttpError, Response
from gateway.mcp import jsonrpc
from gateway.mcp.jsonrpc import Reply
from gateway.mcp.sessions import Outcome
from gateway.strict_json import write_json

JSON = (("content-type", "application/json"),)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_COMMON = (("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"))
_NO_STORE = (("cache-control", "no-store"),)


def answered(outcome: Outcome) -> Response:
    """Return the answer of a request that its call's outcome ends; 202 when there is nothing to say."""
    return Response(202) if outcome.body is None else Response(outcome.status, JSON, outcome.body)


def faulty(reply: Reply) -> Response:
    """Refuse what is no good message, with 400 and a JSON-RPC error."""
    return Response(400, JSON, jsonrpc.render(reply))


def refusal(error: HttpError, request_id: str) -> Response:
    """Render a refusal in the one error shape."""
    kind = _TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    told = {
        "message": error.message,
        "type": kind,
        "code": error.code,
        "param": error.param,
        "request_id": request_id,
    }
    return Response(error.status, JSON + error.headers, write_json({"ok": False, "error": told}))


def finished(response: Response, request_id: str, more: tuple[tuple[str, str], ...]) -> Response:
    """Return `response` with what every answer has, and `more`. A stream says itself how it may be kept."""
    headers = (
        *response.headers,
        *_COMMON,
        *(_NO_STORE if response.stream is None else ()),
        ("x-service-request-id", request_id),
        ("x-request-id", request_id),
        *more,
    )
    return Response(response.status, headers, response.body, response.stream, response.ends_with_peer)
