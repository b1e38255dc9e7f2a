"""What is measured of completions, under the names of OpenTelemetry's conventions for generative AI."""

from dataclasses import dataclass

from gateway.domain.traffic import TrafficRow
from gateway.metrics import Cell, Histogram, Metrics
from gateway.services.chat_turn import Turn

_OPERATION = "chat"
_MOST_KEPT = 1000


@dataclass(slots=True)
class _Kept:
    """What is observed of the completions of one model by one provider. The tokens are looked for when there are any.

    duration: of those that were answered.
    """

    duration: Histogram
    sent: Histogram | None = None
    made: Histogram | None = None


class CompletionMeter:
    """Observes completions. Keeps the histograms it has found, since to find one costs more than to count in it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._overhead = metrics.histogram("gateway_overhead_seconds", operation="chat.completions")
        self._upstream = metrics.histogram("gateway_upstream_seconds")
        self._outcomes: dict[str, Cell] = {}
        self._verdicts: dict[str, Cell] = {}
        self._prompt_tokens = metrics.counter("gateway_tokens_total", kind="prompt")
        self._reply_tokens = metrics.counter("gateway_tokens_total", kind="reply")

    def request(self, row: TrafficRow, turn: Turn) -> None:
        """Count one request: its verdict, its tokens, the gateway's own share of its time, and what was sent."""
        if turn.inbound is not None:
            verdict = self._verdicts.get(row.verdict)
            if verdict is None:
                verdict = self._metrics.counter("gateway_scans_total", source="chat", verdict=row.verdict)
                self._verdicts[row.verdict] = verdict
            verdict.value += 1
        self._overhead.observe(row.overhead_us / 1_000_000)
        sent, made = row.prompt_tokens, row.reply_tokens
        if sent:
            self._prompt_tokens.value += sent
        if made:
            self._reply_tokens.value += made
        if turn.is_sent:
            self._completion(row, sent, made, took_seconds=turn.upstream_seconds, failure=turn.failure)

    def upstream(self, took_seconds: float, outcome: str) -> None:
        """Count what was sent to a provider, and how long it took."""
        counter = self._outcomes.get(outcome)
        if counter is None:
            counter = self._metrics.counter("gateway_upstream_requests_total", outcome=outcome)
            self._outcomes[outcome] = counter
        counter.value += 1
        self._upstream.observe(took_seconds)

    def _completion(
        self, row: TrafficRow, sent: int | None, made: int | None, *, took_seconds: float, failure: str | None
    ) -> None:
        """Count tokens and time of one completion that was sent, by provider and model.

        A model that nobody answered for is not named: callers may ask for any, and labels are few. A provider's name
        is an operator's.
        """
        provider, model = row.provider or "", row.model or ""
        if sent is None and made is None:
            self._duration(provider, "", failure or "").observe(took_seconds)
            return
        kept = self._kept.get((provider, model))
        if kept is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[provider, model] = _Kept(self._duration(provider, model, ""))
        kept.duration.observe(took_seconds)
        if sent is not None:
            if kept.sent is None:
                kept.sent = self._usage(provider, model, "input")
            kept.sent.observe(sent)
        if made is not None:
            if kept.made is None:
                kept.made = self._usage(provider, model, "output")
            kept.made.observe(made)

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
