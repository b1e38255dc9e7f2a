"""MCP over HTTP without a socket: who may come in, both transports, what is bounded, what ends when."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from gateway.http.messages import Headers, HttpError, Request, Response
from gateway.mcp import http, sessions
from gateway.mcp.http import HttpMcp

KEY = "k-made-up"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
NEW = {"mcp-protocol-version": "2026-07-28"}
OLD_PATHS = [("GET", "/sse"), ("POST", "/message"), ("POST", "/mcp"), ("DELETE", "/mcp")]


class Port:
    """The edge, and short ways to ask it."""

    def __init__(self, edge: HttpMcp, peer: Any) -> None:
        self.edge = edge
        self.peer = peer

    async def ask(
        self, method: str, path: str, body: object = None, *, key: str | None = KEY, query: str = "", **headers: str
    ) -> Response:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            fields.setdefault("authorization", f"Bearer {key}")
        if body is not None:
            fields.setdefault("content-type", "application/json")
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        with anyio.fail_after(30):
            return await self.edge.handle(Request(method, path, query, Headers(fields), raw, "127.0.0.1", False, 0.0))

    async def post(self, body: object, **headers: str) -> Response:
        return await self.ask("POST", "/mcp", body, **headers)

    async def begin(self, version: str = "2025-11-25") -> str:
        """Begin a session at /mcp and return its id."""
        answer = await self.post(initialize(version))
        assert answer.status == 200
        return header(answer, "mcp-session-id") or ""

    async def open(self) -> "Listener":
        answer = await self.ask("GET", "/sse")
        assert answer.status == 200
        return Listener(self, answer)


class Listener:
    """One /sse stream and the address that belongs to it."""

    def __init__(self, port: Port, answer: Response) -> None:
        assert answer.stream is not None
        self.port = port
        self.answer = answer
        self.stream: Any = answer.stream
        self.query = ""

    async def next(self) -> tuple[str, str]:
        """Return name and data of the one event that comes next."""
        with anyio.fail_after(30):
            lines = (await anext(self.stream)).decode().split("\n")
        assert lines[2:] == ["", ""], "one event at a time"
        return lines[0].removeprefix("event: "), lines[1].removeprefix("data: ")

    async def begin(self) -> "Listener":
        name, data = await self.next()
        assert name == "endpoint"
        path, _, self.query = data.partition("?")
        assert path == "/message"
        return self

    async def send(self, body: object, **headers: str) -> Response:
        return await self.port.ask("POST", "/message", body, query=self.query, **headers)

    async def ask(self, body: object) -> Any:
        assert (await self.send(body)).status == 202
        name, data = await self.next()
        assert name == "message"
        return json.loads(data)


@pytest.fixture
async def port(peer: Any) -> AsyncGenerator[Port]:
    async with new_port(peer) as one:
        yield one


@asynccontextmanager
async def new_port(peer: Any, streams: int = 10) -> AsyncGenerator[Port]:
    async with anyio.create_task_group() as tasks:
        yield Port(HttpMcp(lambda: peer.gateway, tasks, streams=streams, tools=peer.tools), peer)
        tasks.cancel_scope.cancel()


def message(method: str, request_id: object = 1, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def initialize(version: str) -> dict[str, object]:
    return message("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "1"})


def call(name: str, request_id: object = 1, **arguments: object) -> dict[str, object]:
    return message("tools/call", request_id, name=name, arguments=arguments)


def modern(method: str, **params: object) -> dict[str, object]:
    return message(method, _meta=META, **params)


def header(answer: Response, name: str) -> str | None:
    return next((value for one, value in answer.headers if one == name), None)


def read(answer: Response) -> Any:
    return json.loads(answer.body)


def reasons(port: Port) -> list[str | None]:
    return [reason for action, _, reason, _ in port.peer.audit.events if action.endswith(":failed")]


# Who may come in.


async def test_a_large_message_is_refused_by_its_head(port: Port) -> None:
    def head(path: str, **fields: str) -> Request:
        return Request("POST", path, "", Headers({"host": "127.0.0.1", **fields}), b"", "127.0.0.1", False, 0.0)

    refused = await port.edge.check(head("/mcp"))
    assert refused is not None and (refused.status, read(refused)["error"]["code"]) == (401, "missing_api_key")
    unknown = await port.edge.check(head("/nowhere"))
    assert unknown is not None and unknown.status == 404
    assert await port.edge.check(head("/mcp", authorization=f"Bearer {KEY}")) is None


@pytest.mark.parametrize(("method", "path"), OLD_PATHS)
async def test_without_the_key_nobody_comes_in(port: Port, method: str, path: str) -> None:
    none = await port.ask(method, path, {}, key=None)
    assert (none.status, read(none)["error"]["code"]) == (401, "missing_api_key")
    assert header(none, "www-authenticate") == 'Bearer realm="mcp"'
    for fields in (
        {"authorization": f"Bearer {KEY}x"},
        {"authorization": f"Bearer {KEY[:-1]}"},
        {"authorization": "Bearer é"},
        {"x-service-key": f"{KEY}, {KEY}"},
        {"x-service-key": "other", "authorization": f"Bearer {KEY}"},
    ):
        wrong = await port.ask(method, path, {}, key=None, **fields)
        assert (wrong.status, read(wrong)["error"]["code"]) == (401, "invalid_api_key")
        assert KEY.encode() not in wrong.body
    for fields in ({"authorization": "Bearer "}, {"authorization": f"Basic {KEY}"}, {"x-service-key": ""}):
        assert (await port.ask(method, path, {}, key=None, **fields)).status == 401
    queried = await port.ask(method, path, {}, key=None, query=f"api_key={KEY}&key={KEY}&token={KEY}")
    assert read(queried)["error"]["code"] == "missing_api_key"
    assert port.peer.audit.refused.count("invalid_api_key") == 5
    assert set(port.peer.audit.refused) == {"invalid_api_key", "missing_api_key"}


async def test_either_header_brings_the_key_and_no_key_expected_lets_nobody_in(port: Port, peer: Any) -> None:
    assert (await port.post(initialize("2025-11-25"), key=None, x_service_key=KEY)).status == 200
    assert (await port.post(initialize("2025-11-25"), key=None, authorization=f"bearer {KEY}")).status == 200
    peer.gateway.settings = SimpleNamespace(mcp_api_key=None)
    assert (await port.post(initialize("2025-11-25"))).status == 401


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example:5002",
        "http://evil.example#http://localhost",
        "http://localhost:5002@evil.example",
        "file://localhost",
        "http://localhost:\u0661",
    ],
)
@pytest.mark.parametrize(("method", "path"), [*OLD_PATHS, ("GET", "/health"), ("OPTIONS", "/mcp")])
async def test_a_page_of_another_site_is_refused_and_told_nothing(
    port: Port, method: str, path: str, origin: str
) -> None:
    answer = await port.ask(method, path, {}, origin=origin)
    assert (answer.status, read(answer)["error"]["code"]) == (403, "access_denied")
    assert header(answer, "access-control-allow-origin") is None
    assert header(answer, "vary") == "Origin"


@pytest.mark.parametrize("origin", ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:80"])
@pytest.mark.parametrize(("method", "path"), OLD_PATHS)
async def test_a_preflight_of_this_host_passes_without_a_key(port: Port, method: str, path: str, origin: str) -> None:
    answer = await port.ask("OPTIONS", path, key=None, origin=origin, access_control_request_method=method)
    assert answer.status == 204
    assert header(answer, "access-control-allow-origin") == origin
    assert method in (header(answer, "access-control-allow-methods") or "")
    allowed = (header(answer, "access-control-allow-headers") or "").split(", ")
    assert {"authorization", "content-type", "mcp-session-id", "mcp-protocol-version", "mcp-method"} <= set(allowed)
    refused = await port.ask(method, path, {}, key=None, origin=origin)
    assert (refused.status, header(refused, "access-control-allow-origin")) == (401, origin)


async def test_health_and_unknown_paths_need_no_key(port: Port) -> None:
    health = await port.ask("GET", "/health", key=None)
    assert (health.status, read(health)) == (200, {"status": "ok", "name": "service"})
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/openid-configuration", "/register", "/"):
        assert read(await port.ask("GET", path, key=None))["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("POST", "/sse", "GET, OPTIONS"), ("GET", "/message", "POST, OPTIONS"), ("GET", "/mcp", "POST, DELETE, OPTIONS")],
)
async def test_another_method_is_405_and_told_which(port: Port, method: str, path: str, allow: str) -> None:
    answer = await port.ask(method, path, {})
    assert (answer.status, header(answer, "allow")) == (405, allow)


@pytest.mark.parametrize("path", ["/mcp", "/message"])
async def test_what_is_no_json_by_its_own_word_is_refused(port: Port, path: str) -> None:
    for fields in ({"content_type": "text/plain"}, {"content_type": ""}, {"content_encoding": "gzip"}):
        answer = await port.ask("POST", path, message("ping"), query="sessionId=0", **fields)
        assert (answer.status, read(answer)["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("path", ["/mcp", "/message"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{broken", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', -32600),  # without a session
    ],
)
async def test_a_bad_message_is_400_with_a_json_rpc_error(port: Port, path: str, body: bytes, code: int) -> None:
    answer = await port.ask("POST", path, body)
    assert (answer.status, read(answer)["error"]["code"]) == (400, code)


def test_only_messages_may_be_large() -> None:
    edge = HttpMcp(lambda: None, None)  # type: ignore[arg-type, return-value]
    assert edge.body_limit("POST", "/mcp") == edge.body_limit("POST", "/message") == 8 * 1024 * 1024
    assert edge.body_limit("POST", "/register") == edge.body_limit("GET", "/sse") == 65_536


async def test_what_the_server_refuses_has_the_one_error_shape(port: Port) -> None:
    answer = port.edge.refuse(HttpError(421, "host_not_allowed", "Not here."))
    assert answer.status == 421
    assert read(answer)["error"] == {
        "message": "Not here.",
        "type": "invalid_request_error",
        "code": "host_not_allowed",
        "param": None,
        "request_id": header(answer, "x-request-id"),
    }


# HTTP+SSE.


async def test_a_stream_tells_its_address_and_brings_the_answers(port: Port) -> None:
    one, other = await (await port.open()).begin(), await (await port.open()).begin()
    assert header(one.answer, "content-type") == "text/event-stream"
    assert one.query != other.query
    assert len(one.query.removeprefix("sessionId=")) == 40
    hello = await one.ask(initialize("2024-11-05"))
    assert hello["result"]["protocolVersion"] == "2024-11-05"
    assert (await one.send({"jsonrpc": "2.0", "method": "notifications/initialized"})).status == 202
    assert (await one.ask(call("say", "s", text="hé\n\u2028")))["result"]["content"][0]["text"] == "hé\n\u2028"
    assert (await other.ask(message("ping", 7))) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert [part["id"] for part in await one.ask([message("ping", 1), call("say", 2, text="x")])] == [1, 2]


async def test_other_messages_are_answered_while_a_tool_runs_and_it_can_be_cancelled(port: Port) -> None:
    one = await (await port.open()).begin()
    assert (await one.send(call("wait", "w"))).status == 202
    await port.peer.script.begun.wait()
    assert (await one.ask(message("ping", 2)))["id"] == 2
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}}
    assert (await one.send(cancel)).status == 202
    await anyio.wait_all_tasks_blocked()
    assert reasons(port) == ["cancelled"]
    assert (await one.ask(message("ping", 3)))["id"] == 3


async def test_a_session_ends_with_its_stream_and_so_does_what_runs_in_it(port: Port) -> None:
    one, other = await (await port.open()).begin(), await (await port.open()).begin()
    await one.send(call("wait"))
    await port.peer.script.begun.wait()
    await one.stream.aclose()
    await anyio.wait_all_tasks_blocked()
    assert reasons(port) == ["cancelled"]
    gone = await one.send(message("ping"))
    assert (gone.status, read(gone)["error"]["code"]) == (404, "not_found")
    assert (await other.ask(message("ping")))["result"] == {}


async def test_there_are_only_so_many_streams(peer: Any) -> None:
    async with new_port(peer, streams=3) as port:
        held = [await port.open() for _ in range(3)]
        refused = await port.ask("GET", "/sse")
        assert (refused.status, header(refused, "retry-after")) == (503, "1")
        await held[1].stream.aclose()
        assert (await port.ask("GET", "/sse")).status == 200


async def test_only_so_many_calls_run_in_one_session(port: Port) -> None:
    one = await (await port.open()).begin()
    for number in range(sessions.SESSION_CALLS):
        assert (await one.send(call("wait", number))).status == 202
    assert (await one.send(call("wait", "more"))).status == 503
    assert (await one.ask(message("ping", "p")))["id"] == "p"
    port.peer.script.may_end.set()
    await anyio.wait_all_tasks_blocked()
    assert (await one.send(call("wait", "more"))).status == 202


async def test_stop_ends_the_streams_at_once_and_what_comes_late(port: Port) -> None:
    one = await (await port.open()).begin()
    await one.send(call("wait"))
    await port.peer.script.begun.wait()
    port.edge.stop()
    assert [piece async for piece in one.stream] == []
    late = await (await port.open()).begin()
    assert [piece async for piece in late.stream] == []


# Streamable HTTP.


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_session_is_begun_used_and_ended(port: Port, version: str) -> None:
    session = {"mcp_session_id": await port.begin(version)}
    assert len(session["mcp_session_id"]) == 40
    told = await port.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
    assert (told.status, told.body) == (202, b"")
    answer = await port.post(call("say", text="x"), mcp_protocol_version=version, **session)
    assert read(answer)["result"]["content"][0]["text"] == "x"
    assert read(await port.post(message("no/such"), **session))["error"]["code"] == -32601
    assert read(await port.post(message("server/discover"), **session))["error"]["code"] == -32601
    batch = await port.post([message("ping", 1), message("ping", 2)], **session)
    if version < "2025-06-18":
        assert [part["id"] for part in read(batch)] == [1, 2]
    else:
        assert (batch.status, read(batch)["error"]["code"]) == (400, -32600)
    assert (await port.ask("DELETE", "/mcp", **session)).status == 204
    for method in ("POST", "DELETE"):
        gone = await port.ask(method, "/mcp", message("ping"), **session)
        assert (gone.status, read(gone)["error"]["code"]) == (404, "not_found")


async def test_an_unknown_version_is_offered_the_first_one_and_in_the_header_refused(port: Port) -> None:
    assert read(await port.post(initialize("1999-01-01")))["result"]["protocolVersion"] == "2024-11-05"
    session = await port.begin()
    answer = await port.post(message("ping"), mcp_session_id=session, mcp_protocol_version="1999-01-01")
    assert (answer.status, read(answer)["error"]["code"]) == (400, -32600)


async def test_a_refused_initialize_begins_no_session(port: Port) -> None:
    answer = await port.post(message("initialize"))
    assert (read(answer)["error"]["code"], header(answer, "mcp-session-id")) == (-32602, None)


async def test_the_session_that_rested_longest_makes_room(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    port.edge._sessions = sessions.Sessions(3)
    busy, used, rested = [await port.begin() for _ in range(3)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: port.post(call("wait"), mcp_session_id=busy))
        await port.peer.script.begun.wait()
        assert (await port.post(message("ping"), mcp_session_id=used)).status == 200
        assert await port.begin()
        assert (await port.post(message("ping"), mcp_session_id=rested)).status == 404
        assert (await port.post(message("ping"), mcp_session_id=used)).status == 200
        port.peer.script.may_end.set()


async def test_a_slow_call_is_answered_by_a_stream(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "QUICK_SECONDS", 0.0)
    session = await port.begin()
    both = "application/json, text/event-stream"
    answer = await port.post(call("wait", "w"), mcp_session_id=session, accept=both)
    assert header(answer, "content-type") == "text/event-stream"
    port.peer.script.may_end.set()
    pieces = [piece async for piece in answer.stream or ()]  # type: ignore[union-attr]
    assert json.loads(pieces[0].split(b"data: ")[1])["id"] == "w"
    assert len(pieces) == 1


async def test_a_peer_that_leaves_cancels_its_call_only_where_there_is_no_session(port: Port) -> None:
    session = await port.begin()
    in_session = await port.post(call("wait", 1), mcp_session_id=session, accept="text/event-stream")
    body = modern("tools/call", name="wait", arguments={})
    alone = await port.post(
        body, accept="text/event-stream", mcp_method="tools/call", mcp_name="wait", mcp_protocol_version="2026-07-28"
    )
    for answer in (in_session, alone):
        await answer.stream.aclose()  # type: ignore[union-attr]
    await anyio.wait_all_tasks_blocked()
    assert reasons(port) == ["cancelled"]
    port.peer.script.may_end.set()
    await anyio.wait_all_tasks_blocked()
    assert port.peer.audit.events[-1][0] == "mcp:wait:completed"


async def test_a_cancelled_call_is_answered_202_and_with_its_session_it_ends(port: Port) -> None:
    session = await port.begin()
    answers: list[Response] = []

    async def wait(request_id: int) -> None:
        answers.append(await port.post(call("wait", request_id), mcp_session_id=session))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, 1)
        tasks.start_soon(wait, 2)
        await anyio.wait_all_tasks_blocked()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await port.post(cancel, mcp_session_id=session)).status == 202
        await anyio.wait_all_tasks_blocked()
        assert [answer.status for answer in answers] == [202]
        await port.ask("DELETE", "/mcp", mcp_session_id=session)
    assert [answer.status for answer in answers] == [202, 202]


async def test_a_session_goes_on_with_the_gateway_that_answers_now(port: Port) -> None:
    session = await port.begin()
    old, new = port.peer.gateway, SimpleNamespace(**vars(port.peer.gateway))
    new.audit = type(old.audit)()
    port.peer.gateway = new
    await port.post(call("say", text="x"), mcp_session_id=session)
    assert (len(old.audit.events), len(new.audit.events)) == (0, 2)


# Without sessions.


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (modern("server/discover"), {"mcp_method": "server/discover"}, 200, None),
        (modern("tools/list"), {"mcp_method": "tools/list"}, 200, None),
        (modern("tools/list"), {}, 400, -32020),
        (modern("tools/list"), {"mcp_method": "tools/call"}, 400, -32020),
        (modern("tools/list"), {"mcp_method": "tools/list", "mcp_protocol_version": "2025-11-25"}, 400, -32020),
        (modern("no/such"), {"mcp_method": "no/such"}, 404, -32601),
        (modern("initialize"), {"mcp_method": "initialize"}, 404, -32601),
        (message("tools/list"), {"mcp_method": "tools/list"}, 400, -32602),
        (message("tools/list", _meta=3), {"mcp_method": "tools/list"}, 400, -32602),
        (modern("tools/call", name="say"), {"mcp_method": "tools/call"}, 400, -32020),
        (modern("tools/call", name="say"), {"mcp_method": "tools/call", "mcp_name": "other"}, 400, -32020),
        (modern("tools/call", name="say"), {"mcp_method": "tools/call", "mcp_name": "=?base64?!?="}, 400, -32020),
        (modern("tools/call", name="no"), {"mcp_method": "tools/call", "mcp_name": "no"}, 400, -32602),
        ([modern("tools/list")], {"mcp_method": "tools/list"}, 400, -32600),
    ],
)
async def test_headers_and_body_say_the_same(
    port: Port, body: object, headers: dict[str, str], status: int, code: int | None
) -> None:
    answer = await port.post(body, **{"mcp_protocol_version": "2026-07-28", **headers})
    assert (answer.status, read(answer).get("error", {}).get("code")) == (status, code)
    assert header(answer, "mcp-session-id") is None


async def test_a_call_without_a_session_is_answered_and_its_name_may_be_encoded(port: Port) -> None:
    name = f"=?base64?{base64.b64encode(b'say').decode()}?="
    answer = await port.post(
        modern("tools/call", name="say", arguments={"text": "x"}),
        mcp_protocol_version="2026-07-28",
        mcp_method="tools/call",
        mcp_name=name,
        mcp_session_id="whatever",
    )
    result = read(answer)["result"]
    assert (result["content"][0]["text"], result["resultType"]) == ("x", "complete")


async def test_an_unknown_version_without_a_session_is_told_what_there_is(port: Port) -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    answer = await port.post(
        message("tools/list", _meta=meta), mcp_protocol_version="2099-01-01", mcp_method="tools/list"
    )
    assert (answer.status, read(answer)["error"]["code"]) == (400, -32022)
    assert read(answer)["error"]["data"]["supported"] == ["2026-07-28"]


async def test_a_notification_without_a_session_is_accepted(port: Port) -> None:
    told = await port.post({"jsonrpc": "2.0", "method": "notifications/x"}, mcp_protocol_version="2026-07-28")
    assert told.status == 202


async def spoken(stream: Any) -> list[Any]:
    """Return every message of a stream to its end; one write may hold several events."""
    with anyio.fail_after(30):
        return events(b"".join([piece async for piece in stream]))


def events(raw: bytes) -> list[Any]:
    return [json.loads(line.removeprefix(b"data: ")) for line in raw.split(b"\n") if line.startswith(b"data: ")]


async def test_progress_comes_by_the_stream_before_the_answer(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "QUICK_SECONDS", 0.0)
    session = await port.begin()
    asked = message("tools/call", "w", name="march", arguments={}, _meta={"progressToken": 7})
    answer = await port.post(asked, mcp_session_id=session, accept="application/json, text/event-stream")
    assert header(answer, "content-type") == "text/event-stream"
    port.peer.script.may_end.set()
    pieces = await spoken(answer.stream)
    assert [one.get("params", {}).get("progress") for one in pieces] == [1, 2, None]
    assert pieces[0]["params"] == {"progressToken": 7, "progress": 1, "total": 2, "message": "left"}
    assert pieces[-1]["id"] == "w"


async def test_progress_comes_to_a_listener_before_the_answer(port: Port) -> None:
    listener = await (await port.open()).begin()
    asked = message("tools/call", "w", name="march", arguments={}, _meta={"progressToken": "p"})
    assert (await listener.send(asked)).status == 202
    port.peer.script.may_end.set()
    told: list[Any] = []
    with anyio.fail_after(30):
        while not told or "id" not in told[-1]:
            told += events(await anext(listener.stream))
    assert [one.get("params", {}).get("progressToken") for one in told] == ["p", "p", None]
    assert told[-1]["id"] == "w"
