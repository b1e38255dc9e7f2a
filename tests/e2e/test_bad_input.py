"""Malformed and hostile input on the raw wire of the real process: an exact status and code, and it goes on answering."""

import json
import socket

import pytest
from running import Served

SCAN = "/api/v1/shield/scan"
CHAT = "/api/v1/chat/completions"


def raw(served: Served, data: bytes) -> tuple[int, str | None]:
    """Send bytes, half-close, and return status and error code of the first answer; status 0 when there is none."""
    with socket.create_connection(("127.0.0.1", served.port), 15) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # answered and closed before everything was sent
        received = bytearray()
        try:
            while part := connection.recv(65536):
                received += part
        except OSError:
            pass
    if not received:
        return 0, None
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    if not body:
        return status, None
    assert b"Traceback" not in body
    value = json.loads(body)
    return status, value["error"]["code"] if "error" in value else None


def request(
    target: str = SCAN, *lines: str, method: str = "POST", body: bytes = b'{"text":"hi"}', length: bool = True
) -> bytes:
    head = [f"{method} {target} HTTP/1.1", "Host: gateway", "Content-Type: application/json", *lines]
    if length:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


HEADS = {
    "no-host": (b"GET /api/v1/health HTTP/1.1\r\n\r\n", 400),
    "two-hosts": (b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
    "empty-host": (b"GET /api/v1/health HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "odd-host": (b"GET /api/v1/health HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    "bare-lf": (b"GET /api/v1/health HTTP/1.1\nHost: a\n\n", 400),
    "folded": (b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", 400),
    "nul-in-value": (b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400),
    "space-before-colon": (b"GET /api/v1/health HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    "empty-name": (b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400),
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "http-2-preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "http-1.2": (b"GET /api/v1/health HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    "http-9.9": (b"GET /api/v1/health HTTP/9.9\r\nHost: a\r\n\r\n", 505),
    "long-target": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    "long-header": (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", 431),
    "many-headers": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 500 + b"\r\n", 431),
    "encoded-slash": (b"GET /api/v1%2fhealth HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "encoded-nul": (b"GET /api/v1/health%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "dot-segments": (b"GET /api/v1/../v1/health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "encoded-dots": (b"GET /api/v1/%2e%2e/health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "double-slash": (b"GET //api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "backslash": (b"GET /api/v1%5chealth HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "no-slash": (b"GET api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "connect": (b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 400),
    "unknown-path": (b"GET /api/v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404),
    "unknown-expectation": (request(SCAN, "Expect: magic"), 417),
    "length-and-chunked": (request(SCAN, "Transfer-Encoding: chunked"), 400),
    "two-lengths": (request(SCAN, "Content-Length: 13"), 400),
    "signed-length": (request(SCAN, "Content-Length: +13", length=False), 400),
    "huge-length": (request(SCAN, "Content-Length: 99999999999999999999", length=False), 413),
    "over-limit": (request(SCAN, "Content-Length: 5000000", length=False), 413),
    "unknown-coding": (request(SCAN, "Transfer-Encoding: gzip", length=False), (400, 501)),
    "bad-chunk": (request(SCAN, "Transfer-Encoding: chunked", length=False, body=b"zz\r\nhi\r\n0\r\n\r\n"), 400),
    "long-chunk-size": (
        request(SCAN, "Transfer-Encoding: chunked", length=False, body=b"0" * 30 + b"1\r\nx\r\n0\r\n\r\n"),
        400,
    ),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_malformed_request_gets_its_status(gateway: Served, name: str) -> None:
    data, wanted = HEADS[name]
    status, code = raw(gateway, data)
    assert status == wanted if isinstance(wanted, int) else status in wanted
    assert code
    assert gateway.ask("GET", "/api/v1/health", key=None).status == 200


BODIES = {
    "not-json": (b"{", "invalid_json"),
    "empty": (b"", "invalid_json"),
    "array": (b"[]", "invalid_request"),
    "null": (b"null", "invalid_request"),
    "duplicate-keys": (b'{"text":"a","text":"b"}', "invalid_json"),
    "nan": (b'{"text":NaN}', "invalid_json"),
    "infinity": (b'{"text":1e999}', "invalid_json"),
    "deep": (b"[" * 100_000, "invalid_json"),
    "deep-and-closed": (b"[" * 65 + b"]" * 65, "invalid_json"),
    "long-integer": (b'{"text":' + b"9" * 6000 + b"}", "invalid_json"),
    "65-bit": (b'{"text":18446744073709551616}', "invalid_json"),
    "bad-utf-8": (b'{"text":"\xff\xfe"}', "invalid_json"),
    "surrogate": (b'{"text":"\\ud800"}', "invalid_json"),
    "surrogate-key": (b'{"\\udfff":1,"text":"a"}', "invalid_json"),
    "utf-16": ('{"text":"a"}'.encode("utf-16"), "invalid_json"),
    "mark": (b'\xef\xbb\xbf{"text":"a"}', "invalid_json"),
    "missing": (b"{}", "invalid_request"),
    "number": (b'{"text":5}', "invalid_request"),
    "null-text": (b'{"text":null}', "invalid_request"),
    "unknown-field": (b'{"text":"a","threshold":100}', "invalid_request"),
    "bad-direction": (b'{"text":"a","direction":"sideways"}', "invalid_request"),
    "too-long": (b'{"text":"' + b"a" * 500_001 + b'"}', "invalid_request"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_400_with_its_code(gateway: Served, name: str) -> None:
    body, code = BODIES[name]
    answer = gateway.ask("POST", SCAN, body)
    assert (answer.status, answer.code) == (400, code)
    assert gateway.scan("hello").status == 200


def test_the_field_at_fault_is_named(gateway: Served) -> None:
    cases = {
        "text": {"text": 5},
        "threshold": {"text": "a", "threshold": 1},
        "direction": {"text": "a", "direction": "x"},
    }
    for param, body in cases.items():
        assert gateway.ask("POST", SCAN, body).json["error"]["param"] == param


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD"])
def test_a_wrong_method_is_405_and_names_the_right_one(gateway: Served, method: str) -> None:
    answer = gateway.ask(method, SCAN)
    assert answer.status == 405
    assert "POST" in answer.headers["allow"]
    if method != "HEAD":
        assert answer.code == "method_not_allowed"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Service-Key": ""},
        {"X-Service-Key": "svc_short"},
        {"X-Service-Key": "svc_" + "G" * 40},
        {"X-Service-Key": "svc_" + "0" * 41},
        {"X-Service-Key": "a" * 5000},
        {"X-Service-Key": "svc_" + "0" * 40 + ", svc_" + "1" * 40},
        {"X-Service-Key": "' OR 1=1 --"},
        {"Authorization": "Basic eDp5"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer  "},
        {"Authorization": "Bearer \xe9\xe9"},
        {"Cookie": "service_session=x"},
    ],
)
def test_a_wrong_key_in_any_form_is_401_and_is_not_repeated(gateway: Served, headers: dict[str, str]) -> None:
    answer = gateway.ask("POST", SCAN, {"text": "hi"}, key=None, headers=headers)
    assert answer.status == 401
    assert answer.code in ("missing_api_key", "invalid_api_key")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert not any(len(value) > 12 and value.encode() in answer.body for value in headers.values())


def test_a_key_in_the_query_is_no_key(gateway: Served) -> None:
    answer = gateway.ask("POST", f"{SCAN}?api_key={gateway.key}", {"text": "hi"}, key=None)
    assert answer.status in (400, 401)
    assert gateway.key.encode() not in answer.body


def test_types_and_encodings_that_are_not_read_are_415(gateway: Served) -> None:
    for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/xml"}, {"Content-Encoding": "gzip"}):
        answer = gateway.ask("POST", SCAN, b'{"text":"hi"}', headers=headers)
        assert (answer.status, answer.code) == (415, "unsupported_media_type")


CHATS = {
    "no-messages": ({"model": "m"}, "messages"),
    "messages-string": ({"model": "m", "messages": "hi"}, "messages"),
    "messages-empty": ({"model": "m", "messages": []}, "messages"),
    "message-string": ({"model": "m", "messages": ["hi"]}, "messages[0]"),
    "content-number": ({"model": "m", "messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    "part-number": ({"model": "m", "messages": [{"role": "user", "content": [5]}]}, "messages[0].content[0]"),
    "model-number": ({"model": 5, "messages": [{"role": "user", "content": "hi"}]}, "model"),
    "stream-text": ({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": "true"}, "stream"),
    "too-many": ({"model": "m", "messages": [{"role": "user", "content": "hi"}] * 2001}, "messages"),
}


@pytest.mark.parametrize("name", CHATS)
def test_a_bad_chat_names_the_field(gateway: Served, name: str) -> None:
    body, param = CHATS[name]
    answer = gateway.ask("POST", CHAT, body)
    assert (answer.status, answer.code, answer.json["error"]["param"]) == (400, "invalid_request", param)


def test_pipelined_requests_are_answered_in_order(gateway: Served) -> None:
    key = f"X-Service-Key: {gateway.key}"
    data = b"".join(request(SCAN, key, body=json.dumps({"text": f"number {n}"}).encode()) for n in range(20))
    with socket.create_connection(("127.0.0.1", gateway.port), 15) as connection:
        connection.sendall(data)
        received = b""
        while received.count(b'"ok":true') < 20:
            part = connection.recv(65536)
            assert part, received[-300:]
            received += part
    assert received.count(b"HTTP/1.1 200") == 20
