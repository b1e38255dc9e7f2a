"""The HTTP upstream over the real client, against the scripted server process and against a scripted client."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import Clock, Ids
from gateway.errors import UpstreamUnavailable
from gateway.http.client import Client
from gateway.http.messages import Reply, Terms
from gateway.llm.base import Prompt, UpstreamRefused
from gateway.llm.openai import OpenAiDialect
from gateway.llm.upstream import HttpUpstream

PROMPT = Prompt("m", {"model": "m", "messages": [{"role": "user", "content": "Hello \N{LOCK}"}], "future": [1.5, None]})
TERMS = Terms(connect_seconds=5, first_byte_seconds=5, total_seconds=10, max_reply_bytes=1 << 20)
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Script:
    """Hands of the test on the scripted server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def mode(self, mode: str, **more: object) -> None:
        self._ask("/__reset", b"{}")
        self._ask("/__mode", json.dumps({"mode": mode, **more}).encode())

    def seen(self) -> list[dict[str, Any]]:
        return self._ask("/__log", None)  # type: ignore[no-any-return]

    def _ask(self, path: str, body: bytes | None) -> Any:
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body), timeout=10) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    command = [sys.executable, str(Path(__file__).parents[1] / "upstream.py"), "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        yield Script(process.stderr.readline().split()[-1])
        process.kill()


def made(client: Any, url: str, terms: Terms = TERMS, **more: Any) -> HttpUpstream:
    more = {"api_key": "sk-of-the-gateway", **more}
    return HttpUpstream(client, OpenAiDialect(), terms, base_url=url, ids=Ids(Clock()), **more)


@pytest.fixture
async def upstream(script: Script) -> AsyncGenerator[HttpUpstream, None]:
    client = Client()
    try:
        yield made(client, script.url + "/v1/")
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    "mode", ["normal", "tools", "parts", "audio", "refusal", "null", "chunked", "trickle", "gzip", "evil headers"]
)
async def test_every_good_answer_is_a_reply(script: Script, upstream: HttpUpstream, mode: str) -> None:
    script.mode(mode)
    reply = await upstream.complete(PROMPT)
    assert reply.body["choices"]
    assert (reply.prompt_tokens, reply.completion_tokens) == (9, 7)
    assert reply.headers == (("openai-processing-ms", "5"),) or mode in ("chunked", "trickle")


@pytest.mark.parametrize(
    "mode",
    ["garbage", "html", "empty", "bad utf8", "wrong shape", "list", "bad gzip", "close", "cut", "redirect"]
    + ["bomb", "huge", "401", "403", "407", "500", "503"],
)
async def test_every_bad_answer_is_unavailable_and_tells_no_internals(
    script: Script, upstream: HttpUpstream, mode: str
) -> None:
    script.mode(mode)
    with pytest.raises(UpstreamUnavailable) as caught:
        await upstream.complete(PROMPT)
    assert not re.search(r"127\.0|upstream\*|org-|sk-", caught.value.message)
    script.mode("normal")
    assert (await upstream.complete(PROMPT)).body["choices"]
    assert not any(seen["path"] == "/__redirected" for seen in script.seen())


@pytest.mark.parametrize(("mode", "is_large"), [("normal", False), ("huge", True)])
async def test_a_long_reply_is_said_to_be_large(script: Script, mode: str, is_large: bool) -> None:
    client = Client()
    try:
        script.mode(mode, megabytes=1)
        assert (
            await made(client, script.url + "/v1", replace(TERMS, max_reply_bytes=1 << 24)).complete(PROMPT)
        ).is_large is is_large
    finally:
        await client.aclose()


async def test_what_is_sent_is_our_own(script: Script, upstream: HttpUpstream) -> None:
    script.mode("normal")
    await upstream.complete(PROMPT, traceparent=CALLER)
    (seen,) = script.seen()
    assert (seen["method"], seen["path"]) == ("POST", "/v1/chat/completions")
    assert json.loads(seen["body"]) == PROMPT.body
    trace = seen["headers"].pop("traceparent").split("-")
    assert trace[1] == CALLER.split("-")[1] and trace[2] != CALLER.split("-")[2] and trace[3] == "01"
    assert seen["headers"] == {
        "host": script.url.removeprefix("http://"),
        "content-type": "application/json",
        "content-length": str(len(seen["body"].encode())),
        "accept": "application/json",
        "accept-encoding": "gzip",
        "user-agent": "gateway",
        "authorization": "Bearer sk-of-the-gateway",
    }


async def test_without_a_trace_none_is_begun(script: Script, upstream: HttpUpstream) -> None:
    script.mode("normal")
    await upstream.complete(PROMPT)
    assert "traceparent" not in script.seen()[0]["headers"]


@pytest.mark.parametrize(
    ("mode", "code"),
    [("400", "scripted_code"), ("404", "model_not_found"), ("409", "conflict"), ("422", "invalid_request")],
)
async def test_a_refusal_of_the_request_keeps_its_status(
    script: Script, upstream: HttpUpstream, mode: str, code: str
) -> None:
    script.mode(mode)
    with pytest.raises(UpstreamRefused) as caught:
        await upstream.complete(PROMPT)
    assert (caught.value.status, caught.value.code) == (int(mode), code)


async def test_too_many_requests_tell_when_to_come_back_and_not_whose_account_it_is(
    script: Script, upstream: HttpUpstream
) -> None:
    script.mode("429")
    with pytest.raises(UpstreamRefused) as caught:
        await upstream.complete(PROMPT)
    error = caught.value
    assert (error.status, error.code, error.retry_after_seconds) == (429, "rate_limited", 7)
    assert "org-" not in error.message


async def test_a_hanging_upstream_is_given_up(script: Script) -> None:
    script.mode("hang")
    client = Client(sweep_seconds=0.05)
    with pytest.raises(UpstreamUnavailable, match="in time"):
        await made(client, script.url + "/v1", replace(TERMS, first_byte_seconds=0.2, total_seconds=0.4)).complete(
            PROMPT
        )
    await client.aclose()


async def test_an_upstream_that_is_down_is_unavailable() -> None:
    client = Client()
    with pytest.raises(UpstreamUnavailable):
        await made(client, "http://127.0.0.1:1/v1").complete(PROMPT)
    await client.aclose()


async def test_models_are_those_that_the_upstream_lists(script: Script, upstream: HttpUpstream) -> None:
    script.mode("normal")
    assert [model["id"] for model in await upstream.models()] == ["test-model", "other-model"]
    assert [seen["path"] for seen in script.seen()] == ["/v1/models"]


class ScriptedClient:
    """Answers with one reply, whatever is asked."""

    def __init__(self, status: int, body: object, *headers: tuple[str, str]) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._reply = Reply(status, headers, raw)

    async def request(self, *_: object, **__: object) -> Reply:
        return self._reply


async def refused(status: int, body: object, *headers: tuple[str, str]) -> UpstreamRefused:
    with pytest.raises(UpstreamRefused) as caught:
        await made(ScriptedClient(status, body, *headers), "http://x").complete(PROMPT)
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b'"x"',
        {"error": None},
        {"error": {"message": 5}},
        {"error": {"message": " "}},
        b" " * 100_000,
    ],
)
async def test_an_odd_error_body_gets_words_of_our_own(body: object) -> None:
    assert "status 400" in (await refused(400, body)).message


async def test_names_of_accounts_and_hosts_are_cut_from_an_error() -> None:
    text = "Bad key sk-abc123 of org-acme at http://10.1.2.3:8000/v1 or 10.1.2.3:8000. " + "x" * 1000
    message = (await refused(400, {"error": {"message": text}})).message
    assert not re.search(r"abc123|acme|10\.1\.2\.3", message)
    assert len(message) <= 500


async def test_an_error_that_is_a_plain_text_is_kept() -> None:
    assert (await refused(400, {"error": "model is required"})).message == "model is required"


async def test_only_words_and_paths_are_taken_as_code_and_param() -> None:
    good = await refused(
        400, {"error": {"message": "m", "code": "context_length_exceeded", "param": "messages[0].content"}}
    )
    assert (good.code, good.param) == ("context_length_exceeded", "messages[0].content")
    bad = await refused(404, {"error": {"message": "m", "code": "Some <b>", "param": "a b"}})
    assert (bad.code, bad.param) == ("not_found", None)


@pytest.mark.parametrize(
    ("value", "seconds"), [("3", 3), ("0", 1), ("999999", 86_400), ("soon", 5), ("-1", 5), ("1.5", 5)]
)
async def test_the_wait_is_read_in_whole_seconds(value: str, seconds: int) -> None:
    assert (await refused(429, b"", ("retry-after", value))).retry_after_seconds == seconds
    assert (await refused(429, b"")).retry_after_seconds == 5


@pytest.mark.parametrize("value", ["5; a=b", "12345678901", "AKIA"])
async def test_a_passed_on_header_is_a_number(value: str) -> None:
    good = {"choices": [{"message": {"content": "x"}}]}
    client = ScriptedClient(200, good, ("openai-processing-ms", value), ("openai-model", "x"), ("set-cookie", "a=b"))
    assert (await made(client, "http://x").complete(PROMPT)).headers == ()


async def test_models_of_the_settings_are_listed_without_asking() -> None:
    listed = await made(ScriptedClient(500, b""), "http://x", models=("one", "two")).models()
    assert [model["id"] for model in listed] == ["one", "two"]
    assert all(model["object"] == "model" for model in listed)


@pytest.mark.parametrize(("status", "body"), [(404, b""), (500, b""), (200, b"x"), (200, {"data": 5}), (200, [])])
async def test_an_upstream_that_does_not_list_its_models_is_unavailable(status: int, body: object) -> None:
    with pytest.raises(UpstreamUnavailable):
        await made(ScriptedClient(status, body), "http://x").models()


async def test_odd_entries_of_a_list_of_models_are_left_out() -> None:
    data = [{"id": "a", "owned_by": 5, "created": "x", "secret": "s"}, {"id": 5}, "b", {"id": ""}, {"id": "x" * 300}]
    listed = await made(ScriptedClient(200, {"data": data}), "http://x").models()
    assert listed == ({"id": "a", "object": "model", "created": 0, "owned_by": "upstream"},)


async def test_without_a_key_none_is_sent(script: Script) -> None:
    script.mode("normal")
    client = Client()
    await made(client, script.url + "/v1", api_key=None).complete(PROMPT)
    assert "authorization" not in script.seen()[0]["headers"]
    await client.aclose()
