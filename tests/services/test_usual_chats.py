"""Chats that are recorded by a form are recorded as any other: the same words, one after the other, with and without."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.audit import canonical_text
from gateway.domain.captures import Capture, CapturedText
from gateway.domain.principals import RequestContext
from gateway.errors import GatewayError
from gateway.services import usual_chats
from gateway.services.chat_turn import Turn
from gateway.services.usual_chats import ChatForm, UsualChats
from gateway.shield.detections import Direction
from tests.services.test_chat import CONTEXT, WHO, Room, body, completion, room

_MEASURED = ("elapsed_us", "overhead_us")
_OWN = ("id", "occurred_at", "instance_id", "prev_hash", "hash")
_OTHER = replace(WHO, id="key_2", name='a "quoted" n\u00e4me %s', key_prefix="svc_other0", policy="pol_%d")
_RENAMED = replace(WHO, name="bob")
# Who asks, from where, with what, and what the model answers.
ASKED: tuple[tuple[Any, RequestContext, dict[str, Any], object], ...] = tuple(
    (who, context, fields, answer)
    for _ in range(2)
    for who, context, fields, answer in (
        (WHO, CONTEXT, {}, completion()),
        (WHO, CONTEXT, {"content": "Hello again"}, completion(usage={"prompt_tokens": 0, "completion_tokens": 9**9})),
        (_RENAMED, CONTEXT, {}, completion()),
        (_OTHER, CONTEXT, {}, completion()),
        (WHO, replace(CONTEXT, request_id="req_2", ip=None, user_agent='"\\%s'), {}, completion()),
        (WHO, replace(CONTEXT, agent="agent %(x)s"), {}, completion()),
        (WHO, CONTEXT, {"user": "u-1"}, completion()),
        (WHO, CONTEXT, {"user": "mail@example"}, completion()),
        (WHO, CONTEXT, {"model": "another"}, completion()),
        (WHO, CONTEXT, {"model": "n\u00f6\u2028 \"%s\""}, completion()),
        (WHO, CONTEXT, {}, completion(usage=None)),
        (WHO, CONTEXT, {}, completion(usage={"prompt_tokens": 3})),
        (WHO, CONTEXT, {}, completion()),  # of whose form none of these is
        (WHO, CONTEXT, {"content": "Write to mail@example"}, completion()),
        (WHO, CONTEXT, {}, completion({"role": "assistant", "content": "Write to mail@example"})),
        (WHO, CONTEXT, {"content": "a DOUBT"}, completion()),
        (WHO, CONTEXT, {"content": "an ATTACK"}, completion()),
        (WHO, CONTEXT, {}, completion({"role": "assistant", "content": "an ATTACK"})),
        (WHO, CONTEXT, {}, {"no": "completion"}),
        (WHO, CONTEXT, {"tools": [{"type": "function", "function": {"name": "f"}}]}, completion()),
    )
)  # fmt: skip


async def recorded(here: Room) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
    """Have all of it asked; return events, rows and counts, but for what is measured or another each time."""
    for who, context, fields, answer in ASKED:
        here.upstream.answer = answer
        try:
            await here.chat.complete(who, here.chat.read(body(**fields)), context)
        except GatewayError:
            pass
    events = await here.store.db.read(lambda tx: tx.query("SELECT * FROM audit_events_all ORDER BY seq"))
    rows = await here.store.db.read(lambda tx: tx.query("SELECT * FROM traffic_all ORDER BY position"))
    assert (await here.audit.verify()).ok
    told_events = []
    for row in events:
        told = {name: row[name] for name in row.keys() if name not in _OWN}
        details = json.loads(told["details"])
        assert told["details"] == canonical_text(details)
        told["details"] = {name: value for name, value in details.items() if name not in _MEASURED}
        told_events.append(told)
    told_rows = [{name: row[name] for name in row.keys() if name not in (*_OWN, *_MEASURED)} for row in rows]
    counts = [line for line in here.metrics.render().split("\n") if "_bucket" not in line and "seconds_sum" not in line]
    return told_events, told_rows, counts


async def test_a_chat_that_is_recorded_by_a_form_is_recorded_as_any(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[Turn] = []
    chat = ChatForm.chat

    def noted(form: ChatForm, turn: Turn, *args: Any, **named: Any) -> Any:
        filled.append(turn)
        return chat(form, turn, *args, **named)

    monkeypatch.setattr(ChatForm, "chat", noted)
    async with room() as here:
        by_form = await recorded(here)
    assert len(filled) >= 8, "the second time"
    monkeypatch.setattr(UsualChats, "find", lambda *_: None)
    async with room() as here:
        as_any = await recorded(here)
    for one, other in zip(by_form, as_any, strict=True):
        assert one == other


async def test_no_form_outlives_the_name_of_its_caller() -> None:
    async with room() as here:
        for who in (WHO, WHO, _RENAMED, WHO):
            await here.chat.complete(who, here.chat.read(body()), CONTEXT)
        rows = await here.store.db.read(lambda tx: tx.query("SELECT actor FROM audit_events_all ORDER BY seq"))
    assert [row["actor"] for row in rows] == ["ann", "ann", "bob", "ann"]


async def test_there_are_not_more_forms_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usual_chats, "MOST_FORMS", 3)
    kept: list[int] = []
    note = UsualChats.note

    def noted(usual: UsualChats, *args: Any) -> None:
        note(usual, *args)
        kept.append(len(usual._forms))

    monkeypatch.setattr(UsualChats, "note", noted)
    async with room() as here:
        for number in range(8):
            await here.chat.complete(WHO, here.chat.read(body(model=f"m{number}")), CONTEXT)
    assert len(kept) == 8
    assert max(kept) == 3


async def test_a_form_keeps_no_more_of_a_name_than_its_records_do() -> None:
    """A request may name a `user` of half a million characters, which is a text of its own."""
    async with room() as here:
        for end in "ab":
            await here.chat.complete(WHO, here.chat.read(body(user="u" * 10_000 + end)), CONTEXT)
        kinds = list(here.chat._usual._forms)
        rows = await here.store.db.read(lambda tx: tx.query("SELECT agent FROM traffic_all"))
    assert [len(str(kind)) < 500 for kind in kinds] == [True]
    assert {row["agent"] for row in rows} == {"u" * 100}


async def test_no_form_is_for_what_a_budget_waits_for_or_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[UsualChats, Turn]] = []
    find = UsualChats.find
    monkeypatch.setattr(UsualChats, "find", lambda usual, turn: asked.append((usual, turn)) or find(usual, turn))
    async with room() as here:
        await here.ask()
        await here.ask()
    usual, turn = asked[-1]
    assert find(usual, turn) is not None
    turn.hold_id = "hold_1"
    assert find(usual, turn) is None
    turn.hold_id, inbound = None, turn.inbound
    assert inbound is not None
    changes: tuple[dict[str, Any], ...] = (
        {"captured": CapturedText(Direction.INBOUND, Capture.FULL, "Hello", is_cut=False, days=1)},
        {"action": "redacted"},
    )
    for changed in changes:
        turn.inbound = replace(inbound, **changed)
        assert find(usual, turn) is None
    turn.inbound, turn.failure = inbound, "upstream_unavailable"
    assert find(usual, turn) is None
