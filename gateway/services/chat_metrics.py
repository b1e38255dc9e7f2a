"""What is measured of completions, under the names of OpenTelemetry's conventions for generative AI."""

from dataclasses import dataclass

from gateway.domain.traffic import TrafficRow
from gateway.metrics import Cell, Histogram, Metrics
from gateway.services.chat_turn import Turn

_OPERATION = "chat"
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What is counted of the completions of one model by one provider, of one verdict, where their tokens are told."""

    scans: Cell
    duration: Histogram
    sent: Histogram
    made: Histogram


class CompletionMeter:
    """Observes completions. Keeps the histograms it has found, since to find one costs more than to count in it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._counted: dict[tuple[str, str, str], Counted] = {}
        self._overhead = metrics.histogram("gateway_overhead_seconds", operation="chat.completions")
        self._upstream = metrics.histogram("gateway_upstream_seconds")
        self._outcomes: dict[str, Cell] = {}
        self._prompt_tokens = metrics.counter("gateway_tokens_total", kind="prompt")
        self._reply_tokens = metrics.counter("gateway_tokens_total", kind="reply")

    def request(self, row: TrafficRow, turn: Turn) -> None:
        """Count one request: its verdict, its tokens, the gateway's own share of its time, and what was sent."""
        sent, made = row.prompt_tokens, row.reply_tokens
        if sent is not None and made is not None:
            self.completed(self.counted(row), row.overhead_us, sent, made, took_seconds=turn.upstream_seconds)
            return
        if turn.inbound is not None:
            self._scans(row.verdict).value += 1
        self._overhead.observe(row.overhead_us / 1_000_000)
        self._prompt_tokens.value += sent or 0
        self._reply_tokens.value += made or 0
        if turn.is_sent:
            # A model that nobody answered for is not named: callers may ask for any, and labels are few. A provider's
            # name is an operator's.
            provider, model = row.provider or "", row.model or ""
            is_told = sent is not None or made is not None
            failure = "" if is_told else turn.failure or ""
            self._duration(provider, model if is_told else "", failure).observe(turn.upstream_seconds)
            if sent is not None:
                self._usage(provider, model, "input").observe(sent)
            if made is not None:
                self._usage(provider, model, "output").observe(made)

    def completed(self, counted: Counted, overhead_us: int, sent: int, made: int, *, took_seconds: float) -> None:
        """Count one completion whose tokens are told. counted: see there."""
        counted.scans.value += 1
        self._overhead.observe(overhead_us / 1_000_000)
        self._prompt_tokens.value += sent
        self._reply_tokens.value += made
        counted.duration.observe(took_seconds)
        counted.sent.observe(sent)
        counted.made.observe(made)

    def counted(self, row: TrafficRow) -> Counted:
        """Return what counts completions like this one."""
        provider, model = row.provider or "", row.model or ""
        found = self._counted.get((row.verdict, provider, model))
        if found is None:
            if len(self._counted) >= _MOST_KEPT:
                self._counted.clear()
            found = self._counted[row.verdict, provider, model] = Counted(
                self._scans(row.verdict),
                self._duration(provider, model, ""),
                self._usage(provider, model, "input"),
                self._usage(provider, model, "output"),
            )
        return found

    def upstream(self, took_seconds: float, outcome: str) -> None:
        """Count what was sent to a provider, and how long it took."""
        counter = self._outcomes.get(outcome)
        if counter is None:
            counter = self._metrics.counter("gateway_upstream_requests_total", outcome=outcome)
            self._outcomes[outcome] = counter
        counter.value += 1
        self._upstream.observe(took_seconds)

    def _scans(self, verdict: str) -> Cell:
        return self._metrics.counter("gateway_scans_total", source="chat", verdict=verdict)

    def _duration(self, provider: str, model: str, error_type: str) -> Histogram:
        return self._metrics.histogram(
            "gen_ai_client_operation_duration_seconds",
            gen_ai_operation_name=_OPERATION,
            gen_ai_provider_name=provider,
            gen_ai_request_model=model,
            error_type=error_type,
        )

    def _usage(self, provider: str, model: str, token_type: str) -> Histogram:
        return self._metrics.histogram(
            "gen_ai_client_token_usage",
            gen_ai_operation_name=_OPERATION,
            gen_ai_provider_name=provider,
            gen_ai_request_model=model,
            gen_ai_token_type=token_type,
        )
