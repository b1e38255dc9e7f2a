"""The rows that are there from the first request on: what probes and traffic ask for.

All others are loaded when one of them is asked for. A path is either here with all of its methods or not at all.
"""

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


FIRST_OPERATIONS = (
    Operation(
        name="health",
        route=("GET", "/api/v1/health"),
        door=Door.OPTIONAL,
        needs=None,
        answer=Answer.BARE,
        summary="Tell whether the service answers. A good key adds version, uptime and checks; a wrong one nothing.",
    ),
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
        name="openapi",
        route=("GET", "/api/v1/openapi.json"),
        door=Door.OPEN,
        needs=None,
        answer=Answer.BARE,
        summary="Return this description of the API.",
    ),
    Operation(
        name="metrics",
        route=("GET", "/metrics"),
        door=Door.LOOPBACK,
        needs=Scope.FLEET_READ,
        answer=Answer.BARE,
        summary="Return metrics as Prometheus text; for callers on this host or with a key.",
    ),
)
