"""JSON-RPC 2.0 with the limits of MCP: bytes to messages and back. Pure; knows no method and no version of MCP.

MCP sets two limits: an id is a string or an integer and never null, and `params` is an object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from gateway.errors import InvalidJson
from gateway.strict_json import read_json, write_json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# Assigned by MCP 2026-07-28, "Error codes".
UNSUPPORTED_VERSION = -32022

BATCH_MESSAGES = 100
METHOD_CHARS = 200
ID_CHARS = 256

RequestId = str | int


@dataclass(frozen=True, slots=True)
class Request:
    """A call that must be answered, under the same id."""

    id: RequestId
    method: str
    params: Mapping[str, object]

    @property
    def meta(self) -> Mapping[str, object]:
        """The `_meta` of MCP; empty if there is none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


@dataclass(frozen=True, slots=True)
class Notification:
    """A call that is never answered."""

    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Answer:
    """A peer's answer. The gateway sends no requests, so it is read and dropped."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """Bytes that are not a message. The answer is an error, under the id if one could be read."""

    id: RequestId | None
    code: int
    reason: str


Message = Request | Notification | Answer | Invalid


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages in one array, none of them a batch."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """The `error` member of a failed request. The message repeats nothing that the peer sent except names."""

    code: int
    message: str
    data: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request: a result, or a fault."""

    id: RequestId | None
    outcome: Mapping[str, object] | Fault


def parse(raw: bytes | bytearray | memoryview) -> Message | Batch:
    """Read one message or one batch. Bad bytes give an `Invalid`, never an exception."""
    try:
        value = read_json(raw)
    except InvalidJson as error:
        return Invalid(None, PARSE_ERROR, f"Parse error: {error.message}")
    if not isinstance(value, list):
        return _message(value)
    if not value:
        return Invalid(None, INVALID_REQUEST, "Invalid request: a batch must hold at least one message")
    if len(value) > BATCH_MESSAGES:
        return Invalid(None, INVALID_REQUEST, f"Invalid request: a batch holds at most {BATCH_MESSAGES} messages")
    return Batch(tuple(_message(item) for item in value))


def render(reply: Reply) -> bytes:
    """Write one reply as compact JSON in UTF-8, without a line break.

    Raises:
        TypeError, ValueError: the result is no JSON value, or holds half of a surrogate pair.
    """
    outcome = reply.outcome
    if not isinstance(outcome, Fault):
        return write_json({"jsonrpc": "2.0", "id": reply.id, "result": outcome})
    data = {} if outcome.data is None else {"data": outcome.data}
    return write_json(
        {"jsonrpc": "2.0", "id": reply.id, "error": {"code": outcome.code, "message": outcome.message, **data}}
    )


def _message(value: object) -> Message:
    if not isinstance(value, dict):
        return Invalid(None, INVALID_REQUEST, "Invalid request: a message is a JSON object")
    request_id = _request_id(value.get("id"))
    if value.get("jsonrpc") != "2.0":
        return Invalid(request_id, INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    if "method" not in value:
        if "result" in value or "error" in value:
            return Answer()
        return Invalid(request_id, INVALID_REQUEST, 'Invalid request: "method" is missing')
    method = value["method"]
    if not isinstance(method, str) or len(method) > METHOD_CHARS:
        return Invalid(request_id, INVALID_REQUEST, f'Invalid request: "method" is a string of {METHOD_CHARS} at most')
    params = value.get("params", {})
    if "id" not in value:
        return Notification(method, params if isinstance(params, dict) else {})
    if request_id is None:
        return Invalid(None, INVALID_REQUEST, 'Invalid request: "id" must be a string or an integer')
    if params is None:  # some clients write null for "no parameters"
        params = {}
    if not isinstance(params, dict):
        return Invalid(request_id, INVALID_PARAMS, 'Invalid params: "params" must be an object')
    return Request(request_id, method, params)


def _request_id(value: object) -> RequestId | None:
    is_good = len(value) <= ID_CHARS if isinstance(value, str) else type(value) is int
    return cast(RequestId, value) if is_good else None
