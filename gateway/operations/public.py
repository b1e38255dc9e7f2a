"""All rows of the public API, `/api/v1`, and of `/metrics`."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext, Scope
from gateway.operations.agents import PUBLIC_AGENT_OPERATIONS
from gateway.operations.alerts import PUBLIC_ALERT_OPERATIONS
from gateway.operations.audit import PUBLIC_AUDIT_OPERATIONS
from gateway.operations.fleet import PUBLIC_FLEET_OPERATIONS
from gateway.operations.operation import Answer
from gateway.operations.probes import PROBE_OPERATIONS
from gateway.operations.risk_acceptances import PUBLIC_ACCEPTANCE_OPERATIONS
from gateway.operations.rows import row, whole
from gateway.operations.security_scans import PUBLIC_SECURITY_SCANS
from gateway.operations.trust_audits import PUBLIC_TRUST_AUDITS
from gateway.operations.views import project
from gateway.services.scans import ScanAnswer, ScanText, scan_schema
from gateway.services.shield_tests import LastShieldTests
from gateway.shield.detections import Direction, Severity


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """One rule of the shield, without its literals, pattern and examples."""

    id: str
    name: str
    category: str
    severity: Severity
    confidence: float
    description: str
    direction: tuple[Direction, ...]
    view: str
    standards: tuple[str, ...]
    tags: tuple[str, ...]


async def list_rules(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[RuleSummary]:
    """Return all rules in use as one page."""
    return whole(
        tuple(project(RuleSummary, rule, direction=tuple(sorted(rule.direction))) for rule in gateway.shield.rules)
    )


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

OPERATIONS = (
    *PROBE_OPERATIONS,
    *PROMPT_OPERATIONS,
    row(
        "shield.rules.list",
        "GET /api/v1/shield/rules",
        Scope.SHIELD_READ,
        "List the rules in use, without their patterns and examples.",
        answer=Answer.PAGE,
        gives=RuleSummary,
        call=list_rules,
    ),
    row(
        "shield.tests.last",
        "GET /api/v1/shield/tests",
        Scope.SHIELD_READ,
        "Show the last run of the validation suite: rates, failures, times, and what changed since.",
        gives=LastShieldTests,
        call=lambda gateway, who, command, context: gateway.shield_tests.last(),
    ),
    *PUBLIC_AGENT_OPERATIONS,
    *PUBLIC_FLEET_OPERATIONS,
    *PUBLIC_ALERT_OPERATIONS,
    *PUBLIC_AUDIT_OPERATIONS,
    *PUBLIC_TRUST_AUDITS,
    *PUBLIC_SECURITY_SCANS,
    *PUBLIC_ACCEPTANCE_OPERATIONS,
)
