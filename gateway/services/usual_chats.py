"""Chats in which nothing was found, recorded by a form. Writes nothing.

Theory of operation. The records of two clean chats of one caller differ in ids, time, numbers and the hash of the texts
alone. So the records of the first one, as they are made for any chat, are kept as a form, and those of the next ones
are this form filled in: both say the same, since one is made of the other.
"""

from gateway.clock import Ids
from gateway.domain.audit import AuditEvent, canonical_text, form_of
from gateway.domain.traffic import TrafficRow
from gateway.services.chat_metrics import CompletionMeter
from gateway.services.chat_turn import MEASURED, Turn
from gateway.shield.detections import Verdict
from gateway.store.audit import WrittenEvent, kept_fields
from gateway.store.plain_chats import PlainChat
from gateway.store.traffic import ROWS

MOST_FORMS = 256
_ALLOW = Verdict.ALLOW
# Where a form has its gaps: an event begins with its id and its time and ends with its details, a row begins with its
# id, its time and its request.
_REQUEST = kept_fields().index("request_id")
_NUMBERS = ROWS.columns.index("text_sha256")
_END = ROWS.columns.index("overhead_us") + 1


class ChatForm:
    """What the records of chats that are like one have in common, and what counts them. agent: as rows name theirs."""

    __slots__ = (
        "_canonical", "_counted", "_details", "_event", "_event_end", "_instance_id", "_meter", "_row", "_row_end",
        "agent", "principal",
    )  # fmt: skip

    def __init__(self, turn: Turn, event: AuditEvent, row: TrafficRow, chat: PlainChat, meter: CompletionMeter) -> None:
        self.principal = turn.principal
        self.agent = row.agent or ""
        self._instance_id = event.instance_id
        self._canonical = form_of(event)
        self._event = chat.event.values[2:_REQUEST]
        self._event_end = chat.event.values[_REQUEST + 1 : -1]
        self._details = _with_gaps(event)
        self._row = tuple(chat.values[3:_NUMBERS])
        self._row_end = tuple(chat.values[_END:])
        self._meter = meter
        self._counted = meter.counted(row)

    def chat(self, turn: Turn, ids: Ids, *, occurred_at: int, now_seconds: float) -> PlainChat:
        """Return a chat that is like that one, and count it."""
        inbound, reply, used, request_id = turn.inbound, turn.reply, turn.used, turn.context.request_id
        assert inbound is not None and reply is not None  # of a clean one
        sha256, chars = inbound.text_sha256, inbound.text_chars
        sent, made = reply.prompt_tokens, reply.completion_tokens
        assert sent is not None and made is not None  # see `UsualChats.find`
        cost = None if used is None else used.microusd
        elapsed_us, overhead_us = turn.times_us(now_seconds)
        self._meter.completed(self._counted, overhead_us, sent, made, took_seconds=turn.upstream_seconds)
        details = self._details % (
            chars, "null" if cost is None else cost, elapsed_us, overhead_us, sent, made, sha256
        )  # fmt: skip
        event_id = ids.new("evt")
        event = WrittenEvent(
            self._instance_id,
            (event_id, occurred_at, *self._event, request_id, *self._event_end, details),
            *self._canonical.around_seq(f'"{event_id}"', occurred_at, f'"{request_id}"', details),
        )
        numbers = sha256, chars, sent, made, cost, elapsed_us, overhead_us
        row = (ids.new("trf"), occurred_at, request_id, *self._row, *numbers, *self._row_end)
        return PlainChat(event, row)


class UsualChats:
    """The forms of one process, by what makes records unlike each other."""

    def __init__(self, meter: CompletionMeter) -> None:
        self._meter = meter
        self._forms: dict[tuple[object, ...], ChatForm] = {}

    def find(self, turn: Turn) -> ChatForm | None:
        """Return the form of a chat, if there has been one like it; None: its records have to be made as any."""
        if not _is_usual(turn):
            return None
        form = self._forms.get(_kind(turn))
        return form if form is not None and form.principal is turn.principal else None

    def note(self, turn: Turn, event: AuditEvent, row: TrafficRow, chat: PlainChat) -> None:
        """Keep the records of a plain chat as a form, if there may be others like it."""
        # Where its details are without a text of them, somebody's words had to be changed to be kept.
        if _is_usual(turn) and event.details_json is not None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            self._forms[_kind(turn)] = ChatForm(turn, event, row, chat, self._meter)


def _is_usual(turn: Turn) -> bool:
    """Tell whether nothing was found, done or kept, the tokens are told, and no budget waits for them."""
    inbound, outbound, reply = turn.inbound, turn.outbound, turn.reply
    if inbound is None or outbound is None or turn.failure is not None or turn.hold_id is not None:
        return False
    if reply is None or reply.prompt_tokens is None or reply.completion_tokens is None:
        return False
    said, replied = inbound.result, outbound.result
    if said.score or replied.score or said.detections or replied.detections:
        return False
    if inbound.action != "none" or outbound.action != "none" or inbound.captured or outbound.captured:
        return False
    return said.verdict is _ALLOW and replied.verdict is _ALLOW


def _kind(turn: Turn) -> tuple[object, ...]:
    context, used = turn.context, turn.used
    has_no_price = used is not None and used.microusd is None  # of which somebody may have to be told, once
    return (
        turn.principal.id, context.ip, context.user_agent, turn.agent(), turn.prompt.model, turn.provider, has_no_price,
    )  # fmt: skip


def _with_gaps(event: AuditEvent) -> str:
    """Return the canonical JSON of an event's details with gaps for what is measured."""
    parts = []
    for name, value in sorted(event.details.items()):
        gap = MEASURED.get(name)
        parts.append(f'"{name}":{gap or canonical_text(value).replace("%", "%%")}')
    return "{" + ",".join(parts) + "}"
