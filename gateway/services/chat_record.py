"""One chat on its way through the steps of `services/chat`; the traffic row, audit details, alerts and metrics of it.

Each step fills in its own part of the `ChatExchange`. So whatever ends a chat, the exchange holds all that is known of
it. Nothing here waits or decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gateway.domain.agents import AgentSource
from gateway.domain.alerts import AlertSource
from gateway.domain.budgets import Usage
from gateway.domain.policies import OutboundStream
from gateway.domain.principals import Caller, Principal
from gateway.domain.traffic import TrafficRow
from gateway.errors import AccessDenied, GatewayError, status_of
from gateway.llm.base import ChatRequest, Prompt, Reply, UpstreamRefused
from gateway.llm.tools import listed_tools
from gateway.metrics import Metrics
from gateway.services.access_guard import EntryDenied
from gateway.services.agent_discovery import AgentBlocked, Sighting
from gateway.services.alerts import Alerts
from gateway.services.audit import MAX_AGENT_CHARS
from gateway.services.chat_policy import Action, Scanned
from gateway.services.findings import described, text_at_fault
from gateway.services.routing import ProviderConnection
from gateway.services.spending import OverBudget, Reservation
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict
from gateway.store.database import Transaction

OPERATION = "chat.completions"
CLIENT_GONE = "client_gone"
PROVIDER_KEY_RULE = "provider-key"
_OWN_KEY = Detection(
    rule=PROVIDER_KEY_RULE,
    name="Key of the provider",
    category="secret",
    severity=Severity.CRITICAL,
    description="The provider repeated the API key that the gateway sends to it. It was masked.",
)
_AUDITED = (
    "provider status verdict score action prompt_tokens reply_tokens cost_microusd elapsed_us overhead_us".split()
)
"""What the audit keeps of the traffic row under the same name."""
_UNSCANNED = ScanResult(Verdict.ALLOW, 0)


@dataclass(frozen=True, slots=True)
class ShieldSummary:
    """What a client reads about the shield. score: 0 to 100. overhead_ms: the time that was not the model's."""

    verdict: Verdict
    score: int
    action: Action
    overhead_ms: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as it came. by: who answered. used: None if nobody counted."""

    reply: Reply
    by: ProviderConnection
    used: Usage | None


@dataclass(slots=True, eq=False)
class ChatExchange:
    """What is known of one chat.

    started_seconds: monotonic. candidates: who may answer, the best first. reservation: what is taken from budgets.
    upstream_seconds: the part of the time that was the model's; None while the prompt was not sent. error, is_gone: why
    there is no completion; the client may have left. outbound_stream: how a streamed reply leaves. tried_by: the user
    who tries a chat as the caller.
    """

    caller: Caller
    request: ChatRequest
    started_seconds: float
    candidates: Sequence[ProviderConnection] = ()
    reservation: Reservation | None = None
    inbound: Scanned[Prompt] | None = None
    upstream_seconds: float | None = None
    answer: Answer | None = None
    outbound: Scanned[Reply] | None = None
    error: GatewayError | None = None
    is_gone: bool = False
    outbound_stream: OutboundStream | None = None
    tried_by: Principal | None = None

    @property
    def code(self) -> str | None:
        """The code of the error, or ``client_gone``; None for a chat that was completed."""
        if self.is_gone:
            return CLIENT_GONE
        return None if self.error is None else self.error.code

    @property
    def status(self) -> int:
        """The status of the answer."""
        if isinstance(self.error, UpstreamRefused):
            return self.error.status
        if self.is_gone:
            return 499  # the usual status for a client that left
        return 200 if self.error is None else status_of(self.error.code)

    @property
    def denied_by(self) -> str | None:
        """The id of the entry of the access list that refused, or of the blocked agent."""
        if isinstance(self.error, EntryDenied):
            return self.error.entry.id
        return self.error.agent_id if isinstance(self.error, AgentBlocked) else None

    @property
    def used(self) -> Usage | None:
        """What the chat took. Of one whose client left, nobody knows, so that it counts as all that was held."""
        if self.answer is not None:
            return self.answer.used
        was_sent = self.upstream_seconds is not None
        return self.reservation.worst if self.is_gone and was_sent and self.reservation else None

    @property
    def has_key(self) -> bool:
        """Whether the provider repeated the key that the gateway sends to it."""
        if self.answer is not None:
            return self.answer.reply.has_key
        return isinstance(self.error, UpstreamRefused) and self.error.has_key

    def payees(self) -> frozenset[str]:
        """Return ids and names of the providers who may be paid: who answered, else all who may answer."""
        providers = self.candidates if self.answer is None else (self.answer.by,)
        return frozenset(word for one in providers for word in (one.id, one.name))

    def reply(self) -> Reply:
        """Return what the client gets of the answer: what the policy made of it, once it was scanned."""
        assert self.answer is not None
        return self.outbound.changed if self.outbound and self.outbound.changed else self.answer.reply

    def scans(self) -> list[tuple[Direction, Scanned[Any]]]:
        """Return what was scanned, the prompt first."""
        found = ((Direction.INBOUND, self.inbound), (Direction.OUTBOUND, self.outbound))
        return [(direction, scanned) for direction, scanned in found if scanned is not None]

    def outcome(self) -> tuple[ScanResult, Action]:
        """Return the worse result, and what was done to the reply, else to the prompt.

        Prompt and reply are judged each by itself, so that the verdict agrees with what was done.
        """
        result: ScanResult = _UNSCANNED
        action: Action = "none"
        for _, scanned in self.scans():
            result = result if result.score > scanned.result.score else scanned.result
            action = action if scanned.action == "none" else scanned.action
        return result, action

    def summary(self, now_seconds: float) -> ShieldSummary:
        """Return what a client reads about the shield."""
        result, action = self.outcome()
        seconds = now_seconds - self.started_seconds - (self.upstream_seconds or 0.0)
        return ShieldSummary(result.verdict, result.score, action, max(0.0, seconds * 1000))

    def claimed_agent(self) -> str:
        """Return the agent that the caller claims to be, else the key's name. Unchecked: never to be stored."""
        named = self.caller.context.agent or self.request.prompt.user or self.caller.principal.name
        return named[:MAX_AGENT_CHARS]

    def agent(self) -> str | None:
        """Return the agent: the request's header, else its `user`, unless something was found in that."""
        if isinstance(self.error, AgentBlocked):
            return self.error.name
        user = self.request.prompt.user
        named = self.caller.context.agent or (user and _unless_found(self, "user", user))
        return named[:MAX_AGENT_CHARS] if named else None


def _unless_found(exchange: ChatExchange, place: str, text: str) -> str | None:
    """Return a text of the request, unless it was not scanned or something was found in it."""
    inbound = exchange.inbound
    return None if inbound is None or any(found.place == place for found in inbound.result.detections) else text


def sighting(exchange: ChatExchange, row: TrafficRow) -> Sighting:
    """Return which agent was seen, and with which tools, unless something was found in their names."""
    tools: tuple[str, ...] = ()
    if exchange.inbound is not None and not any("tool" in found.place for found in exchange.inbound.result.detections):
        tools = tuple(listed_tools(exchange.request.prompt.body))
    return Sighting(
        name=row.agent or "",
        source=AgentSource.TRAFFIC,
        occurred_at=row.occurred_at,
        model=row.model,
        tools=tools,
        blocked=isinstance(exchange.error, AgentBlocked),
    )


def traffic_row(exchange: ChatExchange, id: str, *, occurred_at: int, now_seconds: float) -> TrafficRow:
    """Return the row that stands for this chat."""
    result, action = exchange.outcome()
    scans = exchange.scans()
    elapsed_us = round((now_seconds - exchange.started_seconds) * 1_000_000)
    detections = [one for direction, scan in scans for one in described(scan.result.detections, direction)]
    if exchange.has_key:
        detections += described((_OWN_KEY,), Direction.OUTBOUND)
    found = {direction: scan.result.score for direction, scan in scans if scan.result.detections}
    sha256, chars = text_at_fault(result, exchange.request.leaves.texts) if exchange.inbound else (None, 0)
    reply = exchange.answer.reply if exchange.answer else None
    # Who answered or would have; nobody if no provider serves the model.
    provider = exchange.answer.by if exchange.answer else next(iter(exchange.candidates), None)
    return TrafficRow(
        id=id,
        occurred_at=occurred_at,
        request_id=exchange.caller.context.request_id,
        operation=OPERATION,
        principal_id=exchange.caller.principal.id,
        verdict=str(result.verdict),
        score=result.score,
        key_prefix=exchange.caller.principal.key_prefix,
        agent=exchange.agent() or exchange.caller.principal.name,
        model=_unless_found(exchange, "model", exchange.request.prompt.model),
        provider=provider.name if provider else None,
        direction=max(found, key=found.__getitem__) if found else None,
        action=action,
        status=exchange.status,
        detections=tuple(detections),
        text_sha256=sha256,
        text_chars=chars,
        prompt_tokens=reply.prompt_tokens if reply else None,
        reply_tokens=reply.completion_tokens if reply else None,
        cost_microusd=exchange.used.microusd if exchange.used else None,
        elapsed_us=elapsed_us,
        overhead_us=max(0, elapsed_us - round((exchange.upstream_seconds or 0.0) * 1_000_000)),
    )


def audit_details(exchange: ChatExchange, row: TrafficRow) -> Mapping[str, object]:
    """Return what the audit keeps beside who and when: verdicts and counts, and never a text."""
    details: dict[str, object] = {name: getattr(row, name) for name in _AUDITED}
    details |= {"sha256": row.text_sha256, "chars": row.text_chars}
    if exchange.caller.principal.policy is not None:
        details["policy"] = exchange.caller.principal.policy
    if exchange.outbound_stream is not None:
        details["outbound_stream"] = exchange.outbound_stream
    if exchange.has_key:
        details["provider_key_masked"] = True
    if exchange.denied_by is not None:
        details["access_entry"] = exchange.denied_by
    if isinstance(exchange.error, OverBudget):
        details["budget"] = exchange.error.standing.budget.id
    for direction, scan in exchange.scans():
        details[direction.value] = {
            "verdict": str(scan.result.verdict),
            "score": scan.result.score,
            "action": scan.action,
            "detections": described(scan.result.detections, direction),
        }
    return details


def raise_alerts(alerts: Alerts, tx: Transaction, exchange: ChatExchange, row: TrafficRow) -> None:
    """Raise in `tx` one alert for each direction with a finding, for a repeated key, and for a denied access."""
    scans = [(direction, scan) for direction, scan in exchange.scans() if scan.result.verdict is not Verdict.ALLOW]
    is_denied = exchange.code == AccessDenied.code
    if not scans and not is_denied and not exchange.has_key:
        return
    context, denied_by = replace(exchange.caller.context, agent=exchange.agent()), exchange.denied_by
    caller = Caller(exchange.caller.principal, context)
    raise_event = partial(alerts.raise_event, tx, occurred_at=row.occurred_at, caller=caller)
    if exchange.has_key:
        raise_event(
            source=AlertSource.PROVIDER,
            rule=PROVIDER_KEY_RULE,
            severity=Severity.HIGH,
            title=f"Provider {row.provider} repeats its API key",
            description="An answer held the key that the gateway sends. It was masked; consider another key.",
            subject=row.provider or "",
            evidence=({"request_id": context.request_id, "provider": row.provider},),
        )
    if is_denied:
        raise_event(
            source=AlertSource.ACCESS,
            rule="access-denied",
            severity=Severity.MEDIUM,
            title="A chat was refused access",
            description="It asked for a model, provider, tool or domain, or came by an agent, that is not allowed.",
            subject=f"{exchange.caller.principal.id} {denied_by or 'limits'}",
            evidence=({"request_id": context.request_id, "access_entry": denied_by},),
        )
    for direction, scan in scans:
        alerts.raise_from_scan(
            tx,
            scan.result,
            caller=caller,
            origin=f"chat.{direction}",
            occurred_at=row.occurred_at,
            direction=direction,
        )


def count_chat(metrics: Metrics, exchange: ChatExchange, row: TrafficRow) -> None:
    """Count a chat under the names of OpenTelemetry's conventions for generative AI, where they have one."""
    if exchange.inbound is not None:
        metrics.count("gateway_scans_total", source="chat", verdict=row.verdict)
    metrics.observe("gateway_overhead_seconds", row.overhead_us / 1_000_000, operation=OPERATION)
    for kind, spent in (("prompt", row.prompt_tokens), ("reply", row.reply_tokens)):
        metrics.count("gateway_tokens_total", spent or 0, kind=kind)
    if exchange.upstream_seconds is None:
        return
    outcome = "ok" if exchange.answer else "refused" if isinstance(exchange.error, UpstreamRefused) else "failed"
    if not exchange.candidates[0].is_echo:
        metrics.count("gateway_upstream_requests_total", outcome=outcome)
        metrics.observe("gateway_upstream_seconds", exchange.upstream_seconds)
    tokens = {"input": row.prompt_tokens, "output": row.reply_tokens}
    is_counted = any(count is not None for count in tokens.values())
    labels = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": row.provider or ""}
    # A caller may ask for any model, and labels must be few: one that nobody answered for is not named.
    labels["gen_ai_request_model"] = row.model or "" if is_counted else ""
    with_error = labels | {"error_type": "" if is_counted else exchange.code or ""}
    metrics.observe("gen_ai_client_operation_duration_seconds", exchange.upstream_seconds, **with_error)
    for token_type, count in tokens.items():
        if count is not None:
            metrics.observe("gen_ai_client_token_usage", count, **labels, gen_ai_token_type=token_type)
