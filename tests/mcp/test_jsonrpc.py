"""The JSON-RPC codec: what is a message, what is none, and what the answers look like."""

import json

import pytest

from gateway.mcp import jsonrpc
from gateway.mcp.jsonrpc import Answer, Batch, Fault, Invalid, Notification, Reply, Request


def parse(value: object) -> jsonrpc.Message | Batch:
    return jsonrpc.parse(json.dumps(value).encode())


@pytest.mark.parametrize("request_id", [0, 1, -1, 2**53, 2**63 - 1, "", "a-é", "1"])
def test_the_id_of_a_request_is_kept_exactly(request_id: str | int) -> None:
    message = parse({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
    assert message == Request(request_id, "ping", {})
    assert isinstance(message, Request) and type(message.id) is type(request_id)


def test_a_call_without_id_is_a_notification() -> None:
    assert parse({"jsonrpc": "2.0", "method": "x", "params": {"a": 1}}) == Notification("x", {"a": 1})


def test_a_notification_with_wrong_params_stays_a_notification() -> None:
    assert parse({"jsonrpc": "2.0", "method": "x", "params": [1]}) == Notification("x", {})


@pytest.mark.parametrize("member", [{"result": {}}, {"error": {"code": -1, "message": "x"}}])
def test_an_answer_to_nothing_is_read_and_dropped(member: dict[str, object]) -> None:
    assert parse({"jsonrpc": "2.0", "id": 1} | member) == Answer()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        b'{"jsonrpc":"2.0","id":1,',
        b'{"jsonrpc":"2.0","id":7,"method":"ping\xff"}',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"9" * 6000 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    ],
    ids=["empty", "word", "cut", "utf-8", "brackets", "nan", "digits", "surrogate", "twice"],
)
def test_what_is_not_strict_json_is_a_parse_error_without_id(raw: bytes) -> None:
    message = jsonrpc.parse(raw)
    assert isinstance(message, Invalid)
    assert (message.id, message.code) == (None, jsonrpc.PARSE_ERROR)


@pytest.mark.parametrize(
    ("value", "request_id"),
    [
        ({}, None),
        ("x", None),
        (3, None),
        (None, None),
        ({"id": 1, "method": "ping"}, 1),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 1),
        ({"jsonrpc": "2.0", "id": 1}, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "m" * 201}, 1),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": "i" * 257, "method": "ping"}, None),
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 101, None),
    ],
)
def test_what_is_no_message_is_an_invalid_request(value: object, request_id: object) -> None:
    message = parse(value)
    assert isinstance(message, Invalid)
    assert (message.id, message.code) == (request_id, jsonrpc.INVALID_REQUEST)


def test_positional_parameters_are_invalid_params() -> None:
    message = parse({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1, 2]})
    assert isinstance(message, Invalid)
    assert (message.id, message.code) == (1, jsonrpc.INVALID_PARAMS)


def test_null_for_params_means_no_parameters() -> None:
    assert parse({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": None}) == Request(1, "ping", {})


def test_a_batch_holds_messages_and_no_batches() -> None:
    batch = parse([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, []])
    assert isinstance(batch, Batch)
    assert batch.messages[0] == Request(1, "ping", {})
    assert isinstance(batch.messages[1], Invalid)


def test_a_result_has_three_members() -> None:
    assert json.loads(jsonrpc.render(Reply("a", {"x": 1}))) == {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}}


def test_a_fault_has_data_only_where_there_is_some() -> None:
    bare = json.loads(jsonrpc.render(Reply(None, Fault(-32600, "no"))))
    assert bare == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
    full = json.loads(jsonrpc.render(Reply(1, Fault(-32022, "no", {"supported": ["x"]}))))
    assert full["error"]["data"] == {"supported": ["x"]}


def test_a_reply_is_one_line_whatever_the_text() -> None:
    raw = jsonrpc.render(Reply(1, {"text": "a\nb\r\u2028\x00"}))
    assert b"\n" not in raw and b"\r" not in raw
    assert json.loads(raw)["result"]["text"] == "a\nb\r\u2028\x00"
