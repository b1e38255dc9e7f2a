"""One chat on its way through the steps of `services/chat`, and the traffic row, audit details and alerts made of it.

Each step fills in its own part of the `ChatExchange`. So whatever ends a chat, the exchange holds all that is known of
it. Nothing here waits or decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gateway.domain.agents import AgentSource
from gateway.domain.alerts import AlertSource
from gateway.domain.budgets import Usage
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.traffic import TrafficRow
from gateway.errors import AccessDenied, GatewayError
from gateway.llm.base import ChatRequest, Reply, UpstreamRefused
from gateway.llm.tools import listed_tools
from gateway.records import record
from gateway.services.access_guard import EntryDenied
from gateway.services.agent_discovery import AgentBlocked, Sighting
from gateway.services.alerts import Alerts
from gateway.services.audit import MAX_AGENT_CHARS
from gateway.services.chat_policy import Action, ScannedPrompt, ScannedReply
from gateway.services.findings import described
from gateway.services.routing import ProviderConnection
from gateway.services.spending import OverBudget, Reservation
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict
from gateway.store.database import Transaction

OPERATION = "chat.completions"
CLIENT_GONE = "client_gone"
PROVIDER_KEY_RULE = "provider-key"
# What a dashboard shows beside a request without a completion. 499 is the usual status for a client that left.
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
_AUDITED = (
    "provider",
    "status",
    "verdict",
    "score",
    "action",
    "prompt_tokens",
    "reply_tokens",
    "cost_microusd",
    "elapsed_us",
    "overhead_us",
)
"""What the audit keeps of the traffic row under the same name."""
_UNSCANNED = ScanResult(Verdict.ALLOW, 0)


@record
class ShieldSummary:
    """What a client reads about the shield. score: 0 to 100. overhead_ms: the time that was not the model's."""

    verdict: Verdict
    score: int
    action: Action
    overhead_ms: float


@record
class Answer:
    """A reply as it came. by: who answered. used: None if nobody counted. seconds: the model's share of the time."""

    reply: Reply
    by: ProviderConnection
    used: Usage | None
    seconds: float


@record
class Failure:
    """Why there is no completion. error: None when the client left. seconds: what the upstream took until then."""

    error: GatewayError | None
    seconds: float

    @property
    def code(self) -> str:
        """The code of the error, or ``client_gone``."""
        return CLIENT_GONE if self.error is None else self.error.code

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.error.status if isinstance(self.error, UpstreamRefused) else _STATUS_BY_CODE.get(self.code, 500)

    @property
    def denied_by(self) -> str | None:
        """The id of the entry of the access list that refused, or of the blocked agent."""
        if isinstance(self.error, EntryDenied):
            return self.error.entry.id
        return self.error.agent_id if isinstance(self.error, AgentBlocked) else None


@dataclass(slots=True, eq=False)
class ChatExchange:
    """What is known of one chat.

    started_seconds: monotonic. candidates: who may answer, the best first. reservation: what is taken from budgets.
    sent_seconds: when the prompt left, None before that.
    """

    principal: Principal
    context: RequestContext
    request: ChatRequest
    started_seconds: float
    candidates: Sequence[ProviderConnection] = ()
    reservation: Reservation | None = None
    inbound: ScannedPrompt | None = None
    sent_seconds: float | None = None
    answer: Answer | None = None
    outbound: ScannedReply | None = None
    failure: Failure | None = None

    def fail(self, error: GatewayError | None, now_seconds: float) -> None:
        """Note that the chat ends without a completion. error: None when the client left."""
        waited = 0.0 if self.sent_seconds is None or self.answer else now_seconds - self.sent_seconds
        self.failure = Failure(error, waited)

    @property
    def upstream_seconds(self) -> float:
        """The part of the time that was the model's."""
        if self.answer is not None:
            return self.answer.seconds
        return self.failure.seconds if self.failure else 0.0

    @property
    def used(self) -> Usage | None:
        """What the chat took. Of one whose client left, nobody knows, so that it counts as all that was held."""
        if self.answer is not None:
            return self.answer.used
        is_gone = self.failure is not None and self.failure.error is None
        return self.reservation.worst if is_gone and self.reservation and self.sent_seconds is not None else None

    @property
    def has_key(self) -> bool:
        """Whether the provider repeated the key that the gateway sends to it."""
        if self.answer is not None:
            return self.answer.reply.has_key
        error = self.failure and self.failure.error
        return isinstance(error, UpstreamRefused) and error.has_key

    def payees(self) -> frozenset[str]:
        """Return ids and names of the providers who may be paid: who answered, else all who may answer."""
        providers = self.candidates if self.answer is None else (self.answer.by,)
        return frozenset(word for one in providers for word in (one.id, one.name))

    def reply(self) -> Reply:
        """Return what the client gets of the answer: what the policy made of it, once it was scanned."""
        assert self.answer is not None
        return self.outbound.changed if self.outbound and self.outbound.changed else self.answer.reply

    def scans(self) -> list[tuple[Direction, ScannedPrompt | ScannedReply]]:
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
        seconds = now_seconds - self.started_seconds - self.upstream_seconds
        return ShieldSummary(result.verdict, result.score, action, max(0.0, seconds * 1000))

    def claimed_agent(self) -> str:
        """Return the agent that the caller claims to be, else the key's name. Unchecked: never to be stored."""
        named = self.context.agent or self.request.prompt.user or self.principal.name
        return named[:MAX_AGENT_CHARS]

    def agent(self) -> str | None:
        """Return the agent: the request's header, else its `user`, unless something was found in that."""
        if self.failure is not None and isinstance(self.failure.error, AgentBlocked):
            return self.failure.error.name
        user = self.request.prompt.user
        named = self.context.agent or (user and _unless_found(self, "user", user))
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
        blocked=exchange.failure is not None and isinstance(exchange.failure.error, AgentBlocked),
    )


def traffic_row(exchange: ChatExchange, id: str, *, occurred_at: int, now_seconds: float) -> TrafficRow:
    """Return the row that stands for this chat."""
    result, action = exchange.outcome()
    scans, inbound = exchange.scans(), exchange.inbound
    elapsed_us = round((now_seconds - exchange.started_seconds) * 1_000_000)
    detections = [one for direction, scan in scans for one in described(scan.result.detections, direction)]
    if exchange.has_key:
        detections += described((_OWN_KEY,), Direction.OUTBOUND)
    found = {direction: scan.result.score for direction, scan in scans if scan.result.detections}
    sha256, chars = (inbound.text_sha256, inbound.text_chars) if inbound else (None, 0)
    if result.detections and result.detections[0].sha256:
        sha256, chars = result.detections[0].sha256, result.detections[0].chars
    reply = exchange.answer.reply if exchange.answer else None
    # Who answered or would have; nobody if no provider serves the model.
    provider = exchange.answer.by if exchange.answer else next(iter(exchange.candidates), None)
    return TrafficRow(
        id=id,
        occurred_at=occurred_at,
        request_id=exchange.context.request_id,
        operation=OPERATION,
        principal_id=exchange.principal.id,
        verdict=str(result.verdict),
        score=result.score,
        key_prefix=exchange.principal.key_prefix,
        agent=exchange.agent() or exchange.principal.name,
        model=_unless_found(exchange, "model", exchange.request.prompt.model),
        provider=provider.name if provider else None,
        direction=max(found, key=found.__getitem__) if found else None,
        action=action,
        status=exchange.failure.status if exchange.failure else 200,
        detections=tuple(detections),
        text_sha256=sha256,
        text_chars=chars,
        prompt_tokens=reply.prompt_tokens if reply else None,
        reply_tokens=reply.completion_tokens if reply else None,
        cost_microusd=exchange.used.microusd if exchange.used else None,
        elapsed_us=elapsed_us,
        overhead_us=max(0, elapsed_us - round(exchange.upstream_seconds * 1_000_000)),
    )


def audit_details(exchange: ChatExchange, row: TrafficRow) -> Mapping[str, object]:
    """Return what the audit keeps beside who and when: verdicts and counts, and never a text."""
    details: dict[str, object] = {name: getattr(row, name) for name in _AUDITED}
    details |= {"sha256": row.text_sha256, "chars": row.text_chars}
    if exchange.principal.policy is not None:
        details["policy"] = exchange.principal.policy
    if exchange.has_key:
        details["provider_key_masked"] = True
    if exchange.failure is not None and exchange.failure.denied_by is not None:
        details["access_entry"] = exchange.failure.denied_by
    if exchange.failure is not None and isinstance(exchange.failure.error, OverBudget):
        details["budget"] = exchange.failure.error.standing.budget.id
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
    is_denied = exchange.failure is not None and exchange.failure.code == AccessDenied.code
    if not scans and not is_denied and not exchange.has_key:
        return
    context, denied_by = (
        replace(exchange.context, agent=exchange.agent()),
        exchange.failure and exchange.failure.denied_by,
    )
    raise_event = partial(
        alerts.raise_event, tx, occurred_at=row.occurred_at, context=context, principal=exchange.principal
    )
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
            subject=f"{exchange.principal.id} {denied_by or 'limits'}",
            evidence=({"request_id": context.request_id, "access_entry": denied_by},),
        )
    for direction, scan in scans:
        alerts.raise_from_scan(
            tx,
            scan.result,
            principal=exchange.principal,
            context=context,
            origin=f"chat.{direction}",
            occurred_at=row.occurred_at,
            direction=direction,
        )
