"""What is known of one completion, step by step, and the records made of it. Waits for nothing and writes nothing."""

from collections.abc import Mapping, Sequence

from gateway.domain.agents import AgentSource
from gateway.domain.budgets import Usage
from gateway.domain.captures import CapturedText
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.traffic import TrafficRow
from gateway.errors import GatewayError
from gateway.llm.base import Prompt, Reply, UpstreamRefused
from gateway.llm.tools import listed_tools
from gateway.records import record
from gateway.services.access_guard import EntryDenied
from gateway.services.agent_discovery import AgentBlocked, Sighting
from gateway.services.audit import MAX_AGENT_CHARS
from gateway.services.chat_guard import Action, ScannedPrompt, ScannedReply
from gateway.services.findings import described
from gateway.services.spending import Held, OverBudget
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict

OPERATION = "chat.completions"
CLIENT_GONE = "client_gone"
_REFUSALS = ("access_denied", "budget_exceeded")
# What a dashboard shows beside a request that got no completion; 499 is the usual word for a client that left.
_STATUS_BY_CODE: Mapping[str, int] = {
    "content_policy_violation": 400,
    "invalid_request": 400,
    "access_denied": 403,
    "not_found": 404,
    "budget_exceeded": 429,
    "upstream_unavailable": 502,
    "overloaded": 503,
    "shield_unavailable": 503,
    CLIENT_GONE: 499,
}

PROVIDER_KEY_RULE = "provider-key"
_OWN_KEY = Detection(
    rule=PROVIDER_KEY_RULE,
    name="Key of the provider",
    category="secret",
    severity=Severity.CRITICAL,
    description="The provider repeated the API key that the gateway sends to it. It was masked.",
    matched="",
    confidence=1.0,
    score=0,
    count=1,
    start=0,
    end=0,
    view="text",
)
_NOT_KEPT = (None, None)
_UNSCANNED = ScanResult(Verdict.ALLOW, 0)


@record
class ShieldSummary:
    """What is told of the shield beside an answer. score: 0 to 100. overhead_ms: the time that was not the model's."""

    verdict: Verdict
    score: int
    action: Action
    overhead_ms: float


class Turn:
    """One completion on its way. Not frozen: each step fills in its part, and whatever happens, all of it is recorded.

    provider: the name of who answered or would have; None if nobody serves the model.
    started_seconds: monotonic. failure: why there is no completion, as a code; status: what the client is told.
    denied_by: id of the entry of the access list that refused, or of the agent that is blocked, whose name is
    blocked_agent.
    hold_id, held, worst: what was taken from budgets before the prompt left. used: what it took in the end; None when
    nothing was, or nobody counted. payees: ids and names of the providers who may be paid. is_sent: the prompt left.
    has_key: the provider repeated the key that it was sent, which was masked.
    """

    __slots__ = (
        "_outcome", "_told_inbound", "_told_outbound", "blocked_agent", "context", "denied_by", "failure", "has_key",
        "held", "hold_id", "inbound", "is_sent", "outbound", "over_budget", "payees", "principal", "prompt", "provider",
        "reply", "started_seconds", "status", "upstream_seconds", "used", "worst",
    )  # fmt: skip

    def __init__(self, principal: Principal, context: RequestContext, prompt: Prompt, started_seconds: float) -> None:
        self.principal = principal
        self.context = context
        self.prompt = prompt
        self.started_seconds = started_seconds
        self.provider: str | None = None
        self.upstream_seconds = 0.0
        self.inbound: ScannedPrompt | None = None
        self.reply: Reply | None = None
        self.outbound: ScannedReply | None = None
        self.failure: str | None = None
        self.status = 200
        self.denied_by: str | None = None
        self.blocked_agent: str | None = None
        self.hold_id: str | None = None
        self.held: tuple[Held, ...] = ()
        self.worst: Usage | None = None
        self.used: Usage | None = None
        self.payees: frozenset[str] = frozenset()
        self.over_budget: OverBudget | None = None
        self.is_sent = False
        self.has_key = False
        self._outcome: tuple[ScanResult, Action] | None = None
        self._told_inbound: list[Mapping[str, object]] | None = None
        self._told_outbound: list[Mapping[str, object]] | None = None

    def fail(self, error: GatewayError | None) -> None:
        """Note why there is no completion. None: the client left."""
        if isinstance(error, EntryDenied):
            self.denied_by = error.entry.id
        if isinstance(error, AgentBlocked):
            self.blocked_agent, self.denied_by = error.name, error.agent_id
        if isinstance(error, OverBudget):
            self.over_budget = error
        if error is None and self.is_sent and self.used is None:
            # Nobody will ever know how much of it was made, so that it counts as all that it may have been.
            self.used = self.worst
        self.failure = CLIENT_GONE if error is None else error.code
        self.status = error.status if isinstance(error, UpstreamRefused) else _STATUS_BY_CODE.get(self.failure, 500)

    def is_refused(self) -> bool:
        """Tell whether a rule of this gateway, and no failure, is why there is no completion."""
        return self.failure in _REFUSALS

    def summary(self, now_seconds: float) -> ShieldSummary:
        """Say what was found and done: the graver result, and what was done to the reply, else to the prompt.

        Prompt and reply are judged each by itself, so that what is told of both agrees with what was done.
        """
        result, action = self._outcome or self._look()
        seconds = now_seconds - self.started_seconds - self.upstream_seconds
        return ShieldSummary(result.verdict, result.score, action, seconds * 1000 if seconds > 0 else 0.0)

    def _look(self) -> tuple[ScanResult, Action]:
        """Return result and action as they are now; once the reply was scanned, that stays so."""
        inbound, outbound = self.inbound, self.outbound
        if outbound is None:
            return (_UNSCANNED, "none") if inbound is None else (inbound.result, inbound.action)
        if inbound is None:
            return outbound.result, outbound.action
        result = inbound.result if inbound.result.score > outbound.result.score else outbound.result
        self._outcome = result, inbound.action if outbound.action == "none" else outbound.action
        return self._outcome

    def direction(self) -> str | None:
        """Return in which direction something was found, the graver if in both, or None."""
        steps = {Direction.INBOUND: self.inbound, Direction.OUTBOUND: self.outbound}
        found = {way: step.result.score for way, step in steps.items() if step and step.result.detections}
        return max(found, key=found.__getitem__) if found else None

    def agent(self) -> str | None:
        """Return what the caller says of itself: its header, else the request's `user`, unless that holds a secret."""
        if self.blocked_agent is not None:
            return self.blocked_agent
        named = self.context.agent
        if not named:
            user = self.prompt.user
            named = None if user is None else self._unless_found("user", user)
        return named[:MAX_AGENT_CHARS] if named else None

    def claimed_agent(self) -> str:
        """Return who the caller says to be, as `agent` does, else the key's name. Unchecked: never to be stored."""
        named = self.context.agent or self.prompt.user or self.principal.name
        return named[:MAX_AGENT_CHARS]

    def sighting(self, row: TrafficRow) -> Sighting:
        """Return who was seen in this completion, and with which tools, unless something was found in their names."""
        inbound = self.inbound
        tools: tuple[str, ...] = ()
        if inbound is not None and self.prompt.offers_tools:
            if not any("tool" in (one.place or "") for one in inbound.result.detections):
                tools = tuple(listed_tools(self.prompt.body))
        return Sighting(
            name=row.agent or "",
            source=AgentSource.TRAFFIC,
            occurred_at=row.occurred_at,
            model=row.model,
            tools=tools,
            blocked=self.blocked_agent is not None,
        )

    def traffic_row(self, id: str, *, occurred_at: int, now_seconds: float) -> TrafficRow:
        """Return the row that stands for this completion."""
        inbound, outbound, reply, used, principal = self.inbound, self.outbound, self.reply, self.used, self.principal
        result, action = self._outcome or self._look()
        elapsed_us = round((now_seconds - self.started_seconds) * 1_000_000)
        overhead_us = max(0, elapsed_us - round(self.upstream_seconds * 1_000_000))
        detections: tuple[Mapping[str, object], ...] = ()
        model: str | None = None
        if inbound is not None:
            model = self.prompt.model
            if inbound.result.detections:
                model = self._unless_found("model", model)
                detections = tuple(self.told_inbound())
        if outbound is not None and outbound.result.detections:
            detections += tuple(self.told_outbound())
        if self.has_key:
            detections += tuple(described((_OWN_KEY,), Direction.OUTBOUND))
        sha256, chars = (inbound.text_sha256, inbound.text_chars) if inbound else (None, 0)
        if result.detections and result.detections[0].sha256:
            sha256, chars = result.detections[0].sha256, result.detections[0].chars
        return TrafficRow(  # by position, since some twenty names take twice as long
            id,
            occurred_at,
            self.context.request_id,
            OPERATION,
            principal.id,
            str(result.verdict),
            result.score,
            principal.key_prefix,
            self.agent() or principal.name,
            model,
            self.provider,
            self.direction(),
            action,
            self.status,
            detections,
            sha256,
            chars,
            reply.prompt_tokens if reply else None,
            reply.completion_tokens if reply else None,
            used.microusd if used else None,
            elapsed_us,
            overhead_us,
        )

    def captured(self) -> Sequence[CapturedText]:
        """Return what is kept of the texts of prompt and reply: nothing, unless the policy says so."""
        kept = (self.inbound and self.inbound.captured, self.outbound and self.outbound.captured)
        return () if kept == _NOT_KEPT else [text for text in kept if text]

    def told_inbound(self) -> Sequence[Mapping[str, object]]:
        """Return what is kept of what was found in the prompt, once it was scanned: told once for all who keep it."""
        if self._told_inbound is None:
            self._told_inbound = described(self.inbound.result.detections, Direction.INBOUND) if self.inbound else []
        return self._told_inbound

    def told_outbound(self) -> Sequence[Mapping[str, object]]:
        """Return the same of the reply."""
        if self._told_outbound is None:
            self._told_outbound = (
                described(self.outbound.result.detections, Direction.OUTBOUND) if self.outbound else []
            )
        return self._told_outbound

    def audit_details(self, row: TrafficRow) -> Mapping[str, object]:
        """Return what the audit keeps beside who and when: verdicts and counts, and never a text."""
        details: dict[str, object] = {
            "provider": row.provider,
            "status": row.status,
            "verdict": row.verdict,
            "score": row.score,
            "action": row.action,
            "sha256": row.text_sha256,
            "chars": row.text_chars,
            "prompt_tokens": row.prompt_tokens,
            "reply_tokens": row.reply_tokens,
            "cost_microusd": row.cost_microusd,
            "elapsed_us": row.elapsed_us,
            "overhead_us": row.overhead_us,
        }
        if self.principal.policy is not None:
            details["policy"] = self.principal.policy
        if self.has_key:
            details["provider_key_masked"] = True
        if self.denied_by is not None:
            details["access_entry"] = self.denied_by
        if self.over_budget is not None:
            details["budget"] = self.over_budget.standing.budget.id
        if (inbound := self.inbound) is not None:
            details["inbound"] = _step_details(inbound.action, inbound.result, self.told_inbound())
        if (outbound := self.outbound) is not None:
            details["outbound"] = _step_details(outbound.action, outbound.result, self.told_outbound())
        return details

    def _unless_found(self, place: str, text: str) -> str | None:
        if self.inbound is None:
            return None
        found = self.inbound.result.detections
        return None if found and any(one.place == place for one in found) else text


def _step_details(action: Action, result: ScanResult, told: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    return {"verdict": str(result.verdict), "score": result.score, "action": action, "detections": told}
