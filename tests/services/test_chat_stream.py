"""Streams that end in every way: what is given out, recorded and paid."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from gateway_site import Site, open_site

from gateway.llm.echo import EchoModel
from gateway.llm.openai_stream import StoredStream
from gateway.services import chat_stream
from gateway.store.database import StoreUnavailable

TEXT = "The harbour is calm today, and the ferry to the island leaves at noon from the old pier beside the market. " * 3


@pytest.fixture
async def site() -> AsyncGenerator[Site, None]:
    async with open_site() as made:
        yield made


async def begun(site: Site, key: str, **fields: Any) -> Any:
    """Return the answer to a streamed chat before anything of it is read."""
    body = {"model": "echo", "stream": True, "messages": [{"role": "user", "content": TEXT}], **fields}
    return await site.answer("POST", "/api/v2/chat/completions", body, key=key)


async def rows(site: Site) -> list[dict[str, Any]]:
    await site.settled()
    return list(await site.get("/api/traffic"))


async def test_a_client_may_leave_at_every_chunk_and_pays_for_what_was_made(site: Site) -> None:
    key = await site.key("chat:completions")
    whole = await begun(site, key)
    count = len([event async for event in whole.stream])
    await whole.stream.aclose()
    assert count > 5
    tokens = []
    for read in range(count - 2):
        answer = await begun(site, key)
        for _ in range(read):
            await anext(answer.stream)
        await answer.stream.aclose()
        row = (await rows(site))[0]
        assert (row["status"], row["verdict"]) == (499, "ALLOW"), read
        tokens.append(row["reply_tokens"])
    assert tokens == sorted(tokens)
    assert tokens[0] < tokens[-1]
    assert len(await rows(site)) == count - 1, "each has one record"


async def test_a_budget_gets_back_what_a_stream_did_not_take(site: Site) -> None:
    key = await site.key("chat:completions")
    wanted = {"name": "all", "unit": "tokens", "limit": 1_000_000}
    assert (await site.ask("POST", "/api/budgets", wanted))["status_code"] == 201
    answer = await begun(site, key)
    await anext(answer.stream)
    assert (await site.get("/api/budgets"))[0]["reserved"] > 0
    await answer.stream.aclose()
    await site.settled()
    budget = (await site.get("/api/budgets"))[0]
    row = (await rows(site))[0]
    assert budget["reserved"] == 0
    assert budget["spent"] == row["prompt_tokens"] + row["reply_tokens"] > 0


async def test_a_client_hears_of_a_stream_that_is_silent(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(StoredStream):
        until_seconds = 0.0

        async def next(self) -> Any:
            await anyio.sleep_until(self.until_seconds)
            self.until_seconds = anyio.current_time() + 0.2
            return await super().next()

    async def stream(self: EchoModel, prompt: Any, traceparent: str | None = None) -> StoredStream:
        return Slow(iter([{"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}]))

    monkeypatch.setattr(EchoModel, "stream", stream)
    monkeypatch.setattr(chat_stream, "KEEP_ALIVE_SECONDS", 0.05)
    answer = await begun(site, await site.key("chat:completions"))
    events = [event async for event in answer.stream]
    await answer.stream.aclose()
    assert b": keep-alive\n\n" in events
    assert events[-1] == b"data: [DONE]\n\n"


async def test_the_audit_tells_how_a_reply_left(site: Site) -> None:
    key = await site.key("chat:completions")
    for fields, told in (({}, "held"), ({"n": 2}, "whole")):
        answer = await begun(site, key, **fields)
        async for _ in answer.stream:
            pass
        await answer.stream.aclose()
        await site.settled()
        event = (await site.get("/api/audit?action=chat_completed"))[0]
        assert event["details"]["outbound_stream"] == told


async def test_what_cannot_be_recorded_has_no_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await site.key("chat:completions")
    answer = await begun(site, key)

    async def refuse(_: object, **how: bool) -> None:
        raise StoreUnavailable("full")

    monkeypatch.setattr(site.gateway.store.db, "write", refuse)
    events = b"".join([event async for event in answer.stream])
    await answer.stream.aclose()
    monkeypatch.undo()
    assert b'"code":"audit_unavailable"' in events
    assert b"[DONE]" not in events
    assert b'"finish_reason":"stop"' not in events
