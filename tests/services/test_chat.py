"""The chat service over a real store: the order of its steps, what is recorded of each, and what happens when one fails."""

import copy
import io
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from gateway.clock import Clock, Ids
from gateway.domain.alerts import Alert, AlertFilter
from gateway.domain.audit import AuditEvent, AuditFilter, canonical_text
from gateway.domain.policies import Capture, OutboundAction, ShieldMode, ShieldPolicy, Unscannable
from gateway.domain.prices import Price, Prices
from gateway.domain.principals import Caller, Principal, RequestContext, Scope
from gateway.domain.providers import Provider
from gateway.errors import (
    AuditUnavailable,
    GatewayError,
    InvalidRequest,
    Shed,
    ShieldUnavailable,
    UnsupportedValue,
    UpstreamUnavailable,
)
from gateway.llm.base import Prompt, Reply, UpstreamRefused
from gateway.llm.echo import EchoModel
from gateway.llm.masking import NOTICE
from gateway.llm.openai import OpenAiDialect
from gateway.log import Log
from gateway.metrics import Metrics
from gateway.services.access_guard import AccessGuard
from gateway.services.agent_discovery import AgentDiscovery
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.services.chat import Chat, ChatAnswer, PromptBlocked
from gateway.services.chat_costs import ChatCosts
from gateway.services.chat_policy import LONG_CHARS
from gateway.services.circuits import Circuits
from gateway.services.core import Core
from gateway.services.policies import Policies
from gateway.services.provider_keys import ProviderKeys
from gateway.services.risk_acceptances import RiskAcceptances
from gateway.services.routing import Routing
from gateway.services.scanner import TextScanner
from gateway.services.spending import Spending
from gateway.settings import Settings
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict, redact_spans
from gateway.shield.scoring import Policy, judge
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store, open_store
from gateway.strict_json import read_json

WHO = Principal("key", "key_1", "ann", frozenset(Scope), frozenset(), "svc_abcdef", 60)
CONTEXT = RequestContext(request_id="req_1", ip="192.0.2.1", user_agent="test", traceparent="00-a", agent=None)
CALLER = Caller(WHO, CONTEXT)
DIALECT = OpenAiDialect()
RULES = {
    "ATTACK": ("injection", Severity.CRITICAL),
    "DOUBT": ("injection", Severity.HIGH),
    "WORRY": ("jailbreak", Severity.HIGH),
    "FEAR": ("extraction", Severity.HIGH),
    "TOKEN-[0-9]+": ("secret", Severity.CRITICAL),
    "mail@example": ("pii", Severity.LOW),
}


class ScriptedScanner(TextScanner):
    """Finds a few words, each a rule, and remembers every text it was given."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, Direction]] = []
        self.error: Exception | None = None
        self.across = "(?!)"
        self.is_busy = False  # sheds all but the first text, unless it may wait

    def seal(self, secret: str) -> str:
        return secret[:1]

    async def scan(
        self,
        text: str,
        direction: Direction,
        policy: Policy,
        *,
        owner: str = "",
        ends: Sequence[int] = (),
        is_patient: bool = True,
    ) -> ScanResult:
        if self.is_busy and self.texts and not is_patient:
            raise Shed
        self.texts.append((text, direction))
        if self.error is not None:
            raise self.error
        found, spans = [], []
        rules = {**RULES, self.across: ("secret", Severity.CRITICAL)}
        for pattern, (category, severity) in rules.items():
            matches = list(re.finditer(pattern, text))
            if matches and (policy.categories is None or category in policy.categories):
                first = matches[0]
                found.append(
                    Detection(
                        pattern, pattern, category, severity, "d", "m", 1.0, 0, len(matches), *first.span(), "text"
                    )
                )
                if category in ("secret", "pii") or policy.category_actions.get(category) == "redact":
                    spans += [match.span() for match in matches]
        return judge(found, policy, redacted=redact_spans(text, spans))


def completion(*messages: object, **more: object) -> dict[str, object]:
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": "stop"}
        for index, message in enumerate(messages or ({"role": "assistant", "content": "Hi"},))
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    return {"id": "c-1", "object": "chat.completion", "model": "m", "choices": choices, "usage": usage, **more}


def said(content: object, **more: object) -> dict[str, object]:
    return {"role": "assistant", "content": content, **more}


@dataclass
class FakeUpstream:
    """Answers with one body or raises one error, and remembers what it was sent."""

    answer: object = field(default_factory=completion)
    sent: list[Prompt] = field(default_factory=list)
    before: Callable[[], Any] | None = None

    async def complete(self, prompt: Prompt, traceparent: str | None = None) -> Reply:
        assert traceparent == CONTEXT.traceparent
        self.sent.append(prompt)
        if self.before is not None:
            await self.before()
        if isinstance(self.answer, Exception):
            raise self.answer
        reply = DIALECT.read_reply(copy.deepcopy(self.answer))
        return Reply(reply.body, (("openai-processing-ms", "5"),), reply.prompt_tokens, reply.completion_tokens)

    async def models(self) -> tuple[Mapping[str, object], ...]:
        return ({"id": "m-1", "owned_by": "x"}, {"id": "TOKEN-123"})


@dataclass
class Room:
    chat: Chat
    scanner: ScriptedScanner
    upstream: FakeUpstream
    store: Store
    audit: Audit
    metrics: Metrics

    async def ask(self, content: object = "Hello", **fields: object) -> ChatAnswer:
        return await self.chat.complete(CALLER, DIALECT.read(body(content, **fields)))

    async def event(self) -> AuditEvent:
        events = [event for event in (await self.audit.page(AuditFilter())).items if event.source == "chat"]
        assert len(events) == 1
        return events[0]

    async def alerts(self) -> tuple[Alert, ...]:
        found = await self.store.db.read(lambda tx: self.store.alerts.page(tx, AlertFilter()))
        return tuple(alert for alert in found.items if alert.rule != "unknown-agent")  # of whoever asks here

    async def row(self) -> dict[str, Any]:
        names = "agent model provider verdict score action status prompt_tokens reply_tokens text_chars".split()
        rows = await self.store.db.read(lambda tx: tx.query("SELECT * FROM traffic"))
        assert len(rows) == 1
        return {name: rows[0][name] for name in names}


def body(content: object = "Hello", **fields: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": content}], **fields}


@asynccontextmanager
async def room(*, is_alone: bool = False, **policy: Any) -> AsyncGenerator[Room, None]:
    clock = Clock()
    ids = Ids(clock)
    store = await open_store(":memory:", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    await store.authority.follow()
    core = Core(store, clock, ids)
    scripted, upstream = ScriptedScanner(), FakeUpstream()
    alerts = Alerts(core)
    echo = EchoModel(clock=clock, ids=ids)
    settings_made = Provider(id="upstream", name="upstream", base_url="x", max_retries=0, origin="settings")
    chat = Chat(
        core,
        alerts=alerts,
        scanner=scripted,
        dialect=DIALECT,
        policy=ShieldPolicy(**policy),
        routing=Routing(
            core,
            circuits=Circuits(core, alerts=alerts),
            keys=ProviderKeys(store.keyfile, Settings()),
            connect=lambda provider, key: echo if provider.base_url is None else upstream,
            upstream=None if is_alone else settings_made,
        ),
        costs=ChatCosts(Prices({"*": Price(1_000_000, 2_000_000)})),
        spending=Spending(core, alerts=alerts),
        acceptances=RiskAcceptances(core),
        access=AccessGuard(core),
        policies=Policies(core),
        agents=AgentDiscovery(core, alerts=alerts),
    )
    try:
        yield Room(chat, scripted, upstream, store, core.audit, core.metrics)
    finally:
        await store.aclose()


def choices(answer: ChatAnswer) -> Any:
    return answer.reply.body["choices"]


# The usual way.


async def test_a_harmless_chat_is_forwarded_as_it_is_and_answered_as_it_came() -> None:
    async with room() as here:
        answer = await here.ask("Hello", user="u-1", future={"x": [1.5]})
        assert here.upstream.sent[0].body == body("Hello", user="u-1", future={"x": [1.5]})
        assert answer.reply.body == completion()
        assert answer.reply.headers == (("openai-processing-ms", "5"),)
        assert (answer.shield.verdict, answer.shield.score, answer.shield.action) == (Verdict.ALLOW, 0, "none")
        assert answer.shield.overhead_ms >= 0
        assert len(here.scanner.texts) == 2, "one scan each way"


async def test_a_completion_is_recorded_before_it_is_answered() -> None:
    async with room() as here:
        await here.ask("Hello", user="u-1")
        event, row = await here.event(), await here.row()
        assert await here.alerts() == ()
    assert (event.action, event.outcome, event.reason, event.resource_id) == ("chat_completed", "success", None, "m")
    assert (event.actor_id, event.request_id, event.key_prefix) == ("key_1", "req_1", "svc_abcdef")
    assert event.details["prompt_tokens"] == 3 and event.details["inbound"]["verdict"] == "ALLOW"  # type: ignore[index]
    assert row == {
        "agent": "u-1", "model": "m", "provider": "upstream", "verdict": "ALLOW", "score": 0, "action": "none",
        "status": 200, "prompt_tokens": 3, "reply_tokens": 2, "text_chars": len("Hello"),
    }  # fmt: skip


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 3, "completion_tokens": 2}])
async def test_what_the_audit_keeps_of_a_clean_completion_is_written_as_what_it_keeps_of_any(usage: object) -> None:
    async with room() as here:
        here.upstream.answer = completion(usage=usage)
        await here.ask("Hello")
        (row,) = await here.store.db.read(lambda tx: tx.query("SELECT details FROM audit_events"))
    details = json.loads(row["details"])
    assert row["details"] == canonical_text(details)
    step = {"verdict": "ALLOW", "score": 0, "action": "none", "detections": []}
    tokens = (3, 2) if usage else (None, None)
    assert {name: details.pop(name) for name in ("elapsed_us", "overhead_us", "sha256")}.keys() == {
        "elapsed_us", "overhead_us", "sha256"
    }  # fmt: skip
    assert details == {
        "provider": "upstream", "status": 200, "verdict": "ALLOW", "score": 0, "action": "none",
        "chars": len("Hello"), "prompt_tokens": tokens[0], "reply_tokens": tokens[1],
        "cost_microusd": 7 if usage else None, "inbound": step, "outbound": step,
    }  # fmt: skip


async def test_a_prompt_of_which_nothing_is_changed_goes_on_byte_for_byte() -> None:
    sent = b'{ "model": "m", "messages": [{"role": "user", "content": "caf\\u00e9"}] }'
    async with room() as here:
        await here.chat.complete(CALLER, DIALECT.read(read_json(sent), sent))
        assert [prompt.raw for prompt in here.upstream.sent] == [sent]


async def test_of_a_prompt_that_is_masked_nothing_goes_on_as_it_came() -> None:
    sent = b'{"model": "m", "messages": [{"role": "user", "content": "mail@example"}]}'
    async with room(scoring=REDACT_PII) as here:
        await here.chat.complete(CALLER, DIALECT.read(read_json(sent), sent))
        (prompt,) = here.upstream.sent
    assert prompt.raw is None
    assert "mail@example" not in str(prompt.body)


async def test_nothing_that_was_said_is_stored() -> None:
    async with room() as here:
        here.upstream.answer = completion(said("an answer with TOKEN-123456 in it"))
        await here.ask("a prompt with DOUBT in it", user="FEAR of mail@example")
        kept = repr((await here.event(), await here.row(), await here.alerts()))
    assert not re.search("prompt with|answer with|TOKEN-1|FEAR of", kept)


async def test_the_agent_is_the_header_then_the_user_then_the_key() -> None:
    for agent, fields, expected in (
        ("a-1", {"user": "u"}, "a-1"),
        (None, {}, "ann"),
        (None, {"user": "TOKEN-1"}, "ann"),
    ):
        async with room() as here:
            caller = Caller(WHO, RequestContext("req_1", traceparent="00-a", agent=agent))
            try:
                await here.chat.complete(caller, DIALECT.read(body(**fields)))
            except PromptBlocked:
                pass
            assert (await here.row())["agent"] == expected


# Inbound.


@pytest.mark.parametrize(
    "request_body",
    [
        body("please ATTACK"),
        body([{"type": "text", "text": "AT"}, {"type": "text", "text": "TACK"}]),
        body(messages=[{"role": "user", "content": "AT"}, {"role": "user", "content": "TACK"}]),
        body(tools=[{"type": "function", "function": {"name": "f", "description": "ATTACK"}}]),
        body(metadata={"ATTACK": "x"}),
        body(messages=[{"role": "tool", "content": '{"page": "\\u0041TTACK"}'}]),
        body([{"type": "file", "file": {"file_data": "data:text/plain;base64,QVRUQUNL"}}]),
    ],
)
async def test_a_blocked_prompt_is_sent_nowhere(request_body: dict[str, object]) -> None:
    async with room() as here:
        with pytest.raises(PromptBlocked) as caught:
            await here.chat.complete(CALLER, DIALECT.read(request_body))
        assert here.upstream.sent == []
        event, row, alerts = await here.event(), await here.row(), await here.alerts()
    assert caught.value.code == "content_policy_violation"
    assert (caught.value.shield.verdict, caught.value.shield.score) == (Verdict.BLOCK, 60)
    assert (event.action, event.outcome, event.reason) == ("chat_blocked", "refused", "content_policy_violation")
    assert event.details["inbound"]["detections"][0]["place"]  # type: ignore[index]
    assert (row["verdict"], row["action"], row["status"]) == ("BLOCK", "blocked", 400)
    assert [(alert.rule, alert.origin) for alert in alerts] == [("ATTACK", "chat.inbound")]


@pytest.mark.parametrize("policy", [{"capture": Capture.REDACTED}, {"tool_injection": False}])
async def test_a_long_prompt_that_is_blocked_is_recorded_though_no_thread_is_free_for_what_follows(
    policy: dict[str, Any],
) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "write to mail@example"}}]
    async with room(**policy) as here:
        here.scanner.is_busy = True
        with pytest.raises(PromptBlocked):
            await here.ask("ATTACK " + "x" * LONG_CHARS, tools=tools)
        event, row = await here.event(), await here.row()
    assert (event.action, row["verdict"], row["action"]) == ("chat_blocked", "BLOCK", "blocked")


async def test_a_long_prompt_is_masked_though_no_thread_is_free_for_it() -> None:
    async with room(scoring=REDACT_PII) as here:
        here.scanner.is_busy = True
        answer = await here.ask("I am mail@example " + "x" * LONG_CHARS)
        assert answer.shield.action == "redacted" and "mail@example" not in json.dumps(here.upstream.sent[0].body)


async def test_a_doubtful_prompt_is_forwarded_with_an_alert() -> None:
    async with room() as here:
        answer = await here.ask("DOUBT")
        assert (answer.shield.verdict, answer.shield.score) == (Verdict.REVIEW, 25)
        assert len(await here.alerts()) == 1


async def test_doubt_on_both_ways_is_not_added_up() -> None:
    async with room() as here:
        here.upstream.answer = completion(said("WORRY and FEAR"))
        answer = await here.ask("DOUBT")
        assert (answer.shield.verdict, answer.shield.score, answer.shield.action) == (Verdict.REVIEW, 50, "none")
        assert [alert.origin for alert in await here.alerts()] == ["chat.outbound", "chat.inbound"]


async def test_an_observed_attack_is_forwarded_and_said() -> None:
    async with room(mode=ShieldMode.OBSERVE) as here:
        here.upstream.answer = completion(said("TOKEN-123"))
        answer = await here.ask("ATTACK")
        assert (answer.shield.verdict, answer.shield.action) == (Verdict.BLOCK, "observed")
        assert answer.reply.body == here.upstream.answer
        event = await here.event()
    assert (event.action, event.details["action"]) == ("chat_completed", "observed")


async def test_tools_are_scanned_for_attacks_only_when_that_is_wanted_and_for_secrets_always() -> None:
    attack = [{"type": "function", "function": {"name": "f", "description": "ATTACK"}}]
    secret = [{"type": "function", "function": {"name": "f", "description": "TOKEN-1"}}]
    async with room(tool_injection=False) as here:
        assert (await here.ask(tools=attack)).shield.verdict is Verdict.ALLOW
        with pytest.raises(PromptBlocked):
            await here.ask("ATTACK", tools=attack)
        with pytest.raises(PromptBlocked):
            await here.ask(tools=secret)
    async with room() as here:
        with pytest.raises(PromptBlocked):
            await here.ask(tools=attack)


@pytest.mark.parametrize(
    ("unscannable", "verdict"), [(Unscannable.ALLOW, Verdict.ALLOW), (Unscannable.REVIEW, Verdict.REVIEW)]
)
async def test_a_picture_is_forwarded_by_policy(unscannable: Unscannable, verdict: Verdict) -> None:
    async with room(unscannable=unscannable) as here:
        answer = await here.ask([{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}])
        assert answer.shield.verdict is verdict
        assert len(here.upstream.sent) == 1


async def test_a_picture_is_refused_by_policy() -> None:
    async with room(unscannable=Unscannable.BLOCK) as here:
        with pytest.raises(PromptBlocked):
            await here.ask([{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}])
        assert here.upstream.sent == []


async def test_a_malformed_request_is_neither_scanned_nor_recorded() -> None:
    async with room() as here:
        for wrong, error in (({"stream": True}, UnsupportedValue), ({}, InvalidRequest), (body(5), InvalidRequest)):
            with pytest.raises(error):
                await here.chat.complete(CALLER, DIALECT.read(wrong))
        assert here.scanner.texts == [] and here.upstream.sent == []
        assert (await here.audit.page(AuditFilter(source="chat"))).items == ()


# Outbound.

LEAKS = {
    "content": said("here: TOKEN-123456"),
    "parts": said([{"type": "text", "text": "here: TOKEN-12"}, {"type": "text", "text": "3456"}]),
    "refusal": said(None, refusal="TOKEN-123456"),
    "reasoning": said("ok", reasoning_content="TOKEN-123456"),
    "arguments": said(None, tool_calls=[{"function": {"name": "f", "arguments": '{"a": "TOKEN-123456"}'}}]),
    "escaped": said(None, tool_calls=[{"function": {"name": "f", "arguments": '{"a": "\\u0054OKEN-123456"}'}}]),
    "name": said(None, tool_calls=[{"function": {"name": "TOKEN-123456", "arguments": "{}"}}]),
    "function": said(None, function_call={"name": "f", "arguments": '{"TOKEN-123456": 1}'}),
    "annotation": said("ok", annotations=[{"url_citation": {"url": "https://x.example/?q=TOKEN%2D123456"}}]),
    "transcript": said(None, audio={"id": "a", "data": "AAAA", "transcript": "TOKEN-123456"}),
    "unknown": said("ok", future={"TOKEN-123456": [{"x": "y"}]}),
}


@pytest.mark.parametrize("place", LEAKS)
async def test_a_leaking_choice_is_withheld_and_its_neighbour_untouched(place: str) -> None:
    async with room() as here:
        here.upstream.answer = completion(said("fine"), LEAKS[place])
        answer = await here.ask()
        event = await here.event()
    harmless, withheld = choices(answer)
    assert harmless == completion(said("fine"))["choices"][0]  # type: ignore[index]
    assert withheld == {
        "index": 1,
        "message": {"role": "assistant", "content": NOTICE, "refusal": None},
        "logprobs": None,
        "finish_reason": "content_filter",
    }
    assert (answer.shield.verdict, answer.shield.action) == (Verdict.BLOCK, "blocked")
    assert (event.action, event.outcome) == ("chat_blocked", "refused")


@pytest.mark.parametrize("place", LEAKS)
async def test_a_leaking_choice_is_masked_when_the_policy_says_so(place: str) -> None:
    async with room(outbound=OutboundAction.REDACT, unscannable=Unscannable.ALLOW) as here:
        here.upstream.answer = completion(said("fine"), LEAKS[place])
        answer = await here.ask()
    assert "123456" not in json.dumps(answer.reply.body)
    assert (answer.shield.verdict, answer.shield.action) == (
        Verdict.BLOCK,
        "blocked" if place == "annotation" else "redacted",
    )
    message = choices(answer)[1]["message"]
    for call in message.get("tool_calls") or []:
        assert isinstance(json.loads(call["function"]["arguments"]), dict)
    if place == "content":
        assert message["content"].startswith("here: TOKE")


async def test_a_leak_outside_of_the_choices_is_masked_and_the_choices_stay() -> None:
    async with room() as here:
        here.upstream.answer = completion(id="TOKEN-123456", model="TOKEN-123456", future={"TOKEN-123456": "x"})
        answer = await here.ask()
    assert "TOKEN-1" not in json.dumps(answer.reply.body)
    assert choices(answer) == completion()["choices"]
    assert list(answer.reply.body) == list(here.upstream.answer)  # type: ignore[call-overload]
    assert answer.shield.verdict is Verdict.BLOCK


async def test_log_probabilities_leave_with_their_choice() -> None:
    async with room() as here:
        leaking = completion()
        leaking["choices"][0]["logprobs"] = {"content": [{"token": "?", "bytes": list(b"TOKEN-123456")}]}  # type: ignore[index]
        here.upstream.answer = leaking
        assert choices(await here.ask())[0]["logprobs"] is None


async def test_what_only_all_choices_together_reach_withholds_each_of_them() -> None:
    async with room() as here:
        here.upstream.answer = completion(said("DOUBT"), said("fine"), said("WORRY"), said("FEAR"))
        answer = await here.ask()
    assert [choice["finish_reason"] for choice in choices(answer)] == ["content_filter", "stop"] + [
        "content_filter"
    ] * 2


@pytest.mark.parametrize("outbound", OutboundAction)
@pytest.mark.parametrize("others", [(), (said("fine"),), (said("TOKEN-777"),)])
async def test_a_leak_that_is_cut_over_two_choices_leaves_in_neither(
    outbound: OutboundAction, others: tuple[object, ...]
) -> None:
    async with room(outbound=outbound) as here:
        here.upstream.answer = completion(*others, said("it is TOKE"), said("N-123456"))
        answer = await here.ask()
    assert "TOKE" not in json.dumps(answer.reply.body) and "123456" not in json.dumps(answer.reply.body)
    assert {choice["finish_reason"] for choice in choices(answer)} == {"content_filter"}
    assert (answer.shield.verdict, answer.shield.action) == (Verdict.BLOCK, "blocked")


async def test_a_leak_over_several_texts_beside_the_choices_does_not_leave() -> None:
    async with room() as here:
        here.upstream.answer = completion(future="TOKEN-", other="-123456")
        here.scanner.across = "TOKEN-\nother\n-123456"
        answer = await here.ask()
    assert set(answer.reply.body) == {"object", "choices"}
    assert choices(answer)[0]["finish_reason"] == "content_filter"


async def test_a_blocked_text_that_masking_cannot_mend_is_withheld_under_redact_too() -> None:
    async with room(outbound=OutboundAction.REDACT) as here:
        here.upstream.answer = completion(said("ATTACK with TOKEN-123456"), said("fine"))
        answer = await here.ask()
    first, second = choices(answer)
    assert first["message"]["content"] == NOTICE and second["message"]["content"] == "fine"
    assert "ATTACK" not in json.dumps(answer.reply.body)


async def test_a_harmless_mail_address_is_not_masked() -> None:
    async with room(outbound=OutboundAction.REDACT) as here:
        here.upstream.answer = completion(said("write to mail@example"))
        assert (await here.ask()).reply.body == here.upstream.answer


# Failures: each is recorded, and nothing leaves.


@pytest.mark.parametrize("direction", list(Direction))
async def test_a_failing_shield_lets_nothing_through(direction: Direction) -> None:
    async with room() as here:
        failure = ShieldUnavailable("down")
        if direction is Direction.INBOUND:
            here.scanner.error = failure
        else:

            async def break_now() -> None:
                here.scanner.error = failure

            here.upstream.before = break_now
        with pytest.raises(ShieldUnavailable):
            await here.ask()
        assert len(here.upstream.sent) == (direction is Direction.OUTBOUND)
        event = await here.event()
    assert (event.action, event.outcome, event.reason) == ("chat_failed", "failed", "shield_unavailable")


@pytest.mark.parametrize(
    ("error", "reason", "status"),
    [
        (UpstreamUnavailable("down"), "upstream_unavailable", 502),
        (UpstreamRefused(404, "no such model", code="model_not_found"), "model_not_found", 404),
    ],
)
async def test_an_upstream_without_a_completion_is_recorded(error: GatewayError, reason: str, status: int) -> None:
    async with room() as here:
        here.upstream.answer = error
        with pytest.raises(type(error)):
            await here.ask()
        event, row = await here.event(), await here.row()
    assert (event.action, event.reason, row["status"]) == ("chat_failed", reason, status)


async def test_the_words_of_an_upstream_are_passed_on_only_when_clean() -> None:
    async with room() as here:
        for words, passed in (("no such model", True), ("bad key TOKEN-123", False), ("ask mail@example", False)):
            here.upstream.answer = UpstreamRefused(429, words, code="its_own", param="p", retry_after_seconds=9)
            with pytest.raises(UpstreamRefused) as caught:
                await here.ask()
            error = caught.value
            assert (error.status, error.retry_after_seconds) == (429, 9)
            assert (error.message, error.code, error.param) == (
                (words, "its_own", "p")
                if passed
                else ("The model gateway refused the request with status 429.", "rate_limited", None)
            )


async def test_what_cannot_be_recorded_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with room() as here:

        async def refuse(_: object, **how: bool) -> None:
            raise StoreUnavailable("full")

        monkeypatch.setattr(here.store.db, "write", refuse)
        for content in ("Hello", "ATTACK"):
            with pytest.raises(AuditUnavailable):
                await here.ask(content)


async def test_a_client_that_leaves_is_recorded() -> None:
    async with room() as here:
        arrived = anyio.Event()

        async def wait() -> None:
            arrived.set()
            await anyio.sleep_forever()

        here.upstream.before = wait
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.ask, "DOUBT")
            with anyio.fail_after(60):
                await arrived.wait()
            tasks.cancel_scope.cancel()
        event, row = await here.event(), await here.row()
        assert len(await here.alerts()) == 1
    assert (event.action, event.reason) == ("chat_failed", "client_gone")
    assert row["verdict"] == "REVIEW"


# Models.


async def test_without_an_upstream_echo_answers_every_model() -> None:
    async with room(is_alone=True) as here:
        answer = await here.ask("Hello there")
        assert choices(answer)[0]["message"]["content"] == "Hello there"
        assert answer.reply.body["model"] == "echo"
        assert [model["id"] for model in await here.chat.models(WHO)] == ["echo"]
        assert (await here.row())["provider"] == "echo"


async def test_echo_is_there_beside_an_upstream() -> None:
    async with room() as here:
        answer = await here.ask("Hello there", model="echo")
        assert choices(answer)[0]["message"]["content"] == "Hello there"
        assert here.upstream.sent == []


async def test_a_model_with_a_secret_for_a_name_is_not_listed() -> None:
    async with room() as here:
        assert [model["id"] for model in await here.chat.models(WHO)] == ["m-1"]


async def test_what_happens_is_counted() -> None:
    async with room() as here:
        await here.ask("DOUBT")
        text = here.metrics.render()
    assert 'gateway_scans_total{source="chat",verdict="REVIEW"} 1' in text
    assert 'gateway_upstream_requests_total{outcome="ok"} 1' in text
    assert 'gateway_tokens_total{kind="prompt"} 3' in text
    assert "gateway_upstream_seconds_count 1" in text


# Categories whose matches are masked, whatever the verdict.

REDACT_PII = Policy(category_actions={"pii": "redact"})


async def test_what_the_policy_redacts_is_masked_before_the_model_reads_it() -> None:
    async with room(scoring=REDACT_PII) as here:
        tools = [{"type": "function", "function": {"name": "f", "description": "write to mail@example"}}]
        answer = await here.ask("I am mail@example", tools=tools)
        sent = json.dumps(here.upstream.sent[0].body)
        assert "mail@example" not in sent and "I am" in sent and "write to" in sent
        assert (answer.shield.verdict, answer.shield.score, answer.shield.action) == (Verdict.ALLOW, 0, "redacted")
        event = await here.event()
    assert event.details["inbound"]["action"] == "redacted"  # type: ignore[index]
    assert event.action == "chat_completed"


async def test_what_stands_over_two_parts_is_masked_as_one() -> None:
    async with room(scoring=REDACT_PII) as here:
        await here.ask([{"type": "text", "text": "I am mail@"}, {"type": "text", "text": "example, hello"}])
        content = here.upstream.sent[0].body["messages"][0]["content"]  # type: ignore[index]
        assert len(content) == 1 and "mail@example" not in content[0]["text"] and "hello" in content[0]["text"]


async def test_what_should_be_masked_and_cannot_be_is_blocked() -> None:
    split = [{"role": "user", "content": "I am mail@"}, {"role": "user", "content": "example"}]
    async with room(scoring=REDACT_PII) as here:
        with pytest.raises(PromptBlocked) as caught:
            await here.ask(messages=split)
        assert here.upstream.sent == []
    assert (caught.value.shield.verdict, caught.value.shield.score) == (Verdict.BLOCK, 60)


async def test_what_the_policy_redacts_of_a_reply_is_masked() -> None:
    async with room(scoring=REDACT_PII) as here:
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"to": "mail@example"}'}}
        here.upstream.answer = completion(
            {"role": "assistant", "content": "it is mail@example"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        )
        answer = await here.ask()
        assert "mail@example" not in json.dumps(answer.reply.body)
        assert choices(answer)[0]["message"]["content"].startswith("it is ")
        assert set(json.loads(choices(answer)[1]["message"]["tool_calls"][0]["function"]["arguments"])) == {"to"}
        assert (answer.shield.verdict, answer.shield.action) == (Verdict.ALLOW, "redacted")


async def test_a_choice_beside_a_blocked_one_is_masked_as_well() -> None:
    async with room(scoring=REDACT_PII) as here:
        here.upstream.answer = completion(
            {"role": "assistant", "content": "ATTACK"}, {"role": "assistant", "content": "it is mail@example"}
        )
        answer = await here.ask()
        assert choices(answer)[0]["finish_reason"] == "content_filter"
        assert "mail@example" not in json.dumps(answer.reply.body)
        assert answer.shield.verdict is Verdict.BLOCK


async def test_under_observation_nothing_is_masked_and_all_is_told() -> None:
    async with room(scoring=REDACT_PII, mode=ShieldMode.OBSERVE) as here:
        answer = await here.ask("I am mail@example")
        assert here.upstream.sent[0].body == body("I am mail@example")
        assert answer.shield.action == "observed"
