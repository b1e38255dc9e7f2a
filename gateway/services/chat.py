"""Complete a chat: scan, forward, scan, record, answer, in this order. Knows no HTTP and no provider's protocol.

Nothing is forwarded before the prompt was scanned whole, and nothing is answered before the audit event is committed,
so that no end of the process undoes it. A caller who leaves in the middle is recorded as well. The record holds a hash
and a length of the texts, and the texts themselves only where the policy of the key says so.
"""

import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial

import anyio

from gateway.clock import Clock, Ids
from gateway.domain.access_list import Subject
from gateway.domain.audit import AuditEvent, Outcome
from gateway.domain.budgets import glob
from gateway.domain.captures import CapturedText
from gateway.domain.policies import ShieldPolicy
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.risk_acceptances import Source
from gateway.domain.traffic import TrafficRow
from gateway.errors import AccessDenied, AuditUnavailable, ContentPolicyViolation, GatewayError
from gateway.llm.base import Dialect, Leaves, Prompt, Reply, UpstreamRefused
from gateway.metrics import Metrics
from gateway.records import record
from gateway.services.access_guard import AccessGuard
from gateway.services.agent_discovery import AgentDiscovery, Sighting
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.services.captures import Captures
from gateway.services.chat_alerts import raise_alerts
from gateway.services.chat_bill import ChatBill
from gateway.services.chat_guard import Accept, ChatGuard
from gateway.services.chat_metrics import CompletionMeter
from gateway.services.chat_turn import ShieldSummary, Turn
from gateway.services.policies import Policies
from gateway.services.risk_acceptances import RiskAcceptances
from gateway.services.routing import Candidate, Routing
from gateway.services.scanner import TextScanner
from gateway.store.database import Transaction
from gateway.store.store import Store

SETTLE_SECONDS = 10.0
MAX_GUARDS = 1_024


@record
class ReadPrompt:
    """A checked request and every text of it."""

    prompt: Prompt
    leaves: Leaves


@record
class ChatAnswer:
    """A completion for the client, and what is told of the shield beside it."""

    reply: Reply
    shield: ShieldSummary


@record
class _Besides:
    """What a turn leaves besides its row and its event."""

    has_alerts: bool
    captured: Sequence[CapturedText]
    sighting: Sighting | None


class PromptBlocked(ContentPolicyViolation):
    """The shield blocked the prompt. Nothing was sent upstream."""

    def __init__(self, shield: ShieldSummary) -> None:
        super().__init__(
            f"The shield blocked the prompt (score {shield.score} of 100). "
            "An operator finds the reasons in the audit log by this request_id."
        )
        self.shield = shield


class Chat:
    """The chat of this gateway.

    routing: where the prompts go. bill: who pays for them. syncs_always: whether a plain chat, too, is on the disk
    before it is answered.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        metrics: Metrics,
        audit: Audit,
        alerts: Alerts,
        scanner: TextScanner,
        dialect: Dialect,
        policy: ShieldPolicy,
        routing: Routing,
        bill: ChatBill,
        acceptances: RiskAcceptances,
        access: AccessGuard | None = None,
        policies: Policies | None = None,
        agents: AgentDiscovery | None = None,
        syncs_always: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._metrics = metrics
        self._meter = CompletionMeter(metrics)
        self._audit = audit
        self._alerts = alerts
        self._dialect = dialect
        self._scanner = scanner
        self._policy = policy
        self._policies = policies
        self._agents = agents
        self._syncs_always = syncs_always
        self._captures = Captures(scanner.scan)
        self._guard = ChatGuard(scanner, dialect, policy, captures=self._captures)
        self._guards: dict[str, ChatGuard] = {}
        self._routing = routing
        self._bill = bill
        self._acceptances = acceptances
        self._access = access or AccessGuard(store=store, clock=clock)
        self._generation = -1
        self._has_blocked = self._has_accepted = self._has_budgets = True

    def read(self, body: object, raw: bytes | None = None) -> ReadPrompt:
        """Check the parsed JSON of a request and find its texts. Pure: a large one is best read in a thread.

        raw: the strict JSON that `body` was read from. It goes to the model as it came, unless something is changed.

        Raises:
            InvalidRequest, UnsupportedValue, BodyTooLarge: the request; nothing was recorded.
        """
        return ReadPrompt(*self._dialect.read(body, raw))

    def may_be_left(self) -> bool:
        """Tell whether a chat that is under way may be cancelled, since its caller has left.

        No budget has to know what it costs. For who has begun: before the first one, nobody has looked for budgets.
        """
        return not self._has_budgets

    async def complete(self, principal: Principal, request: ReadPrompt, context: RequestContext) -> ChatAnswer:
        """Complete one chat.

        Raises:
            NotFound: no provider serves the model. AccessDenied: the key may not use it, or the agent is blocked.
            OverBudget: a budget has less left than this may cost; nothing was sent.
            PromptBlocked: the shield's verdict; nothing was sent.
            EntryDenied: the access list refuses the prompt, and nothing was sent, or what came back.
            ShieldUnavailable: the shield failed; nothing was sent, or nothing is given out.
            UpstreamUnavailable, UpstreamRefused: no completion came back.
            AuditUnavailable: the event could not be written, so there is no answer.
        """
        turn = Turn(principal, context, request.prompt, self._clock.monotonic_seconds())
        try:
            reply = await self._answered(turn, request)
        except GatewayError as error:
            turn.fail(error)
            await self._settle(turn)
            raise
        except anyio.get_cancelled_exc_class():
            turn.fail(None)
            with anyio.move_on_after(SETTLE_SECONDS, shield=True), contextlib.suppress(AuditUnavailable):
                await self._settle(turn)
            raise
        await self._settle(turn)
        return ChatAnswer(reply, turn.summary(self._clock.monotonic_seconds()))

    async def _answered(self, turn: Turn, request: ReadPrompt) -> Reply:
        """Return what may be given out. Raises what `complete` does, but for the last."""
        now_seconds = self._clock.monotonic_seconds
        generation = self._store.generation.value()
        if generation != self._generation:
            self._look_again(generation)
        if self._has_blocked and self._agents is not None:
            self._agents.check(turn.claimed_agent())
        guard = self._guard_of(turn)
        candidates = self._candidates(turn, generation)
        if self._has_budgets:
            await self._bill.reserve(turn, candidates, len(request.leaves.unscanned))
        inbound = turn.inbound = await guard.inbound(request.leaves, request.prompt)
        if inbound.action == "blocked":
            raise PromptBlocked(turn.summary(now_seconds()))
        if self._access.rules is not None:
            await self._check_prompt(turn, request.leaves)
        begun_seconds = now_seconds()
        outcome = "failed"
        turn.is_sent = True
        try:
            sent = inbound.masked or turn.prompt
            reply, by = await self._routing.complete(sent, candidates, begun_seconds, turn.context.traceparent)
            outcome = "ok"
        except UpstreamRefused as error:
            outcome = "refused"
            turn.has_key = error.has_key
            raise await guard.refusal(error) from error
        finally:
            turn.upstream_seconds = now_seconds() - begun_seconds
            if not candidates[0].is_echo:
                self._meter.upstream(turn.upstream_seconds, outcome)
        turn.reply, turn.has_key = reply, reply.has_key
        self._bill.answered(turn, reply, by)
        if self._access.rules is not None:
            await self._access.check_reply(turn.principal, reply, self._dialect)
        turn.outbound = await guard.outbound(reply)
        return turn.outbound.changed or reply

    def _look_again(self, generation: int) -> None:
        """Find out what there is to heed: once for each generation, which was read before."""
        self._has_blocked = self._agents is not None and self._agents.any_blocked()
        self._has_accepted = self._acceptances.any()
        self._has_budgets = self._bill.is_any()
        self._generation = generation

    async def models(self, principal: Principal) -> Sequence[Mapping[str, object]]:
        """Return the models that a caller may use, as OpenAI model objects.

        Raises:
            UpstreamUnavailable: no provider told.
        """
        access = self._access
        if access.rules is None:
            found = await self._routing.models()
        else:
            found = await self._routing.models(allowed=lambda name: access.may_use(principal, Subject.PROVIDER, name))
            found = tuple(model for model in found if access.may_use(principal, Subject.MODEL, str(model["id"])))
        return await self._guard.models(tuple(model for model in found if _may_use(principal, str(model["id"]))))

    def _candidates(self, turn: Turn, generation: int) -> Sequence[Candidate]:
        """Return who may answer, the first as the turn's provider until another did. generation: of now.

        Raises:
            NotFound: no provider serves the model. EntryDenied: the access list refuses all that do.
            AccessDenied: the key may not use the model.
        """
        principal, model = turn.principal, turn.prompt.model
        if principal.models and not _may_use(principal, model):
            raise AccessDenied("The API key may not use this model.", param="model")
        candidates: Sequence[Candidate] = self._routing.candidates(model, generation)
        turn.provider = candidates[0].name
        if self._access.rules is not None:
            candidates = self._access.usable(principal, candidates)
            turn.provider = candidates[0].name
        return candidates

    def _guard_of(self, turn: Turn) -> ChatGuard:
        principal, policy = turn.principal, self._policy
        if principal.policy is not None and self._policies is not None:
            policy = self._policies.of(principal, policy)
        if self._has_accepted:
            source = Source(turn.claimed_agent(), principal.lineage)
            return self._make_guard(policy, principal, self._acceptances.accept_for(source))
        guard = self._guards.get(principal.id)
        if guard is None or guard.policy is not policy:
            guard = self._make_guard(policy, principal)
            if len(self._guards) >= MAX_GUARDS:
                self._guards.clear()
            self._guards[principal.id] = guard
        return guard

    def _make_guard(self, policy: ShieldPolicy, principal: Principal, accept: Accept | None = None) -> ChatGuard:
        return ChatGuard(
            self._scanner,
            self._dialect,
            policy,
            captures=self._captures,
            accept=accept,
            aside=self._guard.aside,
            owner=principal.id,
        )

    async def _check_prompt(self, turn: Turn, leaves: Leaves) -> None:
        agent = turn.agent() or turn.principal.name
        await self._access.check_prompt(turn.principal, turn.prompt, leaves, agent=agent)

    def _settle(self, turn: Turn) -> Awaitable[None]:
        """Record the audit event, the alerts and the traffic row of a turn together, whether or not anyone still waits.

        Raises:
            AuditUnavailable: nothing was written.
        """
        now_at, now_seconds = self._clock.now_at(), self._clock.monotonic_seconds()
        row = turn.traffic_row(self._ids.new("trf"), occurred_at=now_at, now_seconds=now_seconds)
        self._meter.request(row, turn)
        action, reason = "chat_completed", turn.failure
        outcome: Outcome = "success"
        if row.action == "blocked":
            action, outcome, reason = "chat_blocked", "refused", "content_policy_violation"
        elif reason is not None:
            action, outcome = "chat_failed", "refused" if turn.is_refused() else "failed"
        event = self._audit.event(
            action,
            source="chat",
            outcome=outcome,
            reason=reason,
            principal=turn.principal,
            request=turn.context,
            resource_type="model",
            resource_id=row.model,
            details=turn.audit_details(row),
            occurred_at=now_at,
            agent=row.agent,
            direction=row.direction,
        )
        besides = self._besides(turn, row)
        is_plain = besides is None and outcome == "success" and not self._syncs_always
        is_plain = is_plain and self._bill.is_settled(turn, row)
        return self._audit.commit(partial(self._record, turn, row, event, besides), is_plain=is_plain)

    def _besides(self, turn: Turn, row: TrafficRow) -> "_Besides | None":
        """Return what there is to write of a turn but for its row and event; of most there is nothing."""
        has_alerts = bool(row.detections) or turn.failure is not None
        captured, is_news = turn.captured(), self._is_news(turn, row.agent or "", row.occurred_at)
        if not has_alerts and not captured and not is_news:
            return None
        return _Besides(has_alerts, captured, turn.sighting(row) if is_news else None)

    def _is_news(self, turn: Turn, agent: str, at: int) -> bool:
        """Tell whether there may be something to write of the agent of a turn."""
        agents = self._agents
        return agents is not None and (turn.prompt.offers_tools or agents.is_news(agent, at))

    def _record(
        self, turn: Turn, row: TrafficRow, event: AuditEvent, besides: "_Besides | None", tx: Transaction
    ) -> None:
        """Write a turn in `tx`."""
        self._audit.append(tx, event)
        if besides is not None and besides.has_alerts:
            raise_alerts(self._alerts, tx, turn, row)
        self._bill.settle(tx, turn, row)
        self._store.traffic.insert(tx, row)
        if besides is None:
            return
        for text in besides.captured:
            self._store.captures.insert(tx, row, text)
        if self._agents is not None and besides.sighting is not None:
            self._agents.seen(tx, besides.sighting, context=turn.context, principal=turn.principal)


def _may_use(principal: Principal, model: str) -> bool:
    """Tell whether the key's own list of models has this one; a key without a list may use all."""
    return not principal.models or any(glob(name).match(model.casefold()) for name in principal.models)
