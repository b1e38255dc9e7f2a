"""The rows that carry prompts: scan and chat."""

from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext, Scope
from gateway.operations.operation import Answer, Door, Operation
from gateway.services.scans import ScanAnswer, ScanText, scan_schema


async def scan(gateway: Gateway, who: Principal, command: ScanText, context: RequestContext) -> ScanAnswer:
    """Scan one text and count its verdict."""
    answer = await gateway.scans.scan(who, command, context)
    gateway.metrics.count("gateway_scans_total", source="scan", verdict=answer.verdict.value)
    gateway.metrics.observe("gateway_overhead_seconds", answer.elapsed_ms / 1000, operation="shield.scan")
    return answer


PROMPT_OPERATIONS = (
    Operation(
        name="shield.scan",
        route=("POST", "/api/v1/shield/scan"),
        door=Door.KEY,
        needs=Scope.SHIELD_SCAN,
        takes=ScanText,
        gives=ScanAnswer,
        write=ScanAnswer.data,
        schema=scan_schema,
        call=scan,
        body_setting="max_scan_body_bytes",
        max_chars={"text": "max_text_chars"},
        fails=("shield_unavailable", "audit_unavailable", "overloaded"),
        summary="Scan a text for attacks, secrets and personal data. Answers verdict, score and what matched.",
    ),
    Operation(
        name="chat.completions",
        route=("POST", "/api/v1/chat/completions"),
        door=Door.KEY,
        needs=Scope.CHAT_COMPLETIONS,
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
        summary="Complete a chat, OpenAI-compatible. Prompt and reply are scanned; `stream: true` is not served in v1.",
    ),
    Operation(
        name="models.list",
        route=("GET", "/api/v1/models"),
        door=Door.KEY,
        needs=Scope.CHAT_COMPLETIONS,
        answer=Answer.BARE,
        is_openai=True,
        fails=("upstream_unavailable",),
        summary="List the models that the key may use, OpenAI-compatible.",
    ),
    Operation(
        name="models.show",
        route=("GET", "/api/v1/models/{id}"),
        door=Door.KEY,
        needs=Scope.CHAT_COMPLETIONS,
        answer=Answer.BARE,
        is_openai=True,
        fails=("not_found", "upstream_unavailable"),
        summary="Show one model that the key may use, OpenAI-compatible. Its id may hold slashes, encoded or not.",
    ),
)
