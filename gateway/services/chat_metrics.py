"""Count completions, under the names of OpenTelemetry's conventions for generative AI."""

from gateway.domain.traffic import TrafficRow
from gateway.llm.base import UpstreamRefused
from gateway.metrics import Metrics
from gateway.services.chat_record import OPERATION, ChatExchange


def count_chat(metrics: Metrics, exchange: ChatExchange, row: TrafficRow) -> None:
    """Count a chat: its verdict, its tokens, the gateway's own share of its time, and what was sent."""
    if exchange.inbound is not None:
        metrics.count("gateway_scans_total", source="chat", verdict=row.verdict)
    metrics.observe("gateway_overhead_seconds", row.overhead_us / 1_000_000, operation=OPERATION)
    for kind, tokens in (("prompt", row.prompt_tokens), ("reply", row.reply_tokens)):
        metrics.count("gateway_tokens_total", tokens or 0, kind=kind)
    if exchange.sent_seconds is not None:
        _count_sent(metrics, exchange, row)


def _count_sent(metrics: Metrics, exchange: ChatExchange, row: TrafficRow) -> None:
    provider, model = row.provider or "", row.model or ""
    error = exchange.failure and exchange.failure.error
    outcome = "ok" if exchange.answer else "refused" if isinstance(error, UpstreamRefused) else "failed"
    if not exchange.candidates[0].is_echo:
        metrics.count("gateway_upstream_requests_total", outcome=outcome)
        metrics.observe("gateway_upstream_seconds", exchange.upstream_seconds)
    tokens = {"input": row.prompt_tokens, "output": row.reply_tokens}
    is_counted = any(count is not None for count in tokens.values())
    # A caller may ask for any model, and labels must be few: one that nobody answered for is not named.
    metrics.observe(
        "gen_ai_client_operation_duration_seconds",
        exchange.upstream_seconds,
        gen_ai_operation_name="chat",
        gen_ai_provider_name=provider,
        gen_ai_request_model=model if is_counted else "",
        error_type="" if is_counted or exchange.failure is None else exchange.failure.code,
    )
    for token_type, count in tokens.items():
        if count is not None:
            metrics.observe(
                "gen_ai_client_token_usage",
                count,
                gen_ai_operation_name="chat",
                gen_ai_provider_name=provider,
                gen_ai_request_model=model,
                gen_ai_token_type=token_type,
            )
