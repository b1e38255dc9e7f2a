"""Complete a chat: admit, reserve, scan, send, scan, settle. Knows no HTTP and no provider's protocol.

Nothing is sent before the whole prompt was scanned, and nothing is answered before the audit event is committed, so
that no crash undoes it. A chat whose client leaves is recorded as well. The record holds a hash and a length of the
texts, and the texts themselves only where the policy of the key says so.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import anyio

from gateway.domain.access_list import Subject
from gateway.domain.audit import AuditEvent, Outcome
from gateway.domain.budgets import Spender
from gateway.domain.globs import glob
from gateway.domain.policies import OutboundStream, ShieldPolicy
from gateway.domain.principals import Caller, Principal
from gateway.domain.risk_acceptances import Source
from gateway.domain.traffic import TrafficRow
from gateway.errors import AccessDenied, AuditUnavailable, BudgetExceeded, ContentPolicyViolation, GatewayError
from gateway.llm.base import ChatRequest, Reply, UpstreamRefused
from gateway.llm.openai import OpenAiDialect
from gateway.offload import ThreadOffload
from gateway.services.access_guard import AccessGuard
from gateway.services.agent_discovery import AgentDiscovery
from gateway.services.alerts import Alerts
from gateway.services.captures import Captures
from gateway.services.chat_costs import ChatCosts
from gateway.services.chat_policy import ChatPolicy
from gateway.services.chat_record import (
    Answer,
    ChatExchange,
    ShieldSummary,
    audit_details,
    count_chat,
    raise_alerts,
    sighting,
    traffic_row,
)
from gateway.services.chat_stream import ChatStream, scanner_for
from gateway.services.core import Core, Service
from gateway.services.detector_calls import DetectorCalls
from gateway.services.policies import Policies
from gateway.services.risk_acceptances import RiskAcceptances
from gateway.services.routing import ProviderConnection, Routing
from gateway.services.scanner import TextScanner
from gateway.services.spending import OverBudget, Reservation, Spending
from gateway.store.database import Transaction

T = TypeVar("T")
SETTLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A completion for the client, and what it reads about the shield."""

    reply: Reply
    shield: ShieldSummary


class PromptBlocked(ContentPolicyViolation):
    """The shield blocked the prompt. Nothing was sent upstream."""

    def __init__(self, shield: ShieldSummary, *, is_trial: bool = False) -> None:
        reasons = "An operator finds the reasons in the audit log by this request_id."
        if is_trial:
            reasons = "Scan the text as the same key or policy to see the reasons: a trial is not recorded."
        super().__init__(f"The shield blocked the prompt (score {shield.score} of 100). {reasons}")
        self.shield = shield


class Chat(Service):
    """The chat of this gateway. Its `dialect` reads requests.

    detectors: None without any. syncs_always: whether a plain chat, too, is on the disk before it is answered.
    """

    alerts: Alerts
    scanner: TextScanner
    dialect: OpenAiDialect
    policy: ShieldPolicy
    routing: Routing
    costs: ChatCosts
    spending: Spending
    acceptances: RiskAcceptances
    access: AccessGuard
    policies: Policies
    agents: AgentDiscovery
    detectors: DetectorCalls | None = None
    syncs_always: bool = False

    def __post_init__(self, core: Core) -> None:
        super().__post_init__(core)
        self.policy_of = partial(
            ChatPolicy,
            scanner=self.scanner,
            detectors=self.detectors,
            dialect=self.dialect,
            captures=Captures(self.scanner.scan, self.clock),
            offload=ThreadOffload(),
        )
        self._has_budgets = True

    def may_be_left(self) -> bool:
        """Tell whether a chat may be cancelled when its client leaves: no budget has to know its final cost."""
        return not self._has_budgets

    async def complete(self, caller: Caller, request: ChatRequest, *, tried_by: Principal | None = None) -> ChatAnswer:
        """Complete one chat. tried_by: the user who tries it as `principal`; only costs and who it was are recorded.

        Raises:
            NotFound: no provider serves the model. AccessDenied: the key may not use it, or the agent is blocked.
            OverBudget: a budget has less left than this may cost; nothing was sent.
            PromptBlocked: the shield's verdict; nothing was sent.
            EntryDenied: the access list refuses the prompt, and nothing was sent, or what came back.
            ShieldUnavailable: the shield failed; nothing was sent, or nothing is given out.
            UpstreamUnavailable, UpstreamRefused: no completion came back.
            AuditUnavailable: the event could not be written, so there is no answer.
        """
        exchange = ChatExchange(caller, request, self.clock.monotonic_seconds(), tried_by=tried_by)
        async with self._recorded(exchange):
            policy = await self._admitted(exchange)
            reply, by = await self._send(exchange, policy, self.routing.complete)
            exchange.answer = self.answer(exchange, reply, by)
            await self.access.check_reply(caller.principal, exchange.reply(), self.dialect)
            exchange.outbound = await policy.outbound(exchange.reply())
        await self.settle(exchange)
        return ChatAnswer(exchange.reply(), exchange.summary(self.clock.monotonic_seconds()))

    async def stream(self, caller: Caller, request: ChatRequest, *, tried_by: Principal | None = None) -> ChatStream:
        """Begin a chat whose completion comes in pieces. The caller closes it. tried_by: as of `complete`.

        Raises as `complete`, as long as no piece was given out.
        """
        exchange = ChatExchange(caller, request, self.clock.monotonic_seconds(), tried_by=tried_by)
        async with self._recorded(exchange):
            policy = await self._admitted(exchange)
            scanner = await scanner_for(policy, request.prompt)
            exchange.outbound_stream = OutboundStream.WHOLE if scanner is None else OutboundStream.HELD
            sent_seconds = self.clock.monotonic_seconds()
            upstream, by = await self._send(exchange, policy, self.routing.stream)
        stream = ChatStream(
            exchange=exchange,
            policy=policy,
            upstream=upstream,
            by=by,
            scanner=scanner,
            access=self.access,
            routing=self.routing,
            clock=self.clock,
            settle=self.settle,
            settle_left=self.settle_left,
            answer=self.answer,
            sent_seconds=sent_seconds,
        )
        try:
            await stream.begin()
        except BaseException:
            await stream.aclose()
            raise
        return stream

    @asynccontextmanager
    async def _recorded(self, exchange: ChatExchange) -> AsyncIterator[None]:
        """Record a chat that an error ends, or that its client leaves."""
        try:
            yield
        except GatewayError as error:
            exchange.error = error
            await self.settle(exchange)
            raise
        except anyio.get_cancelled_exc_class():
            await self.settle_left(exchange)
            raise

    async def _admitted(self, exchange: ChatExchange) -> ChatPolicy:
        """Do everything that comes before the prompt is sent; return the policy for this chat."""
        request, principal = exchange.request, exchange.caller.principal
        policy = self._admit(exchange)
        exchange.candidates = self.routing.candidates(request.prompt.model)
        exchange.candidates = self.access.usable(principal, exchange.candidates)
        await self._reserve(exchange)
        exchange.inbound = await policy.inbound(request)
        await self._check_prompt(exchange)
        return policy

    async def models(self, principal: Principal) -> Sequence[Mapping[str, object]]:
        """Return the models that a caller may use, as OpenAI model objects.

        Raises:
            UpstreamUnavailable: no provider listed any.
        """
        access = self.access
        found = await self.routing.models(allowed=lambda name: access.may_use(principal, Subject.PROVIDER, name))

        def is_usable(name: str) -> bool:
            return _may_use(principal, name) and access.may_use(principal, Subject.MODEL, name)

        return await self.policy_of(self.policy).models([model for model in found if is_usable(str(model["id"]))])

    def _admit(self, exchange: ChatExchange) -> ChatPolicy:
        """Refuse a blocked agent and a model that the key may not use; return the policy for this chat."""
        principal = exchange.caller.principal
        if self.agents.any_blocked():
            self.agents.check(exchange.claimed_agent())
        policy = self.policies.of(principal, self.policy)
        accept = self.acceptances.accept_for(Source(exchange.claimed_agent(), principal.lineage, principal.policy))
        if not _may_use(principal, exchange.request.prompt.model):
            raise AccessDenied("The API key may not use this model.", param="model")
        return self.policy_of(policy, accept=accept, owner=principal.id)

    async def _reserve(self, exchange: ChatExchange) -> None:
        """Take the most that the chat may cost from the budgets that cover it."""
        self._has_budgets = self.spending.any()
        if not self._has_budgets:
            return
        request, lineage = exchange.request, exchange.caller.principal.lineage
        spender = Spender(lineage, exchange.claimed_agent(), request.prompt.model, exchange.payees())
        budget_ids = self.spending.covering(spender)
        if budget_ids:
            worst = self.costs.worst(request.prompt, exchange.candidates, len(request.leaves.unscanned))
            # The exchange has it before the budgets do, so that it is released if the client leaves meanwhile.
            exchange.reservation = Reservation(self.ids.new("hold"), worst)
            await self.spending.reserve(exchange.reservation, budget_ids)

    async def _check_prompt(self, exchange: ChatExchange) -> None:
        """Refuse a prompt that the shield blocks or the access list refuses."""
        if exchange.inbound is not None and exchange.inbound.action == "blocked":
            summary = exchange.summary(self.clock.monotonic_seconds())
            raise PromptBlocked(summary, is_trial=exchange.tried_by is not None)
        request, agent = exchange.request, exchange.agent() or exchange.caller.principal.name
        await self.access.check_prompt(exchange.caller.principal, request.prompt, request.leaves, agent=agent)

    async def _send(self, exchange: ChatExchange, policy: ChatPolicy, send: Callable[..., Awaitable[T]]) -> T:
        """Send the prompt, masked if it has to be, and return what `send` does: the answer and who gave it."""
        prompt = (exchange.inbound and exchange.inbound.changed) or exchange.request.prompt
        sent_seconds = self.clock.monotonic_seconds()
        try:
            return await send(prompt, exchange.candidates, exchange.caller.context.traceparent)
        except UpstreamRefused as error:
            raise await policy.refusal(error) from error
        finally:
            exchange.upstream_seconds = self.clock.monotonic_seconds() - sent_seconds

    def answer(self, exchange: ChatExchange, reply: Reply, by: ProviderConnection) -> Answer:
        """Return a reply with what it took."""
        worst = exchange.reservation.worst if exchange.reservation else None
        return Answer(reply, by, self.costs.actual(exchange.request.prompt, reply, by, worst))

    async def settle_left(self, exchange: ChatExchange) -> None:
        """Record a chat whose client is gone, even in a task that was cancelled."""
        exchange.is_gone = True
        with anyio.move_on_after(SETTLE_SECONDS, shield=True), contextlib.suppress(AuditUnavailable):
            await self.settle(exchange)

    async def settle(self, exchange: ChatExchange) -> None:
        """Record audit event, alerts, costs and traffic row in one transaction, whether or not anyone still waits."""
        row = traffic_row(
            exchange, self.ids.new("trf"), occurred_at=self.clock.now_at(), now_seconds=self.clock.monotonic_seconds()
        )
        event = self._event(exchange, row)
        if exchange.tried_by is not None:
            await self._settle_trial(exchange, event)
            return
        count_chat(self.metrics, exchange, row)
        captured = [scan.captured for _, scan in exchange.scans() if scan.captured]
        unpriced = self.spending.unpriced(row.model, exchange.answer.used if exchange.answer else None)
        offers_tools = exchange.request.prompt.offers_tools
        is_news = offers_tools or self.agents.is_news(row.agent or "", row.occurred_at)

        def work(tx: Transaction) -> None:
            self.audit.append(tx, event)
            raise_alerts(self.alerts, tx, exchange, row)
            self._settle_costs(tx, exchange, unpriced, row.occurred_at)
            self.store.traffic.insert(tx, row)
            for text in captured:
                self.store.captures.add(tx, row, text)
            if is_news:
                self.agents.record_sighting(tx, sighting(exchange, row), exchange.caller)

        has_more = exchange.code or exchange.reservation or row.detections or captured or unpriced or is_news
        await self.audit.commit(work, is_plain=not has_more and not self.syncs_always)

    async def _settle_trial(self, exchange: ChatExchange, event: AuditEvent) -> None:
        """Record the costs of a trial, and who tried which model, without what was found or said."""
        tried = exchange.caller.principal
        trial = replace(
            event,
            action="chat_tried",
            details={
                "tried_key": tried.id if tried.kind == "key" else None,
                "tried_policy": tried.policy,
                **{name: event.details[name] for name in ("verdict", "score", "action")},
            },
        )

        def work(tx: Transaction) -> None:
            self.audit.append(tx, trial)
            self._settle_costs(tx, exchange, None, event.occurred_at)

        await self.audit.commit(work)

    def _settle_costs(self, tx: Transaction, exchange: ChatExchange, unpriced: str | None, occurred_at: int) -> None:
        if exchange.reservation is not None:
            self.spending.settle(tx, exchange.reservation, exchange.used, exchange.payees())
        if isinstance(exchange.error, OverBudget):
            self.spending.refused(tx, exchange.error)
        if unpriced is not None:
            self.spending.note_unpriced(tx, unpriced, occurred_at)

    def _event(self, exchange: ChatExchange, row: TrafficRow) -> AuditEvent:
        """Return the audit event of a chat."""
        action, reason = "chat_completed", exchange.code
        outcome: Outcome = "success"
        if row.action == "blocked":
            action, outcome, reason = "chat_blocked", "refused", ContentPolicyViolation.code
        elif reason is not None:
            is_refused = reason in (AccessDenied.code, BudgetExceeded.code)
            action, outcome = "chat_failed", "refused" if is_refused else "failed"
        return self.audit.event(
            action,
            source="chat",
            outcome=outcome,
            reason=reason,
            principal=exchange.tried_by or exchange.caller.principal,
            request=exchange.caller.context,
            resource_type="model",
            resource_id=row.model,
            details=audit_details(exchange, row),
            occurred_at=row.occurred_at,
            agent=row.agent,
            direction=row.direction,
        )


def _may_use(principal: Principal, model: str) -> bool:
    """Tell whether the key's own list of models has this one; a key without a list may use all."""
    return not principal.models or any(glob(name).match(model.casefold()) for name in principal.models)
