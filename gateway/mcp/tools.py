"""The table of tools, and the tools that scan a text or read what the gateway has recorded."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

from gateway.domain.alerts import MAX_ALERT_LIMIT, Alert, AlertFilter, AlertSource, AlertStatus
from gateway.domain.audit import MAX_AUDIT_LIMIT, AuditEvent, AuditFilter
from gateway.domain.principals import read_request_id
from gateway.mcp.configure_provider import CONFIGURE_PROVIDER
from gateway.mcp.lines import alert_line, check_lines, counted, detection_line, event_line
from gateway.mcp.manage_access import MANAGE_ACCESS
from gateway.mcp.manage_budget import MANAGE_BUDGET
from gateway.mcp.self_checks import GENERATE_REPORT, RUN_SHIELD_TESTS, RUN_TRUST_AUDIT
from gateway.mcp.tool import NoArguments, Tool, ToolCall, ToolOutput
from gateway.schema import Bounds, ByTime, encode, json_schema
from gateway.services.scans import ScanAnswer, ScanText, scan_schema
from gateway.services.trust_audits import PostureReport
from gateway.shield.detections import Severity
from gateway.strict_json import read_time

DEFAULT_LIMIT = 20  # fewer than the API's: a model reads the answer and pays by the word

_REDACTED_CHARS = 10_000

_Text = Annotated[str, Bounds(1, 200)]
_Time = Annotated[int, ByTime(read_time)]
_Since = Annotated[
    _Time | None, "Only what happened since: an RFC 3339 time, a date, or an age such as 15m, 24h or 7d."
]


@dataclass(frozen=True, slots=True)
class QueryThreats:
    """Which alerts to list."""

    status: Annotated[AlertStatus | None, "Only alerts in this state."] = None
    severity: Annotated[Severity | None, "Only alerts of this severity."] = None
    source: Annotated[AlertSource | None, "Only alerts of this part of the gateway."] = None
    since: _Since = None
    limit: Annotated[int, Bounds(1, MAX_ALERT_LIMIT), "At most this many."] = DEFAULT_LIMIT
    request_id: Annotated[_Text | None, "Only alerts that this request (req_…) was counted on."] = None


@dataclass(frozen=True, slots=True)
class AlertList:
    """Alerts, newest first. total: how many match, null for more than 10,000."""

    alerts: tuple[Alert, ...]
    total: int | None


@dataclass(frozen=True, slots=True)
class ReviewAudit:
    """Which audit events to list."""

    source: Annotated[_Text | None, "Only events of this part of the gateway, such as shield, mcp or api."] = None
    action: Annotated[_Text | None, "Only events of this action, such as api_key_created."] = None
    actor: Annotated[_Text | None, "Only events of this actor's name."] = None
    resource_type: Annotated[_Text | None, "Only events about this kind of resource, such as api_key."] = None
    since: _Since = None
    until: Annotated[_Time | None, "Only what happened until then; the same forms as since."] = None
    limit: Annotated[int, Bounds(1, MAX_AUDIT_LIMIT), "At most this many."] = DEFAULT_LIMIT
    search: Annotated[
        _Text | None,
        "Only events with this text in action, actor, agent, key, address, request id, resource or details.",
    ] = None
    request_id: Annotated[_Text | None, "Only events of this request (req_…)."] = None


@dataclass(frozen=True, slots=True)
class EventList:
    """Audit events, newest first. total: how many match, null for more than 10,000."""

    events: tuple[AuditEvent, ...]
    total: int | None


async def _shield_scan(call: ToolCall, command: ScanText) -> ToolOutput:
    await call.gateway.running.check_rules()
    answer = await call.gateway.scans.scan(call.caller, command)
    call.gateway.metrics.count("gateway_scans_total", source="mcp", verdict=answer.verdict.value)
    return ToolOutput(_scan_text(answer, call.caller.context.request_id), answer.data())


def _scan_text(answer: ScanAnswer, request_id: str) -> str:
    lines = [
        f"Verdict: {answer.verdict.value}",
        f"Score: {answer.score}/100",
        f"Rules matched: {len(answer.detections) or 'none'}",
        *map(detection_line, answer.detections),
        f"Request: {request_id}",
    ]
    if answer.redacted is not None:
        lines += ["The text without what must not be repeated:", answer.redacted[:_REDACTED_CHARS]]
    return "\n".join(lines)


async def _check_posture(call: ToolCall, command: NoArguments) -> ToolOutput:
    report = await call.gateway.store.db.read(call.gateway.trust_audits.report)
    return ToolOutput(_posture_text(report), encode(report))


def _posture_text(report: PostureReport) -> str:
    audit = report.trust_audit
    score = "unknown" if report.posture_score is None else f"{report.posture_score}/100"
    if audit is None:
        score += ": no trust audit has been run yet; run_trust_audit runs one"
    lines = [f"Threat score: {report.threat_score}/100", f"Posture score: {score}", "Services:"]
    lines += [f"- {name}: {state}" for name, state in report.services.items()]
    wanting = check_lines(audit.checks if audit else ())
    lines += ["To mend:", *wanting] if wanting else []
    return "\n".join(lines)


async def _query_threats(call: ToolCall, command: QueryThreats) -> ToolOutput:
    wanted = AlertFilter(**_filters(command))
    page = await call.gateway.alerts.page(wanted)
    lines = [counted("alert", len(page.items), page.total), *map(alert_line, page.items)]
    return ToolOutput("\n".join(lines), encode(AlertList(page.items, page.total)))


async def _review_audit(call: ToolCall, command: ReviewAudit) -> ToolOutput:
    wanted = AuditFilter(**_filters(command))
    page = await call.gateway.audit.page(wanted)
    lines = [counted("event", len(page.items), page.total), *map(event_line, page.items)]
    return ToolOutput("\n".join(lines), encode(EventList(page.items, page.total)))


def _filters(command: QueryThreats | ReviewAudit) -> dict[str, Any]:
    """Return the fields of a query, which the filter of the store has under the same names."""
    values = {row.name: getattr(command, row.name) for row in fields(command)}
    return values | {"request_id": command.request_id and read_request_id(command.request_id)}


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="shield_scan",
        title="Scan a text",
        description=(
            "Scan a text for prompt attacks and leaked secrets. Answers a verdict (ALLOW, REVIEW or BLOCK), a threat "
            "score from 0 to 100 and the rules that matched. The text is not stored."
        ),
        takes=ScanText,
        gives=scan_schema,
        call=_shield_scan,
    ),
    Tool(
        name="check_posture",
        title="Check the posture",
        description=(
            "Check how securely this gateway is set up. Answers the threat score of the last 24 hours, the posture "
            "score, the health of each service, and recommended fixes."
        ),
        takes=NoArguments,
        gives=lambda: json_schema(PostureReport, written=True),
        call=_check_posture,
    ),
    Tool(
        name="query_threats",
        title="Query threats",
        description="List security alerts, newest first, by state, severity, source and time.",
        takes=QueryThreats,
        gives=lambda: json_schema(AlertList, written=True),
        call=_query_threats,
    ),
    Tool(
        name="review_audit",
        title="Review the audit log",
        description="List audit events, newest first: who did what, when and with which outcome.",
        takes=ReviewAudit,
        gives=lambda: json_schema(EventList, written=True),
        call=_review_audit,
    ),
    MANAGE_ACCESS,
    CONFIGURE_PROVIDER,
    GENERATE_REPORT,
    RUN_SHIELD_TESTS,
    RUN_TRUST_AUDIT,
    MANAGE_BUDGET,
)
