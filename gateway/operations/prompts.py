"""The rows that carry prompts: scan and chat."""

from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext, Scope
from gateway.operations.operation import Answer
from gateway.operations.rows import row
from gateway.services.scans import ScanAnswer, ScanText, scan_schema


async def scan(gateway: Gateway, who: Principal, command: ScanText, context: RequestContext) -> ScanAnswer:
    """Scan one text and count its verdict."""
    answer = await gateway.scans.scan(who, command, context)
    gateway.metrics.count("gateway_scans_total", source="scan", verdict=answer.verdict.value)
    gateway.metrics.observe("gateway_overhead_seconds", answer.elapsed_ms / 1000, operation="shield.scan")
    return answer


PROMPT_OPERATIONS = (
    row(
        "shield.scan",
        "POST /api/v1/shield/scan",
        Scope.SHIELD_SCAN,
        "Scan a text for attacks, secrets and personal data. Answers verdict, score and what matched.",
        takes=ScanText,
        gives=ScanAnswer,
        write=ScanAnswer.data,
        schema=scan_schema,
        call=scan,
        body_setting="max_scan_body_bytes",
        max_chars={"text": "max_text_chars"},
        fails=("shield_unavailable", "audit_unavailable", "overloaded"),
    ),
    row(
        "chat.completions",
        "POST /api/v1/chat/completions",
        Scope.CHAT_COMPLETIONS,
        "Complete a chat, OpenAI-compatible. Prompt and reply are scanned; `stream: true` is not served in v1.",
        answer=Answer.BARE,
        is_openai=True,
        body_setting="max_chat_body_bytes",
        fails=(
            "unsupported_value",
            "content_policy_violation",
            "not_found",
            "upstream_unavailable",
            "shield_unavailable",
            "audit_unavailable",
            "overloaded",
        ),  # fmt: skip
    ),
    row(
        "models.list",
        "GET /api/v1/models",
        Scope.CHAT_COMPLETIONS,
        "List the models that the key may use, OpenAI-compatible.",
        answer=Answer.BARE,
        is_openai=True,
        fails=("upstream_unavailable",),
    ),
    row(
        "models.show",
        "GET /api/v1/models/{id}",
        Scope.CHAT_COMPLETIONS,
        "Show one model that the key may use, OpenAI-compatible. Its id may hold slashes, encoded or not.",
        answer=Answer.BARE,
        is_openai=True,
        fails=("not_found", "upstream_unavailable"),
    ),
)
