"""What is measured of a completion that was sent, under the names of OpenTelemetry's conventions for generative AI."""

from gateway.domain.traffic import TrafficRow
from gateway.metrics import Metrics

_OPERATION = "chat"


def measure_completion(metrics: Metrics, row: TrafficRow, *, took_seconds: float, failure: str | None) -> None:
    """Count tokens and time of one completion by provider and model.

    A model that nobody answered for is not named: callers may ask for any, and labels are few. A provider's name is an
    operator's.
    """
    provider = row.provider or ""
    is_answered = row.prompt_tokens is not None or row.reply_tokens is not None
    model = (row.model or "") if is_answered else ""
    metrics.observe(
        "gen_ai_client_operation_duration_seconds",
        took_seconds,
        gen_ai_operation_name=_OPERATION,
        gen_ai_provider_name=provider,
        gen_ai_request_model=model,
        error_type="" if is_answered else failure or "",
    )
    for kind, tokens in (("input", row.prompt_tokens), ("output", row.reply_tokens)):
        if tokens is not None:
            metrics.observe(
                "gen_ai_client_token_usage",
                tokens,
                gen_ai_operation_name=_OPERATION,
                gen_ai_provider_name=provider,
                gen_ai_request_model=model,
                gen_ai_token_type=kind,
            )
