"""One chat whose completion comes in pieces: what may leave at once, and the verdict on the whole at its end.

The pieces are put together, and the whole is judged, masked and recorded like one that was not streamed. Before that,
only text leaves that can be no part of a match that blocks (`shield/stream`); tool calls, and all that is no text, wait
for the end. Where a policy or a request for several choices asks for it, everything waits.
"""

from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from gateway.clock import Clock
from gateway.domain.policies import OutboundStream
from gateway.errors import AccessDenied, GatewayError, UpstreamUnavailable
from gateway.llm.base import LeafKind, Prompt, Reply, ReplyStream, UpstreamFault
from gateway.llm.echo import count_tokens
from gateway.llm.masking import strings
from gateway.llm.openai import OpenAiDialect, counted
from gateway.llm.openai_stream import Assembly, ChunkMaker, Piece, delta_of
from gateway.services.access_guard import AccessGuard
from gateway.services.chat_policy import ChatPolicy
from gateway.services.chat_record import Answer, ChatExchange, ShieldSummary
from gateway.services.routing import ProviderConnection, Routing
from gateway.shield.stream import Released, StreamScanner

KEEP_ALIVE_SECONDS = 15.0
_BLOCKED = "content_filter"

Event = Mapping[str, Any] | None
"""A chunk, or None: nothing may leave yet, and the client should hear that the stream is alive."""


def scanner_for(policy: ChatPolicy, prompt: Prompt) -> StreamScanner | None:
    """Return what lets out the text of a reply; None if everything waits for its end.

    Raises:
        ShieldUnavailable: the shield failed.
    """
    count = prompt.body.get("n")
    has_many = isinstance(count, int) and count > 1
    return None if has_many or policy.policy.outbound_stream is OutboundStream.WHOLE else policy.stream()


@dataclass(eq=False, repr=False, kw_only=True)
class ChatStream:
    """The chunks of one chat, in order. Whoever has it closes it.

    by: who answers. scanner: what lets text out; None where everything waits. settle, settle_left: record the chat; the
    latter if its client is gone. answer: adds what a reply took. sent_seconds: monotonic, when the prompt was sent.
    keep_alive_seconds: the longest silence.
    """

    exchange: ChatExchange
    policy: ChatPolicy
    upstream: ReplyStream
    by: ProviderConnection
    dialect: OpenAiDialect
    access: AccessGuard
    routing: Routing
    clock: Clock
    settle: Callable[[ChatExchange], Awaitable[None]]
    settle_left: Callable[[ChatExchange], Awaitable[None]]
    answer: Callable[[ChatExchange, Reply, ProviderConnection], Answer]
    sent_seconds: float
    scanner: StreamScanner | None
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS
    _first: list[Event] = field(default_factory=list, init=False)
    _is_settled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        body = self.exchange.request.prompt.body
        options = body.get("stream_options")
        self._wants_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._assembly = Assembly(self.dialect.max_reply_chars)
        self._maker: ChunkMaker | None = None
        self._around: Mapping[str, object] = {}
        # What was read and is held: channels and numbers of characters; None is a line break between two channels.
        self._held: deque[tuple[str | None, int]] = deque()
        self._given: Counter[str] = Counter()
        self._waiting = anyio.CancelScope()
        self._events = self._run()

    async def begin(self) -> None:
        """Wait for the first chunk, or until the client should hear of the stream.

        Raises:
            GatewayError: there is no completion, and nothing was given out.
        """
        self._first.append(await anext(self._events))

    def __aiter__(self) -> "ChatStream":
        return self

    async def __anext__(self) -> Event:
        """Return the next chunk.

        Raises:
            GatewayError: the completion broke off, or it could not be scanned or recorded.
        """
        return self._first.pop() if self._first else await anext(self._events)

    def nudge(self) -> None:
        """Let the client hear of the stream each second from now on, since it may be gone."""
        self.keep_alive_seconds = min(self.keep_alive_seconds, 1.0)
        self._waiting.cancel()

    def summary(self) -> ShieldSummary:
        """Return what the client reads about the shield, as far as it is known."""
        return self.exchange.summary(self.clock.monotonic_seconds())

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The few headers of the upstream that are passed on."""
        return self.upstream.headers

    async def aclose(self) -> None:
        """End the stream; a chat that did not come to its end is recorded as left by its client."""
        await self._events.aclose()
        self.upstream.close()
        if not self._is_settled:
            self._is_settled = True
            self._note_answer()
            await self.settle_left(self.exchange)

    async def _run(self) -> AsyncGenerator[Event, None]:
        exchange = self.exchange
        try:
            was_judged = False
            while exchange.outbound is None:
                is_waiting, chunk = True, None
                while is_waiting:
                    with anyio.move_on_after(self.keep_alive_seconds) as self._waiting:
                        chunk = await self.upstream.next()
                        is_waiting = False
                    if is_waiting:
                        yield None
                if chunk is None:
                    break
                for event in await self._take(chunk):
                    yield event
                if self.scanner is not None and self.scanner.is_stopped and not was_judged:
                    was_judged = True
                    scanned = await self.policy.outbound(self._reply())
                    exchange.outbound = scanned if scanned.action == "blocked" else None
            self.upstream.close()
            self._note_answer()
            if exchange.outbound is None:
                if not self._assembly.is_complete:
                    raise UpstreamFault("The model gateway broke off its answer.", detail="its stream has no end")
                await self.access.check_reply(exchange.principal, self._reply(), self.dialect)
                exchange.outbound = await self.policy.outbound(self._reply())
            last = await self._ending()
            await self._settle()
            for event in last:
                yield event
        except GatewayError as error:
            if isinstance(error, UpstreamUnavailable):
                self.routing.broke_off(self.by, error)
            await self._fail(error)
            if not isinstance(error, AccessDenied) or self._maker is None:
                raise
            for event in self._finished({}, [self._chunks().delta(0, {}, finish_reason=_BLOCKED)]):
                yield event

    async def _take(self, chunk: Mapping[str, object]) -> list[Event]:
        """Take a chunk of the upstream, and return what may leave."""
        added = self._assembly.take(chunk)
        events: list[Event] = []
        if self._maker is None:
            self._around = await self.policy.around(self._assembly.around)
            if self.scanner is not None:
                events.append(self._chunks().delta(0, {"content": ""}))
        for index, piece in added:
            # A second choice that nobody asked for waits for the end, as everything does then.
            if self.scanner is not None and len(self._assembly.choices) == 1 and index in self._assembly.choices:
                events += self._let_out(index, piece)
        return events

    def _chunks(self) -> ChunkMaker:
        if self._maker is None:
            self._maker = ChunkMaker(self._around, with_usage=self._wants_usage)
        return self._maker

    def _let_out(self, index: int, piece: Piece) -> Iterator[Event]:
        """Read a piece of text; yield what may leave of all that is held."""
        assert self.scanner is not None
        text, chars = piece.text, len(piece.text)
        if self._held and self._held[-1][0] == piece.channel:
            chars += self._held.pop()[1]
        elif self._held or self._given:
            self._held.append((None, 1))
            text = "\n" + text
        self._held.append((piece.channel, chars))
        for released in self.scanner.feed(text):
            for channel, said in self._by_channel(released):
                yield self._chunks().delta(index, {channel: self.upstream.without_key(said)})

    def _by_channel(self, released: Released) -> Iterator[tuple[str, str]]:
        """Yield the parts of what was released, each with its channel. What was masked belongs to its first one."""
        left, text = released.chars, released.text
        is_masked = len(text) != left
        while left:
            channel, chars = self._held.popleft()
            taken = min(chars, left)
            if taken < chars:
                self._held.appendleft((channel, chars - taken))
            left -= taken
            if channel is not None:
                self._given[channel] += taken
            part, text = (text, "") if is_masked else (text[:taken], text[taken:])
            if channel is not None and part:
                yield channel, part

    async def _ending(self) -> list[Event]:
        """Return the last chunks: what was held, the reasons for the end, the usage, and the verdict."""
        scanned = self.exchange.outbound
        assert scanned is not None
        maker, events = self._chunks(), list[Event]()
        body = self.exchange.reply().body
        choices: Any = body["choices"]
        for choice in choices:
            index, reason = choice["index"], choice["finish_reason"]
            if scanned.action == "blocked" and (self.scanner is not None or reason == _BLOCKED):
                events.append(maker.delta(index, {}, finish_reason=_BLOCKED))
                continue
            delta = delta_of(choice["message"])
            if self.scanner is not None:
                known = self._assembly.choices[index]
                for channel in known.texts:
                    rest = await self.policy.rest(scanned, known.text(channel)[self._given[channel] :])
                    delta.pop(channel, None)
                    if rest:
                        events.append(maker.delta(index, {channel: self.upstream.without_key(rest)}))
            more = {} if self.scanner is not None else {"logprobs": choice["logprobs"]}
            if delta:
                events.append(maker.delta(index, delta, **more))
            told = {name: value for name, value in choice.items() if name not in ("index", "message", "logprobs")}
            events.append(maker.delta(index, {}, **told))
        return self._finished(body, events)

    def _finished(self, body: Mapping[str, Any], events: list[Event]) -> list[Event]:
        """Add the usage, if the client wants it, and the verdict to the last chunk."""
        sent, made = self._tokens()
        tokens = {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
        usage = body.get("usage") or tokens
        events += self._chunks().usage(usage)
        known = {*self._around, "object", "choices", "usage"}
        late = {name: value for name, value in body.items() if name not in known}
        shield = self.summary()
        told = {
            "verdict": str(shield.verdict),
            "score": shield.score,
            "action": shield.action,
            "request_id": self.exchange.context.request_id,
        }
        return [*events[:-1], {**late, **(events[-1] or {}), "shield": told}]

    def _reply(self) -> Reply:
        """Return the completion so far."""
        return Reply(self._assembly.body(), self.upstream.headers, *self._tokens(), has_key=self.upstream.has_key)

    def _tokens(self) -> tuple[int, int]:
        """Return the tokens of prompt and completion that the upstream counted, else estimates of what went by."""
        sent, made = counted(self._assembly.usage or {})
        if sent is None:
            leaves = self.exchange.request.leaves.texts
            sent = sum(count_tokens(leaf.text) for leaf in leaves if leaf.kind is LeafKind.CONTENT and not leaf.view)
        if made is None:
            choices = self._assembly.choices.values()
            made = sum(count_tokens(text) for choice in choices for text in strings(choice.message()))
        return sent, made

    def _note_answer(self) -> None:
        """Note what came of the upstream and how long it took."""
        exchange = self.exchange
        exchange.upstream_seconds = self.clock.monotonic_seconds() - self.sent_seconds
        exchange.answer = self.answer(exchange, self._reply(), self.by)

    async def _settle(self) -> None:
        self._is_settled = True
        await self.settle(self.exchange)

    async def _fail(self, error: GatewayError) -> None:
        """Record a chat that an error ends."""
        self.upstream.close()
        if self._is_settled:
            return
        self.exchange.error = error
        self._note_answer()
        await self._settle()
