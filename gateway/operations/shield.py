"""The rows of the shield on the internal API: scan, try a policy, the rules and how they hold, the validation suite."""

from dataclasses import dataclass, field
from typing import TypeVar

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.field_types import LINE_PATTERN
from gateway.operations.operation import Answer, ById, Door, Operation, kind
from gateway.operations.views import project
from gateway.services.policies import Actions, Score, WantedPolicy
from gateway.services.rules import RuleInUse, WantedOverride
from gateway.services.scans import ScanAnswer, ScanText, scan_schema
from gateway.services.shield_tests import RunShieldTests, ShieldTestsRun, ShieldTestsState
from gateway.shield.detections import Direction, Severity

View = TypeVar("View")


@dataclass(frozen=True, slots=True, kw_only=True)
class TryText(ScanText):
    """A text that an operator scans. record: false leaves no traffic, alert, threat or audit event behind."""

    record: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TryPolicy(ScanText):
    """A text, and thresholds and weights to judge it by; what is left out is as by default."""

    block_score: Score | None = None
    review_score: Score | None = None
    category_actions: Actions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule as it holds here. file_severity: what the rule file says. hits: in the last seven days."""

    id: str
    name: str
    category: str
    severity: Severity
    file_severity: Severity
    enabled: bool
    confidence: float
    description: str
    direction: tuple[Direction, ...]
    view: str
    standards: tuple[str, ...]
    tags: tuple[str, ...]
    hits: int
    reason: str | None
    changed_at: int | None
    changed_by: str | None
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDetail(RuleView):
    """A rule with what it looks for, and the texts that it must and must not match."""

    literals: tuple[str, ...]
    pattern: str | None
    validator: str | None
    match: tuple[str, ...]
    passes: tuple[str, ...] = field(metadata={"json_name": "pass"})


def _view(cls: type[View], found: RuleInUse) -> View:
    rule, override = found.rule, found.override
    return project(
        cls,
        rule,
        severity=found.severity,
        file_severity=rule.severity,
        enabled=found.enabled,
        direction=tuple(sorted(rule.direction)),
        hits=found.hits,
        reason=override.reason if override else None,
        changed_at=override.changed_at if override else None,
        changed_by=override.changed_by if override else None,
        version=override.version if override else 0,
    )


def view_rule(found: RuleInUse) -> RuleView:
    """Return what a list shows of a rule."""
    return _view(RuleView, found)


def detail_rule(found: RuleInUse) -> RuleDetail:
    """Return all there is to show of a rule."""
    return _view(RuleDetail, found)


async def scan(gateway: Gateway, who: Principal, command: ScanText, context: RequestContext) -> ScanAnswer:
    """Scan one text as a caller's would be, and count its verdict."""
    answer = await gateway.scans.scan(who, command, context)
    gateway.metrics.count("gateway_scans_total", source="scan", verdict=answer.verdict.value)
    return answer


async def try_text(gateway: Gateway, who: Principal, command: TryText, context: RequestContext) -> ScanAnswer:
    """Scan one text for an operator, who says whether it counts."""
    if command.record:
        return await scan(gateway, who, command, context)
    return await gateway.scans.scan(who, command, context, is_recorded=False)


async def try_policy(gateway: Gateway, who: Principal, command: TryPolicy, context: RequestContext) -> ScanAnswer:
    """Judge one text by thresholds and weights, and record nothing."""
    wanted = WantedPolicy(
        block_score=command.block_score,
        review_score=command.review_score,
        category_actions=command.category_actions,
    )
    return await gateway.scans.rehearse(ScanText(command.text, command.direction), gateway.policies.draft(wanted))


async def list_rules(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[RuleView]:
    """Return all rules as one page."""
    rules = tuple(view_rule(found) for found in await gateway.rules.list())
    return Page(rules, len(rules), None)


async def show_rule(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> RuleDetail:
    """Return one rule with its examples."""
    return detail_rule(await gateway.rules.show(command.id))


async def change_rule(gateway: Gateway, who: Principal, command: WantedOverride, context: RequestContext) -> RuleDetail:
    """Set how a rule holds."""
    return detail_rule(await gateway.rules.change(who, command, context))


async def show_tests(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> ShieldTestsState:
    """Return the last runs of the validation suite, and the one that is under way."""
    return await gateway.shield_tests.state()


async def run_tests(
    gateway: Gateway, who: Principal, command: RunShieldTests, context: RequestContext
) -> ShieldTestsRun:
    """Run the validation suite."""
    return await gateway.shield_tests.run(who, command, context)


SHIELD_OPERATIONS = (
    Operation(
        name="shield.try",
        route=("POST", "/api/shield/scan"),
        door=Door.SESSION,
        needs=Permission.SHIELD_READ,
        takes=TryText,
        gives=ScanAnswer,
        write=ScanAnswer.data,
        schema=scan_schema,
        call=try_text,
        body_setting="max_scan_body_bytes",
        max_chars={"text": "max_text_chars"},
        summary="Scan a text. The gateway records the scan unless `record` is false.",
    ),
    Operation(
        name="shield.rehearse",
        route=("POST", "/api/shield/dry-run"),
        door=Door.SESSION,
        needs=Permission.SHIELD_READ,
        takes=TryPolicy,
        gives=ScanAnswer,
        write=ScanAnswer.data,
        schema=scan_schema,
        call=try_policy,
        body_setting="max_scan_body_bytes",
        max_chars={"text": "max_text_chars"},
        summary="Judge a text by `block_score`?, `review_score`? and `category_actions`?. Nothing is recorded.",
    ),
    Operation(
        name="shield.rules.in_use",
        route=("GET", "/api/shield/rules"),
        door=Door.SESSION,
        needs=Permission.SHIELD_READ,
        answer=Answer.PAGE,
        gives=RuleView,
        call=list_rules,
        summary="List the rules as they hold here, with how often each matched in seven days.",
    ),
    Operation(
        name="shield.rules.show",
        route=("GET", "/api/shield/rules/{id}"),
        door=Door.SESSION,
        needs=Permission.SHIELD_READ,
        takes=ById,
        gives=RuleDetail,
        call=show_rule,
        summary="Show one rule with what it looks for and its examples.",
    ),
    Operation(
        name="shield.rules.change",
        route=("PATCH", "/api/shield/rules"),
        door=Door.SESSION,
        needs=Permission.SHIELD_MANAGE,
        takes=WantedOverride,
        gives=RuleDetail,
        call=change_rule,
        kinds=(
            kind(enabled={"enum": [True, None]}),
            kind(("enabled", "reason"), enabled={"const": False}, reason={"type": "string", "pattern": LINE_PATTERN}),
        ),
        summary="Set how `rule` holds: `enabled`?, `severity`? (or `default`), `reason`?. At once, in every worker.",
    ),
    Operation(
        name="shield.tests.show",
        route=("GET", "/api/shield/tests"),
        door=Door.SESSION,
        needs=Permission.SHIELD_READ,
        gives=ShieldTestsState,
        call=show_tests,
        summary="Show the last run of the validation suite, older ones in short, and how far one is that runs.",
    ),
    Operation(
        name="shield.tests.run",
        route=("POST", "/api/shield/tests"),
        door=Door.SESSION,
        needs=Permission.SHIELD_MANAGE,
        takes=RunShieldTests,
        gives=ShieldTestsRun,
        call=run_tests,
        status=201,
        summary="Run the validation suite: `category`?, `include_known_gaps`?. Answers when it is done.",
    ),
)
