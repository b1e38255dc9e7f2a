"""All rows of the public API, `/api/v1`, and of `/metrics`. Rules are kept below; a row only says where."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext, Scope
from gateway.operations.agents import PUBLIC_AGENT_OPERATIONS
from gateway.operations.alerts import PUBLIC_ALERT_OPERATIONS
from gateway.operations.audit import AUDIT_FILTERS, list_audit
from gateway.operations.fleet import PUBLIC_FLEET_OPERATIONS
from gateway.operations.operation import Answer, Door, Operation
from gateway.operations.probes import PROBE_OPERATIONS
from gateway.operations.prompts import PROMPT_OPERATIONS
from gateway.operations.risk_acceptances import PUBLIC_ACCEPTANCE_OPERATIONS
from gateway.operations.security_scans import PUBLIC_SECURITY_SCANS
from gateway.operations.trust_audits import PUBLIC_TRUST_AUDITS
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
    rules = tuple(
        RuleSummary(
            id=rule.id,
            name=rule.name,
            category=rule.category,
            severity=rule.severity,
            confidence=rule.confidence,
            description=rule.description,
            direction=tuple(sorted(rule.direction)),
            view=rule.view,
            standards=rule.standards,
            tags=rule.tags,
        )
        for rule in gateway.shield.rules
    )
    return Page(items=rules, limit=len(rules), next=None)


async def last_shield_tests(
    gateway: Gateway, who: Principal, command: None, context: RequestContext
) -> LastShieldTests:
    """Return what the last run of the validation suite brought."""
    return await gateway.shield_tests.last()


OPERATIONS = (
    *PROBE_OPERATIONS,
    *PROMPT_OPERATIONS,
    Operation(
        name="shield.rules.list",
        route=("GET", "/api/v1/shield/rules"),
        door=Door.KEY,
        needs=Scope.SHIELD_READ,
        answer=Answer.PAGE,
        gives=RuleSummary,
        call=list_rules,
        summary="List the rules in use, without their patterns and examples.",
    ),
    Operation(
        name="shield.tests.last",
        route=("GET", "/api/v1/shield/tests"),
        door=Door.KEY,
        needs=Scope.SHIELD_READ,
        gives=LastShieldTests,
        call=last_shield_tests,
        summary="Show the last run of the validation suite: rates, failures, times, and what changed since.",
    ),
    *PUBLIC_AGENT_OPERATIONS,
    *PUBLIC_FLEET_OPERATIONS,
    *PUBLIC_ALERT_OPERATIONS,
    Operation(
        name="audit.list",
        route=("GET", "/api/v1/audit"),
        door=Door.KEY,
        needs=Scope.AUDIT_READ,
        answer=Answer.PAGE,
        takes=AuditFilter,
        gives=AuditEvent,
        call=list_audit,
        query=AUDIT_FILTERS,
        summary="List audit events, newest first.",
    ),
    *PUBLIC_TRUST_AUDITS,
    *PUBLIC_SECURITY_SCANS,
    *PUBLIC_ACCEPTANCE_OPERATIONS,
)
