"""One chat whose completion comes in pieces: what may leave at once, and the verdict on the whole at its end.

The pieces are put together, and the whole is judged, masked and recorded like one that was not streamed. Before that,
only text leaves that can be no part of a match that blocks (`shield/stream`); tool calls, and all that is no text, wait
for the end. Where a policy or a request for several choices asks for it, everything waits.
"""

from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from gateway.clock import Clock
from gateway.domain.policies import OutboundStream
from gateway.errors import AccessDenied, GatewayError, UpstreamUnavailable
from gateway.llm.base import LeafKind, Prompt, Reply, ReplyStream, UpstreamFault
from gateway.llm.echo import count_tokens
from gateway.llm.openai_stream import ChatAssembly, ChatChunks, Event, Piece, counted
from gateway.services.access_guard import AccessGuard
from gateway.services.chat_policy import ChatPolicy
from gateway.services.chat_record import Answer, ChatExchange, ShieldSummary
from gateway.services.routing import ProviderConnection, Routing
from gateway.shield.stream import Released, StreamScanner

KEEP_ALIVE_SECONDS = 15.0
_BLOCKED = "content_filter"


async def scanner_for(policy: ChatPolicy, prompt: Prompt) -> StreamScanner | None:
    """Return what lets out the text of a reply; None if everything waits for its end.

    Raises:
        ShieldUnavailable: the shield failed.
    """
    is_whole = policy.policy.outbound_stream is OutboundStream.WHOLE or policy.dialect.has_many(prompt)
    is_whole = is_whole or (policy.detectors is not None and policy.detectors.has_veto())
    return None if is_whole else await policy.stream()


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
    access: AccessGuard
    routing: Routing
    clock: Clock
    settle: Callable[[ChatExchange], Awaitable[None]]
    settle_left: Callable[[ChatExchange], Awaitable[None]]
    answer: Callable[[ChatExchange, Reply, ProviderConnection], Answer]
    sent_seconds: float
    scanner: StreamScanner | None
    keep_alive_seconds: float = field(default_factory=lambda: KEEP_ALIVE_SECONDS)
    _first: list[Event | None] = field(default_factory=list, init=False)
    _is_settled: bool = field(default=False, init=False)
    _is_over: bool = field(default=False, init=False)
    _was_judged: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._assembly = ChatAssembly(self.policy.dialect.max_reply_chars)
        self._made: ChatChunks | None = None  # once the first chunk came
        self._around: Mapping[str, Any] = {}
        # What was read and is held: channels and numbers of characters; None is a line break between two channels.
        self._held: deque[tuple[str | None, int]] = deque()
        self._channel: str | None = None  # of the last piece
        self._given: Counter[str] = Counter()  # characters of each channel that have left
        self._said: dict[str, list[str]] = {}  # as what they have left
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

    async def __anext__(self) -> Event | None:
        """Return the next chunk, or None: nothing may leave yet, and the client should hear of the stream.

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

    async def _run(self) -> AsyncGenerator[Event | None, None]:
        exchange = self.exchange
        try:
            for first in await self._first_events():
                yield first
            while not self._is_over and exchange.outbound is None:
                for event in await self._next_events():
                    yield event
                if self._is_to_judge():
                    self._was_judged = True
                    scanned = await self.policy.outbound(self._reply(), is_whole=False)
                    exchange.outbound = scanned if scanned.action == "blocked" else None
            self.upstream.close()
            self._note_answer()
            if exchange.outbound is None:
                if not self._assembly.is_complete:
                    raise UpstreamFault("The model gateway broke off its answer.", detail="its stream has no end")
                await self.access.check_reply(exchange.caller.principal, self._reply(), self.policy.dialect)
                exchange.outbound = await self.policy.outbound(self._reply())
            last = await self._ending()
            await self._settle()
            for chunk in last:
                yield chunk
        except GatewayError as error:
            if isinstance(error, UpstreamUnavailable):
                self.routing.broke_off(self.by, error)
            await self._fail(error)
            if not isinstance(error, AccessDenied) or self._made is None:
                raise
            for chunk in self._with_verdict(self._made, [self._made.block(0)], {}):
                yield chunk

    def _is_to_judge(self) -> bool:
        """Tell whether something was found that may block the reply before its end."""
        return self.scanner is not None and self.scanner.is_stopped and not self._was_judged

    async def _first_events(self) -> list[Event]:
        """Read the first chunk, and return the first of what the client gets."""
        chunk = await self.upstream.next()
        if chunk is None:
            self._is_over = True
            return []
        added = self._assembly.take(chunk)
        made = self._made = self._events_with(await self.policy.around(self._assembly.around))
        return [] if self.scanner is None else [made.delta(0, {"content": ""}), *self._let_out(added)]

    async def _next_events(self) -> Sequence[Event | None]:
        """Read until something may leave, the shield has to judge, or the client should hear of the stream."""
        with anyio.move_on_after(self.keep_alive_seconds) as self._waiting:
            while not self._is_to_judge():
                chunk = await self.upstream.next()
                if chunk is None:
                    self._is_over = True
                    return []
                if events := [*self._let_out(self._assembly.take(chunk))]:
                    return events
            return []
        return [None]

    def _let_out(self, added: Sequence[tuple[int, Piece]]) -> Iterator[Event]:
        """Read pieces of text; yield what may leave of all that is held."""
        for index, piece in added:
            # A second choice that nobody asked for waits for the end, as everything does then.
            if self.scanner is not None and index == 0 and len(self._assembly.choices) == 1:
                assert self._made is not None
                for channel, said in self._released(self.scanner, piece):
                    yield self._made.delta(0, {channel: self.upstream.without_key(said)})

    def _events_with(self, around: Mapping[str, Any]) -> ChatChunks:
        self._around = around
        return self.policy.dialect.events(self.exchange.request.prompt, around)

    def _released(self, scanner: StreamScanner, piece: Piece) -> Iterator[tuple[str, str]]:
        """Read a piece of text; yield what may leave, each part with its channel."""
        text, chars = piece.text, len(piece.text)
        if self._channel not in (None, piece.channel):
            self._held.append((None, 1))
            text = "\n" + text
        elif self._held:
            chars += self._held.pop()[1]
        self._channel = piece.channel
        self._held.append((piece.channel, chars))
        for released in scanner.feed(text):
            yield from self._by_channel(released)

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
                self._said.setdefault(channel, []).append(part)
                yield channel, part

    async def _ending(self) -> list[Event]:
        """Return the last chunks: what was held, the reasons for the end, the usage, and the verdict."""
        scanned, body, events = self.exchange.outbound, self.exchange.reply().body, list[Event]()
        assert scanned is not None
        made = self._made or self._events_with({})
        choices: Any = body["choices"]
        for choice in choices:
            index, sent = choice["index"], set[str]()
            if scanned.action == "blocked" and (self.scanner is not None or choice["finish_reason"] == _BLOCKED):
                events.append(made.block(index))
                continue
            for channel in self._assembly.channels(index) if self.scanner is not None else ():
                is_first = index == 0  # of another choice, which nobody asked for, nothing has left
                rest = await self.policy.rest(
                    scanned,
                    self._assembly.choices[index].text(channel),
                    given_chars=self._given[channel] if is_first else 0,
                    said="".join(self._said.get(channel, ())) if is_first else "",
                )
                if rest is None:
                    self.exchange.outbound = replace(scanned, action="blocked")
                    return self._with_verdict(made, [made.block(one["index"]) for one in choices], {})
                sent.add(channel)
                if rest:
                    events.append(made.delta(index, {channel: self.upstream.without_key(rest)}))
            events += made.rest(choice, but=sent, with_logprobs=self.scanner is None)
        return self._with_verdict(made, events, body)

    def _with_verdict(self, made: ChatChunks, events: list[Event], body: Mapping[str, Any]) -> list[Event]:
        """Add the usage, if the client wants it, and the verdict to the last chunk."""
        prompt_tokens, reply_tokens = self._tokens()
        tokens = {"prompt_tokens": prompt_tokens, "completion_tokens": reply_tokens}
        events += made.usage(body.get("usage") or {**tokens, "total_tokens": prompt_tokens + reply_tokens})
        known = {*self._around, "object", "choices", "usage"}
        late = {name: value for name, value in body.items() if name not in known}
        shield = self.summary()
        told = {
            "verdict": str(shield.verdict),
            "score": shield.score,
            "action": shield.action,
            "request_id": self.exchange.caller.context.request_id,
        }
        return [*events[:-1], {**late, **events[-1], "shield": told}]

    def _reply(self) -> Reply:
        """Return the completion so far."""
        return Reply(self._assembly.body(), self.upstream.headers, *self._tokens(), has_key=self.upstream.has_key)

    def _tokens(self) -> tuple[int, int]:
        """Return the tokens of prompt and completion that the upstream counted, else estimates of what went by."""
        prompt_tokens, reply_tokens = counted(self._assembly.usage or {})
        if prompt_tokens is None:
            leaves = self.exchange.request.leaves.texts
            texts = [leaf.text for leaf in leaves if leaf.kind is LeafKind.CONTENT and not leaf.view]
            prompt_tokens = sum(map(count_tokens, texts))
        if reply_tokens is None:
            reply_tokens = sum(map(count_tokens, self._assembly.texts()))
        return prompt_tokens, reply_tokens

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
