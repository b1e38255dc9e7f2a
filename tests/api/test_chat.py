"""The edge of the chat alone: headers, the error shape, and what is read of a request. The service is scripted."""

import json
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.api.chat import ChatEdge
from gateway.api.reading import LARGE_BYTES
from gateway.domain.principals import Caller, RequestContext, local
from gateway.errors import InvalidJson, TooManyValues, UnsupportedMediaType
from gateway.http.messages import Headers, Request, Response
from gateway.llm.base import Reply, UpstreamRefused
from gateway.services.chat import ChatAnswer, PromptBlocked
from gateway.services.chat_record import ShieldSummary
from gateway.settings import Settings
from gateway.shield.detections import Verdict

CALLER = Caller(local("test"), RequestContext(request_id="req_1"))
CLEAN = ShieldSummary(Verdict.ALLOW, 3, "none", 1.23456)
COMPLETION = {"id": "c-1", "choices": []}


@dataclass
class ScriptedChat:
    """Answers with what it is told, and remembers the body."""

    answer: ChatAnswer | Exception
    bodies: list[object] = field(default_factory=list)
    threads: list[bool] = field(default_factory=list)
    leaving_ends_it: bool = True

    def may_be_left(self) -> bool:
        return self.leaving_ends_it

    @property
    def dialect(self) -> "ScriptedChat":
        return self

    def read(self, body: object, raw: bytes, *, may_stream: bool) -> object:
        assert not may_stream
        self.threads.append(threading.current_thread() is threading.main_thread())
        return SimpleNamespace(prompt=SimpleNamespace(is_streamed=False), body=body)

    async def complete(self, caller: object, read: Any, *, tried_by: object) -> ChatAnswer:
        assert (caller, tried_by) == (CALLER, None)
        self.bodies.append(read.body)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def models(self, who: object) -> list[dict[str, object]]:
        return [{"id": "m", "object": "model"}]


def request(body: bytes = b'{"a":1}', content_type: str = "application/json", **headers: str) -> Request:
    fields = Headers({"content-type": content_type, **headers})
    return Request("POST", "/api/v1/chat/completions", "api-version=1", fields, body, "192.0.2.1", False, 0.0)


async def ask(answer: ChatAnswer | Exception, what: Request | None = None) -> tuple[Response, dict[str, str], Any]:
    edge = ChatEdge(cast(Any, SimpleNamespace(chat=ScriptedChat(answer), settings=Settings())))
    response = await edge.complete(what or request(), CALLER, None)
    return response, dict(response.headers), json.loads(response.body)


@pytest.mark.parametrize("may", [True, False])
async def test_the_service_says_whether_who_has_left_is_still_answered(may: bool) -> None:
    chat = ScriptedChat(ChatAnswer(Reply(COMPLETION), CLEAN), leaving_ends_it=may)
    asked = request()
    await ChatEdge(cast(Any, SimpleNamespace(chat=chat, settings=Settings()))).complete(asked, CALLER, None)
    assert asked.may_be_left is not None and asked.may_be_left() is may


async def test_an_answer_is_bare_and_carries_the_headers_of_the_shield() -> None:
    passed = (("openai-processing-ms", "5"),)
    response, headers, body = await ask(ChatAnswer(Reply(COMPLETION, passed), CLEAN))
    assert (response.status, body) == (200, COMPLETION)
    assert headers == {
        "content-type": "application/json",
        "openai-processing-ms": "5",
        "x-service-shield-verdict": "ALLOW",
        "x-service-shield-score": "3",
        "x-service-overhead-ms": "1.235",
    }


@pytest.mark.parametrize("action", ["blocked", "redacted", "observed"])
async def test_an_action_is_told(action: Any) -> None:
    _, headers, _ = await ask(ChatAnswer(Reply(COMPLETION), ShieldSummary(Verdict.BLOCK, 60, action, 1.0)))
    assert (headers["x-service-shield-verdict"], headers["x-service-shield-action"]) == ("BLOCK", action)


async def test_a_blocked_prompt_is_what_clients_know_as_a_policy_violation() -> None:
    response, headers, body = await ask(PromptBlocked(ShieldSummary(Verdict.BLOCK, 85, "blocked", 1.0)))
    assert response.status == 400
    assert (body["error"]["type"], body["error"]["code"]) == ("invalid_request_error", "content_policy_violation")
    assert body["ok"] is False and body["error"]["request_id"] == "req_1"
    assert (headers["x-service-shield-verdict"], headers["x-service-shield-score"]) == ("BLOCK", "85")


async def test_a_refusal_of_the_upstream_keeps_its_status_and_gets_our_shape() -> None:
    refused = UpstreamRefused(404, "no such model", code="model_not_found", param="model")
    response, headers, body = await ask(refused)
    assert response.status == 404 and "retry-after" not in headers
    assert body["error"] == {
        "message": "no such model", "type": "invalid_request_error", "code": "model_not_found", "param": "model",
        "request_id": "req_1",
    }  # fmt: skip


async def test_the_wait_an_upstream_asks_for_is_passed_on() -> None:
    response, headers, body = await ask(UpstreamRefused(429, retry_after_seconds=7))
    assert (response.status, headers["retry-after"], body["error"]["type"]) == (429, "7", "rate_limit_error")


@pytest.mark.parametrize(
    ("what", "error"),
    [
        (request(b"{"), InvalidJson),
        (request(b'{"a":1,"a":2}'), InvalidJson),
        (request(b"[" + b"0," * 100_000 + b"0]"), TooManyValues),
        (request(content_type="text/plain"), UnsupportedMediaType),
        (request(**{"content-encoding": "gzip"}), UnsupportedMediaType),
    ],
)
async def test_what_is_no_plain_json_never_reaches_the_service(what: Request, error: type[Exception]) -> None:
    with pytest.raises(error):
        await ask(AssertionError("reached"), what)


@pytest.mark.parametrize(("chars", "is_here"), [(10, True), (LARGE_BYTES, False)])
async def test_a_large_body_is_read_in_a_thread(chars: int, is_here: bool) -> None:
    chat = ScriptedChat(ChatAnswer(Reply(COMPLETION), CLEAN))
    edge = ChatEdge(cast(Any, SimpleNamespace(chat=chat, settings=Settings())))
    await edge.complete(request(json.dumps({"a": "x" * chars}).encode()), CALLER, None)
    assert chat.bodies == [{"a": "x" * chars}]
    assert chat.threads == [is_here]


async def test_models_are_a_list_as_openai_has_it() -> None:
    edge = ChatEdge(cast(Any, SimpleNamespace(chat=ScriptedChat(AssertionError()), settings=Settings())))
    response = await edge.models(request(), CALLER, None)
    assert json.loads(response.body) == {"object": "list", "data": [{"id": "m", "object": "model"}]}
