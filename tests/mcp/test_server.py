"""The MCP server without a transport: versions, tools, refusals, cancellation, audit."""

import json
from typing import Any

import anyio
import pytest

from gateway import __version__
from gateway.mcp import jsonrpc

META = "io.modelcontextprotocol/"


async def ask(peer: Any, method: str, params: dict[str, Any] | None = None, *, request_id: int = 1) -> dict[str, Any]:
    """Send one request and return its answer."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    raw = await send(peer, message)
    assert raw is not None and raw["id"] == request_id
    return dict(raw)


async def send(peer: Any, message: object) -> Any:
    raw = await peer.server.answer(jsonrpc.parse(json.dumps(message).encode()))
    return None if raw is None else json.loads(raw)


async def initialize(peer: Any, version: str = "2025-11-25") -> dict[str, Any]:
    client = {"name": "tester", "version": "1"}
    return await ask(peer, "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})


async def call(peer: Any, name: str, arguments: object = None, *, request_id: int = 7) -> dict[str, Any]:
    return await ask(peer, "tools/call", {"name": name, "arguments": arguments}, request_id=request_id)


def stateless(version: str = "2026-07-28", **params: Any) -> dict[str, Any]:
    meta = {META + "protocolVersion": version, META + "clientCapabilities": {}}
    return params | {"_meta": meta}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_initialize_agrees_on_the_version_asked_for(peer: Any, version: str) -> None:
    result = (await initialize(peer, version))["result"]
    assert result["protocolVersion"] == version == peer.server.version
    assert result["serverInfo"]["name"] == "service"
    assert result["serverInfo"]["version"] == __version__
    assert result["capabilities"] == {"tools": {}}


@pytest.mark.parametrize("version", ["1999-01-01", "2099-12-31", "2026-07-28", "", "latest"])
async def test_an_unknown_version_is_offered_the_first_one(peer: Any, version: str) -> None:
    assert (await initialize(peer, version))["result"]["protocolVersion"] == "2024-11-05"


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 1}, {"protocolVersion": None}])
async def test_initialize_without_a_version_is_invalid(peer: Any, params: dict[str, Any] | None) -> None:
    assert (await ask(peer, "initialize", params))["error"]["code"] == -32602
    assert peer.server.version is None


async def test_ping_and_the_tools_are_there_before_initialize(peer: Any) -> None:
    assert (await ask(peer, "ping"))["result"] == {}
    assert len((await ask(peer, "tools/list"))["result"]["tools"]) == len(peer.tools)


@pytest.mark.parametrize(
    "method",
    [
        "no/such",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "logging/setLevel",
        "completion/complete",
    ],
)
async def test_an_unknown_method_is_answered_at_once(peer: Any, method: str) -> None:
    await initialize(peer)
    assert (await ask(peer, method, {}))["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/none", "tools/call"])
async def test_a_notification_is_never_answered(peer: Any, method: str) -> None:
    assert await send(peer, {"jsonrpc": "2.0", "method": method}) is None
    assert peer.audit.events == []


async def test_an_answer_to_nothing_is_dropped(peer: Any) -> None:
    assert await send(peer, {"jsonrpc": "2.0", "id": 9, "result": {}}) is None


async def test_the_list_of_tools_is_one_page(peer: Any) -> None:
    for params in (None, {}, {"cursor": None}):
        assert "nextCursor" not in (await ask(peer, "tools/list", params))["result"]
    assert (await ask(peer, "tools/list", {"cursor": "x"}))["error"]["code"] == -32602


async def test_a_tool_is_described_as_its_row_says(peer: Any) -> None:
    await initialize(peer)
    tool = (await ask(peer, "tools/list"))["result"]["tools"][0]
    assert tool["name"] == "say" and tool["title"] == "Say" and tool["description"]
    assert tool["inputSchema"]["type"] == "object"
    assert tool["inputSchema"]["additionalProperties"] is False
    assert tool["inputSchema"]["required"] == ["text"]
    assert tool["inputSchema"]["properties"]["text"] == {"type": "string", "description": "What to say."}
    assert tool["annotations"]["readOnlyHint"] is False and tool["annotations"]["destructiveHint"] is True
    assert tool["outputSchema"] == {"type": "object"}


@pytest.mark.parametrize(("version", "has"), [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True)])
async def test_structured_output_is_for_versions_that_have_it(peer: Any, version: str, has: bool) -> None:
    await initialize(peer, version)
    tool = (await ask(peer, "tools/list"))["result"]["tools"][0]
    assert ("outputSchema" in tool, "title" in tool) == (has, has)
    result = (await call(peer, "say", {"text": "a"}))["result"]
    assert result["content"] == [{"type": "text", "text": "a"}]
    assert result.get("structuredContent") == ({"said": "a"} if has else None)


@pytest.mark.parametrize(
    "params",
    [{}, {"name": 5}, {"name": "no_such_tool"}, {"name": "say", "arguments": "x"}, {"name": "say", "arguments": [1]}],
)
async def test_a_call_that_names_no_tool_or_no_object_is_invalid(peer: Any, params: dict[str, Any]) -> None:
    assert (await ask(peer, "tools/call", params))["error"]["code"] == -32602
    assert peer.audit.events == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (None, "text"),
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": None}, "text"),
        ({"text": "a", "level": "grave"}, "level"),
        ({"text": "a", "times": "2"}, "times"),
        ({"text": "a", "tetx": "b"}, "tetx"),
    ],
)
async def test_bad_arguments_are_a_result_that_names_them(peer: Any, arguments: object, name: str) -> None:
    result = (await call(peer, "say", arguments))["result"]
    assert result["isError"] is True
    assert name in result["content"][0]["text"]
    assert [event[:3] for event in peer.audit.events] == [
        ("mcp:say:invoked", "success", None),
        ("mcp:say:failed", "failed", "invalid_request"),
    ]


async def test_a_refusal_of_a_service_is_a_result_in_its_words(peer: Any) -> None:
    result = (await call(peer, "refuse"))["result"]
    assert result == {"content": [{"type": "text", "text": "Too much at once; try again."}], "isError": True}
    assert peer.audit.events[-1][:3] == ("mcp:refuse:failed", "failed", "overloaded")


async def test_a_refusal_of_one_argument_names_it(peer: Any) -> None:
    assert (await call(peer, "object"))["result"]["content"][0]["text"] == "Argument since: must be a time"


async def test_a_crash_tells_the_peer_nothing_but_where_to_look(peer: Any) -> None:
    answer = await call(peer, "crash")
    assert answer["result"]["isError"] is True
    text = answer["result"]["content"][0]["text"]
    assert "req_" in text and "prompt" not in text
    assert "ZeroDivisionError" in peer.log.getvalue() and "prompt" not in peer.log.getvalue()
    assert peer.audit.events[-1][:3] == ("mcp:crash:failed", "failed", "internal_error")


async def test_an_answer_that_cannot_be_written_is_an_internal_error(peer: Any) -> None:
    assert (await call(peer, "garble"))["error"] == {"code": -32603, "message": "Internal error"}
    assert "UnicodeEncodeError" in peer.log.getvalue()


async def test_a_call_is_audited_with_choices_and_without_texts(peer: Any) -> None:
    await call(peer, "say", {"text": "my secret", "level": "high", "times": 2})
    assert peer.audit.events == [
        (
            "mcp:say:invoked",
            "success",
            None,
            {"arguments": {"text": "9 characters", "level": "high", "times": 2}},
        ),
        ("mcp:say:completed", "success", None, None),
    ]


async def test_a_call_that_cannot_be_audited_is_not_made(peer: Any) -> None:
    peer.audit.is_broken = True
    result = (await call(peer, "say", {"text": "a"}))["result"]
    assert result["isError"] is True
    assert peer.script.contexts == []


async def test_a_client_gives_its_name_in_plain_characters(peer: Any) -> None:
    info = {"name": "n\n\x1b[31mé", "version": "1" * 500}
    await ask(peer, "initialize", {"protocolVersion": "2024-11-05", "clientInfo": info})
    await call(peer, "say", {"text": "a"})
    agent = peer.script.contexts[0].user_agent
    assert agent.startswith("n??[31m?/111") and len(agent) == 100


async def test_a_client_that_gives_a_key_as_its_name_is_known_by_its_prefix(peer: Any) -> None:
    info = {"name": "svc_" + "0123456789" * 4, "version": "1"}
    await ask(peer, "initialize", {"protocolVersion": "2024-11-05", "clientInfo": info})
    await call(peer, "say", {"text": "a"})
    assert peer.script.contexts[0].user_agent == "svc_012345.../1"


@pytest.mark.parametrize("info", [None, "x", {}, {"name": 5}])
async def test_a_client_without_a_name_is_served(peer: Any, info: object) -> None:
    await ask(peer, "initialize", {"protocolVersion": "2024-11-05", "clientInfo": info})
    await call(peer, "say", {"text": "a"})
    assert peer.script.contexts[0].user_agent is None


async def test_others_are_answered_while_a_tool_runs(peer: Any) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(call, peer, "wait")
            await peer.script.begun.wait()
            assert (await ask(peer, "ping"))["result"] == {}
            peer.script.may_end.set()


async def test_a_cancelled_call_is_not_answered(peer: Any) -> None:
    answers = []

    async def run() -> None:
        message = {"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": {"name": "wait"}}
        answers.append(await send(peer, message))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await peer.script.begun.wait()
            for params in ({"requestId": "other"}, {}, {"requestId": None}, {"requestId": ["w"]}):
                await send(peer, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            assert answers == []
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}}
            await send(peer, cancel)
    assert answers == [None]
    assert peer.audit.events[-1][:3] == ("mcp:wait:failed", "failed", "cancelled")


async def test_an_id_that_is_still_running_cannot_be_used_again(peer: Any) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(call, peer, "wait")
            await peer.script.begun.wait()
            assert (await call(peer, "say", {"text": "a"}))["error"]["code"] == -32600
            peer.script.may_end.set()
    assert "result" in await call(peer, "say", {"text": "a"})


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
async def test_a_batch_is_answered_as_one_array(peer: Any, version: str) -> None:
    await initialize(peer, version)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = await send(peer, [ping, note, ping | {"id": 2}, 5, ping | {"id": 3, "method": "initialize"}])
    assert [one["id"] for one in answer] == [1, 2, None, 3]
    assert [one.get("error", {}).get("code") for one in answer] == [None, None, -32600, -32600]
    assert await send(peer, [note]) is None


@pytest.mark.parametrize("version", [None, "2025-06-18", "2025-11-25"])
async def test_a_batch_is_refused_where_there_are_none(peer: Any, version: str | None) -> None:
    if version:
        await initialize(peer, version)
    answer = await send(peer, [{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert answer["error"]["code"] == -32600 and answer["id"] is None


async def test_discover_as_the_first_message_says_what_there_is(peer: Any) -> None:
    result = (await ask(peer, "server/discover", stateless()))["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {}}
    assert result["resultType"] == "complete"
    assert isinstance(result["ttlMs"], int) and result["cacheScope"] == "public"
    assert result["_meta"][META + "serverInfo"]["name"] == "service"


async def test_discover_after_initialize_is_no_method(peer: Any) -> None:
    await initialize(peer, "2024-11-05")
    for params in ({}, stateless()):
        assert (await ask(peer, "server/discover", params))["error"]["code"] == -32601


async def test_a_stateless_request_needs_no_initialize(peer: Any) -> None:
    listed = (await ask(peer, "tools/list", stateless()))["result"]
    assert listed["resultType"] == "complete" and len(listed["tools"]) == len(peer.tools)
    assert isinstance(listed["ttlMs"], int) and listed["cacheScope"] == "public"
    called = (await ask(peer, "tools/call", stateless(name="say", arguments={"text": "a"})))["result"]
    assert called["resultType"] == "complete" and called["structuredContent"] == {"said": "a"}
    assert peer.server.version is None


async def test_a_stateless_request_of_another_version_is_told_which_there_are(peer: Any) -> None:
    error = (await ask(peer, "tools/list", stateless("2099-01-01")))["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


@pytest.mark.parametrize("method", ["ping", "initialize", "resources/list"])
async def test_methods_of_the_old_era_are_not_in_the_new_one(peer: Any, method: str) -> None:
    assert (await ask(peer, method, stateless(protocolVersion="2024-11-05")))["error"]["code"] == -32601


@pytest.mark.parametrize("meta", [None, {}, {META + "protocolVersion": 5}, {META + "protocolVersion": "2026-07-28"}])
async def test_discover_without_complete_metadata_is_invalid(peer: Any, meta: object) -> None:
    assert (await ask(peer, "server/discover", {"_meta": meta}))["error"]["code"] == -32602
